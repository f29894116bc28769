"""The facts of a cluster that are looked up one by one: owners, runtimes, groups and claims."""

from typing import Any

from webhook.cluster.lookups import Lookups
from webhook.objects.group_kind import GroupKind
from webhook.objects.podgroups import TemplateReference
from webhook.objects.pods import OwnerReference, PodClaim
from webhook.objects.scheduling_workloads import PodGroupTemplate
from webhook.policy.values.facts import Group
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.kinds.row import KindRow
from webhook.policy.workloads.workload import Devices, Workload

Tree = dict[str, Any]


class LookedUp:
    """The part of a cluster that asks its lookups; the rest of its facts are known already."""

    _lookups: Lookups

    async def owners(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """The chain of owners; each is kept for 30 s, so a tier label changed on one counts after that."""
        return await self._lookups.owners(namespace, first, kinds)

    async def completed(self, namespace: str, tree: Tree, row: KindRow) -> tuple[Tree, str]:
        """A workload with the runtime that it names."""
        return await self._lookups.completed(namespace, tree, row)

    async def group(self, namespace: str, name: str) -> Group:
        """A PodGroup. Raises Unreadable."""
        return await self._lookups.group(namespace, name)

    async def group_size(self, namespace: str, kind: GroupKind, name: str) -> int:
        """The pods that a PodGroup of a scheduler's own kind needs together; 0 where that isn't known."""
        return await self._lookups.group_size(namespace, kind, name)

    async def group_template(self, namespace: str, reference: TemplateReference) -> PodGroupTemplate | None:
        """The template of a Workload that a PodGroup names, if it exists. Raises Unreadable."""
        return await self._lookups.group_template(namespace, reference)

    async def devices(self, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
        """What one of a pod's resource claims asks for. Raises Unreadable."""
        return await self._lookups.devices(namespace, claim)
