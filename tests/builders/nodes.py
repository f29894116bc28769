"""Nodes, as their kubelets write them."""

from tests.builders.built import Tree


def quiet_node(name: str) -> Tree:
    """A node with room for two CPUs, without a kubelet: what is deleted there stays for its whole grace."""
    room = {"cpu": "2", "memory": "8Gi", "pods": "9", "nvidia.com/gpu": "8"}
    status = {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}
