"""The turn of a pod that waits for quota: its place, what is before it, and when it has room at the latest."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import accumulate

import msgspec

from webhook.kube.wire import RFC_3339
from webhook.objects.quantities import written_gpus
from webhook.objects.refusal import first_of
from webhook.policy.quota.held import NoRoom, why_held
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage
from webhook.report.tenants import PlaceShown, RowShown, TenantShown
from webhook.sentences.sentence import sentence

MOST_BEFORE = 3


def place_in(tenant: TenantShown, namespace: str, uids: frozenset[str]) -> PlaceShown | None:
    """Where in a tenant's line one of these objects stands; None where it is not among those that are shown."""
    return next((each for each in tenant.held.line if each.namespace == namespace and each.uid in uids), None)


def in_line(tenant: TenantShown, place: PlaceShown | None) -> Iterator[str]:
    """That it has this place in a tenant's line, and what is before it; a sentence each."""
    line = tenant.held.line
    if place is not None:
        yield _why(tenant, place)
        yield from _before(line[: place.nth - 1])
    elif tenant.held.workloads > len(line):
        yield (
            f"It is not among the first {len(line)} of the {tenant.held.workloads} workloads that wait in the line of "
            f"tenant {tenant.name}."
        )
    else:
        yield (
            f"It is in no line of tenant {tenant.name}: its turn has come, the leader has not looked at it yet, or the "
            "workload that it is of has ended."
        )


def _why(tenant: TenantShown, place: PlaceShown) -> str:
    row = next((each for each in tenant.rows if each.subject == place.short), None)
    short = _short(row, place) if row else None
    before = tenant.held.line[place.nth - 2].workload if place.nth > 1 else ""
    count = max(tenant.held.workloads, place.nth)
    told = sentence(why_held(Decimal(str(place.gpus)), tenant.name, short, before, (place.nth, count)))
    return f"It {told}."


def _short(row: RowShown, place: PlaceShown) -> NoRoom:
    """The row without room. What is reserved for the queue is the head's own."""
    for_queue = row.reserved_for_queue if place.nth > 1 else 0
    used, ahead, hard = (Decimal(str(each)) for each in (row.used + row.reserved + for_queue, for_queue, row.hard))
    subject = "the total" if row.subject == "total" else row.subject
    return NoRoom(subject, used, hard, never=place.gpus > row.hard, reserved=ahead)


def _before(places: Sequence[PlaceShown]) -> Iterator[str]:
    """The first of them, in other namespaces too: the line is the tenant's."""
    if not places:
        return
    gpus = sum((Decimal(str(each.gpus)) for each in places), Decimal(0))
    named = [_named(each) for each in places]
    yield f"Before it: {first_of(named, MOST_BEFORE)}; {written_gpus(gpus)} in all."


def _named(place: PlaceShown) -> str:
    gpus = written_gpus(Decimal(str(place.gpus)))
    return f"{place.workload} in {place.namespace} ({gpus}, {place.tier or 'no tier'})"


class Use(msgspec.Struct, frozen=True):
    """GPUs that a pod holds until then, at the latest."""

    gpus: Decimal
    tier: str | None
    flavor: str | None
    until: datetime


AT_ONCE = datetime.min.replace(tzinfo=UTC)


def room_at_latest(
    line: Sequence[PlaceShown], flavor: str | None, tenant: Tenant, usage: Usage, uses: Iterable[Use]
) -> datetime | None:
    """When the last of a line has room for certain, if nobody comes who goes before it; None where nothing tells.

    Those before it are taken to keep theirs for ever, and to draw on every row of their tier.
    """
    own, ends = line[-1], sorted(uses, key=lambda each: each.until)
    drawn = [
        row for row in tenant.rows if row.tier in (None, own.tier) and (not flavor or row.flavor in (None, flavor))
    ]
    found = [_room_in(row, line, usage, ends) for row in drawn]
    latest = max((each for each in found if each), default=AT_ONCE)
    return latest if None not in found and latest > AT_ONCE else None


def _room_in(row: QuotaRow, line: Iterable[PlaceShown], usage: Usage, ends: Iterable[Use]) -> datetime | None:
    """When a row has room for all of them; `ends` are in the order of time."""
    asked = sum((Decimal(str(each.gpus)) for each in line if row.tier in (None, each.tier)), Decimal(0))
    lacks = usage.get(row, Decimal(0)) + asked - row.hard
    if lacks <= 0:
        return AT_ONCE
    counted = [each for each in ends if row.counts(each.tier, each.flavor)]
    freed = accumulate(each.gpus for each in counted)
    return next((each.until for each, gpus in zip(counted, freed, strict=True) if gpus >= lacks), None)


def said_at_latest(room: datetime) -> str:
    return (
        f"It has room at {room.strftime(RFC_3339)} at the latest, by the activeDeadlineSeconds of what runs now, if no "
        "work of a higher tier comes before it."
    )
