"""What admission needs of the cluster; server and cli wire the real one in. The ledger has a protocol of its own."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from webhook.objects.group_kind import GroupKind
from webhook.objects.podgroups import TemplateReference
from webhook.objects.pods import OwnerReference, PodClaim
from webhook.objects.scheduling_workloads import PodGroupTemplate
from webhook.policy.quota.native_quotas import NativeQuota
from webhook.policy.values.facts import Group, Namespace
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.kinds.row import KindRow
from webhook.policy.workloads.workload import Devices, Workload


class Cluster(Protocol):
    """The cluster's facts. What can't be read raises Unreadable with a sentence."""

    def classes(self) -> Mapping[str, PriorityClass]:
        """The live PriorityClasses by name."""
        ...

    async def namespace(self, name: str) -> Namespace:
        """A namespace with its labels. Unreadable where it is gone."""
        ...

    def tenant(self, namespace: Namespace) -> Tenant | None:
        """The tenant of a namespace: the oldest that selects it."""
        ...

    def tenants(self) -> Sequence[Tenant]:
        """The tenants in force, the oldest first."""
        ...

    def namespaces(self) -> Sequence[Namespace]:
        """All namespaces that are known."""
        ...

    def node_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a node by which flavors are told; none of a node that is not known."""
        ...

    async def owners(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """The chain of controllers from a pod's controllerRef upwards, UIDs checked, the nearest first.

        It ends without an error at a kind that `kinds` does not hold. Unreadable where an owner of a kind in
        it can't be read, has another UID, is its own owner, or where the chain is too long.
        """
        ...

    async def stored(self, namespace: str, name: str, row: KindRow) -> dict[str, Any]:
        """A workload as it is stored now, read at once. Missing where it does not exist."""
        ...

    async def completed(self, namespace: str, tree: dict[str, Any], row: KindRow) -> tuple[dict[str, Any], str]:
        """A workload with the pod templates of the runtime that it names, if it names one.

        Where that can't be read: the workload alone, and what the runtime is called. Refused where a count is none.
        """
        ...

    async def group(self, namespace: str, name: str) -> Group:
        """A PodGroup. Unreadable where it does not exist."""
        ...

    async def group_template(self, namespace: str, reference: TemplateReference) -> PodGroupTemplate | None:
        """The template of a Workload that a PodGroup names; None where there is none. Unreadable where it can't be."""
        ...

    async def group_size(self, namespace: str, kind: GroupKind, name: str) -> int:
        """The pods that a PodGroup of a scheduler's own kind needs together; 0 where that isn't known."""
        ...

    async def native_quotas(self, namespace: str) -> Sequence[NativeQuota]:
        """The ResourceQuotas of a namespace that may count pods with GPUs; none where they can't be read."""
        ...

    async def devices(self, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
        """What one of a pod's resource claims asks for. Missing where the claim or its template does not exist."""
        ...
