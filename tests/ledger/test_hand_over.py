"""Replicas hand their bookings to the leader: who answers what, and what is charged, whatever becomes of the leader."""

import asyncio
from typing import Any

import pytest

from tests.ledger.cluster import NO, YES, Cluster, opened
from tests.ledger.process import H, Process
from tests.ledger.simulated_api import PODS, TENANT_QUOTAS
from tests.ledger.simulated_client import Fate
from tests.ledger.stories import Stories, Story, fails_without, passes, replaced
from tests.ledger.virtual_time import in_virtual_time, loop
from webhook.ledger import accounts
from webhook.ledger.accounts import Accounts
from webhook.ledger.protocol import Booked

STORIES = Stories()


async def handing_over(cluster: Cluster, quota: int) -> tuple[Process, Process]:
    """A leader, and a replica that hands it all bookings."""
    leader, replica = await opened(cluster, quota)
    replica.hands_to = leader
    return leader, replica


async def _by_what_it_remembers(accounts: Accounts, booking: Any) -> bool:
    return await accounts.writer("alpha").change(lambda copy: isinstance(copy.book(booking), Booked), dry=True)


@STORIES.of("written", replaced(Accounts, "take", _by_what_it_remembers))
async def a_leader_says_yes_once_its_write_has_won(cluster: Cluster) -> None:
    _, replica = await handing_over(cluster, 1)
    assert await cluster.ask("A", replica) == YES
    assert await cluster.ask("B", replica) == NO


async def _remembered(accounts: Accounts, booking: Any) -> bool:
    return await accounts.writer("alpha").change(lambda copy: isinstance(copy.book(booking), Booked), fresh=False)


@STORIES.of("fresh", replaced(Accounts, "take", _remembered))
async def a_leader_that_knows_a_booking_reads_whether_it_still_stands(cluster: Cluster) -> None:
    """Another leads by now, and has let its place go; nobody has told the replica, nor this one's watch."""
    leader, replica = await handing_over(cluster, 1)
    other = await cluster.process("other")
    assert await cluster.ask("A", replica) == YES
    leader.client.view(TENANT_QUOTAS).hold()
    await leader.stop_leading()
    other.lead()
    await cluster.never("A")
    await cluster.time(H + 6)
    assert await cluster.ask("B", other) == YES
    assert await cluster.ask("A", replica) == NO


@STORIES.tests()
def test_with_the_rule_no_reservation_is_lost(story: Story) -> None:
    passes(story)


