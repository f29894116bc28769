"""Pods and Jobs as a user writes them, small enough for one node, and a namespace to create them in."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from installation.examples import EXAMPLES
from localcluster.node import NodeCluster
from localcluster.node.images import PYTHON_IMAGE
from localcluster.waiting import wait_until

CODE = EXAMPLES / "training"
SECONDS = 30
Tree = dict[str, Any]


def gpu_pod(
    name: str, *command: str, gpus: int = 1, tier: str | None = None, annotations: Tree | None = None, **spec: object
) -> Tree:
    """A pod of one container with Python that asks for GPUs."""
    labels = {"gpu-tiers.dev/tier": tier} if tier else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels, "annotations": annotations or {}},
        "spec": {"restartPolicy": "Never", "containers": [container(*command, gpus=gpus)], **spec},
    }


def container(*command: str, gpus: int = 0, name: str = "main", image: str = PYTHON_IMAGE) -> Tree:
    """One container; an empty command is the image's own."""
    described: Tree = {"name": name, "image": image}
    described |= {"resources": {"limits": {"nvidia.com/gpu": gpus}}} if gpus else {}
    return described | ({"command": list(command)} if command else {})


def keeping_data(pod: Tree, folder: Path) -> Tree:
    """Mount a folder of this machine as /data, and the ConfigMap `code` as /code, in all of the pod's containers."""
    spec = pod["spec"]
    spec["volumes"] = [
        {"name": "data", "hostPath": {"path": str(folder), "type": "Directory"}},
        {"name": "code", "configMap": {"name": "code"}},
    ]
    for each in [*spec.get("initContainers", []), *spec["containers"]]:
        each["volumeMounts"] = [{"name": "data", "mountPath": "/data"}, {"name": "code", "mountPath": "/code"}]
        each["env"] = [{"name": "PYTHONPATH", "value": "/code"}, {"name": "CHECKPOINT", "value": "/data/state.json"}]
    return pod


def training_job(pod: Tree, annotations: dict[str, str]) -> Tree:
    """Return a Job of one pod that survives any number of preemptions."""
    labels = pod["metadata"]["labels"]
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "training"},
        "spec": {
            "backoffLimit": 0,
            "podFailurePolicy": {"rules": [ignored]},
            "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod["spec"]},
        },
    }


def publish_code(node: NodeCluster, namespace: str, **programs: str) -> None:
    """Make the ConfigMap `code` of the example's two files and of further programs."""
    files = {each.name: each.read_text() for each in CODE.glob("*.py")} | programs
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"}, "data": files}
    node.api.apply(tree, namespace=namespace)


def create(node: NodeCluster, namespace: str, tree: Tree) -> None:
    """Create an object; ApiError where it is refused."""
    node.api.create(tree, namespace)


@contextmanager
def new_namespace(node: NodeCluster, prefix: str) -> Iterator[str]:
    """A namespace that takes pods; what runs in it is gone afterwards, unless an error ends the cluster as well.

    It stays, empty, until the cluster ends: deleting it takes two requests for each kind.
    """
    name = f"{prefix}-{uuid.uuid4().hex[:8]}"
    node.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    wait_until(lambda: node.api.has("serviceaccount/default", name), SECONDS, f"the ServiceAccount of {name}")
    yield name
    node.api.delete("jobs", "deployments", "pods", namespace=name, seconds=1)
