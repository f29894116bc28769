"""The nodes that the real scheduler picks: one rack for a gang whose tier packs, both for replicas that spread."""

from collections.abc import Iterator

import pytest

from .installed import Installed, Tree, gpu_pod

pytestmark = pytest.mark.apiserver

RACK = "topology.kubernetes.io/rack"
NODES = {"a-1": "a", "a-2": "a", "b-1": "b", "b-2": "b"}
PLACEMENT = {
    "gpu-training": {"strategy": "Pack", "topologyKey": RACK, "maxRuntimeSeconds": 86_400},
    "gpu-serving": {"strategy": "Spread", "topologyKey": RACK},
}
QUARTER = {"requests": {"cpu": "250"}, "limits": {"nvidia.com/gpu": 2}}
"""Of a fake node's CPUs: the scheduler prefers the emptier node, so four such pods go to four nodes."""


@pytest.fixture
def racks(installed: Installed, namespace: str) -> Iterator[dict[str, str]]:
    """Two racks of two nodes with 4 GPUs each, by the nodes' names; only pods of this test ask for them."""
    nodes = {f"{node}-{namespace}": rack for node, rack in NODES.items()}
    for node, rack in nodes.items():
        installed.cluster.add_node(node, gpus=4, labels={RACK: rack, "for": namespace})
    yield nodes
    installed.api.delete(*(f"node/{each}" for each in nodes))


@pytest.fixture
def placing(installed: Installed) -> Iterator[None]:
    """A policy that packs training and spreads serving."""
    with installed.policy_with(placement=PLACEMENT):
        yield


def pods_of_a_gang(installed: Installed, namespace: str) -> list[Tree]:
    """Four workers of a PyTorchJob, as its operator makes them, each once it has its node."""
    worker = {"replicas": 4, "template": {"spec": gpu_pod("worker", 2)["spec"]}}
    job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "llm"}}
    applied = installed.create({**job, "spec": {"pytorchReplicaSpecs": {"Worker": worker}}}, namespace)
    assert applied.code == 0, applied.stderr
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "llm", "controller": True}
    names = [f"llm-worker-{number}" for number in range(4)]
    for name in names:
        pod = gpu_pod(name, 2, nodeSelector={"for": namespace})
        pod["metadata"] |= {
            "labels": {"training.kubeflow.org/job-name": "llm"},
            "ownerReferences": [{**owner, "uid": applied.json()["metadata"]["uid"]}],
        }
        pod["spec"]["containers"][0]["resources"] = QUARTER
        created = installed.create(pod, namespace)
        assert created.code == 0, created.stderr
    installed.eventually(lambda: all(each["spec"].get("nodeName") for each in found(installed, namespace)), "nodes")
    return found(installed, namespace)


def found(installed: Installed, namespace: str) -> list[Tree]:
    items: list[Tree] = installed.get("pods", namespace)["items"]
    return items


def test_without_placement_a_gang_lies_on_both_racks(
    installed: Installed, namespace: str, racks: dict[str, str]
) -> None:
    pods = pods_of_a_gang(installed, namespace)
    assert {racks[pod["spec"]["nodeName"]] for pod in pods} == {"a", "b"}


@pytest.mark.usefixtures("placing")
def test_pack_puts_a_gang_on_one_rack(installed: Installed, namespace: str, racks: dict[str, str]) -> None:
    pods = pods_of_a_gang(installed, namespace)
    assert len({racks[pod["spec"]["nodeName"]] for pod in pods}) == 1
    assert {pod["spec"]["activeDeadlineSeconds"] for pod in pods} == {86_400}


@pytest.mark.usefixtures("placing")
def test_spread_puts_the_replicas_of_a_deployment_on_both_racks(
    installed: Installed, namespace: str, racks: dict[str, str]
) -> None:
    pod = gpu_pod("chat", 1, tier="gpu-serving", nodeSelector={"for": namespace})
    pod["metadata"]["labels"] |= {"app": "chat"}
    template = {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "chat"}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "chat"}, "spec": spec}
    assert installed.create(deployment, namespace).code == 0

    def on_nodes() -> list[str]:
        return [each["spec"]["nodeName"] for each in found(installed, namespace) if each["spec"].get("nodeName")]

    installed.eventually(lambda: len(on_nodes()) == 2, "two replicas on their nodes")
    assert {racks[node] for node in on_nodes()} == {"a", "b"}
    (constraint, _) = found(installed, namespace)[0]["spec"]["topologySpreadConstraints"]
    assert constraint["matchLabelKeys"] == ["pod-template-hash"]
