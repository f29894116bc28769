"""Workloads without a tier label on a real API server get the tier of their type, or a warning."""

from pathlib import Path

import pytest
import yaml

from installation.helm import ROOT

from .installed import Installed, Tree

pytestmark = pytest.mark.apiserver

EXAMPLES = ROOT / "examples"


def applied(installed: Installed, file: Path, namespace: str) -> tuple[str, Tree]:
    """Return kubectl's warnings, and the spec of the pod that a controller makes of the workload."""
    tree = yaml.safe_load(file.read_text())
    del tree["metadata"]["namespace"]
    answer = installed.create(tree, namespace)
    installed.eventually(lambda: bool(pods_of(installed, namespace)), "a pod of it")
    (pod,) = pods_of(installed, namespace)
    return answer.stderr, pod["spec"]


def pods_of(installed: Installed, namespace: str) -> list[Tree]:
    found: list[Tree] = installed.api.get("pods", namespace)["items"]
    return found


@pytest.mark.parametrize(
    ("example", "tier"),
    [
        ("deployment-vllm.yaml", "gpu-serving"),
        ("job-training.yaml", "gpu-training"),
        ("deployment-jupyter-notebook.yaml", "gpu-interactive"),
    ],
)
def test_a_plain_workload_gets_the_tier_of_what_it_runs(
    installed: Installed, namespace: str, example: str, tier: str
) -> None:
    printed, spec = applied(installed, EXAMPLES / example, namespace)
    assert ("[guess-at-top]" in printed, spec["priorityClassName"]) == (tier == "gpu-training", tier)
    assert printed.count("Warning:") == (tier == "gpu-training"), "only the tier that evicts all others is warned about"
    assert ("lifecycle" in spec["containers"][0]) == (tier == "gpu-training"), "only what trains saves"


def test_what_nothing_tells_gets_the_default_and_the_label_that_settles_it(
    installed: Installed, namespace: str
) -> None:
    printed, spec = applied(installed, EXAMPLES / "warnings" / "type-unknown.yaml", namespace)
    assert spec["priorityClassName"] == "gpu-interactive"
    assert printed.strip() == (
        "Warning: [type-unknown] unknown type gets gpu-interactive; label it gpu-tiers.dev/tier: gpu-training, "
        "gpu-serving or gpu-batch"
    )


MATMUL = ["mpirun", "-n", "2", "python", "/work/matmul.py"]


def a_gpu_container(**more: object) -> Tree:
    return {"name": "main", "image": "registry.example.com/x:1", "resources": {"limits": {"nvidia.com/gpu": 1}}, **more}


def test_an_mpijob_proves_only_that_it_is_mpi(installed: Installed, namespace: str) -> None:
    specs = {"Worker": {"replicas": 1, "template": {"spec": {"containers": [a_gpu_container(command=MATMUL)]}}}}
    job = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "matmul"}}
    printed = installed.create(job | {"spec": {"mpiReplicaSpecs": specs}}, namespace).stderr
    assert (
        "Warning: [guess-at-top] top tier by the usual use of its kind, MPIJob/matmul; if wrong, label it "
        "gpu-tiers.dev/tier" in printed
    )
