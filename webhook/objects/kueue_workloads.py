"""Kueue's Workload: what it queues, with the conditions by which it is admitted, evicted and queued again.

Source: https://kueue.sigs.k8s.io/docs/reference/kueue.v1beta2/#kueue-x-k8s-io-v1beta2-Workload
"""

from typing import Any

from msgspec import field

from webhook.objects.pods import OwnerReference
from webhook.objects.view import View

Condition = dict[str, Any]

NO_ROOM = "TenantQuota"
"""The reason of conditions that say that a tenant's rows have no room."""
ROOM_AGAIN = "TenantQuotaHasRoom"


class StoredMetadata(View, frozen=True):
    """The metadata of one version of an object."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    generation: int = 1
    owner_references: tuple[OwnerReference, ...] = ()


class Status(View, frozen=True):
    """Conditions stay as they are: they are written back."""

    conditions: tuple[Condition, ...] = ()


class KueueWorkload(View, frozen=True):
    """A Workload of group kueue.x-k8s.io; a group of pods has each of them as an owner."""

    metadata: StoredMetadata = field(default_factory=StoredMetadata)
    status: Status = field(default_factory=Status)

    @property
    def has_ended(self) -> bool:
        """Whether it will not run again."""
        return self.is_true("Finished")

    @property
    def may_be_evicted(self) -> bool:
        """Whether it holds quota, and nobody has taken that back yet."""
        return self.is_true("QuotaReserved") and not self.is_true("Evicted")

    @property
    def was_evicted_for_room(self) -> bool:
        """Whether its admission was taken back by us, and it has got none since."""
        evicted = self.condition("Evicted")
        return (evicted.get("status"), evicted.get("reason")) == ("True", NO_ROOM)

    @property
    def is_being_evicted(self) -> bool:
        """Whether Kueue has still to take the quota back."""
        return self.is_true("QuotaReserved") and self.is_true("Evicted")

    @property
    def waits_for_room(self) -> bool:
        """Whether Kueue leaves it aside because we evicted it."""
        requeued = self.condition("Requeued")
        return (requeued.get("status"), requeued.get("reason")) == ("False", NO_ROOM)

    def condition(self, kind: str) -> Condition:
        """The condition of that type; {} where there is none."""
        return next((each for each in self.status.conditions if each.get("type") == kind), {})

    def is_true(self, kind: str) -> bool:
        """Whether the condition of that type holds."""
        return self.condition(kind).get("status") == "True"
