"""The facts of the cluster about one request, as values. Admission gathers them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from webhook.objects.pods import Metadata, PodClaim
from webhook.policy.values.gpu_supply import EvictionScope
from webhook.policy.values.namespace_selector import NamespaceSelector, namespace_selector
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.pod_groups import PodsTogether, SchedulersGroup
from webhook.policy.workloads.workload import Devices, Workload

NAME_LABEL = "kubernetes.io/metadata.name"
"""The API server writes a namespace's name into this label of it."""


class Namespace(msgspec.Struct, frozen=True):
    """A namespace, its labels, and the node selector that its pods get. Its uid is known of those that are watched."""

    name: str
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    uid: str = ""
    selector: NamespaceSelector | None = None


def namespace_of(metadata: Metadata) -> Namespace:
    """The namespace that this is the metadata of."""
    return Namespace(metadata.name, metadata.labels, metadata.uid, namespace_selector(metadata.annotations))


class Group(msgspec.Struct, frozen=True):
    """The PodGroup a pod is scheduled with; its class is immutable from its creation.

    `prioritized`: the API server keeps a priority on it, which 1.36 does by the gate WorkloadAwarePreemption alone.
    `demoted_from` is the tier that its gang had no room in; "" where it runs as it asked. `pods` is the minCount of a
    gang, 0 for a group that is none. `claims` are those that its pods share (DRAWorkloadResourceClaims).
    """

    name: str
    priority_class_name: str
    prioritized: bool = True
    demoted_from: str = ""
    pods: int = 0
    claims: tuple[PodClaim, ...] = ()


class Facts(msgspec.Struct, frozen=True):
    """All that a decision may know beyond the object itself. Owners are the nearest first.

    `devices` are those of the pod's resource claims. `unread_claims` are claims of a workload's templates, with why
    they can't be read; its pods are refused for them, it is not. `node_labels` are those of the node that a pod is
    bound to. `groups` are those of other schedulers that a pod names, and `together` is the group of a pod that no
    workload makes into a gang. `eviction` is what kube-scheduler evicts pods for in this cluster.
    """

    namespace: Namespace
    classes: Mapping[str, PriorityClass]
    owners: tuple[Workload, ...] = ()
    tenant: Tenant | None = None
    group: Group | None = None
    devices: tuple[Devices, ...] = ()
    unread_claims: tuple[str, ...] = ()
    node_labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    groups: tuple[SchedulersGroup, ...] = ()
    together: PodsTogether | None = None
    eviction: EvictionScope = EvictionScope()
    holders: dict[object, Any] = msgspec.field(default_factory=dict)
    """Whether an owner's template holds GPUs, by the template's id; what its templates say about the tier, by the
    owner's id and what is asked. Hundreds of templates may ask this of each other."""

    @property
    def selects(self) -> frozenset[str]:
        """The keys of the labels by which the controller of a pod knows its pods."""
        return self.owners[0].selects if self.owners else frozenset()
