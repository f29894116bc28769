"""A cluster as reviews see it: known facts, and objects that a review looks up.

`live` has the cluster of an API server. `offline` has the cluster of files and of objects that a command has read once.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, Self

import msgspec

from webhook.objects.podgroups import PodGroupTemplate, TemplateReference
from webhook.objects.pods import Metadata, OwnerReference, Pod, PodClaim
from webhook.objects.user import User
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
        """Return the oldest active tenant that selects a namespace; None if no tenant does."""

    def namespaces(self) -> Sequence[Namespace]: ...

    async def namespace(self, name: str) -> Namespace:
        """Return a namespace with its labels, read at once if it is not known yet.

        Raises Unreadable if it does not exist or can't be read.
        """

    def eviction(self) -> EvictionScope:
        """Return the scope of kube-scheduler's evictions."""

    def node_labels(self, name: str) -> Mapping[str, str]:
        """Return at least the labels that decide a node's flavor; none for an unknown node."""


class Lookups(Protocol):
    """Look-ups of single objects. They raise Unreadable for unreadable objects, unless a method says otherwise."""

    def fresh(self) -> Self:
        """Return the look-ups for one review, without answers from before now, except ResourceQuotas and rights."""

    def with_cached_owners(self) -> Self:
        """Return the same look-ups, which may reuse owners that were read some seconds ago."""

    async def owners(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """Return the controllers from a pod's controllerRef upwards, UIDs checked, the nearest first.

        The chain ends without an error at a kind that `kinds` does not have or the API server does not serve. Raises
        Unreadable for any other owner that can't be read, has another UID, is its own owner, or makes the chain too
        long.
        """

    async def stored_workload(self, namespace: str, name: str, row: KindRow) -> Tree:
        """Return a workload as it is stored now. Raises Missing if it does not exist."""

    async def completed(self, namespace: str, tree: Tree, row: KindRow) -> tuple[Tree, str]:
        """Return a workload with the pod templates of the runtime that it names, if it names one.

        If the runtime is of an unknown kind or can't be read, return the workload and `<kind>/<name>` of the runtime.
        Otherwise the second value is "". Raises Refused for an invalid count.
        """

    async def may_use(self, user: User, tier: str, namespace: str) -> bool:
        """Tell whether RBAC gives a user the verb `use` on a tier's PriorityClass in a namespace."""

    async def is_name_taken(self, api_version: str, plural: str, namespace: str, name: str) -> bool:
        """Tell whether an object of that name is stored now; False if that can't be read."""

    async def pod_group(self, namespace: str, name: str) -> Group:
        """Return a PodGroup. Raises Unreadable if it does not exist."""

    async def composite_pod_group(self, namespace: str, name: str) -> Group | None:
        """Return a CompositePodGroup; None if it does not exist, which nothing else checks."""

    async def pod_group_template(self, namespace: str, reference: TemplateReference) -> PodGroupTemplate | None:
        """Return the template of a Workload that a PodGroup names; None if one of them does not exist."""

    async def schedulers_group(self, namespace: str, source: GroupSource, name: str) -> SchedulersGroup:
        """Return a group of another scheduler; an empty group if it does not exist yet."""

    async def devices(self, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
        """Return the devices of a pod's resource claim. Raises Missing if the claim or its template does not exist."""

    async def group_members(self, namespace: str, source: GroupSource, name: str) -> Sequence[Pod]:
        """Return the pods that name a group of another scheduler."""

    async def claimants(self, namespace: str, claim: Metadata) -> Sequence[tuple[Metadata, str]]:
        """Return the pods that use a ResourceClaim of that metadata, each with the name of its entry for the claim."""

    async def pods_in(self, namespace: str) -> Sequence[Metadata]:
        """Return the pods of a namespace that have not ended, by one quorum read."""

    async def is_any_ending(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Tell whether a pod with these labels has been in deletion for less than twice its grace period."""

    async def native_quotas(self, namespace: str) -> Sequence[NativeQuota]:
        """Return the ResourceQuotas of a namespace that may count pods with GPUs; none if they can't be read."""


class Cluster(msgspec.Struct, frozen=True):
    """The known facts, and the look-ups."""

    known: Known
    lookups: Lookups
