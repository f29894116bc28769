"""Accounts, and what is booked into them, as these tests write them."""

from decimal import Decimal

from webhook.ledger.account import Account, Holder
from webhook.ledger.protocol import Booking, Holding
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tenants import QuotaRow, Tenant

TEAM = "team-alpha"


def tenant(gpus: int, *rows: QuotaRow) -> Tenant:
    """A tenant with a total, and these rows."""
    return Tenant("alpha", rows=(*rows, QuotaRow(Decimal(gpus))))


def an_account(*reservations: Holder, held: int = 0, pods: tuple[Holder, ...] = (), **fields: object) -> Account:
    """An account whose namespace is open."""
    sums = (Charge(gpus=Decimal(held), tier="gpu-batch"),) if held else ()
    return Account(
        **{"namespaces": {TEAM: "open"}, "held": sums, "pods": pods, "reservations": reservations, **fields}  # type: ignore[arg-type]
    )


def a_holder(uid: str, gpus: int = 1, *, shared: dict[str, int] | None = None, **fields: object) -> Holder:
    """A pod of that uid, called as its uid is."""
    claims = {claim: Decimal(number) for claim, number in (shared or {}).items()}
    charge = Charge(gpus=Decimal(gpus), tier="gpu-batch", shared=claims)
    return Holder(**{"uid": uid, "namespace": TEAM, "name": uid, "charges": (charge,), **fields})  # type: ignore[arg-type]


def a_booking(
    uid: str, gpus: int = 1, *, flavor: str | None = None, shared: dict[str, int] | None = None, **fields: object
) -> Booking:
    """What a review of that pod books."""
    claims = {claim: Decimal(number) for claim, number in (shared or {}).items()}
    charge = Charge(Decimal(gpus), "gpu-batch", flavor, claims)
    told = {"holder": uid, "namespace": TEAM, "tenant": tenant(0), "charges": (charge,), "name": uid, **fields}
    return Booking(**told)  # type: ignore[arg-type]


def a_holding(name: str, gpus: int = 1, *, flavor: str | None = None, **fields: object) -> Holding:
    """What a pod of that name holds, as it was seen."""
    charge = Charge(Decimal(gpus), "gpu-batch", flavor)
    return Holding(**{"namespace": TEAM, "charge": charge, "name": name, **fields})  # type: ignore[arg-type]
