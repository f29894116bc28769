"""The updates of a gated pod that reach the webhook if the policy has flavors. It is dead, so they are refused."""

from collections.abc import Iterator

import pytest

from localcluster import Cluster

from .asking import GPU, condition_errors, pod, wait_until_gpu_pods_are
from .helm import Manifest
from .release import Release
from .test_objects import FLAVORS

pytestmark = pytest.mark.apiserver

GATE = {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}]}
PINNED = {"matchExpressions": [{"key": "nvidia.com/gpu.product", "operator": "In", "values": ["NVIDIA-H100"]}]}
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [PINNED]}}}
CHOSEN = {"nodeSelector": {"zone": "b"}, "affinity": AFFINITY}
PODS = {
    "gated": pod(main=GPU, **GATE),
    "chosen": pod(main=GPU, **GATE, **CHOSEN),
    "cpu": pod(**GATE),
    "open": pod(main=GPU),
}
NOTE: Manifest = {"metadata": {"annotations": {"note": "1"}}}
LIFTED: Manifest = {"spec": {"schedulingGates": None, "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100"}}}
UPDATES: dict[str, tuple[str, Manifest, bool]] = {
    "a gate lifted with a node selector": ("gated", LIFTED, True),
    "one more label in the node selector": ("chosen", LIFTED, True),
    "a node selector behind the gate": ("gated", {"spec": {"nodeSelector": {"zone": "b"}}}, True),
    "a required node affinity behind the gate": ("gated", {"spec": {"affinity": AFFINITY}}, True),
    "a gate lifted alone": ("gated", {"spec": {"schedulingGates": None}}, True),
    "a gate lifted where the nodes were chosen": ("chosen", {"spec": {"schedulingGates": None}}, True),
    "a note": ("chosen", NOTE, False),
    "a gate of a pod without GPUs": ("cpu", LIFTED, False),
    "a note on a pod without a gate": ("open", NOTE, False),
}


@pytest.fixture
def waiting(cluster: Cluster, namespace: str) -> Iterator[str]:
    """Pods from before the installation."""
    for name, manifest in PODS.items():
        named = {**manifest, "metadata": {**manifest["metadata"], "name": name}}
        cluster.api.create(named, namespace)
    yield namespace
    cluster.api.delete(*(f"pod/{name}" for name in PODS), namespace=namespace, seconds=0)


def is_asked_about(cluster: Cluster, namespace: str, name: str, change: Manifest) -> bool:
    answer = cluster.api.patch(f"pod/{name}", change, namespace, dry_run=True, check=False)
    asked = 'failed calling webhook "pods-update.validate.gpu-tiers.dev"' in answer.stderr
    assert asked or not answer.code, answer.stderr
    return asked


def test_only_what_may_change_the_flavor_of_a_gpu_pod_is_asked_about(release: Release, waiting: str) -> None:
    cluster = release.cluster
    errors = condition_errors(cluster)
    release.install(mode="Enforce", policy=FLAVORS)
    wait_until_gpu_pods_are(cluster, refused=True)
    found = {what: is_asked_about(cluster, waiting, *update[:2]) for what, update in UPDATES.items()}
    assert found == {what: asked for what, (_, _, asked) in UPDATES.items()}
    assert condition_errors(cluster) == errors


def test_without_flavors_a_lifted_gate_asks_nobody(release: Release, waiting: str) -> None:
    release.install(mode="Enforce")
    wait_until_gpu_pods_are(release.cluster, refused=True)
    assert not is_asked_about(release.cluster, waiting, "gated", LIFTED)
