"""Reads the devices that a pod waits for by DRA: what its claims and resources want, and who holds such devices."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal

from msgspec.structs import replace

from webhook.cli.cluster.one_object import AskedCluster
from webhook.cluster.listed import device_claims, device_taint_rules, resource_slices
from webhook.kube.discovery import server_version
from webhook.objects.pods import Pod
from webhook.objects.quantities import written
from webhook.objects.view import Tree, all_at, at
from webhook.policy.devices import DeviceClaim, WantedDevices, inventory
from webhook.policy.values.gpu_supply import evicts_for_devices
from webhook.report.device_room import EVICTS_NOBODY, DeviceUse, room_by_devices
from webhook.report.pending import GpuHolder, NodeForPod, Room, Waiting

NodesOf = Callable[[str], list[NodeForPod]]
"""The nodes on which DRA serves a resource; of "" those on which it serves claims."""


async def rooms_by_devices(
    asked: AskedCluster,
    pod: Pod,
    tree: Tree,
    waiting: Waiting,
    by_class: Mapping[str, Decimal],
    nodes_of: NodesOf,
    pods: Mapping[str, GpuHolder],
) -> list[Room]:
    """Return the room for each request of DRA of a pod; `by_class` are the resources of it that DeviceClasses serve.

    `pods` are those on nodes, by uid. Nothing is told of a version whose scheduler may evict for devices.
    """
    reader, classes = asked.reader, asked.policy.classes
    if evicts_for_devices(await reader.part("version", server_version(reader.client), (0, 0))):
        return []
    lost = "which devices are free, and who holds the others,"
    slices = await reader.part("slices", resource_slices(reader.client), None, lost)
    claims = await reader.part("allocations", device_claims(reader.client), None, lost)
    if slices is None or claims is None:
        names = [*by_class, *(each.source for each in pod.spec.resource_claims)]
        return [Room(" and ".join(names), (EVICTS_NOBODY,), None)]
    rules = await reader.part("device_taints", device_taint_rules(reader.client), (), "which devices are tainted")
    use = DeviceUse(inventory(slices, rules, claims, classes), pods)
    weights = asked.policy.weights
    rooms = [
        replace(
            room_by_devices(waiting, WantedDevices(device_class, int(count)), nodes_of(name), use),
            asks=f"{written(count)} {name}",
        )
        for name, count in by_class.items()
        if (device_class := weights.class_of(name))
    ]
    for found in _own_claims(pod, tree, claims):
        rooms += [found] if isinstance(found, Room) else _rooms_of(found, waiting, nodes_of(""), use)
    return rooms


def _own_claims(pod: Pod, tree: Tree, claims: tuple[DeviceClaim, ...]) -> Iterator[DeviceClaim | Room]:
    """Yield each claim of a pod, or why there is none yet."""
    by_key, namespace = {each.key: each for each in claims}, pod.metadata.namespace
    statuses = (each for _, each in all_at(tree, "status.resourceClaimStatuses.*"))
    made = {at(each, "name"): at(each, "resourceClaimName") for each in statuses}
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name or made.get(entry.name)
        found = by_key.get(f"{namespace}/{name}")
        if found is None:
            yield Room(
                entry.source, (f"It waits for its claim {entry.name}: there is none of {entry.source} yet.",), None
            )
        else:
            yield found


def _rooms_of(claim: DeviceClaim, waiting: Waiting, nodes: list[NodeForPod], use: DeviceUse) -> Iterator[Room]:
    held = [use.there.devices[key].node for key, _ in claim.held() if key in use.there.devices]
    if held:
        asks = f"ResourceClaim {claim.key}"
        yield Room(asks, (f"{asks} holds its devices on {held[0]} already, so it can start there alone.",), None)
    elif not claim.is_allocated:
        yield from (room_by_devices(waiting, wanted, nodes, use) for _, wanted in claim.wanted())
