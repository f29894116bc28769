"""A real node for the local control plane: kubelet, containerd, kube-proxy. Only root on Linux can run it."""

from localcluster.node.cluster import NodeCluster
from localcluster.node.packages import NodeError

__all__ = ["NodeCluster", "NodeError"]
