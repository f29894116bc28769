"""The interface of a ledger, which books charges so that concurrent requests can't overdraw a quota."""

from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec

from webhook.policy.quota.charges import Charge, Shortfall
from webhook.policy.values.tenants import Tenant, Usage

PATIENCE_SECONDS = 1.0
"""How long a pod of a controller waits for room before it is refused. It may replace a pod whose end or
preemption our watch has not shown yet, and a refused controller would try again after 10 s to minutes."""


class GangBooking(msgspec.Struct, frozen=True, tag=True):
    """One transaction for a whole workload: its charges from its create on, or from a change to `generation`.

    `tier` is the tier to which it was demoted, at which all of its pods have to run. `of_pods`: it is a group of pods
    without a workload, and `uid` is the name that its pods give it. `rank` is the value of the lowest of its tiers.
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

    `holder` is the uid of a pod and `name` its name. `controller` is the uid of its controller, or "", and `workload`
    the uid of its outermost owner. `moved_from` is the charge of the pod so far if a change of it is booked. `gang` is
    the uid of the gang to which the pod belongs, "" if that is its controller. `group` is booked with the first of its
    pods. `rank` is the value of the charge's tier: GPUs reserved for the queue count against it unless its tier is
    higher. `tries_again`: a controller of Kubernetes makes the pod, and tries again if it is refused. `retries` are the
    names of earlier tries, if more of them came to nothing than may still be under way. The pod may share the slot of
    the oldest of these tries in whose slot no pod was seen.
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
    """Return the seconds for which a booking waits for room before it is refused."""
    return PATIENCE_SECONDS if isinstance(booking, Booking) and booking.controller else 0.0


class TryAgain(Exception):  # noqa: N818 - what the caller should do
    """No answer in time, for a reason that passes. The text gives the reason."""


class Booked(msgspec.Struct, frozen=True):
    """The answer to a booking that was made, or would be made."""


class Gated(msgspec.Struct, frozen=True):
    """A pod behind our gate: its priority, since when it waits (RFC 3339), and its resourceVersion.

    `reported`: its condition says why it waits. `awaits_controller`: the controller may be a gang, so the leader must
    see it first.
    """

    priority: int
    since: str
    version: str
    reported: bool = False
    awaits_controller: bool = False


class Holding(msgspec.Struct, frozen=True):
    """The GPUs of an existing pod. `ends_in`: seconds from when its deletion is seen first until it no longer counts.

    `preempted`: the scheduler has evicted it for another pod, and it ends soon enough for a replacement to take its
    slot. `gated`: it uses nothing yet, and asks for this. `workload` is the uid of its outermost owner, if its tenant
    has a queue.
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
        """The owner whose pods replace each other, such as a Deployment that rolls from one ReplicaSet to the next."""
        return self.namespace, self.workload or self.controller

    @property
    def draws_on(self) -> tuple[str, str]:
        return self.namespace, self.gang or self.controller


class Declared(msgspec.Struct, frozen=True):
    """The GPUs that an existing workload asks for as a whole; `charges` is None if they aren't known.

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
    """The ledger, as admission reads it and books into it."""

    @property
    def is_current(self) -> bool:
        """True if a leader counts pods that end."""

    def usage(self, tenant: Tenant, without: Collection[str] = ()) -> Usage:
        """Return the GPUs booked on each row of a tenant, with reservations and `without` some ResourceClaims.

        On a row a claim counts once, however many pods share it.
        """

    def used(self, tenant: Tenant) -> Usage:
        """Return the GPUs on each row that existing pods use, without reservations."""

    def reserved_for_queue(self, tenant: Tenant, rank: int = 0, own: Collection[str] = ()) -> Usage:
        """Return the GPUs on each row that are reserved for the queue against bookings of this rank.

        They are part of the usage. All of them count against rank 0, except those reserved for the uids `own`.
        """

    def unseen(self, tenant: Tenant, namespace: str, controller: str) -> Sequence[str]:
        """Return names of pods that the controller with this uid tried to create and that are not seen.

        Each is the latest try of its slot. The oldest comes first.
        """

    async def gang_tier(self, tenant: Tenant, namespace: str, uid: str) -> str | None:
        """Return the tier to which a gang was demoted, "" if it was not; None if no such gang is booked.

        Raises TryAgain if the account can't be read in time.
        """

    async def has_room(self, booking: Booking) -> bool:
        """Tell whether `book` would book. It waits for room as `book` does. Raises TryAgain."""

    async def book(self, booking: Booking | GangBooking, *, dry_run: bool = False) -> Booked | Shortfall:
        """Book all charges or none. A holder that is booked already keeps its booking. A dry run writes nothing.

        A booking with `moved_from` needs room only on rows on which the holder does not count yet. Until the change is
        seen, or has come to nothing, the holder has both charges, and on each row the larger one counts.

        A pod uses its gang's charge first. A gang that grows needs room only for the difference.

        Raises TryAgain if there is no answer in time.
        """
