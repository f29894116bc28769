"""What a ledger is: where charges are kept so that concurrent requests can't overdraw a quota."""

from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from webhook.policy.quota.charges import Charge, Shortfall
from webhook.policy.values.tenants import Tenant, Usage

PATIENCE_SECONDS = 1.0
"""How long a pod that a controller makes waits for news before it is refused: it may replace a pod whose end, or whose
preemption, our watch has not shown yet. A refused controller would try again after 10 s to minutes."""


class GangBooking(msgspec.Struct, frozen=True, tag=True):
    """One transaction for a whole workload: what it holds from its create on, or from a change to `generation`.

    `tier` is the one at which all of its pods have to run, where it was demoted to that. `of_pods`: it is a group of
    pods without a workload, and `uid` is what its pods call it. `rank` is the value of the lowest of its tiers.
    """

    uid: str
    kind: str
    namespace: str
    name: str
    tenant: Tenant
    charges: tuple[Charge, ...]
    generation: int = 1
    tier: str = ""
    of_pods: bool = False
    rank: int = 0


class Booking(msgspec.Struct, frozen=True, tag=True):
    """One transaction: a holder, and its charges in a namespace of a tenant.

    `holder` is the uid of a pod, `name` its name, `controller` the uid of what makes the pod, "" where nobody does, and
    `workload` that of the outermost which does. `moved_from` is what the pod is charged so far, where a change of it is
    booked. `gang` is the uid of the gang on whose charge the pod draws, "" where that is its controller. `group` is
    booked with the first of its pods. `rank` is the value of the charge's tier: what is reserved for the queue counts
    against it unless its tier is higher. `tries_again`: a controller of Kubernetes makes the pod, and tries again where
    it is refused. `retries` are the names of its earlier tries of which more came to nothing than others may be under
    way: it may stand in the slot of the oldest that nobody has taken since.
    """

    holder: str
    namespace: str
    tenant: Tenant
    charges: tuple[Charge, ...]
    controller: str = ""
    name: str = ""
    moved_from: Charge | None = None
    gang: str = ""
    group: GangBooking | None = None
    workload: str = ""
    rank: int = 0
    tries_again: bool = False
    retries: tuple[str, ...] = ()


def patience_of(booking: Booking | GangBooking) -> float:
    """Seconds for which a booking waits for news before it is refused."""
    return PATIENCE_SECONDS if isinstance(booking, Booking) and booking.controller else 0.0


class TryAgain(Exception):  # noqa: N818 - what the caller should do
    """No answer in time, because of something that passes. The text says what."""


class Booked(msgspec.Struct, frozen=True):
    """The booking holds."""


class Gated(msgspec.Struct, frozen=True):
    """How a pod waits behind our gate: with which priority, since when (RFC 3339), and at which resourceVersion.

    `told`: its condition says why. `awaits_controller`: the controller may be a gang, so the leader must see it first.
    """

    priority: int
    since: str
    version: str
    told: bool = False
    awaits_controller: bool = False


class Holding(msgspec.Struct, frozen=True):
    """What a pod that exists holds. `ends_in`: seconds from when its deletion is seen first to when it counts no more.

    `preempted`: the scheduler has evicted it for another pod, and it ends soon enough to pass on its place.
    `gated`: it holds nothing yet, and would hold this. `workload` is the uid of the outermost one that makes it, where
    its tenant holds what is over its quota.
    """

    namespace: str
    charge: Charge
    ends_in: float | None = None
    controller: str = ""
    preempted: bool = False
    name: str = ""
    gang: str = ""
    gated: Gated | None = None
    workload: str = ""

    @property
    def made_by(self) -> tuple[str, str]:
        """Whose pods take each other's place: a Deployment's, when it rolls from one ReplicaSet to the next."""
        return self.namespace, self.workload or self.controller

    @property
    def draws_on(self) -> tuple[str, str]:
        return self.namespace, self.gang or self.controller


class Declared(msgspec.Struct, frozen=True):
    """What a workload that exists asks for as a whole, None where that isn't known.

    `stopped`: it makes no pods and asks for nothing, because it is suspended or being deleted. `partly_done`: some of
    its pods have succeeded, so it may need fewer than it asks for. `created` is its creationTimestamp.
    """

    kind: str
    namespace: str
    name: str
    generation: int
    charges: tuple[Charge, ...] | None
    partly_done: bool = False
    created: str = ""
    stopped: bool = False


class Ledger(Protocol):
    """Who holds what."""

    @property
    def is_current(self) -> bool:
        """Whether pods that end are counted soon; while no replica leads they are not."""

    def usage(self, tenant: Tenant, without: Collection[str] = ()) -> Usage:
        """GPUs booked on each of a tenant's rows, reservations included, `without` those of some ResourceClaims.

        On a row a claim counts once, however many pods share it.
        """

    def used(self, tenant: Tenant) -> Usage:
        """GPUs on each row that pods hold which were seen to exist."""

    def reserved_for_queue(self, tenant: Tenant, rank: int = 0) -> Usage:
        """GPUs on each row that are reserved for the queue, and count against bookings of this rank.

        They are part of the usage. Those of rank 0 meet all of them.
        """

    def unseen(self, tenant: Tenant, namespace: str, controller: str) -> Sequence[str]:
        """Names of pods that the controller with this uid tried to create and that are not seen, one of each slot.

        It is the latest of its slot. The oldest comes first. Pods that others made in its name are none of its tries.
        """

    async def gang_tier(self, tenant: Tenant, namespace: str, uid: str) -> str | None:
        """The tier that a gang was demoted to, "" where it was not; None where no such gang is booked.

        Raises TryAgain where that can't be told in time.
        """

    async def has_room(self, booking: Booking) -> bool:
        """Whether a booking would hold. It waits for news as the booking does, and books nothing. Raises TryAgain."""

    async def book(self, booking: Booking | GangBooking, *, dry_run: bool = False) -> Booked | Shortfall:
        """Book all charges or none. A holder that is booked already keeps its booking. A dry run only looks.

        Of a booking with `moved_from` only rows on which the holder does not draw yet need room. Until the change is
        seen, or has come to nothing, the holder has both charges, and on each row the larger counts.

        A pod draws on its gang's charge first. Of a gang that grows only the difference needs room.

        Raises TryAgain where all that can't be told in time.
        """
