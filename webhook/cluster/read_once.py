"""The cluster's facts as they were read once, for a command that ends: nothing is watched."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from webhook.cluster.lookups import Lookups
from webhook.kube.errors import Forbidden
from webhook.objects.group_kind import GroupKind
from webhook.objects.podgroups import TemplateReference
from webhook.objects.pods import OwnerReference, PodClaim
from webhook.objects.refusal import Unreadable
from webhook.objects.scheduling_workloads import PodGroupTemplate
from webhook.policy.quota.native_quotas import NativeQuota
from webhook.policy.values.facts import Group, Namespace
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.kinds.row import KindRow
from webhook.policy.workloads.workload import Devices, Workload


@dataclass(frozen=True)
class ReadOnce:
    """The protocol of admission.cluster_protocol. `in_force` are the tenants, the oldest first.

    Single objects are looked up as for a review; so are namespaces that are not among `known`. What nobody may read who
    asks is left out, and `told` gets a sentence of it.
    """

    lookups: Lookups
    live: Mapping[str, PriorityClass]
    told: Callable[[str], None]
    in_force: Sequence[Tenant] = ()
    known: Mapping[str, Namespace] = field(default_factory=dict)

    def classes(self) -> Mapping[str, PriorityClass]:
        """The PriorityClasses by name."""
        return self.live

    def tenants(self) -> Sequence[Tenant]:
        """The tenants in force, the oldest first."""
        return self.in_force

    def namespaces(self) -> Sequence[Namespace]:
        """Those that were read."""
        return tuple(self.known.values())

    def tenant(self, namespace: Namespace) -> Tenant | None:
        """The tenant of a namespace: of several that select it the oldest."""
        return next((each for each in self.in_force if each.selects(namespace.labels)), None)

    def node_labels(self, name: str) -> Mapping[str, str]:  # noqa: ARG002
        """None: what is judged anew is on no node yet."""
        return {}

    async def namespace(self, name: str) -> Namespace:
        """A namespace with its labels. Raises Unreadable."""
        found = self.known.get(name) or await self.lookups.namespace(name)
        if found is None:
            raise Unreadable(f"namespace {name} does not exist")
        return found

    async def owners(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """The chain of owners. Raises Unreadable."""
        try:
            return await self.lookups.owners(namespace, first, kinds)
        except Unreadable as problem:
            self._left_out(problem, "It is judged as if nothing had made it.")
            return ()

    async def stored(self, namespace: str, name: str, row: KindRow) -> dict[str, Any]:
        """A workload as it is stored now. Raises Unreadable."""
        return await self.lookups.stored(namespace, name, row)

    async def completed(self, namespace: str, tree: dict[str, Any], row: KindRow) -> tuple[dict[str, Any], str]:
        """A workload with the runtime that it names."""
        return await self.lookups.completed(namespace, tree, row)

    async def group(self, namespace: str, name: str) -> Group:
        """A PodGroup. Raises Unreadable."""
        return await self.lookups.group(namespace, name)

    async def group_size(self, namespace: str, kind: GroupKind, name: str) -> int:
        """The pods that a PodGroup of a scheduler's own kind needs together; 0 where that isn't known."""
        return await self.lookups.group_size(namespace, kind, name)

    async def group_template(self, namespace: str, reference: TemplateReference) -> PodGroupTemplate | None:
        """The template of a Workload that a PodGroup names, if it exists. Raises Unreadable."""
        return await self.lookups.group_template(namespace, reference)

    async def native_quotas(self, namespace: str) -> Sequence[NativeQuota]:
        """The ResourceQuotas of a namespace; none where they can't be read."""
        return await self.lookups.native_quotas(namespace)

    async def devices(self, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
        """What one of a pod's resource claims asks for. Raises Unreadable."""
        try:
            return await self.lookups.devices(namespace, claim)
        except Unreadable as problem:
            self._left_out(problem, "Its GPUs are not counted.")
            return ()

    def _left_out(self, problem: Unreadable, instead: str) -> None:
        if not isinstance(problem.__cause__, Forbidden):
            raise problem
        self.told(f"{problem}. {instead}")
