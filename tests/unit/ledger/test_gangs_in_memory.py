"""A gang holds the GPUs of all of its pods from its workload's create to its end, with one replica too."""

from decimal import Decimal

import pytest
from msgspec import structs

from tests.builders import a_tenant
from tests.builders.counted_ledger import RESERVATION_SECONDS, CountedLedger
from tests.unit.clock import Clock
from webhook.ledger.protocol import Booked, Booking, Declared, GangBooking, Holding
from webhook.policy.quota.charges import Charge, Shortfall

ALPHA = a_tenant().allowing("8").view()
(ROW,) = ALPHA.rows
KIND = "PyTorchJob.kubeflow.org"


@pytest.fixture
def ledger(clock: Clock) -> CountedLedger:
    return CountedLedger(clock, lambda _: "alpha", patience=0)


def charge(gpus: int) -> Charge:
    return Charge(Decimal(gpus), "gpu-batch")


def a_gang(uid: str, gpus: int, generation: int = 1) -> GangBooking:
    return GangBooking(uid, KIND, "team-alpha", uid, ALPHA, (charge(gpus),), generation)


def declared(uid: str, gpus: int, generation: int = 1) -> Declared:
    return Declared(KIND, "team-alpha", uid, generation, (charge(gpus),) if gpus else ())


def a_member(name: str, gang: str, gpus: int = 1) -> Booking:
    return Booking(name, "team-alpha", ALPHA, (charge(gpus),), gang, name)


def seen(name: str, gang: str, gpus: int = 1) -> Holding:
    return Holding("team-alpha", charge(gpus), controller=gang, name=name)


def used(ledger: CountedLedger) -> int:
    return int(ledger.usage(ALPHA)[ROW])


async def test_of_two_gangs_of_eight_for_eight_gpus_one_is_admitted_whole(ledger: CountedLedger) -> None:
    assert isinstance(await ledger.book(a_gang("first", 8)), Booked)
    assert isinstance(await ledger.book(a_gang("second", 8)), Shortfall)
    for number in range(8):
        assert isinstance(await ledger.book(a_member(f"first-{number}", "first")), Booked)
        ledger.observe(f"first-{number}", seen(f"first-{number}", "first"))
    assert (used(ledger), ledger.used(ALPHA)[ROW]) == (8, 8)
    assert isinstance(await ledger.book(a_member("first-8", "first")), Shortfall)


async def test_a_gang_keeps_its_charge_while_its_pods_are_made_again(ledger: CountedLedger, clock: Clock) -> None:
    await ledger.book(a_gang("job", 8))
    ledger.workloads.observe("job", declared("job", 8))
    for number in range(5):
        await ledger.book(a_member(f"pod-{number}", "job", 8))
        ledger.observe(f"pod-{number}", seen(f"pod-{number}", "job", 8))
        ledger.release(f"pod-{number}")
        clock.now += 2 * RESERVATION_SECONDS
        assert (used(ledger), ledger.used(ALPHA)[ROW]) == (8, 0)
    ledger.workloads.release("job")
    assert used(ledger) == 0


async def test_a_gang_whose_workload_was_never_stored_lapses(ledger: CountedLedger, clock: Clock) -> None:
    await ledger.book(a_gang("job", 8))
    clock.now += RESERVATION_SECONDS - 1
    assert used(ledger) == 8
    clock.now += 1
    assert used(ledger) == 0


async def test_the_end_of_a_workload_that_was_never_seen_frees_its_gpus_at_once(ledger: CountedLedger) -> None:
    await ledger.book(a_gang("job", 8))
    ledger.workloads.release("job")
    assert used(ledger) == 0


async def test_a_gang_that_grows_needs_room_for_the_difference(ledger: CountedLedger, clock: Clock) -> None:
    await ledger.book(a_gang("job", 6))
    ledger.workloads.observe("job", declared("job", 6, generation=2))
    assert isinstance(await ledger.book(a_gang("job", 9, generation=2)), Shortfall)
    assert isinstance(await ledger.book(a_gang("job", 8, generation=2)), Booked)
    assert used(ledger) == 8
    clock.now += RESERVATION_SECONDS
    assert used(ledger) == 6, "the change was never stored"
    ledger.workloads.observe("job", declared("job", 2, generation=3))
    assert used(ledger) == 2


async def test_a_dry_run_books_no_gang(ledger: CountedLedger) -> None:
    assert isinstance(await ledger.book(a_gang("job", 8), dry_run=True), Booked)
    assert isinstance(await ledger.book(a_gang("job", 9), dry_run=True), Shortfall)
    assert used(ledger) == 0


async def test_after_a_restart_a_workload_whose_pods_all_run_is_a_gang_again(ledger: CountedLedger) -> None:
    ledger.workloads.observe_all(KIND, {"job": declared("job", 2), "waits": declared("waits", 8)})
    ledger.observe_all({name: seen(name, "job") for name in ("pod-0", "pod-1")})
    assert used(ledger) == 2, "one that waits is charged by its pods"
    ledger.release("pod-1")
    assert (used(ledger), ledger.used(ALPHA)[ROW]) == (2, 1)


