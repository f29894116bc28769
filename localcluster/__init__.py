"""A real Kubernetes control plane on this machine, for the tests and for `make cluster`. Not shipped."""

from localcluster.api import Api, ApiError
from localcluster.cluster import Cluster, ClusterError, chosen_cluster, refuse_real_nodes
from localcluster.control_plane import ControlPlane
from localcluster.existing import ExistingCluster
from localcluster.kubectl import KubectlError, Result

__all__ = [
    "Api",
    "ApiError",
    "Cluster",
    "ClusterError",
    "ControlPlane",
    "ExistingCluster",
    "KubectlError",
    "Result",
    "chosen_cluster",
    "refuse_real_nodes",
]
