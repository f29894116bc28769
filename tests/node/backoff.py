"""Lets the Job controller forget how long it wanted to wait."""

from localcluster.node import NodeCluster


def forget_the_backoff(node: NodeCluster) -> None:
    """Reset the kubelet's image backoff (10 s after a failed pod, 20, 40 … 600), as if hours had passed."""
    node.processes.restart("kube-controller-manager")