async def test_the_tier_to_which_a_gang_was_demoted(ledger: CountedLedger) -> None:
    assert await ledger.gang_tier(ALPHA, "team-alpha", "job") is None
    await ledger.book(structs.replace(a_gang("job", 8), tier="gpu-batch"))
    assert await ledger.gang_tier(ALPHA, "team-alpha", "job") == "gpu-batch"


async def test_what_cant_be_known_of_a_workload_changes_nothing(ledger: CountedLedger) -> None:
    await ledger.book(a_gang("job", 6))
    ledger.workloads.observe("job", declared("job", 6))
    ledger.workloads.observe("job", structs.replace(declared("job", 0, generation=2), charges=None))
    assert used(ledger) == 6


async def test_a_tier_that_nobody_reviewed_is_not_charged(ledger: CountedLedger) -> None:
    """A namespace's default tier has changed: the gang's pods are where they were."""
    await ledger.book(a_gang("job", 6))
    ledger.workloads.observe("job", declared("job", 6))
    other = (Charge(Decimal(6), "gpu-training"),)
    ledger.workloads.observe("job", structs.replace(declared("job", 6, generation=2), charges=other))
    assert list(ledger.usage(a_tenant().allowing("8", tier="gpu-batch").view()).values()) == [6]


async def test_a_gang_that_was_demoted_grows_in_its_tier(ledger: CountedLedger) -> None:
    tenant = a_tenant().allowing("4", tier="gpu-batch").allowing("16").view()
    await ledger.book(structs.replace(a_gang("job", 4), tenant=tenant, tier="gpu-batch"))
    grown = structs.replace(
        a_gang("job", 8, generation=2), tenant=tenant, charges=(Charge(Decimal(8), "gpu-training"),)
    )
    assert isinstance(await ledger.book(grown), Shortfall)


async def test_another_attempt_lapses_by_itself(ledger: CountedLedger, clock: Clock) -> None:
    """The first failed after us; the second may be stored for as long after it."""
    await ledger.book(a_gang("job", 6))
    clock.now += 59
    await ledger.book(a_gang("job", 6))
    clock.now += 59
    assert used(ledger) == 6


async def test_a_gang_that_nobody_booked_is_stranded_once_its_rest_has_no_room(ledger: CountedLedger) -> None:
    """Two pods of an older gang of four run, and others take what it would need when one of it is preempted."""
    ledger.workloads.observe("old", declared("old", 4))
    for number in range(3):
        ledger.observe(f"old-{number}", seen(f"old-{number}", "old"))
    ledger.workloads.observe("queued", declared("queued", 8))
    assert ledger.stranded(ALPHA) == (), "there is room for the fourth, and what holds nothing waits for nobody"
    ledger.observe("other", seen("other", "", 5))
    (stranded,) = ledger.stranded(ALPHA)
    assert str(stranded) == "PyTorchJob/old in team-alpha holds 3 of 4 GPUs"
    assert ledger.stranded(structs.replace(ALPHA, on_exceed="Warn")) == (), "nobody refuses its pods"
    ledger.release("other")
    assert ledger.stranded(ALPHA) == ()


async def test_a_gang_that_was_booked_keeps_the_place_of_a_pod_that_was_preempted(ledger: CountedLedger) -> None:
    await ledger.book(a_gang("job", 4))
    ledger.workloads.observe("job", declared("job", 4))
    ledger.observe("job-0", seen("job-0", "job"))
    ledger.observe("other", seen("other", "", 4))
    assert ledger.stranded(ALPHA) == ()
    assert isinstance(await ledger.book(a_member("job-1", "job")), Booked)


async def test_a_gang_that_just_fits_is_not_stranded_while_its_pods_come(ledger: CountedLedger) -> None:
    """Nobody booked it whole, and all of its pods have been admitted."""
    ledger.workloads.observe("old", declared("old", 8))
    for number in range(8):
        assert isinstance(await ledger.book(a_member(f"old-{number}", "old")), Booked)
    for number in range(8):
        ledger.observe(f"old-{number}", seen(f"old-{number}", "old"))
        assert ledger.stranded(ALPHA) == ()


async def test_pods_older_than_their_tiers_are_a_part_of_their_gang_too(ledger: CountedLedger) -> None:
    ledger.workloads.observe("old", declared("old", 8))
    for number in range(7):
        pod = Holding("team-alpha", Charge(Decimal(1), None), controller="old", name=f"old-{number}")
        ledger.observe(f"old-{number}", pod)
    assert ledger.stranded(ALPHA) == (), "there is room for the eighth"
    ledger.observe("other", seen("other", ""))
    assert [str(each) for each in ledger.stranded(ALPHA)] == ["PyTorchJob/old in team-alpha holds 7 of 8 GPUs"]


async def test_a_gang_that_ends_by_and_by_is_not_stranded(ledger: CountedLedger) -> None:
    ledger.workloads.observe("old", structs.replace(declared("old", 8), partly_done=True))
    ledger.observe("old-7", seen("old-7", "old"))
    ledger.observe("other", seen("other", "", 7))
    assert ledger.stranded(ALPHA) == ()
