"""Accounts, and what is booked into them, as these tests write them."""

from decimal import Decimal

from webhook.ledger.account import Account, Entry
from webhook.ledger.protocol import Booking, Holding
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tenants import QuotaRow, Tenant

TEAM = "team-alpha"


def tenant(gpus: int, *rows: QuotaRow) -> Tenant:
    """A tenant with a total, and these rows."""
    return Tenant("alpha", rows=(*rows, QuotaRow(Decimal(gpus))))


def an_account(*entries: Entry, used: int = 0, **fields: object) -> Account:
    """An account whose namespace is open; in sum other pods hold so many GPUs."""
    sums = (a_sum(used),) if used else ()
    return Account(**{"namespaces": {TEAM: "open"}, "entries": (*sums, *entries), **fields})  # type: ignore[arg-type]


def a_sum(gpus: int, **fields: object) -> Entry:
    """Return the sum of many pods; those `of` a gang are inside its slot."""
    return Entry(**{"wants": (Charge(gpus=Decimal(gpus), tier="gpu-batch"),), **fields})  # type: ignore[arg-type]


def an_entry(uid: str, gpus: int = 1, *, shared: dict[str, int] | None = None, **fields: object) -> Entry:
    """A pod of that uid, called as its uid is, which was admitted and not seen yet."""
    claims = {claim: Decimal(number) for claim, number in (shared or {}).items()}
    charge = Charge(gpus=Decimal(gpus), tier="gpu-batch", shared=claims)
    given = {"uid": uid, "namespace": TEAM, "name": uid, "state": "Reserved", "wants": (charge,), **fields}
    return Entry(**given)  # type: ignore[arg-type]


def a_gang(uid: str, *wants: Charge, **fields: object) -> Entry:
    """A workload that was seen to declare this."""
    given = {"uid": uid, "namespace": TEAM, "kind": "Job.batch", "name": uid, "wants": wants, **fields}
    return Entry(**given)  # type: ignore[arg-type]


def reserved(account: Account) -> list[str]:
    """The uids of the pods that were admitted and not seen yet."""
    return [each.uid for each in account.reserved if each.is_pod]


def seen_alone(account: Account) -> list[str]:
    """The uids of the pods that are seen and stand one by one."""
    return [each.uid for each in account.entries if each.is_pod and each.state == "Used"]


def a_booking(
    uid: str, gpus: int = 1, *, flavor: str | None = None, shared: dict[str, int] | None = None, **fields: object
) -> Booking:
    """Return the booking that a review of that pod makes."""
    claims = {claim: Decimal(number) for claim, number in (shared or {}).items()}
    charge = Charge(Decimal(gpus), "gpu-batch", flavor, claims)
    given = {"holder": uid, "namespace": TEAM, "tenant": tenant(0), "charges": (charge,), "name": uid, **fields}
    return Booking(**given)  # type: ignore[arg-type]


def a_holding(name: str, gpus: int = 1, *, flavor: str | None = None, **fields: object) -> Holding:
    """Return the GPUs that a pod of that name uses, as it was seen."""
    charge = Charge(Decimal(gpus), "gpu-batch", flavor)
    return Holding(**{"namespace": TEAM, "charge": charge, "name": name, **fields})  # type: ignore[arg-type]
