"""The ledger in memory: never overdrawn by concurrent bookings, right again after whatever came to pass."""

import asyncio
from decimal import Decimal

import pytest

from tests.builders import a_tenant
from tests.builders.counted_ledger import RESERVATION_SECONDS, CountedLedger
from tests.unit.clock import Clock
from webhook.ledger.draft import MOST_RESERVATIONS
from webhook.ledger.protocol import Booked, Booking, Holding, TryAgain
from webhook.policy.quota.charges import Charge, Shortfall
from webhook.policy.values.tenants import Tenant

ALPHA = a_tenant().allowing("8").allowing("6", tier="gpu-training").view()
TOTAL, TRAINING = ALPHA.rows
ONE, TWO = Charge(Decimal(1), "gpu-training"), Charge(Decimal(2), "gpu-training")
BATCH = Charge(Decimal(2), "gpu-batch")


@pytest.fixture
def ledger(clock: Clock) -> CountedLedger:
    return CountedLedger(clock, {"team-alpha": "alpha"}.get)


def seen(charge: Charge, namespace: str = "team-alpha", ends_in: float | None = None) -> Holding:
    return Holding(namespace, charge, ends_in)


def booking(holder: str, charge: Charge, tenant: Tenant = ALPHA) -> Booking:
    return Booking(holder, "team-alpha", tenant, (charge,))


def booked(ledger: CountedLedger) -> tuple[Decimal, Decimal]:
    usage = ledger.usage(ALPHA)
    return usage[TOTAL], usage[TRAINING]


async def test_two_hundred_at_once_for_fifty_gpus(ledger: CountedLedger) -> None:
    tenant = a_tenant().allowing("50", tier="gpu-training").view()
    answers = await asyncio.gather(*(ledger.book(booking(f"uid-{n}", ONE, tenant)) for n in range(200)))
    assert sum(isinstance(answer, Booked) for answer in answers) == 50
    (row,) = tenant.rows
    assert ledger.usage(tenant) == {row: 50}
    refused = next(answer for answer in answers if isinstance(answer, Shortfall))
    assert (refused.row, refused.usage[row]) == (row, 50)


async def test_a_charge_draws_on_each_row_that_counts_it(ledger: CountedLedger) -> None:
    assert isinstance(await ledger.book(booking("a", TWO)), Booked)
    assert isinstance(await ledger.book(booking("b", BATCH)), Booked)
    assert booked(ledger) == (4, 2)


async def test_the_same_uid_is_booked_once(ledger: CountedLedger) -> None:
    """The API server asks again within its timeout where an answer got lost."""
    for _ in range(3):
        assert isinstance(await ledger.book(booking("a", Charge(Decimal(5), "gpu-training"))), Booked)
    assert booked(ledger) == (5, 5)


async def test_a_dry_run_looks_and_books_nothing(ledger: CountedLedger) -> None:
    assert isinstance(await ledger.book(booking("a", TWO), dry_run=True), Booked)
    assert isinstance(await ledger.book(booking("a", Charge(Decimal(7), "gpu-training")), dry_run=True), Shortfall)
    assert booked(ledger) == (0, 0)


async def test_all_charges_of_a_booking_are_booked_or_none(ledger: CountedLedger) -> None:
    both = Booking("gang", "team-alpha", ALPHA, (Charge(Decimal(5), "gpu-training"), Charge(Decimal(4), "gpu-batch")))
    answer = await ledger.book(both)
    assert isinstance(answer, Shortfall)
    assert (answer.row, booked(ledger)) == (TOTAL, (0, 0))
    assert isinstance(await ledger.book(Booking("gang", "team-alpha", ALPHA, (TWO, BATCH))), Booked)
    assert booked(ledger) == (4, 2)


async def test_what_was_refused_is_not_booked(ledger: CountedLedger) -> None:
    assert isinstance(await ledger.book(booking("a", Charge(Decimal(7), "gpu-training"))), Shortfall)
    assert booked(ledger) == (0, 0)


async def test_a_booking_whose_pod_never_came_lapses(ledger: CountedLedger, clock: Clock) -> None:
    await ledger.book(booking("a", TWO))
    clock.now += RESERVATION_SECONDS - 1
    assert booked(ledger) == (2, 2)
    clock.now += 1
    assert booked(ledger) == (0, 0)


async def test_a_booking_whose_pod_came_stays(ledger: CountedLedger, clock: Clock) -> None:
    await ledger.book(booking("a", TWO))
    assert ledger.used(ALPHA)[TOTAL] == 0
    ledger.observe("a", seen(TWO))
    clock.now += 10 * RESERVATION_SECONDS
    assert (booked(ledger), ledger.used(ALPHA)[TOTAL]) == ((2, 2), 2)


async def test_a_pod_that_ended_gives_its_gpus_back_once(ledger: CountedLedger) -> None:
    await ledger.book(booking("a", TWO))
    ledger.observe("b", seen(TWO))
    for uid in ("a", "b", "b", "never-seen"):
        ledger.release(uid)
    assert booked(ledger) == (0, 0)


