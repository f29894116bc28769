"""What a ledger is: where charges are kept so that concurrent requests can't overdraw a quota."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from webhook.policy.quota.charges import Charge, Shortfall
from webhook.policy.values.tenants import Tenant, Usage


@dataclass(frozen=True, slots=True)
class Booking:
    """One transaction: a holder, and its charges in a namespace of a tenant.

    `holder` is the uid of a pod, `name` its name, `controller` the uid of what makes the pod, "" where nobody does.
    `moved_from` is what the pod is charged so far, where a change of it is booked.
    """

    holder: str
    namespace: str
    tenant: Tenant
    charges: tuple[Charge, ...]
    controller: str = ""
    name: str = ""
    moved_from: Charge | None = None


class TryAgain(Exception):  # noqa: N818 - what the caller should do
    """No answer in time, because of something that passes. The text says what."""


@dataclass(frozen=True, slots=True)
class Booked:
    """The booking holds."""


@dataclass(frozen=True, slots=True)
class Holding:
    """What a pod that exists holds. `ends_in`: seconds from when its deletion is seen first to when it counts no more.

    `preempted`: the scheduler has evicted it for another pod, and it ends now.
    """

    namespace: str
    charge: Charge
    ends_in: float | None = None
    controller: str = ""
    preempted: bool = False
    name: str = ""


class Ledger(Protocol):
    """Who holds what."""

    def usage(self, tenant: Tenant, without: Collection[str] = ()) -> Usage:
        """GPUs booked on each of a tenant's rows, reservations included, `without` those of some ResourceClaims.

        On a row a claim counts once, however many pods share it.
        """
        ...

    def usage_in(self, tenant: Tenant, namespaces: Collection[str]) -> Usage:
        """GPUs booked on each of a tenant's rows if these namespaces were the tenant's."""
        ...

    def used(self, tenant: Tenant) -> Usage:
        """GPUs on each row that pods hold which were seen to exist."""
        ...

    async def book(self, booking: Booking, *, dry_run: bool = False) -> Booked | Shortfall:
        """Book all charges or none. A holder that is booked already keeps its booking. A dry run only looks.

        Of a booking with `moved_from` only rows on which the holder does not draw yet need room. Until the change is
        seen, or has come to nothing, the holder has both charges, and on each row the larger counts.

        Raises TryAgain where all that can't be told in time.
        """
        ...


class Observer(Protocol):
    """Who is told what the pods that exist hold."""

    def release(self, holder: str) -> None:
        """The holder is gone, or has succeeded or failed."""
        ...

    def observe(self, holder: str, holding: Holding) -> None:
        """A pod exists and holds GPUs; it is charged whether or not there was room."""
        ...

    def observe_all(self, holdings: Mapping[str, Holding]) -> None:
        """These pods exist and no others."""
        ...
