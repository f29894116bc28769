"""What every cluster of the tests can do, and which one the tests get."""

import os
from pathlib import Path
from typing import Protocol

from localcluster.control_plane import ControlPlane
from localcluster.existing import ExistingCluster
from localcluster.kubectl import Result
from localcluster.processes import ProcessGroup
from localcluster.versions import DEFAULT_KUBERNETES


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
        """The API server's version, such as "v1.37.1"."""
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


def chosen_cluster(minor: str | None = None) -> ControlPlane | ExistingCluster:
    """Return the cluster that $GPU_TIERS_TEST_KUBECONFIG or $KUBECONFIG names, else a new control plane.

    The minor version is the argument, else $K8S, else the default one of the table.
    """
    minor = minor or os.environ.get("K8S") or DEFAULT_KUBERNETES
    named = os.environ.get("GPU_TIERS_TEST_KUBECONFIG") or os.environ.get("KUBECONFIG")
    return ExistingCluster(Path(named), minor) if named else ControlPlane(minor)
