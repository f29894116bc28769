"""Accounts in memory: compare-and-swap as on an API server, and a ledger that books at once."""

import asyncio
from decimal import Decimal

import pytest

from tests.unit.ledger.accounts import TEAM, a_booking, an_account, an_entry, tenant
from webhook.kube.errors import Conflict
from webhook.ledger.draft import MOST_RESERVATIONS
from webhook.ledger.memory import MemoryLedger, MemoryStore
from webhook.ledger.protocol import Booked, TryAgain
from webhook.ledger.versions import WorkingCopy
from webhook.policy.quota.charges import Shortfall


def a_copy(store: MemoryStore) -> WorkingCopy:
    copy = WorkingCopy(store.newest("alpha"))
    assert isinstance(copy.book(a_booking("one", tenant=tenant(4))), Booked)
    return copy


async def test_of_two_writes_that_began_at_one_version_one_wins() -> None:
    store, notified = MemoryStore(), list[str]()
    store.open(tenant(4), TEAM)
    store.subscribe(notified.append)
    first, second = a_copy(store), a_copy(store)
    await store.put(first)
    with pytest.raises(Conflict):
        await store.put(second)
    assert [each.uid for each in store.newest("alpha").account.reserved] == ["one"]
    assert notified == ["alpha"]


async def test_what_is_opened_twice_is_the_same_version() -> None:
    store = MemoryStore()
    store.open(tenant(4), TEAM)
    version = store.newest("alpha")
    store.open(tenant(4), TEAM)
    assert store.newest("alpha") is version is await store.get("alpha")


async def test_two_hundred_at_once_for_fifty_gpus() -> None:
    ledger, alpha = MemoryLedger(), tenant(50)
    answers = await asyncio.gather(*(ledger.book(a_booking(f"uid-{n}", tenant=alpha)) for n in range(200)))
    assert [type(each) for each in answers] == [Booked] * 50 + [Shortfall] * 150
    assert list(ledger.usage(alpha).values()) == [50]


async def test_a_dry_run_looks_and_books_nothing() -> None:
    ledger, alpha = MemoryLedger(), tenant(2)
    assert isinstance(await ledger.book(a_booking("one", 2, tenant=alpha), dry_run=True), Booked)
    assert isinstance(await ledger.book(a_booking("two", 3, tenant=alpha), dry_run=True), Shortfall)
    assert list(ledger.usage(alpha).values()) == [0]


async def test_an_account_that_pods_fill_has_room_for_no_more() -> None:
    ledger, alpha = MemoryLedger(), tenant(4)
    ledger.store.set(alpha, an_account(used=3))
    assert isinstance(await ledger.book(a_booking("two", 2, tenant=alpha)), Shortfall)
    assert isinstance(await ledger.book(a_booking("one", tenant=alpha)), Booked)
    assert (list(ledger.usage(alpha).values()), list(ledger.used(alpha).values())) == ([Decimal(4)], [Decimal(3)])


async def test_a_quota_that_changes_is_that_of_the_next_booking() -> None:
    ledger = MemoryLedger()
    assert isinstance(await ledger.book(a_booking("one", 2, tenant=tenant(2))), Booked)
    assert isinstance(await ledger.book(a_booking("two", 2, tenant=tenant(2))), Shortfall)
    assert isinstance(await ledger.book(a_booking("two", 2, tenant=tenant(4))), Booked)


async def test_too_many_at_once_have_to_try_again() -> None:
    ledger, alpha = MemoryLedger(), tenant(5000)
    ledger.store.set(alpha, an_account(*(an_entry(f"uid-{number}") for number in range(MOST_RESERVATIONS // 2))))
    with pytest.raises(TryAgain, match="are being created at once"):
        await ledger.book(a_booking("one-more", tenant=alpha))
