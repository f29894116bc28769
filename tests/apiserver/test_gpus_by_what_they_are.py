"""GPUs by whatever name: a DeviceClass by what it selects, a resource by what it is called.

Each way to ask is tried by a tenant who may hold two GPUs.
"""

import json
import re
from collections.abc import Iterator

import pytest

from tests.builders.claims import a_claim, a_device, a_device_class, a_slice

from .asking import lint, page, why
from .installed import Installed, Tree, gpu_pod
from .test_resource_claims import claiming, job

pytestmark = pytest.mark.apiserver

NVIDIA = "device.driver == 'gpu.nvidia.com'"
TYPED = NVIDIA + " && device.attributes['gpu.nvidia.com'].type == '{}'"
PROFILE = "device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"
CLASSES = {
    "mig.nvidia.com": a_device_class("mig.nvidia.com", TYPED.format("mig")),
    "vfio.gpu.nvidia.com": a_device_class("vfio.gpu.nvidia.com", TYPED.format("vfio")),
    "fast": a_device_class("fast", NVIDIA, resource="example.com/thing"),
    "any": a_device_class("any"),
    "cards": a_device_class("cards", "device.driver == 'dra.net'", resource="example.com/card"),
}


@pytest.fixture(scope="module")
def classes(installed: Installed) -> Iterator[Installed]:
    """The classes that NVIDIA's driver brings, and others; each is known to the webhook."""
    installed.api.apply(*(each.json() for each in CLASSES.values()))
    yield installed
    installed.api.delete(*(f"deviceclass/{name}" for name in CLASSES))


def asking(name: str, resource: str, count: int, **spec: object) -> Tree:
    """A pod that asks for so many of a resource, and for no tier."""
    pod = gpu_pod(name, **spec)
    pod["spec"]["containers"][0]["resources"] = {"limits": {resource: str(count)}}
    return pod


def is_bounded(installed: Installed, namespace: str, tenant: str, *, three: Tree, two: Tree) -> None:
    refused = installed.create(three, namespace)
    assert f"tenant {tenant}: the total allows 2 GPUs; this pod asks for 3." in refused.stderr
    assert installed.create(two, namespace).code == 0
    installed.eventually(lambda: installed.usage(tenant) == "total 2/2", "the pod's GPUs in the status")
    assert "the total is at 2 of 2 GPUs" in installed.create(gpu_pod("more"), namespace).stderr


@pytest.mark.parametrize("name", ["mig.nvidia.com", "vfio.gpu.nvidia.com", "fast", "any", "not-there-yet"])
def test_a_claim_of_any_class_that_may_be_a_gpus(classes: Installed, namespace: str, tenant: str, name: str) -> None:
    for count in (2, 3):
        assert classes.create(a_claim(f"claim-{count}", count, deviceClassName=name).unplaced(), namespace).code == 0
    two, three = (claiming(f"pod-{count}", resourceClaimName=f"claim-{count}") for count in (2, 3))
    is_bounded(classes, namespace, tenant, three=three, two=two)


@pytest.mark.parametrize(
    "resource",
    [
        "example.com/thing",
        "deviceclass.resource.kubernetes.io/fast",
        "deviceclass.resource.kubernetes.io/mig.nvidia.com",
        "nvidia.com/gpu.shared",
        "amd.com/cpx_nps4",
        "huawei.com/Ascend910",
    ],
)
def test_a_resource_that_is_a_gpu_by_another_name(
    classes: Installed, namespace: str, tenant: str, resource: str
) -> None:
    three, two = (asking(f"pod-{count}", resource, count) for count in (3, 2))
    is_bounded(classes, namespace, tenant, three=three, two=two)


LONGEST = ".".join(["z" * 60] * 4) + "/nic-gpu-{:055}"
"""The name of a network card, of which the conditions cost most."""


@pytest.mark.parametrize(("containers", "names"), [(1, 540), (1, 560), (1, 580), (1, 1000), (31, 10)])
def test_among_so_many_other_names_that_the_api_server_gives_up(
    classes: Installed, namespace: str, tenant: str, containers: int, names: int
) -> None:
    """Conditions may cost only so much. Where one that refuses on an error did not reach that, the next one did."""
    pod = asking("pod", "example.com/thing", 3)
    for number in range(containers):
        limits = {LONGEST.format(number * names + each): "0" for each in range(names)}
        other = {"name": f"other-{number}", "image": "any", "resources": {"limits": limits}}
        pod["spec"]["containers"].insert(0, other)
    refused = classes.create(pod, namespace)
    assert "resources; gpu-tiers counts GPUs in 32 at most" in refused.stderr or "cost limit exceeded" in refused.stderr
    assert classes.usage(tenant) == "total 0/2"


