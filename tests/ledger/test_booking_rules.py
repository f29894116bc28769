"""Rules 4 to 18 of the ledger, of bookings and of the leader: with each its story holds, without it the story fails."""

from typing import Any

import pytest
from msgspec import structs

from tests.ledger.cluster import NO, YES, Cluster, opened
from tests.ledger.process import H
from tests.ledger.simulated_api import PODS, TENANT_QUOTAS
from tests.ledger.stories import Stories, Story, fails_without, passes, replaced
from webhook.cluster import pod_informer
from webhook.kube.reflector import Source
from webhook.ledger import account, draft
from webhook.ledger.account import Entry
from webhook.ledger.leader import rebuilding, rewrite, terms
from webhook.ledger.leader.expiry import Expiry, Proof
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.slot_sums import SlotSums

STORIES = Stories()


@STORIES.of("seal", replaced(account.Account, "is_sealed", lambda *_: True))
async def an_account_that_somebody_edited_books_nothing(cluster: Cluster) -> None:
    _, replica = await opened(cluster, 1)
    assert await cluster.ask("A", replica) == YES
    await cluster.store("A")
    stored = cluster.api.history(TENANT_QUOTAS).objects["", "alpha"]
    torn = {name: value for name, value in stored["status"]["ledger"].items() if name != "entries"}
    cluster.api.change(TENANT_QUOTAS, ("", "alpha"), status={**stored["status"], "ledger": torn})
    assert await cluster.ask("B", replica) == NO
    await cluster.store("B")


@STORIES.of("horizon", replaced(rebuilding.Rebuilding, "_seconds_under_way", lambda *_: 0.0))
async def a_rebuild_from_nothing_waits_for_every_create_that_was_admitted(cluster: Cluster) -> None:
    leader, replica = await opened(cluster, 1)
    assert await cluster.ask("A", replica) == YES
    await leader.kill()
    await cluster.empty("alpha")
    successor = await cluster.process("heir")
    successor.lead()
    await cluster.time(H - 1)
    await cluster.store("A")
    await cluster.time(2)
    assert cluster.charge() == 1
    assert await cluster.ask("B", replica) == NO


@STORIES.of("claim", replaced(terms.Term, "bears", lambda *_: True))
async def a_leader_that_was_paused_writes_nothing_more(cluster: Cluster) -> None:
    """Its write conflicts, it reads again, and sees that another has led since: its view may be older than theirs."""
    paused, replica = await opened(cluster, 2)
    assert await cluster.ask("Z", replica) == YES
    await cluster.store("Z")
    paused.client.view(PODS).catch_up()
    await cluster.time(1)
    await cluster.gone("Z")
    paused.client.hold("PUT")
    paused.client.view(PODS).catch_up()
    await cluster.time(0.1)
    assert await cluster.ask("A", replica, gpus=2) == NO
    assert await cluster.ask("A2", replica) == YES
    await cluster.store("A2")
    other = await cluster.process("other")
    other.lead()
    await cluster.time(1)
    assert cluster.charge() == 1
    paused.client.release()
    await cluster.time(1)
    assert await cluster.ask("B", replica, gpus=2) == NO
    assert not paused.leads
    assert other.leads


def _from_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    running = pod_informer.RUNNING
    cached = Source(running.path, {**running.params, "resourceVersion": "0"}, running.key)
    monkeypatch.setattr(pod_informer, "RUNNING", cached)


@STORIES.of("quorum", _from_a_cache)
async def a_list_is_a_quorum_read(cluster: Cluster) -> None:
    leader, replica = await opened(cluster, 1)
    replica.client.view(PODS).hold()
    assert await cluster.ask("A", replica) == YES
    await cluster.store("A")
    leader.client.view(PODS).catch_up()
    await cluster.time(1)
    await leader.stop_leading()
    replica.lead()
    await cluster.time(1)
    assert await cluster.ask("B", replica) == NO


async def _all_lapsed(expiry: Any, _: str, account: Any) -> list[account.EntryKey]:
    return [each.key for each in account.reserved if await expiry._proof.is_nothing(each)]


@STORIES.of("age", replaced(Expiry, "lapsed", _all_lapsed))
async def a_reservation_stays_as_long_as_its_create_may_be_under_way(cluster: Cluster) -> None:
    _, replica = await opened(cluster, 1)
    assert await cluster.ask("A", replica) == YES
    await cluster.time(H - 1)
    await cluster.store("A")
    assert await cluster.ask("B", replica) == NO


async def _unproved(*_: object) -> bool:
    return True


