"""Claims that become others after a pod's admission: none asks for more than its pod was admitted with.

Pods are admitted before their ResourceClaims are made, and a claim that nobody uses yet may be deleted and made again.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from localcluster import Cluster, ControlPlane
from tests.builders.claims import a_claim, a_claim_template, a_device, a_device_class, a_slice

from .installed import Installed, Tree, gpu_pod
from .test_resource_claims import claiming

pytestmark = pytest.mark.apiserver


@contextmanager
def no_claims_made(cluster: Cluster) -> Iterator[None]:
    """The controller manager, which makes claims of templates, is away. Afterwards it knows what is there then."""
    if not isinstance(cluster, ControlPlane):
        pytest.skip("the controller manager of this cluster can't be stopped")
    manager = cluster.processes.named("kube-controller-manager")
    cluster.processes.end(manager)
    try:
        yield
    finally:
        cluster.processes.start(manager.name, manager.command)


@pytest.fixture(scope="module")
def devices_on(installed: Installed) -> Iterator[str]:
    """A node with 16 devices that the scheduler allocates to claims."""
    node = "node-of-devices"
    installed.cluster.add_node(node)
    devices = (a_device(f"gpu-{index}") for index in range(16))
    whole = a_device_class("gpu.nvidia.com", "device.driver == 'gpu.nvidia.com'")
    installed.api.apply(whole.json(), a_slice(*devices, node=node).json())
    yield node
    installed.api.delete(f"resourceslice/{node}", "deviceclass/gpu.nvidia.com", f"node/{node}")


def allocated(installed: Installed, namespace: str) -> int:
    """The devices that the scheduler has given to the claims of a namespace."""
    claims = installed.get("resourceclaims", namespace)["items"]
    return sum(
        len(each.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())) for each in claims
    )


@pytest.mark.usefixtures("tenant")
@pytest.mark.parametrize("source", ["resourceClaimName", "resourceClaimTemplateName"])
def test_what_dry_runs_have_named_is_read_again(
    installed: Installed, namespace: str, devices_on: str, source: str
) -> None:
    make = a_claim if source == "resourceClaimName" else a_claim_template
    kind = source.removesuffix("Name").lower()
    pod = claiming("greedy", devices_on, **{source: "gpus"})
    assert installed.create(make("gpus", 1).unplaced(), namespace).code == 0
    assert installed.create(pod, namespace, dry_run=True).code == 0
    delete(installed, f"{kind}/gpus", namespace)
    assert installed.create(make("gpus", 16).unplaced(), namespace).code == 0
    refused = installed.create(pod, namespace)
    if not refused.code:
        installed.eventually(lambda: allocated(installed, namespace) > 0, "what the scheduler gives it")
    assert allocated(installed, namespace) <= 2
    assert "the total allows 2 GPUs; this pod asks for 16" in refused.stderr


def ready(installed: Installed, tenant: str) -> str:
    found = installed.condition(tenant, "Ready")
    return f"{found.get('reason')}: {found.get('message')}"


def delete(installed: Installed, what: str, namespace: str) -> None:
    installed.cluster.kubectl("delete", what, f"--namespace={namespace}")


def test_a_template_that_is_swapped_before_the_claim_is_made(
    installed: Installed, namespace: str, tenant: str, devices_on: str
) -> None:
    assert installed.create(a_claim_template("gpus", 1).unplaced(), namespace).code == 0
    with no_claims_made(installed.cluster):
        assert installed.create(claiming("modest", devices_on, resourceClaimTemplateName="gpus"), namespace).code == 0
        installed.eventually(lambda: installed.usage(tenant) == "total 1/2", "the GPU that it was admitted with")
        delete(installed, "resourceclaimtemplate/gpus", namespace)
        assert installed.create(a_claim_template("gpus", 8).unplaced(), namespace).code == 0
    refused = (
        "spec.devices: asks for 8 GPUs, but pod modest was admitted with 1 by its claim gpu; ask for no more, or "
        "delete the pod and create it again once the claim or its template exists"
    )
    failures = ("get", "events", f"--namespace={namespace}", "--field-selector=reason=FailedResourceClaimCreation")
    installed.eventually(
        lambda: refused in installed.cluster.kubectl(*failures).stdout or allocated(installed, namespace) > 0,
        "what became of the claim",
    )
    assert (allocated(installed, namespace), installed.usage(tenant)) == (0, "total 1/2")

    delete(installed, "resourceclaimtemplate/gpus", namespace)
    assert installed.create(a_claim_template("gpus", 1).unplaced(), namespace).code == 0
    installed.eventually(lambda: allocated(installed, namespace) == 1, "the GPU that it was admitted with")


@pytest.mark.usefixtures("tenant")
def test_a_template_that_is_swapped_afterwards_changes_nothing(installed: Installed, namespace: str) -> None:
    assert installed.create(a_claim_template("gpus", 1).unplaced(), namespace).code == 0
    assert installed.create(claiming("modest", resourceClaimTemplateName="gpus"), namespace).code == 0
    installed.eventually(
        lambda: "resourceClaimStatuses" in installed.get("pod/modest", namespace)["status"], "the claim that is made"
    )
    delete(installed, "resourceclaimtemplate/gpus", namespace)
    assert installed.create(a_claim_template("gpus", 8).unplaced(), namespace).code == 0
    installed.change_leader()
    full = "the total is at 1 of 2 GPUs; this pod asks for 2"
    installed.eventually(lambda: full in installed.create(gpu_pod("next", 2), namespace).stderr, "one GPU in use")


GATED: Any = {"schedulingGates": [{"name": "example.com/later"}]}


def owned(made: Tree, pod: Tree) -> Tree:
    """A claim as the controller makes it for a pod."""
    owner = {"apiVersion": "v1", "kind": "Pod", "controller": True} | {
        key: pod["metadata"][key] for key in ("name", "uid")
    }
    annotations = {"resource.kubernetes.io/pod-claim-name": "gpu"}
    return made | {"metadata": made["metadata"] | {"ownerReferences": [owner], "annotations": annotations}}


def open_gate(installed: Installed, pod: str, namespace: str) -> None:
    patch = (
        "patch",
        "pod",
        pod,
        f"--namespace={namespace}",
        "--type=merge",
        '--patch={"spec":{"schedulingGates":null}}',
    )
    installed.cluster.kubectl(*patch)


def test_the_claim_of_a_gated_pod_is_made_again(
    installed: Installed, namespace: str, tenant: str, devices_on: str
) -> None:
    assert installed.create(a_claim("mine", 2).unplaced(), namespace).code == 0
    assert installed.create(claiming("waits", devices_on, resourceClaimName="mine", **GATED), namespace).code == 0
    installed.eventually(lambda: installed.usage(tenant) == "total 2/2", "the claim in the status")
    delete(installed, "resourceclaim/mine", namespace)
    refused = installed.create(a_claim("mine", 5).unplaced(), namespace)
    if not refused.code:
        open_gate(installed, "waits", namespace)
        installed.eventually(lambda: allocated(installed, namespace) > 0, "what the scheduler gives it")
    assert allocated(installed, namespace) == 0
    assert "5 GPUs, but pod waits was admitted with 2 by its claim gpu; ask for no more" in refused.stderr

    assert installed.create(a_claim("mine", 1).unplaced(), namespace).code == 0
    assert "the total is at 2 of 2 GPUs" in installed.create(gpu_pod("next"), namespace).stderr, "it may be 2 again"
    delete(installed, "resourceclaim/mine", namespace)
    assert installed.create(a_claim("mine", 2).unplaced(), namespace).code == 0
    open_gate(installed, "waits", namespace)
    installed.eventually(lambda: allocated(installed, namespace) == 2, "what it was admitted with")


def test_the_claim_of_a_pod_whose_author_wrote_its_node_is_made_smaller_and_larger(
    installed: Installed, namespace: str, tenant: str, devices_on: str
) -> None:
    """No scheduler has given its claim anything, so it can be deleted again and again."""
    assert installed.create(a_claim("mine", 2).unplaced(), namespace).code == 0
    pod = claiming("there", resourceClaimName="mine")
    pod["spec"] = {key: value for key, value in pod["spec"].items() if key != "nodeSelector"} | {"nodeName": devices_on}
    assert installed.create(pod, namespace).code == 0
    installed.eventually(lambda: installed.usage(tenant) == "total 2/2", "the claim in the status")
    delete(installed, "resourceclaim/mine", namespace)
    assert installed.create(a_claim("mine", 1).unplaced(), namespace).code == 0
    installed.cluster.kubectl("annotate", "pod/there", f"--namespace={namespace}", "example.com/event=one")
    assert "the total is at 2 of 2 GPUs" in installed.create(gpu_pod("next"), namespace).stderr


@pytest.mark.usefixtures("tenant")
def test_no_claim_goes_whose_devices_are_in_use(installed: Installed, namespace: str, devices_on: str) -> None:
    """They would otherwise be given to another pod as well, and the claim be made again for as many more."""
    kubectl, here = installed.cluster.kubectl, f"--namespace={namespace}"
    assert installed.create(a_claim("mine", 2).unplaced(), namespace).code == 0
    assert installed.create(claiming("runs", devices_on, resourceClaimName="mine"), namespace).code == 0
    installed.eventually(lambda: allocated(installed, namespace) == 2, "the devices")
    patch = '--patch={"metadata":{"finalizers":null}}'
    for _ in ("before it is deleted", "afterwards"):
        patched = kubectl("patch", "resourceclaim/mine", here, "--type=merge", patch, check=False)
        assert "resource.kubernetes.io/delete-protection stays while the claim has devices" in patched.stderr
        kubectl("delete", "resourceclaim/mine", here, "--wait=false")
    kubectl("delete", "pod/runs", here, "--grace-period=0", "--force")
    gone = ("get", "resourceclaims", here, "--output=name")
    installed.eventually(lambda: not kubectl(*gone).stdout, "the end of the claim with its pod's")


@pytest.mark.usefixtures("tenant")
def test_a_claim_that_is_made_again_while_its_pod_waits_for_room(
    installed: Installed, namespace: str, devices_on: str
) -> None:
    """A pod with a controller waits a second; meanwhile its claim grows, and another pod makes room."""
    assert installed.create(gpu_pod("full", 2), namespace).code == 0
    assert installed.create(a_claim("mine", 1).unplaced(), namespace).code == 0
    boss = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "boss"}}
    assert installed.create(boss, namespace).code == 0
    uid = installed.get("configmap/boss", namespace)["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "boss", "uid": uid, "controller": True}
    pod = claiming("modest", devices_on, resourceClaimName="mine")
    pod["metadata"]["ownerReferences"] = [owner]
    with ThreadPoolExecutor() as pool:
        waits = pool.submit(installed.create, pod, namespace)
        delete(installed, "resourceclaim/mine", namespace)
        grown = pool.submit(installed.create, a_claim("mine", 8).unplaced(), namespace)
        room = ("delete", "pod/full", f"--namespace={namespace}", "--grace-period=0", "--force")
        installed.cluster.kubectl(*room)
        assert waits.result().code or grown.result().code
    assert allocated(installed, namespace) == 0


@pytest.mark.usefixtures("tenant")
def test_a_claim_by_hand_that_the_controller_would_adopt(installed: Installed, namespace: str, devices_on: str) -> None:
    """The claim is made so at once, or first stands alone, which charges nobody."""
    assert installed.create(a_claim_template("gpus", 1).unplaced(), namespace).code == 0
    with no_claims_made(installed.cluster):
        pod = claiming("modest", devices_on, resourceClaimTemplateName="gpus")
        made = json.loads(installed.create(pod, namespace).stdout)
        by_hand = installed.create(owned(a_claim("by-hand", 8).unplaced(), made), namespace)
        assert installed.create(a_claim("alone", 8).unplaced(), namespace).code == 0
        patch = json.dumps(owned(a_claim("alone", 8).unplaced(), made))
        command = ("patch", "resourceclaim/alone", f"--namespace={namespace}", "--type=merge", f"--patch={patch}")
        adopted = installed.cluster.kubectl(*command, check=False)
    installed.eventually(lambda: allocated(installed, namespace) > 0, "what the scheduler gives it")
    assert allocated(installed, namespace) == 1
    for answer in (by_hand, adopted):
        assert "8 GPUs, but pod modest was admitted with 1 by its claim gpu; ask for no more" in answer.stderr


@pytest.mark.usefixtures("tenant")
def test_nobody_else_says_what_a_pod_was_admitted_with(installed: Installed, namespace: str) -> None:
    assert installed.create(a_claim_template("gpus", 1).unplaced(), namespace).code == 0
    pod = claiming("modest", resourceClaimTemplateName="gpus")
    pod["metadata"]["annotations"] = {"gpu-tiers.dev/claimed": "gpu=8"}
    made = json.loads(installed.create(pod, namespace).stdout)
    assert made["metadata"]["annotations"]["gpu-tiers.dev/claimed"] == "gpu=1"
    annotate = ("annotate", "pod/modest", "--overwrite", f"--namespace={namespace}", "gpu-tiers.dev/claimed=gpu=8")
    assert "gpu=8, but it was gpu=1; what a pod's claims may ask for is fixed" in (
        installed.cluster.kubectl(*annotate, check=False).stderr
    )


def test_who_only_warns_counts_what_the_pods_get(installed: Installed, namespace: str, tenant: str) -> None:
    """No event of the pod tells of it; in Enforce it may be there from before."""
    installed.upgrade(mode="Warn")
    try:
        assert installed.create(claiming("early", resourceClaimName="late"), namespace).code == 0
        late = installed.create(a_claim("late", 5).unplaced(), namespace)
    finally:
        installed.upgrade()
    assert "would be refused: spec.devices: asks for 5 GPUs, but pod early was admitted with 0" in late.stderr
    installed.eventually(lambda: installed.usage(tenant) == "total 5/2", "the claim")
    over = "OverQuota: the total is at 5 of 2; nothing is evicted, and new pods that count there are refused"
    installed.eventually(lambda: ready(installed, tenant) == over, "the condition")
    assert "the total is at 5 of 2 GPUs" in installed.create(gpu_pod("next"), namespace).stderr


def test_while_a_claim_is_gone_its_pod_counts_as_before(installed: Installed, namespace: str, tenant: str) -> None:
    assert installed.create(a_claim("mine", 2).unplaced(), namespace).code == 0
    assert installed.create(claiming("waits", resourceClaimName="mine"), namespace).code == 0
    installed.eventually(lambda: installed.usage(tenant) == "total 2/2", "the claim in the status")
    delete(installed, "resourceclaim/mine", namespace)
    installed.api.annotate("pod/waits", {"example.com/event": "one"}, namespace)
    installed.eventually(lambda: "claims not counted" in installed.log(), "the pod's event")
    refused = installed.create(gpu_pod("next"), namespace).stderr
    assert "the total is at 2 of 2 GPUs; this pod asks for 1" in refused
    assert installed.usage(tenant) == "total 2/2"