def test_claims_that_would_take_too_long_to_count(classes: Installed, namespace: str, tenant: str) -> None:
    """A hundred such claims blocked the webhook for seconds, and each pod that named them took megabytes of it."""
    requests = [
        {"name": f"r{one}", "firstAvailable": [alternative(one, other) for other in range(8)]} for one in range(32)
    ]
    for name in ("one", "two"):
        made = {**a_claim(name, deviceClassName="cards").unplaced(), "spec": {"devices": {"requests": requests}}}
        assert classes.create(made, namespace).code == 0
    pod = gpu_pod("pod")
    names = ("one", "two", "one")
    pod["spec"]["resourceClaims"] = [{"name": f"c{n}", "resourceClaimName": name} for n, name in enumerate(names)]
    refused = classes.create(pod, namespace).stderr
    assert "denied the request: 512 requests of resourceClaims; gpu-tiers counts GPUs in 500 at most" in refused
    assert classes.usage(tenant) == "total 0/2"


def alternative(one: int, other: int) -> Tree:
    """One that is like no other, of network cards."""
    expression = f"device.attributes['gpu.nvidia.com'].profile == '{one}g.{other}'"
    return {"name": f"a{other}", "deviceClassName": "cards", "selectors": [{"cel": {"expression": expression}}]}


def test_network_cards_are_no_gpus(classes: Installed, namespace: str, tenant: str) -> None:
    assert classes.create(a_claim("cards", 3, deviceClassName="cards").unplaced(), namespace).code == 0
    pod = claiming("by-claim", resourceClaimName="cards")
    del pod["metadata"]["labels"]
    plugins = (asking("by-plugin", "nvidia.com/hostdev", 3), asking("by-interface", "nvidia.com/resibp12s0", 3))
    for each in (pod, asking("by-name", "example.com/card", 3), *plugins):
        made = json.loads(classes.create(each, namespace).stdout)
        assert "priorityClassName" not in made["spec"]
    assert classes.usage(tenant) == "total 0/2"


def test_parts_of_gpus_count_once(classes: Installed, namespace: str, tenant: str) -> None:
    """The old count by single resources refused a vGPU as 41 GPUs, and memory as no number of GPUs."""
    vgpu = asking("vgpu", "mthreads.com/vgpu", 1)
    limits = {"mthreads.com/vgpu": "1", "mthreads.com/sgpu-core": "8", "mthreads.com/sgpu-memory": "32"}
    vgpu["spec"]["containers"][0]["resources"] = {"limits": limits}
    memory = asking("memory", "koordinator.sh/gpu-memory", 1)
    memory["spec"]["containers"][0]["resources"] = {"limits": {"koordinator.sh/gpu-memory": "16Gi"}}
    for each in (vgpu, memory):
        made = classes.create(each, namespace)
        assert not made.code, made.stderr
    classes.eventually(lambda: classes.usage(tenant) == "total 2/2", "a GPU of each in the status")
    assert "No node has" not in why(classes, namespace, "memory"), "that is not known of a part"


def test_a_mig_slice_counts_its_share(classes: Installed, namespace: str, tenant: str) -> None:
    sliced = {"selectors": [{"cel": {"expression": PROFILE}}]}
    for name, count in (("sixteen", 16), ("seventeen", 17)):
        assert (
            classes.create(a_claim(name, count, deviceClassName="mig.nvidia.com", **sliced).unplaced(), namespace).code
            == 0
        )
    refused = classes.create(claiming("over", resourceClaimName="seventeen"), namespace)
    assert "the total allows 2 GPUs; this pod asks for 2.125." in refused.stderr
    assert classes.create(claiming("fits", resourceClaimName="sixteen"), namespace).code == 0
    classes.eventually(lambda: classes.usage(tenant) == "total 2/2", "the slices in the status")


def test_a_workload_is_refused_for_a_class_by_its_template(classes: Installed, namespace: str, tenant: str) -> None:
    made = a_claim("gpus", deviceClassName="fast").unplaced()
    template = {**made, "kind": "ResourceClaimTemplate", "spec": {"spec": made["spec"]}}
    assert classes.create(template, namespace).code == 0
    refused = classes.create(job("wide", 3), namespace)
    assert f"tenant {tenant}: the total allows 2 GPUs; this Job asks for 3 in all" in refused.stderr


def test_lint_tells_what_each_class_counts(classes: Installed) -> None:
    findings = json.loads(lint(classes, "--output=json").stdout)["findings"]
    answer = {each["where"]: each["what"] for each in findings if each["id"] == "device-class-counts"}
    assert {name: answer[f"DeviceClass/{name}"] for name in CLASSES} == {
        "mig.nvidia.com": "counts 1 GPU a device: its driver is gpu.nvidia.com",
        "vfio.gpu.nvidia.com": "counts 1 GPU a device: its driver is gpu.nvidia.com",
        "fast": "counts 1 GPU a device, also as example.com/thing: its driver is gpu.nvidia.com",
        "any": "counts 1 GPU a device: its selectors name no driver, so a GPU may be among its devices",
        "cards": "counts 0 GPU a device, also as example.com/card: no GPU is known of its driver, dra.net",
    }


