"""A pod's update may bring it to another flavor: the ledger holds both until it knows that the update was stored."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.builders import a_tenant
from tests.builders.counted_ledger import RESERVATION_SECONDS, CountedLedger
from tests.unit.clock import Clock
from webhook.ledger.protocol import Booked, Booking, Holding
from webhook.policy.quota.charges import Charge, Shortfall

ALPHA = a_tenant().allowing("4").allowing("2", flavor="h100").allowing("2", flavor="a100").view()
TOTAL, H100, A100 = ALPHA.rows


@pytest.fixture
def ledger(clock: Clock) -> CountedLedger:
    return CountedLedger(clock, lambda _: "alpha", patience=0)


def charge(gpus: int, flavor: str | None) -> Charge:
    return Charge(Decimal(gpus), "gpu-batch", flavor)


def booking(holder: str, gpus: int, flavor: str | None = None) -> Booking:
    return Booking(holder, "team-alpha", ALPHA, (charge(gpus, flavor),), "rs")


def moving(holder: str, gpus: int, to: str, *, before: str | None = None) -> Booking:
    """Return the booking of a pod's update that gets another node selector."""
    return replace(booking(holder, gpus, to), moved_from=charge(gpus, before))


def seen(gpus: int, flavor: str | None = None, *, preempted: bool = False) -> Holding:
    return Holding("team-alpha", charge(gpus, flavor), None, "rs", preempted)


def used(ledger: CountedLedger) -> tuple[int, int, int]:
    usage = ledger.usage(ALPHA)
    return int(usage[TOTAL]), int(usage[H100]), int(usage[A100])


async def test_a_pod_counts_on_the_flavor_that_its_lifted_gate_names(ledger: CountedLedger) -> None:
    await ledger.book(booking("one", 2))
    assert used(ledger) == (2, 0, 0)
    assert isinstance(await ledger.book(moving("one", 2, "h100")), Booked)
    assert used(ledger) == (2, 2, 0), "the total counts it once"
    ledger.observe("one", seen(2, "h100"))
    assert used(ledger) == (2, 2, 0)
    assert ledger.used(ALPHA)[H100] == 2
    ledger.release("one")
    assert used(ledger) == (0, 0, 0)


async def test_without_room_on_the_new_row_it_stays_where_it_was(ledger: CountedLedger) -> None:
    ledger.observe("other", seen(1, "h100"))
    await ledger.book(booking("one", 2))
    short = await ledger.book(moving("one", 2, "h100"))
    assert isinstance(short, Shortfall)
    assert (short.row, short.usage[H100], short.charge.gpus) == (H100, 1, 2)
    assert used(ledger) == (3, 1, 0)


async def test_rows_on_which_it_draws_already_need_no_room(ledger: CountedLedger) -> None:
    """Seen pods can stand above a quota that was lowered."""
    ledger.observe("one", seen(2))
    ledger.observe("other", seen(9))
    assert isinstance(await ledger.book(moving("one", 2, "h100")), Booked)


async def test_a_dry_run_only_looks(ledger: CountedLedger) -> None:
    await ledger.book(booking("one", 2))
    assert isinstance(await ledger.book(moving("one", 2, "h100"), dry_run=True), Booked)
    assert used(ledger) == (2, 0, 0)
    assert isinstance(await ledger.book(moving("one", 3, "h100"), dry_run=True), Shortfall)


async def test_late_news_of_the_pod_as_it_was_does_not_free_the_new_row(ledger: CountedLedger) -> None:
    """Kueue may lift the gate before our watch has brought the pod's creation."""
    await ledger.book(booking("one", 2))
    await ledger.book(moving("one", 2, "h100"))
    ledger.observe("one", seen(2))
    assert used(ledger) == (2, 2, 0)
    ledger.observe_all({"one": seen(2)})
    assert used(ledger) == (2, 2, 0)
    await ledger.book(booking("two", 2))
    assert isinstance(await ledger.book(moving("two", 2, "h100")), Shortfall)


async def test_an_update_that_was_never_stored_lapses_alone(ledger: CountedLedger, clock: Clock) -> None:
    """A conflict, or another webhook's refusal, comes after our yes."""
    ledger.observe("one", seen(2))
    await ledger.book(moving("one", 2, "h100"))
    clock.now += RESERVATION_SECONDS
    assert used(ledger) == (2, 0, 0)


async def test_the_same_update_again_is_counted_once(ledger: CountedLedger, clock: Clock) -> None:
    ledger.observe("one", seen(2))
    await ledger.book(moving("one", 2, "h100"))
    clock.now += RESERVATION_SECONDS / 2
    assert isinstance(await ledger.book(moving("one", 2, "h100")), Booked)
    assert used(ledger) == (2, 2, 0)


async def test_an_update_to_another_flavor_holds_both_until_one_is_seen(ledger: CountedLedger) -> None:
    ledger.observe("one", seen(2))
    await ledger.book(moving("one", 2, "h100"))
    await ledger.book(moving("one", 2, "a100"))
    assert used(ledger) == (2, 2, 2)
    ledger.observe("one", seen(2, "a100"))
    assert used(ledger) == (2, 2, 2), "the first may be stored still"


async def test_the_replacement_of_a_preempted_pod_moves_into_its_place(ledger: CountedLedger) -> None:
    ledger.observe("victim", seen(2, "h100", preempted=True))
    await ledger.book(booking("heir", 2))
    assert isinstance(await ledger.book(moving("heir", 2, "h100")), Booked)
    assert used(ledger) == (2, 2, 0), "the pair is charged once"
    ledger.release("victim")
    assert used(ledger) == (2, 2, 0), "the replacement alone"


async def test_a_pod_that_nobody_booked_needs_room_on_the_new_row_alone(ledger: CountedLedger) -> None:
    """Its watch event is still to come: until then the total lacks it."""
    assert isinstance(await ledger.book(moving("unknown", 3, "h100")), Shortfall)
    assert isinstance(await ledger.book(moving("unknown", 2, "h100")), Booked)
    assert used(ledger) == (0, 2, 0)
    ledger.observe("unknown", seen(2))
    assert used(ledger) == (2, 2, 0)