@STORIES.of("proof", replaced(Proof, "is_nothing", _unproved))
async def an_aged_reservation_goes_only_where_its_pod_is_proved_not_to_exist(cluster: Cluster) -> None:
    _, replica = await opened(cluster, 1)
    assert await cluster.ask("A", replica) == YES
    await cluster.store("A")
    await cluster.time(H + 10)
    assert await cluster.ask("B", replica) == NO


@STORIES.of("over", replaced(PodView, "prove_over", PodView._end))
async def a_pod_that_was_proved_gone_is_not_counted_by_a_late_watch(cluster: Cluster) -> None:
    leader, replica = await opened(cluster, 1)
    assert await cluster.ask("X", replica) == YES
    await cluster.store("X")
    await cluster.gone("X")
    await cluster.time(H + 10)
    assert await cluster.ask("W", replica) == YES
    leader.client.view(PODS).step()
    await cluster.time(1)
    assert cluster.charge() == 1


def _seen_by_its_name(reservation: Entry, view: PodView) -> bool:
    other = view.named(reservation.namespace, reservation.name)
    return other is not None or view.has_ended(reservation.uid)


@STORIES.of("names", replaced(rewrite, "is_seen", _seen_by_its_name))
async def a_pod_of_the_same_name_releases_nothing(cluster: Cluster) -> None:
    leader, replica = await opened(cluster, 1)
    assert await cluster.ask("A", replica, place="web-0") == YES
    await cluster.store("A")
    await cluster.gone("A")
    assert await cluster.ask("B", replica, place="web-0") == YES
    await cluster.store("B")
    leader.client.view(PODS).step()
    await cluster.time(1)
    leader.client.view(PODS).step()
    await cluster.time(1)
    assert await cluster.ask("C", replica) == NO


async def _lapsed_where_taken(expiry: Any, _: str, account: Any) -> list[account.EntryKey]:
    stands = [await expiry._proof._pods.find(each.namespace, each.name) for each in account.reserved]
    return [each.key for each, pod in zip(account.reserved, stands, strict=True) if pod and pod[0] != each.uid]


@STORIES.of("taken", replaced(Expiry, "lapsed", _lapsed_where_taken))
async def a_read_that_shows_another_pod_of_the_name_proves_nothing(cluster: Cluster) -> None:
    """The pod may be deleted before the create is stored, so the create is refused before booking, or booked for H."""
    leader, replica = await opened(cluster, 1)
    leader.client.view(PODS).flow()
    assert await cluster.ask("X", replica, gpus=0, place="web-0") == YES
    await cluster.store("X")
    assert await cluster.ask("A", replica, place="web-0") == YES
    await cluster.time(6)
    await cluster.gone("X")
    assert await cluster.ask("B", replica) == NO
    await cluster.store("A", "B")


def _in_any_slot(self: Any, _: object, entry: Entry) -> list[Entry]:
    preempted = [each.uid for each in self._entries.values() if each.preempted and each.maker == entry.maker]
    return [*(structs.replace(entry, slot=uid) for uid in preempted), entry]


@STORIES.of("oneheir", replaced(draft.Draft, "_tries", _in_any_slot))
async def a_victim_has_one_replacement(cluster: Cluster) -> None:
    leader, replica = await opened(cluster, 1)
    leader.client.view(PODS).flow()
    assert await cluster.ask("V", replica, controller="rs") == YES
    await cluster.store("V")
    await cluster.preempt("V")
    await cluster.time(1)
    assert await cluster.ask("H", replica, controller="rs") == YES
    assert await cluster.ask("K", replica, controller="rs") == NO
    await cluster.store("H", "K")


_PARTS = SlotSums._parts


def _nothing_by_replacements(self: SlotSums, entry: Entry, *more: str) -> Any:
    return _PARTS(self, structs.replace(entry, wants=()) if entry.slot else entry, *more)


@STORIES.of("link", replaced(SlotSums, "_parts", _nothing_by_replacements))
async def a_replacement_that_asks_for_more_is_charged_for_it(cluster: Cluster) -> None:
    """And alone once its victim is gone."""
    leader, replica = await opened(cluster, 3)
    leader.client.view(PODS).flow()
    assert await cluster.ask("V", replica, controller="rs") == YES
    await cluster.store("V")
    assert await cluster.ask("C", replica) == YES
    await cluster.store("C")
    await cluster.preempt("V")
    await cluster.time(1)
    assert await cluster.ask("H", replica, gpus=3, controller="rs") == NO
    assert await cluster.ask("H2", replica, gpus=2, controller="rs") == YES
    await cluster.gone("V")
    await cluster.time(1)
    assert cluster.charge() == 3
    await cluster.store("H2")


@STORIES.tests()
def test_with_the_rule_no_reservation_is_lost(story: Story) -> None:
    passes(story)


@STORIES.tests()
def test_without_the_rule_its_story_fails(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_without(story, monkeypatch)