FOUR = tuple(a_device(f"gpu-{number}") for number in range(4))


def test_the_claim_that_the_scheduler_makes_is_not_counted_beside_its_pod(
    classes: Installed, namespace: str, tenant: str, node: str
) -> None:
    classes.api.apply(a_slice(*FOUR, node=node).json())
    assert classes.create(asking("runs", "example.com/thing", 2, node=node), namespace).code == 0
    classes.eventually(lambda: bool(classes.get("resourceclaims", namespace)["items"]), "the scheduler's claim")
    classes.eventually(lambda: classes.get("pod/runs", namespace)["status"]["phase"] == "Running", "the pod")
    assert "extendedResourceClaimStatus" in classes.get("pod/runs", namespace)["status"]
    classes.eventually(lambda: classes.usage(tenant) == "total 2/2", "the pod's GPUs, once")
    classes.api.delete(f"resourceslice/{node}")


def test_an_unknown_driver_is_recognised_by_what_it_offers(classes: Installed, namespace: str, tenant: str) -> None:
    classes.api.apply(a_device_class("odd", "device.driver == 'accel.example.com'").json())
    pods = [asking(name, "deviceclass.resource.kubernetes.io/odd", 3) for name in ("before", "after")]
    classes.eventually(lambda: not classes.create(pods[0], namespace, dry_run=True).code, "the class")
    device = a_device(cudaComputeCapability={"version": "9.0.0"})
    classes.api.apply(a_slice(device, node=namespace, driver="accel.example.com").json())
    refusal = f"tenant {tenant}: the total allows 2 GPUs; this pod asks for 3."
    classes.eventually(
        lambda: refusal in classes.create(pods[1], namespace, dry_run=True).stderr, "what its slices tell"
    )
    assert "counts 1 GPU a device: its driver is accel.example.com" in lint(classes).stdout.replace("\n", " ")
    classes.api.delete(f"resourceslice/{namespace}", "deviceclass/odd")


def test_a_class_that_turns_out_to_be_no_gpus_frees_them(classes: Installed, namespace: str, tenant: str) -> None:
    """A pod that was admitted before its class existed is counted by what the class is."""
    waiting = asking("waits", "deviceclass.resource.kubernetes.io/later", 2)
    assert classes.create(waiting, namespace).code == 0
    classes.eventually(lambda: classes.usage(tenant) == "total 2/2", "as it may be a GPU's")
    classes.api.apply(a_device_class("later", "device.driver == 'dra.net'").json())
    classes.eventually(lambda: classes.usage(tenant) == "total 0/2", "by what it is")
    classes.api.delete("deviceclass/later")


@pytest.fixture
def without_a_device_plugin(classes: Installed, namespace: str) -> Iterator[str]:
    """A node whose four GPUs a ResourceSlice offers, by the name under which others are resources of nodes."""
    name = f"dra-{namespace}"
    classes.cluster.add_node(name, gpus=0)
    classes.api.apply(a_slice(*FOUR, node=name).json())
    classes.api.apply(a_device_class("plain", NVIDIA, resource="nvidia.com/gpu").json())
    yield name
    classes.api.delete("deviceclass/plain", f"resourceslice/{name}", f"node/{name}")


def test_gpus_of_a_resource_slice_are_not_missing_and_free_by_their_claims_alone(
    classes: Installed, namespace: str, without_a_device_plugin: str
) -> None:
    """The page counts what nodes offer, and knows nothing of slices. Claims show `why-pending` which are in use."""

    def bar() -> tuple[float, ...]:
        """Return the GPUs in use, and those that are free."""
        found = re.search(r"<strong>([\d.]+)</strong> of [\d.]+ in use, <strong>([\d.]+)</strong> free", page(classes))
        return tuple(map(float, found.groups())) if found else ()

    classes.wait_for_earlier_tests()
    classes.eventually(lambda: bool(bar()), "the leader's page")
    used, free = bar()
    taken = asking("taken", "nvidia.com/gpu", 3, node=without_a_device_plugin)
    assert classes.create(taken, namespace).code == 0
    classes.eventually(
        lambda: bar() == (used + 3, free), "they count once a pod holds them, and the fourth is not free"
    )
    assert "extendedResourceClaimStatus" in classes.get("pod/taken", namespace)["status"]
    waits = asking("waits", "nvidia.com/gpu", 2, node=without_a_device_plugin)
    assert classes.create(waits, namespace).code == 0
    classes.eventually(lambda: "The scheduler says: " in why(classes, namespace, "waits"), "the scheduler's word")
    answer = why(classes, namespace, "waits")
    assert "No node has nvidia.com/gpu" not in answer
    assert f"{without_a_device_plugin} has 1 free" in answer
    assert f"{namespace}/taken" in answer
