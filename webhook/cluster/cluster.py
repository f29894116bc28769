"""A cluster as reviews see it: what is known of it, and what is looked up on a review's way.

`live` has the one that watches an API server, `offline` the one of files and of what a command has read once. A command
that wants a look-up done otherwise has a class of its own for that.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, Self

import msgspec

from webhook.objects.podgroups import PodGroupTemplate, TemplateReference
from webhook.objects.pods import Metadata, OwnerReference, Pod, PodClaim
from webhook.objects.view import Tree
from webhook.policy.quota.native_quotas import NativeQuota
from webhook.policy.values.facts import Group, Namespace
from webhook.policy.values.gpu_supply import EvictionScope
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.kind_table import KindRow, KindTable
from webhook.policy.workloads.pod_groups import GroupSource, SchedulersGroup
from webhook.policy.workloads.workload import Devices, Workload


class Known(Protocol):
    """Facts that are watched, or were read once."""

    def classes(self) -> Mapping[str, PriorityClass]:
        """Return the live PriorityClasses by name."""

    def tenants(self) -> Sequence[Tenant]:
        """Return the active tenants, the oldest first."""

    def tenant(self, namespace: Namespace) -> Tenant | None:
        """Return the tenant of a namespace: the oldest that selects it."""

    def namespaces(self) -> Sequence[Namespace]: ...

    async def namespace(self, name: str) -> Namespace:
        """Return a namespace with its labels, read at once if it is not known yet. Unreadable where it is gone."""

    def eviction(self) -> EvictionScope:
        """Return what kube-scheduler evicts pods for."""

    def node_labels(self, name: str) -> Mapping[str, str]:
        """Return the labels by which a node's flavor is known; none for an unknown node."""


class Lookups(Protocol):
    """Single objects that are looked up. Raises Unreadable for what can't be read, unless a method says otherwise."""

    def fresh(self) -> Self:
        """Return the same for one review: nothing counts that was read before now, if it is kept at all."""

    def with_kept_owners(self) -> Self:
        """Return the same, but owners count that were read a moment before."""

    async def owners(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """Return the controllers from a pod's controllerRef upwards, UIDs checked, the nearest first.

        The chain ends without an error at a kind that `kinds` does not hold. An owner of a kind in it is Unreadable
        that has another UID, is its own owner, or stands in a chain that is too long.
        """

    async def stored_workload(self, namespace: str, name: str, row: KindRow) -> Tree:
        """Return a workload as it is stored now. Raises Missing where it does not exist."""

    async def completed(self, namespace: str, tree: Tree, row: KindRow) -> tuple[Tree, str]:
        """Return a workload with the pod templates of the runtime that it names, if it names one.

        Where that can't be read: the workload alone, and what the runtime is called. Refused where a count is none.
        """

    async def is_name_taken(self, api_version: str, plural: str, namespace: str, name: str) -> bool:
        """Tell whether an object of that name is stored now. The answer is no where that can't be read."""

    async def pod_group(self, namespace: str, name: str) -> Group:
        """Return a PodGroup. Unreadable where it does not exist."""

    async def composite_pod_group(self, namespace: str, name: str) -> Group | None:
        """Return a CompositePodGroup; None where there is none: nobody checks that it exists."""

    async def pod_group_template(self, namespace: str, reference: TemplateReference) -> PodGroupTemplate | None:
        """Return the template of a Workload that a PodGroup names; None where there is none: nobody checks that."""

    async def schedulers_group(self, namespace: str, source: GroupSource, name: str) -> SchedulersGroup:
        """Return a group of another scheduler; an empty one where there is none yet."""

    async def devices(self, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
        """Return what a pod's resource claim asks for. Missing where the claim or its template does not exist."""

    async def group_members(self, namespace: str, source: GroupSource, name: str) -> Sequence[Pod]:
        """Return the pods that name a group of another scheduler."""

    async def claimants(self, namespace: str, claim: Metadata) -> Sequence[tuple[Metadata, str]]:
        """Return the pods that wait for a ResourceClaim of that metadata, each with what it calls the claim."""

    async def pods_in(self, namespace: str) -> Sequence[Metadata]:
        """Return the pods of a namespace that have not ended, by one quorum read."""

    async def is_any_ending(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Tell whether a pod with these labels is being deleted, and ends within twice its grace period."""

    async def native_quotas(self, namespace: str) -> Sequence[NativeQuota]:
        """Return the ResourceQuotas of a namespace that may count pods with GPUs; none where they can't be read."""


class Cluster(msgspec.Struct, frozen=True):
    """The known facts, and the look-ups."""

    known: Known
    lookups: Lookups
