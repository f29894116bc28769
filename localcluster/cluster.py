"""The protocol of every cluster of the tests, and the choice of one."""

import os
from pathlib import Path
from typing import Protocol

from localcluster.api import Api
from localcluster.components import FAKE_NODES
from localcluster.control_plane import ControlPlane
from localcluster.existing import ExistingCluster
from localcluster.kubectl import Result
from localcluster.processes import ProcessGroup
from localcluster.versions import DEFAULT_KUBERNETES

TEST_CLUSTER = "GPU_TIERS_TEST_CLUSTER"
CONFIRMED = f"{TEST_CLUSTER}_CONFIRMED"


class ClusterError(Exception):
    """The tests may not use this cluster; the text says why, and what would let them."""


class Cluster(Protocol):
    """A cluster that is up, inside its `with` block."""

    folder: Path
    """A folder that goes away with the `with` block."""

    processes: ProcessGroup
    """What runs beside the cluster and stops with the `with` block."""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        ...

    @property
    def version(self) -> str:
        """The API server's version, such as "v1.37.2"."""
        ...

    @property
    def api(self) -> Api:
        """The API server over HTTP, as the administrator, for all that isn't about kubectl."""
        ...

    def kubectl(self, *arguments: str, input: str | None = None, check: bool = True) -> Result:  # noqa: A002
        """Run kubectl; KubectlError on a failure, unless `check` is False."""
        ...

    def apply(self, manifest: str, *arguments: str) -> Result:
        """Run `kubectl apply` with the text of one or several documents."""
        ...

    def add_node(self, name: str, gpus: int = 4, labels: dict[str, str] | None = None) -> None:
        """Add a fake node with GPUs (nvidia.com/gpu) and wait until it is Ready."""
        ...

    def __enter__(self) -> "Cluster": ...

    def __exit__(self, *exception: object) -> None: ...


def chosen_cluster(*apiserver_options: str) -> ControlPlane | ExistingCluster:
    """Return the cluster of the kubeconfig that $GPU_TIERS_TEST_CLUSTER names, else a new control plane.

    Its minor version is $K8S, else the default one of the table. Options are for the API server of a new one.
    """
    minor = os.environ.get("K8S") or DEFAULT_KUBERNETES
    named = os.environ.get(TEST_CLUSTER)
    return ExistingCluster(Path(named), minor) if named else ControlPlane(minor, apiserver_options=apiserver_options)


def refuse_real_nodes(cluster: Cluster) -> None:
    """Raise ClusterError where somebody's pods may run, unless $GPU_TIERS_TEST_CLUSTER_CONFIRMED names the cluster."""
    nodes = cluster.kubectl("get", "nodes", "--output=json").json()["items"]
    fake, _ = FAKE_NODES.split("=")
    real = [each["metadata"]["name"] for each in nodes if fake not in each["metadata"].get("annotations", {})]
    context = cluster.kubectl("config", "current-context").stdout.strip()
    if real and os.environ.get(CONFIRMED) != context:
        raise ClusterError(
            f"${TEST_CLUSTER} names a cluster with real nodes ({', '.join(real[:3])}): the tests would create, evict "
            f"and delete there. If that is meant, set {CONFIRMED}={context}, the name of its context"
        )
