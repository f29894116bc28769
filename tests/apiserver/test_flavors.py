"""The flavor row of a pod on a real API server: that of its node, or of the flavor that its lifted gate names."""

import json
from collections.abc import Iterator

import pytest

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

PRODUCT = "nvidia.com/gpu.product"
H100 = {PRODUCT: "NVIDIA-H100-80GB-HBM3"}


@pytest.fixture
def tenant(installed: Installed, namespace: str) -> Iterator[str]:
    """A tenant that may hold 9 GPUs, 2 of them H100."""
    name = f"tenant-{namespace}"
    with installed.tenant_for(name, namespace, quotas=[{"gpus": 9}, {"resourceFlavor": "h100", "gpus": 2}]) as name:
        yield name


def used(installed: Installed, tenant: str) -> str:
    rows = installed.get(f"tenantquota/{tenant}", "")["status"]["usage"]
    return next(str(row["used"]) for row in rows if row.get("resourceFlavor") == "h100")


def test_a_pod_counts_on_the_flavor_of_its_node_as_the_node_is_labelled(
    installed: Installed, namespace: str, tenant: str, node: str
) -> None:
    assert not installed.create(gpu_pod("anywhere", 1, node=node), namespace).code
    installed.eventually(lambda: bool(installed.get("pod/anywhere", namespace)["spec"].get("nodeName")), "a node")
    installed.eventually(lambda: used(installed, tenant) == "0", "a pod that may run on no H100 any more")
    installed.api.label(f"node/{node}", H100)
    installed.eventually(lambda: used(installed, tenant) == "1", "the pod on the row of its node's flavor")
    assert not installed.create(gpu_pod("another", 1, node=node), namespace).code
    installed.eventually(lambda: used(installed, tenant) == "2", "another one there")

    refused = installed.create(gpu_pod("pinned", 1, nodeSelector=H100), namespace).stderr
    assert f"exceeded quota: tenant {tenant}: h100 is at 2 of 2 GPUs; this pod asks for 1." in refused
    placed = installed.create(gpu_pod("placed", 1, nodeName=node), namespace).stderr
    assert "h100 is at 2 of 2 GPUs" in placed, "spec.nodeName is no way around"
    installed.api.label(f"node/{node}", {PRODUCT: None})
    installed.eventually(lambda: used(installed, tenant) == "0", "the row free again")


def ways_to(node: str) -> dict[str, dict[str, object]]:
    """Specs of pods that reach a node without naming its model, or may."""
    by_name = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [by_name]}}
    return {
        "its host name": {"nodeSelector": {"kubernetes.io/hostname": node}},
        "its name": {"nodeSelector": {}, "affinity": {"nodeAffinity": required}},
        "any label": {"nodeSelector": {"example.com/rack": node}},
        "a toleration": {"nodeSelector": {}, "tolerations": [{"operator": "Exists"}]},
        "nothing": {"nodeSelector": {}},
    }


def test_no_way_to_a_node_passes_the_row_of_its_flavor(
    installed: Installed, namespace: str, tenant: str, node: str
) -> None:
    installed.api.label(f"node/{node}", {**H100, "example.com/rack": node})
    for way, spec in ways_to(node).items():
        refused = installed.create(gpu_pod("large", 3, **spec), namespace).stderr
        assert "h100 allows 2 GPUs; this pod asks for 3. It names no flavor" in refused, way
    for name, way in (("first", "its host name"), ("second", "any label")):
        assert not installed.create(gpu_pod(name, 1, **ways_to(node)[way]), namespace).code
        refused = installed.create(gpu_pod("large", 2, **ways_to(node)["its name"]), namespace).stderr
        assert "h100 is at " in refused
        assert "of 2 GPUs; this pod asks for 2. It names no flavor" in refused
    installed.eventually(lambda: used(installed, tenant) == "2", "both on the row, and no more")
    other = gpu_pod("other", 2, nodeSelector={PRODUCT: "NVIDIA-L4"})
    assert not installed.create(other, namespace).code, "another model has its room"


def gated(name: str) -> dict[str, object]:
    """Return a pod that waits in Kueue's queue, as Kueue's webhook leaves it."""
    return gpu_pod(name, 1, nodeSelector={}, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])


def lift(installed: Installed, name: str, namespace: str, *arguments: str) -> str:
    """Admit it as Kueue does: the labels of its flavor and no gate, in one update. What the API server said of it."""
    change = json.dumps({"spec": {"schedulingGates": None, "nodeSelector": H100}})
    command = ("patch", "pod", name, f"--namespace={namespace}", "--type=merge", f"--patch={change}", *arguments)
    return installed.cluster.kubectl(*command, check=False).stderr


