"""What admission needs of the cluster and of the ledger; server and cli wire the real ones in."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from webhook.objects.pods import OwnerReference, Pod
from webhook.policy.quota.charges import Charge, Shortfall, Usage
from webhook.policy.values.facts import Devices, Group, Namespace, Workload
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.kinds import KindTable


class Cluster(Protocol):
    """The cluster's facts. What can't be read raises Unreadable with a sentence; nothing is ever made up."""

    def classes(self) -> Mapping[str, PriorityClass]:
        """The live PriorityClasses by name."""
        ...

    def tenants(self) -> Sequence[Tenant]:
        """All tenants."""
        ...

    async def namespace(self, name: str) -> Namespace:
        """A namespace with its labels. Unreadable where it is gone."""
        ...

    async def owners(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """The chain of controllers from a pod's controllerRef upwards, UIDs checked, the nearest first.

        It ends without an error at a kind that `kinds` does not hold. Unreadable where an owner of a kind in
        it can't be read, has another UID, is its own owner, or where the chain is too long.
        """
        ...

    async def group(self, namespace: str, name: str) -> Group:
        """A PodGroup. Unreadable where it does not exist."""
        ...

    async def devices(self, namespace: str, pod: Pod) -> tuple[Devices, ...]:
        """What a pod's resource claims ask for, one entry a request. Unreadable where a claim does not exist."""
        ...


class Ledger(Protocol):
    """Who has booked what."""

    def usage(self, tenant: Tenant) -> Usage:
        """GPUs booked on each of a tenant's rows, reservations included."""
        ...

    async def book(self, tenant: Tenant, uid: str, namespace: str, charge: Charge) -> Shortfall | None:
        """Book a pod's charge under its uid, or say which row has no room. The same uid is booked once."""
        ...
