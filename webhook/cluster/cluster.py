"""A cluster as reviews see it: what is known of it, and what is looked up on a review's way.

`live` makes one that watches an API server, `offline` one of files, and a command one of what it has read once. Whoever
wants one of the look-ups done otherwise puts another object in its place. What can't be read raises Unreadable with a
sentence.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

import msgspec

from webhook.objects.podgroups import PodGroupTemplate, TemplateReference
from webhook.objects.pods import Metadata, OwnerReference, Pod, PodClaim
from webhook.policy.quota.native_quotas import NativeQuota
from webhook.policy.values.facts import Group, Namespace
from webhook.policy.values.gpu_supply import EvictionScope
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.kind_table import KindRow, KindTable
from webhook.policy.workloads.pod_groups import GroupSource, SchedulersGroup
from webhook.policy.workloads.workload import Devices, Workload


class Known(Protocol):
    """What is watched, or was read once."""

    def classes(self) -> Mapping[str, PriorityClass]:
        """The live PriorityClasses by name."""

    def tenants(self) -> Sequence[Tenant]:
        """The tenants in force, the oldest first."""

    def tenant(self, namespace: Namespace) -> Tenant | None:
        """The tenant of a namespace: the oldest that selects it."""

    def namespaces(self) -> Sequence[Namespace]: ...

    async def namespace(self, name: str) -> Namespace:
        """A namespace with its labels; one that is not known yet is read at once. Unreadable where it is gone."""

    def eviction(self) -> EvictionScope:
        """What kube-scheduler evicts pods for."""

    def node_labels(self, name: str) -> Mapping[str, str]:
        """The labels of a node by which flavors are told; none of a node that is not known."""


class Owners(Protocol):
    """What made a pod."""

    async def chain(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """The controllers from a pod's controllerRef upwards, UIDs checked, the nearest first.

        It ends without an error at a kind that `kinds` does not hold. Unreadable where an owner of a kind in
        it can't be read, has another UID, is its own owner, or where the chain is too long.
        """


class StoredWorkloads(Protocol):
    """Workloads as they are stored now."""

    async def stored(self, namespace: str, name: str, row: KindRow) -> dict[str, Any]:
        """A workload, read at once. Missing where it does not exist."""

    async def completed(self, namespace: str, tree: dict[str, Any], row: KindRow) -> tuple[dict[str, Any], str]:
        """A workload with the pod templates of the runtime that it names, if it names one.

        Where that can't be read: the workload alone, and what the runtime is called. Refused where a count is none.
        """


class Names(Protocol):
    """Names of stored objects."""

    async def is_taken(self, api_version: str, plural: str, namespace: str, name: str) -> bool:
        """Whether an object of that name is stored now, read at once; no, where that can't be read."""


class Groups(Protocol):
    """What pods are scheduled with."""

    async def group(self, namespace: str, name: str) -> Group:
        """A PodGroup. Unreadable where it does not exist."""

    async def composite(self, namespace: str, name: str) -> Group | None:
        """A CompositePodGroup; None where there is none. Unreadable where that can't be told."""

    async def template(self, namespace: str, reference: TemplateReference) -> PodGroupTemplate | None:
        """The template of a Workload that a PodGroup names; None where there is none. Unreadable where it can't be."""

    async def schedulers_group(self, namespace: str, source: GroupSource, name: str) -> SchedulersGroup:
        """A group of another scheduler; an empty one where there is none yet. Unreadable where that can't be told."""


class Claims(Protocol):
    """What pods claim of DRA."""

    async def devices(self, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
        """What one of a pod's resource claims asks for. Missing where the claim or its template does not exist."""


class NamespacePods(Protocol):
    """Pods of a namespace, found by what they name. Unreadable where they can't be listed."""

    async def members(self, namespace: str, source: GroupSource, name: str) -> Sequence[Pod]:
        """Those that name a group of another scheduler."""

    async def claimants(self, namespace: str, claim: Metadata) -> Sequence[tuple[Metadata, str]]:
        """Those that wait for a ResourceClaim of that metadata, each with what it calls the claim."""

    async def is_any_ending(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether one that has these labels is being deleted, and ends within twice its grace period."""


class Quotas(Protocol):
    """Kubernetes' own ResourceQuotas."""

    async def native(self, namespace: str) -> Sequence[NativeQuota]:
        """Those of a namespace that may count pods with GPUs; none where they can't be read."""


class Lookups(msgspec.Struct, frozen=True):
    """What is looked up one by one, by what it is about."""

    owners: Owners
    workloads: StoredWorkloads
    names: Names
    groups: Groups
    claims: Claims
    pods: NamespacePods
    quotas: Quotas

    def fresh(self) -> Self:
        """The same for one review: itself, for files and what a command reads once stay as they are."""
        return self

    def with_kept_owners(self) -> Self:
        """Return the same, but owners count that were read a moment before."""
        return self


class Cluster(msgspec.Struct, frozen=True):
    """What is known, and what is looked up."""

    known: Known
    lookups: Lookups

    def fresh(self) -> "Cluster":
        """The same for one review: nothing counts that was read before now of what a tenant may make anew."""
        return Cluster(self.known, self.lookups.fresh())

    def with_kept_owners(self) -> "Cluster":
        """Return the same, but owners count that were read a moment before, such as for the mutating call."""
        return Cluster(self.known, self.lookups.with_kept_owners())