@STORIES.tests()
def test_without_the_rule_its_story_fails(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_without(story, monkeypatch)


async def seconds_of(cluster: Cluster, name: str, at: Process, **more: Any) -> tuple[str, float]:
    """An answer, and how long it took."""
    began = loop().time()
    answer = await cluster.decide(name, at, **more)
    return answer, round(loop().time() - began, 3)


@in_virtual_time
async def test_bookings_of_all_replicas_share_the_leaders_writes() -> None:
    cluster = Cluster()
    leader, replica = await handing_over(cluster, 30)
    third = await cluster.process("third")
    third.hands_to = leader
    puts = []
    for each in (leader, replica, third):
        each.client.fates = lambda asked, name=each.name: (
            (puts.append(name) if asked.method == "PUT" else None) or Fate.ANSWERED
        )
    asked = [cluster.decide(f"{each.name}-{number}", each) for number in range(8) for each in (leader, replica, third)]
    assert await asyncio.gather(*asked) == [YES] * 24
    assert set(puts) == {"leader"}
    assert len(puts) < 12
    assert cluster.charge() == 24
    await cluster.end()


@in_virtual_time
async def test_the_leader_dies_between_its_write_and_its_answer() -> None:
    cluster = Cluster()
    leader, replica = await handing_over(cluster, 1)
    leader.client.hold("PUT")
    asking = asyncio.create_task(cluster.decide("A", replica))
    await cluster.time(0.01)
    leader.client.waiting[0].fate.set_result(Fate.LOST)
    await cluster.time(0.01)
    assert cluster.charge() == 1
    await leader.kill()
    assert await asking == YES
    assert cluster.charge() == 1
    assert replica.handed == ["failed"]
    await cluster.end()


@in_virtual_time
async def test_a_leader_that_stands_still_costs_one_booking_a_tenth_of_a_second() -> None:
    """And then one of them now and then, a little more; once it goes on, it is handed all again."""
    cluster = Cluster()
    leader, replica = await handing_over(cluster, 20)
    leader.pause()
    assert await seconds_of(cluster, "A", replica) == (YES, accounts.TAKEN_SECONDS)
    for number in range(5):
        assert await seconds_of(cluster, f"B{number}", replica) == (YES, 0)
    await cluster.time(accounts.ALONE_SECONDS)
    both = await asyncio.gather(*(seconds_of(cluster, name, replica) for name in ("C", "D")))
    assert sorted(both) == [(YES, 0), (YES, 2 * accounts.TAKEN_SECONDS)]
    leader.resume()
    await cluster.time(2 * accounts.ALONE_SECONDS)
    for name in ("E", "F"):
        assert await seconds_of(cluster, name, replica) == (YES, 0)
    assert replica.handed == ["failed", "failed", "booked", "booked"]
    assert cluster.charge() == 10
    await cluster.end()


@in_virtual_time
async def test_a_leader_that_stands_still_with_a_booking_costs_two_seconds() -> None:
    """The leader has said that it has the booking, and its write may have won."""
    cluster = Cluster()
    leader, replica = await handing_over(cluster, 2)
    leader.client.hold("PUT")
    asking = asyncio.create_task(seconds_of(cluster, "A", replica))
    await cluster.time(0.01)
    leader.pause()
    assert await asking == (YES, accounts.ANSWERED_SECONDS)
    assert await seconds_of(cluster, "B", replica) == (YES, 0)
    leader.resume()
    await cluster.time(1)
    assert cluster.charge() == 2
    await cluster.end()


@in_virtual_time
async def test_a_booking_that_both_have_written_is_charged_once() -> None:
    """The replica gave up, wrote itself, and then the leader went on."""
    cluster = Cluster()
    leader, replica = await handing_over(cluster, 2)
    leader.pause()
    assert await cluster.ask("A", replica) == YES
    leader.resume()
    await cluster.time(1)
    assert (cluster.charge(), replica.handed) == (1, ["failed"])
    assert await cluster.ask("B", replica) == YES
    await cluster.end()


@in_virtual_time
async def test_a_booking_that_comes_late_of_a_pod_that_exists_or_has_ended() -> None:
    """The leader sees that, and drops it with its next look."""
    cluster = Cluster()
    leader, replica = await handing_over(cluster, 2)
    leader.client.view(PODS).flow()
    leader.pause()
    for name in ("exists", "ended"):
        await cluster.time(accounts.LONGEST_ALONE)
        assert await cluster.ask(name, replica) == YES
        await cluster.store(name)
    await cluster.gone("ended")
    leader.resume()
    await cluster.time(1)
    assert cluster.charge() == 1
    assert await cluster.ask("next", replica) == YES
    await cluster.end()


@in_virtual_time
async def test_of_two_leaders_each_books_what_it_is_handed() -> None:
    """One does not know yet that it leads no more, nor does the replica that hands to it."""
    cluster = Cluster()
    paused, replica = await handing_over(cluster, 3)
    leader, third = await cluster.process("other"), await cluster.process("third")
    leader.lead()
    third.hands_to = leader
    await cluster.time(1)
    asked = [cluster.decide(f"{each.name}-{number}", each) for number in range(3) for each in (replica, third)]
    assert sorted(await asyncio.gather(*asked)) == [NO] * 3 + [YES] * 3
    assert cluster.charge() == 3
    assert not paused.leads
    await cluster.end()


@in_virtual_time
async def test_a_leader_of_another_version_takes_nothing() -> None:
    cluster = Cluster()
    leader, replica = await handing_over(cluster, 2)
    leader.takes = False
    assert await seconds_of(cluster, "A", replica) == (YES, 0)
    assert await seconds_of(cluster, "B", replica) == (YES, 0)
    assert replica.handed == ["failed"]
    await cluster.end()


@in_virtual_time
async def test_who_was_asked_says_no_and_waits_for_news_first() -> None:
    """A pod that a controller makes may replace one whose end nobody has seen yet."""
    cluster = Cluster()
    leader, replica = await handing_over(cluster, 1)
    leader.client.view(PODS).flow()
    assert await cluster.ask("A", replica, controller="rs") == YES
    await cluster.store("A")
    await cluster.time(1)
    asking = asyncio.create_task(cluster.decide("B", replica, controller="rs"))
    await cluster.time(0.5)
    await cluster.gone("A")
    assert await asking == YES
    assert replica.handed == ["booked", "declined"]
    assert await cluster.ask("C", replica) == NO
    await cluster.end()
