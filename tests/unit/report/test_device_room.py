"""The sentence about a pod that waits for devices of DRA: who uses them, and that nobody is evicted for them."""

from typing import Any

from tests.builders.claims import a_device, a_slice
from tests.unit.policy.devices.test_devices import CLASS, DRIVER, there
from webhook.objects.view import view
from webhook.policy.devices import DeviceClaim, Inventory, WantedDevices, inventory
from webhook.report.device_room import EVICTS_NOBODY, DeviceUse, room_by_devices
from webhook.report.pending import GpuHolder, NodeForPod, Room, Waiting

WAITS = Waiting({}, 1000, "gpu-training")
NODES = [NodeForPod("node-a", {}), NodeForPod("node-b", {}, "has the taint x:NoSchedule")]


def a_claim(device: str, *users: str, pod: str = "", resource: str = "pods") -> DeviceClaim:
    """A claim that holds a device; one made of a template is owned by its pod."""
    owners = [{"kind": "Pod", "name": pod}] if pod else []
    tree = {
        "metadata": {"name": f"claim-{device}", "namespace": "team", "ownerReferences": owners},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}]}},
        "status": {
            "allocation": {
                "devices": {"results": [{"request": "gpu", "driver": DRIVER, "pool": "node-a", "device": device}]}
            },
            "reservedFor": [{"resource": resource, "name": each, "uid": f"uid-of-{each}"} for each in users],
        },
    }
    return view(tree, DeviceClaim)


def a_pod(name: str, priority: int, **more: Any) -> GpuHolder:
    tier = {1000: "gpu-training", 400: "gpu-batch", 2000: "urgent"}[priority]
    return GpuHolder(f"team/{name}", "node-a", {}, priority, tier, "alpha", **more)


def room_with(found: Inventory, *pods: GpuHolder, count: int = 1) -> Room:
    by_uid = {f"uid-of-{each.name.partition('/')[2]}": each for each in pods}
    return room_by_devices(WAITS, WantedDevices(DRIVER, count), NODES, DeviceUse(found, by_uid))


def test_holders_are_named_with_their_tier_and_why_they_stay() -> None:
    names = ("lower", "equal", "higher", "ends", "unknown")
    claims = tuple(a_claim(f"gpu-{each}", each, pod=each) for each in names)
    found = inventory([a_slice(*(a_device(f"gpu-{each}") for each in names)).view()], (), claims, {DRIVER: CLASS})
    room = room_with(
        found, a_pod("lower", 400), a_pod("equal", 1000), a_pod("higher", 2000), a_pod("ends", 400, ends_in=4.0)
    )
    assert room.sentences == ("It waits for 1 device of gpu.nvidia.com on one node: node-a has 0 free.", EVICTS_NOBODY)
    assert {each.names: (each.tier, each.why) for each in room.holders} == {
        "team/lower": ("gpu-batch", "no: lower priority, but nobody is evicted for devices of DRA"),
        "team/equal": ("gpu-training", "no: the same priority"),
        "team/higher": ("urgent", "no: higher priority"),
        "team/ends": ("gpu-batch", "ending: its devices become free when it has ended"),
        "team/unknown": ("not known", "no: nobody is evicted for devices of DRA"),
    }


def test_a_named_claim_and_that_of_a_group_outlive_their_pods() -> None:
    claims = (a_claim("gpu-0", "one", "two"), a_claim("gpu-1", "gang", resource="podgroups"))
    found = inventory([a_slice(a_device("gpu-0"), a_device("gpu-1")).view()], (), claims, {DRIVER: CLASS})
    room = room_with(found, a_pod("one", 400), a_pod("two", 400))
    assert {each.names: each.why for each in room.holders} == {
        "team/one, team/two": "no: ResourceClaim team/claim-gpu-0, shared by 2 pods: free when no pod uses it",
        "team/gang": "no: PodGroup team/gang: free when the group is deleted",
    }


def test_what_no_pod_holds_and_is_not_to_be_had_either() -> None:
    tainted = a_device("gpu-0", {"key": "repair", "effect": "NoSchedule"})
    found = inventory([a_slice(tainted, a_device("gpu-1")).view()], (), (a_claim("gpu-1"),), {DRIVER: CLASS})
    assert room_with(found).sentences[2:] == (
        "Its request does not tolerate the taint repair:NoSchedule of device gpu-0 on node-a.",
        "Held by a ResourceClaim that is reserved for nobody: team/claim-gpu-1 (device gpu-1 on node-a).",
    )


def test_where_devices_are_free_it_waits_for_something_else() -> None:
    found = there(a_slice(a_device("gpu-0"), a_device("gpu-1")))
    assert room_with(found, count=2).sentences == (
        "It does not wait for devices: node-a has 2 devices of gpu.nvidia.com free.",
    )
    assert room_with(found, count=3).sentences[0].endswith(": node-a has 2 free.")


def test_where_no_device_would_do() -> None:
    assert room_with(there()).sentences == (
        "No node that accepts it has devices for DeviceClass gpu.nvidia.com in a ResourceSlice.",
    )
    assert room_with(there(a_slice(a_device(), driver="nic"))).sentences == (
        "No device on the nodes that accept it passes the selectors of gpu.nvidia.com and of its request.",
    )
    elsewhere = room_with(there(a_slice(a_device(), node="node-b")))
    assert elsewhere.sentences[0].startswith("No node that accepts it has devices"), "its taint keeps the pod off"


def test_devices_that_must_do_together_are_not_said_to_be_enough() -> None:
    """A constraint, allocationMode All, a capacity or a partition: free devices may be of no use."""
    found, partition = there(a_slice(a_device())), there(a_slice({**a_device(), "consumesCounters": [{}]}))
    unsure = "node-a has 1 device of gpu.nvidia.com free, but only the scheduler knows whether they fit its request."
    requests = [{"name": "gpu", "exactly": {"deviceClassName": DRIVER, "allocationMode": "All"}}]
    all_of_them = view({"spec": {"devices": {"requests": requests}}}, DeviceClaim)
    bound = view({"spec": {"devices": {"requests": [{"deviceClassName": DRIVER}], "constraints": [{}]}}}, DeviceClaim)
    for claim in (all_of_them, bound):
        ((_, wanted),) = claim.wanted()
        assert room_by_devices(WAITS, wanted, NODES, DeviceUse(found)).sentences == (unsure, EVICTS_NOBODY)
    assert room_with(partition).sentences == (unsure, EVICTS_NOBODY)


def test_what_the_selectors_leave_open_is_said() -> None:
    found = there(a_slice(a_device()))
    open_ended = WantedDevices(DRIVER, 1, ("device.capacity['x'].y.isGreaterThan(quantity('1'))",))
    assert room_by_devices(WAITS, open_ended, NODES, DeviceUse(found)).sentences == (
        "Only the scheduler knows whether a device passes the selectors of gpu.nvidia.com and of its request.",
        EVICTS_NOBODY,
    )