def test_a_pod_whose_gate_is_lifted_is_booked_on_the_flavor_that_it_then_names(
    installed: Installed, namespace: str, tenant: str
) -> None:
    for name in ("first", "second", "third"):
        assert not installed.create(gated(name), namespace).code
    assert lift(installed, "first", namespace, "--dry-run=server") == ""
    assert lift(installed, "first", namespace) == ""
    assert lift(installed, "second", namespace) == ""
    sentence = f"exceeded quota: tenant {tenant}: h100 is at 2 of 2 GPUs; this pod asks for 1. Would fit: no tier now."
    assert sentence in lift(installed, "third", namespace)
    assert installed.get("pod/third", namespace)["spec"]["schedulingGates"], "it waits on"
    installed.eventually(lambda: used(installed, tenant) == "2", "both on the row")

    installed.api.delete("pod/first", namespace=namespace, seconds=0)
    installed.eventually(lambda: lift(installed, "third", namespace) == "", "room for the third")

    assert not installed.create(gated("fourth"), namespace).code
    change = json.dumps({"spec": {"schedulingGates": None}})
    command = ("patch", "pod", "fourth", f"--namespace={namespace}", "--type=merge", f"--patch={change}")
    refused = installed.cluster.kubectl(*command, check=False).stderr
    assert "h100 is at 2 of 2 GPUs; this pod asks for 1. It names no flavor" in refused, "it could land there"


@pytest.mark.parametrize("model", [H100, {}], ids=["h100", "no flavor"])
def test_of_a_gate_that_was_lifted_no_reservation_is_left_once_the_pod_runs(
    installed: Installed, namespace: str, tenant: str, node: str, model: dict[str, str]
) -> None:
    """The pod may become an H100 pod; it is one or none before the leader has looked."""
    for key, value in model.items():
        installed.api.label(f"node/{node}", {key: value})
    gated = gpu_pod("gated", 1, node=node, schedulingGates=[{"name": "example.com/data"}])
    assert not installed.create(gated, namespace).code
    lift = ("patch", "pod", "gated", f"--namespace={namespace}", "--type=merge", '-p={"spec":{"schedulingGates":null}}')
    installed.cluster.kubectl(*lift)
    installed.eventually(lambda: installed.get("pod/gated", namespace)["status"]["phase"] == "Running", "the pod")
    account = lambda: installed.get(f"tenantquota/{tenant}", "")["status"]["ledger"]  # noqa: E731
    installed.eventually(lambda: not account().get("reservations"), "the end of its reservation")
    for key in model:
        installed.api.label(f"node/{node}", {key: None})


def test_a_gang_counts_on_the_flavor_of_its_namespaces_node_selector(
    installed: Installed, namespace: str, tenant: str
) -> None:
    """The plugin PodNodeSelector writes the selector on the pods before the webhook sees them."""
    selecting = "scheduler.alpha.kubernetes.io/node-selector"
    job = gang(gpu_pod("worker", 1, nodeSelector={}), parallelism=3)
    assert "It names no flavor" in installed.create(job, namespace).stderr
    annotate = ("annotate", "namespace", namespace, "--overwrite")
    installed.cluster.kubectl(*annotate, f"{selecting}={PRODUCT}=NVIDIA-L4")
    installed.eventually(lambda: not installed.create(job, namespace, dry_run=True).code, "the annotation seen")
    assert not installed.create(job, namespace).code
    there = lambda: pods_of(installed, namespace)  # noqa: E731
    installed.eventually(lambda: len(there()) == 3, "a pod for each of its three")
    assert {each["spec"]["nodeSelector"][PRODUCT] for each in there()} == {"NVIDIA-L4"}
    assert used(installed, tenant) == "0"

    installed.cluster.kubectl(*annotate, f"{selecting}={PRODUCT}={H100[PRODUCT]}")
    large = gang(gpu_pod("worker", 1, nodeSelector={}), parallelism=3)
    refused = lambda: installed.create(large, namespace, dry_run=True).stderr  # noqa: E731
    installed.eventually(lambda: "h100 allows 2 GPUs" in refused(), "the other flavor seen")

    other = gang(gpu_pod("worker", 1, nodeSelector={PRODUCT: "NVIDIA-L4"}), parallelism=1)
    warned = installed.create(other, namespace)
    assert not warned.code
    assert "[node-selector] nodeSelector nvidia.com/gp" in warned.stderr
    events = lambda: installed.cluster.kubectl("get", "events", f"--namespace={namespace}").stdout  # noqa: E731
    installed.eventually(lambda: "conflicts with its namespace node label selector" in events(), "the plugin's refusal")


def gang(pod: Tree, parallelism: int) -> Tree:
    """A Job of so many pods at once."""
    spec = {"parallelism": parallelism, "completions": parallelism, "template": {"spec": pod["spec"]}}
    spec["template"]["spec"]["restartPolicy"] = "Never"
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "gang-"}, "spec": spec}


def pods_of(installed: Installed, namespace: str) -> list[Tree]:
    """Return the pods of a namespace."""
    return list(installed.api.get("pods", namespace)["items"])
