"""The victim comes back: a preempted pod's replacement takes its place while it still ends."""

import asyncio
from decimal import Decimal

import pytest

from tests.builders import a_tenant
from tests.builders.counted_ledger import RESERVATION_SECONDS, CountedLedger
from tests.unit.clock import Clock
from webhook.ledger.protocol import Booked, Booking, Holding
from webhook.policy.quota.charges import Charge, Shortfall

FULL = a_tenant().allowing("4", tier="gpu-batch").view()
(ROW,) = FULL.rows


@pytest.fixture
def ledger(clock: Clock) -> CountedLedger:
    """A tenant's 4 GPUs, all used by one pod of a ReplicaSet."""
    ledger = CountedLedger(clock, lambda _: "alpha", patience=5)
    ledger.observe("victim", pod(4))
    return ledger


def pod(gpus: int, *, preempted: bool = False, controller: str = "rs") -> Holding:
    return Holding("team-alpha", Charge(Decimal(gpus), "gpu-batch"), None, controller, preempted)


def a_booking(holder: str, gpus: int = 4, controller: str = "rs") -> Booking:
    return Booking(holder, "team-alpha", FULL, (Charge(Decimal(gpus), "gpu-batch"),), controller)


def used(ledger: CountedLedger) -> Decimal:
    return ledger.usage(FULL)[ROW]


async def test_the_replacement_of_a_preempted_pod_gets_in_at_once(ledger: CountedLedger) -> None:
    ledger.observe("victim", pod(4, preempted=True))
    assert isinstance(await ledger.book(a_booking("heir")), Booked)
    assert used(ledger) == 4, "the pair is charged once"
    ledger.observe("heir", pod(4))
    assert used(ledger) == 4
    ledger.release("victim")
    assert used(ledger) == 4, "the replacement alone"
    ledger.release("heir")
    assert used(ledger) == 0


async def test_it_waits_for_the_news_that_its_victim_was_preempted(ledger: CountedLedger) -> None:
    """A ReplicaSet makes the next pod before our watch has shown the end of the last one."""
    asyncio.get_running_loop().call_later(0.01, ledger.observe, "victim", pod(4, preempted=True))
    assert isinstance(await ledger.book(a_booking("heir")), Booked)


async def test_it_waits_for_the_end_of_the_pod_that_it_replaces(ledger: CountedLedger) -> None:
    asyncio.get_running_loop().call_later(0.01, ledger.release, "victim")
    assert isinstance(await ledger.book(a_booking("next")), Booked)


async def test_without_news_it_is_refused_when_its_patience_ends(clock: Clock) -> None:
    """Whoever it replaces may be a pod that our watch has not shown at all."""
    ledger = CountedLedger(clock, lambda _: "alpha", patience=0.05)
    ledger.observe("other", pod(4, controller="job"))
    asking = asyncio.create_task(ledger.book(a_booking("replica")))
    await asyncio.sleep(0.01)
    assert not asking.done()
    assert isinstance(await asking, Shortfall)


async def test_nobody_else_takes_the_place(clock: Clock) -> None:
    ledger = CountedLedger(clock, lambda _: "alpha", patience=0)
    ledger.observe("victim", pod(4, preempted=True))
    assert isinstance(await ledger.book(a_booking("stranger", controller="job")), Shortfall)
    assert isinstance(await ledger.book(a_booking("bare", controller="")), Shortfall)


async def test_a_victim_has_one_replacement(clock: Clock) -> None:
    ledger = CountedLedger(clock, lambda _: "alpha", patience=0)
    ledger.observe("victim", pod(4, preempted=True))
    assert isinstance(await ledger.book(a_booking("heir")), Booked)
    assert isinstance(await ledger.book(a_booking("second")), Shortfall)


async def test_a_replacement_that_comes_to_nothing_frees_the_place(clock: Clock) -> None:
    """Another webhook refused it, and its controller tries again under another uid."""
    ledger = CountedLedger(clock, lambda _: "alpha", patience=0)
    ledger.observe("victim", pod(4, preempted=True))
    assert isinstance(await ledger.book(a_booking("heir")), Booked)
    clock.now += RESERVATION_SECONDS
    assert isinstance(await ledger.book(a_booking("again")), Booked)
    assert used(ledger) == 4


async def test_a_larger_replacement_needs_room_for_the_rest(clock: Clock) -> None:
    ledger = CountedLedger(clock, lambda _: "alpha", patience=0)
    ledger.observe("victim", pod(2, preempted=True))
    assert isinstance(await ledger.book(a_booking("too-large", 5)), Shortfall)
    assert isinstance(await ledger.book(a_booking("heir", 3)), Booked)
    assert used(ledger) == 3
    ledger.release("heir")
    assert used(ledger) == 2


async def test_a_replacement_that_is_preempted_itself_has_a_replacement_once_it_stands_alone(clock: Clock) -> None:
    ledger = CountedLedger(clock, lambda _: "alpha", patience=0)
    ledger.observe("first", pod(4, preempted=True))
    await ledger.book(a_booking("second"))
    ledger.observe("second", pod(4, preempted=True))
    assert isinstance(await ledger.book(a_booking("third")), Shortfall)
    ledger.release("first")
    assert isinstance(await ledger.book(a_booking("third")), Booked)
    assert used(ledger) == 4


async def test_a_dry_run_takes_no_place_and_does_not_wait(ledger: CountedLedger) -> None:
    assert isinstance(await ledger.book(a_booking("heir"), dry_run=True), Shortfall)
    ledger.observe("victim", pod(4, preempted=True))
    assert isinstance(await ledger.book(a_booking("heir"), dry_run=True), Booked)
    assert isinstance(await ledger.book(a_booking("other"), dry_run=True), Booked)


async def test_after_a_restart_the_pair_is_charged_in_full_until_the_victim_is_gone(clock: Clock) -> None:
    """No object names the replaced pod, so too much is charged for a while, and never too little."""
    ledger = CountedLedger(clock, lambda _: "alpha")
    ledger.observe_all({"victim": pod(4, preempted=True), "heir": pod(4)})
    assert used(ledger) == 8
    ledger.release("victim")
    assert used(ledger) == 4


async def test_the_place_covers_no_claim_that_the_replacement_shares(clock: Clock) -> None:
    ledger = CountedLedger(clock, lambda _: "alpha", patience=0)
    ledger.observe("victim", pod(3, preempted=True))
    with_claim = Charge(Decimal(3), "gpu-batch", shared={"team-alpha/pair": Decimal(2)})
    answer = await ledger.book(Booking("heir", "team-alpha", FULL, (with_claim,), "rs"))
    assert isinstance(answer, Shortfall)
    assert used(ledger) == 3
