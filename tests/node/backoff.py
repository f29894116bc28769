"""Lets the Job controller forget how long it wanted to wait."""

from localcluster.node import NodeCluster


def forget_the_backoff(node: NodeCluster) -> None:
    """It waits 10 s after a failed pod, 20, 40 … 600, Ignore or not; here as if hours had passed."""
    node.processes.restart("kube-controller-manager")