def test_a_pod_that_is_there_is_charged_though_there_is_no_room(ledger: CountedLedger) -> None:
    for number in range(5):
        ledger.observe(f"uid-{number}", seen(TWO))
    assert booked(ledger) == (10, 10)


def test_a_pod_seen_again_counts_as_it_is_now(ledger: CountedLedger) -> None:
    ledger.observe("a", seen(TWO))
    ledger.observe("a", seen(ONE))
    assert booked(ledger) == (1, 1)


def test_a_pod_stuck_in_deletion_holds_nothing_for_ever(ledger: CountedLedger, clock: Clock) -> None:
    ledger.observe("a", seen(TWO, ends_in=30))
    assert booked(ledger) == (2, 2)
    clock.now += 30
    assert booked(ledger) == (0, 0)


async def test_a_relist_keeps_the_bookings_whose_pods_are_still_to_come(ledger: CountedLedger, clock: Clock) -> None:
    ledger.observe("gone", seen(TWO))
    await ledger.book(booking("coming", ONE))
    ledger.observe_all({"there": seen(TWO)})
    assert booked(ledger) == (3, 3)
    clock.now += RESERVATION_SECONDS
    assert booked(ledger) == (2, 2)


def test_what_a_namespace_holds_follows_it_to_another_tenant(clock: Clock) -> None:
    owner: dict[str, str | None] = {"team-alpha": None}
    ledger = CountedLedger(clock, owner.get)
    ledger.observe("a", seen(TWO))
    assert booked(ledger) == (0, 0)
    owner["team-alpha"] = "alpha"
    assert booked(ledger) == (2, 2)
    owner["team-alpha"] = "beta"
    assert booked(ledger) == (0, 0)


def test_a_tenant_whose_rows_change_finds_its_charges_in_the_new_ones(ledger: CountedLedger) -> None:
    ledger.observe("a", seen(Charge(Decimal(2), "gpu-training", "h100")))
    ledger.observe("b", seen(BATCH))
    other = a_tenant().allowing("4", flavor="h100").allowing("9", tier="gpu-batch").view()
    assert list(ledger.usage(other).values()) == [2, 2]


async def test_others_pods_are_not_counted(ledger: CountedLedger) -> None:
    ledger.observe("a", seen(TWO, namespace="team-beta"))
    ledger.observe("b", seen(TWO, namespace="default"))
    assert booked(ledger) == (0, 0)


async def test_a_class_below_every_tier_counts_in_the_total_alone(ledger: CountedLedger) -> None:
    await ledger.book(booking("a", Charge(Decimal(3), None)))
    assert booked(ledger) == (3, 0)


async def test_creates_under_way_are_bounded_as_in_the_ledger_that_replicas_share(ledger: CountedLedger) -> None:
    tenant = a_tenant().allowing("5000").view()
    for number in range(MOST_RESERVATIONS // 2):
        await ledger.book(booking(f"uid-{number}", ONE, tenant))
    with pytest.raises(TryAgain, match=r"^500 pods of tenant alpha are being created at once, 500 of them in "):
        await ledger.book(booking("one-more", ONE, tenant))
    ledger.observe("uid-0", seen(ONE))
    assert isinstance(await ledger.book(booking("one-more", ONE, tenant)), Booked)


FOUR = {"team-alpha/pair": Decimal(4)}


async def test_a_claim_that_a_seen_pod_holds_is_not_reserved_again(ledger: CountedLedger) -> None:
    charge = Charge(Decimal(4), "gpu-training", shared=FOUR)
    ledger.observe("a", seen(charge))
    assert isinstance(await ledger.book(booking("b", charge)), Booked)
    assert (booked(ledger), ledger.used(ALPHA)[TRAINING]) == ((4, 4), 4)


def test_a_claim_stays_with_the_pods_that_are_left(ledger: CountedLedger) -> None:
    """Whoever came first: training ends, and batch still uses the four GPUs."""
    for uid, tier in (("a", "gpu-training"), ("b", "gpu-batch")):
        ledger.observe(uid, seen(Charge(Decimal(5), tier, shared=FOUR)))
    assert booked(ledger) == (6, 5)
    ledger.release("a")
    assert booked(ledger) == (5, 0)
    ledger.release("b")
    assert booked(ledger) == (0, 0)


async def test_a_refusal_names_what_is_used_beside_the_shared_claim(ledger: CountedLedger) -> None:
    ledger.observe("a", seen(Charge(Decimal(4), "gpu-training", shared=FOUR)))
    ledger.observe("b", seen(TWO))
    answer = await ledger.book(booking("c", Charge(Decimal(5), "gpu-training", shared=FOUR)))
    assert isinstance(answer, Shortfall)
    assert (answer.row, answer.usage[TRAINING], answer.charge.gpus) == (TRAINING, 2, 5)
