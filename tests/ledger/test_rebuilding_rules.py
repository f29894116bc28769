"""Rules 6 and 7 of the ledger, of rebuilding: with each its story holds, without it the story fails."""

from typing import Any

import pytest

from tests.ledger.cluster import AGAIN, NO, YES, Cluster
from tests.ledger.process import H, Process
from tests.ledger.simulated_api import PODS, TENANT_QUOTAS
from tests.ledger.stories import Stories, Story, fails_without, passes, replaced
from webhook.cluster.pod_informer import PodInformer
from webhook.ledger.leader.rebuilding import Rebuilding
from webhook.ledger.versions import Version, Versions

STORIES = Stories()


async def opened(cluster: Cluster, quota: int = 1) -> tuple[Process, Process]:
    """A tenant with one namespace, a leader and another replica. The leader's watches have been there for long."""
    cluster.tenant("alpha", quota)
    cluster.namespace("n", "alpha")
    leader, replica = await cluster.process("leader"), await cluster.process("replica")
    leader.lead(first=True)
    await cluster.time(H + 10)
    return leader, replica


async def lagging(cluster: Cluster, leader: Process, replica: Process) -> None:
    """A pod is reserved, then the status emptied; the leader knows of that, and its watch has shown nothing of both."""
    leader.client.view(TENANT_QUOTAS).hold()
    assert await cluster.ask("A", replica) == YES
    await cluster.empty("alpha")
    await leader.stored.get("alpha")
    await cluster.time(10)


async def _at_once(*_: object) -> None:
    """Return at once instead of waiting for the watch."""


@STORIES.of("shown", replaced(Rebuilding, "_until_shown", _at_once))
async def memory_counts_once_the_watch_has_shown_the_own_claim(cluster: Cluster) -> None:
    leader, replica = await opened(cluster)
    await lagging(cluster, leader, replica)
    assert await cluster.ask("B", replica) == AGAIN
    leader.client.view(TENANT_QUOTAS).flow()
    await cluster.time(1)
    assert await cluster.ask("B", replica) == NO


_until_shown = Rebuilding._until_shown


async def _shown_once(self: Any, claimed: Version) -> None:
    if not getattr(self, "shown_before", False):
        await _until_shown(self, claimed)
    self.shown_before = True


@STORIES.of("claimed", replaced(Rebuilding, "_until_shown", _shown_once))
async def what_the_watch_showed_before_the_last_claim_proves_nothing(cluster: Cluster) -> None:
    leader, replica = await opened(cluster)
    await cluster.empty("alpha")
    await cluster.time(1)
    await lagging(cluster, leader, replica)
    assert await cluster.ask("B", replica) == AGAIN
    leader.client.view(TENANT_QUOTAS).flow()
    await cluster.time(1)
    assert await cluster.ask("B", replica) == NO


async def broken(cluster: Cluster, leader: Process, replica: Process) -> None:
    """A pod is reserved and the status emptied while the leader's watch is broken: it begins again."""
    leader.client.view(TENANT_QUOTAS).hold()
    assert await cluster.ask("A", replica) == YES
    await cluster.empty("alpha")
    leader.client.view(TENANT_QUOTAS).expire()
    leader.client.view(TENANT_QUOTAS).flow()
    await cluster.time(H - 2)


_listed = Versions.listed


def _remembering(self: Any, found: Any) -> None:
    before = dict(self._remembered)
    _listed(self, found)
    self._remembered = {**before, **self._remembered}


@STORIES.of("unbroken", replaced(Versions, "listed", _remembering))
async def a_watch_that_began_again_remembers_nothing(cluster: Cluster) -> None:
    leader, replica = await opened(cluster)
    await broken(cluster, leader, replica)
    await cluster.never("A")
    await cluster.time(10)
    assert await cluster.ask("B", replica) == YES


@STORIES.of("horizon2", replaced(Rebuilding, "_seconds_under_way", lambda *_: 0.0))
async def who_remembers_nothing_waits_for_what_is_under_way(cluster: Cluster) -> None:
    leader, replica = await opened(cluster)
    await broken(cluster, leader, replica)
    await cluster.store("A")
    await cluster.time(10)
    assert await cluster.ask("B", replica) == NO


@STORIES.of("listlate", replaced(Rebuilding, "_list", _at_once))
async def pods_are_listed_after_the_claim_and_after_that_wait(cluster: Cluster) -> None:
    leader, replica = await opened(cluster)
    leader.client.view(PODS).hold()
    await broken(cluster, leader, replica)
    await cluster.store("A")
    await cluster.time(10)
    assert await cluster.ask("B", replica) == NO


_changed = Versions.changed


def _forgetful(self: Any, name: str, quota: Any) -> None:
    _changed(self, name, quota)
    if quota is None:
        self._remembered.pop(name, None)


@STORIES.of("deleted", replaced(Versions, "changed", _forgetful))
async def a_deleted_tenant_quota_is_remembered_by_its_name(cluster: Cluster) -> None:
    _, replica = await opened(cluster)
    assert await cluster.ask("A", replica) == YES
    await cluster.delete("alpha")
    cluster.tenant("alpha", 1)
    await cluster.time(1)
    assert cluster.charge() == 1
    assert await cluster.ask("B", replica) == NO


def _first_for_ever(self: Any, name: str) -> float:
    remembered, since = self._versions.remembered(name), self._versions.watching_since
    return 0.0 if remembered or self._nothing_before else since + H - self._clock()


@STORIES.of("first", replaced(Rebuilding, "_seconds_under_way", _first_for_ever))
async def who_led_first_remembers_nothing_more_once_its_watch_began_again(cluster: Cluster) -> None:
    leader, replica = await opened(cluster)
    await broken(cluster, leader, replica)
    await cluster.store("A")
    await cluster.time(10)
    assert await cluster.ask("B", replica) == NO


async def _in_between(self: PodInformer[Any], namespace: str) -> Any:
    self._reflector.listing = type(self._reflector.listing)()
    return await _list_in(self, namespace)


_list_in = PodInformer.list_in


@STORIES.of("older", replaced(PodInformer, "list_in", _in_between))
async def no_list_of_all_pods_is_handed_on_after_a_newer_one_of_a_namespace(cluster: Cluster) -> None:
    leader, replica = await opened(cluster)
    assert await cluster.ask("A", replica) == YES
    leader.client.hold_lists()
    leader.client.view(PODS).hold()
    leader.client.view(PODS).expire()
    await cluster.time(1)
    leader.client.answer_lists_at_once()
    await cluster.store("A")
    await cluster.empty("alpha")
    await cluster.time(1)
    leader.client.release_lists()
    await cluster.time(1)
    assert await cluster.ask("B", replica) == NO


@STORIES.tests()
def test_with_the_rule_no_reservation_is_lost(story: Story) -> None:
    passes(story)


@STORIES.tests()
def test_without_the_rule_its_story_fails(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_without(story, monkeypatch)
