"""Adds nodes with GPUs that exist only in the API: kwok answers for their kubelets, and no container runs."""

from pathlib import Path

from localcluster.api import Api
from localcluster.components import FAKE_NODES
from localcluster.waiting import wait_until

STAGES = Path(__file__).parent / "stages.yaml"
READY_SECONDS = 240

NODES = {
    "gpu-0": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
    "gpu-1": {},
}
"""The nodes of a cluster that is kept, with their labels."""
GPUS_PER_NODE = 8


def add_node(api: Api, name: str, gpus: int, labels: dict[str, str]) -> None:
    """Create the node and wait until it is Ready without a taint; ApiError if it exists, TimeoutError if it is late."""
    api.create(node(name, gpus, labels))
    api.wait_for("Ready", f"node/{name}", seconds=READY_SECONDS)

    def has_no_taint() -> bool:
        """Tell whether the controller manager has removed the taint not-ready, a moment after the node is Ready."""
        return not api.get(f"node/{name}")["spec"].get("taints")

    wait_until(has_no_taint, READY_SECONDS, f"node {name} without a taint")


def node(name: str, gpus: int, labels: dict[str, str]) -> dict[str, object]:
    """Return a node with that many nvidia.com/gpu, and room for any number of small containers beside them."""
    annotation, value = FAKE_NODES.split("=")
    room = {"cpu": "1k", "memory": "8Ti", "ephemeral-storage": "8Ti", "pods": "1k", "nvidia.com/gpu": str(gpus)}
    standard = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": {annotation: value}, "labels": standard | labels},
        "status": {"capacity": room, "allocatable": room},
    }
