"""Rules 21 to 23 of the ledger, whose a namespace is: with each its story holds, without it the story fails."""

from typing import Any

import pytest

from tests.ledger.cluster import AGAIN, NO, YES, Cluster
from tests.ledger.process import H, Process
from tests.ledger.simulated_api import NAMESPACES, TENANT_QUOTAS
from tests.ledger.simulated_client import Fate
from tests.ledger.stories import Stories, Story, fails_without, passes, replaced
from webhook.ledger.account import Account
from webhook.ledger.leader import moving
from webhook.ledger.leader.moving import Moving
from webhook.ledger.leader.rebuilding import Rebuilding, Restoring
from webhook.ledger.protocol import TryAgain

STORIES = Stories()


async def opened(cluster: Cluster) -> tuple[Process, Process]:
    """Two tenants of one GPU each, a namespace of alpha's, a leader and another replica."""
    for tenant in ("alpha", "beta"):
        cluster.tenant(tenant, 1)
    cluster.namespace("n", "alpha")
    leader, replica = await cluster.process("leader"), await cluster.process("replica")
    leader.lead(first=True)
    await cluster.time(1)
    return leader, replica


async def _unasked(self: Any) -> dict[str, Account]:
    names = self._store.versions.names()
    return {name: self._store.versions.newest(name).account for name in names}


@STORIES.of("all", replaced(Moving, "_accounts", _unasked))
async def nothing_opens_before_every_ledger_is_under_the_own_term(cluster: Cluster) -> None:
    """A leader that is deposed opens N in a new TenantQuota's ledger, of which the next leader has not heard yet."""
    cluster.tenant("alpha", 1)
    deposed, leader = await cluster.process("deposed"), await cluster.process("leader")
    deposed.lead(first=True)
    await cluster.time(1)
    leader.client.view(TENANT_QUOTAS).hold()
    leader.client.hold("PUT")
    leader.lead()
    await cluster.time(0.1)
    deposed.client.view(NAMESPACES).hold()
    cluster.namespace("n", "alpha")
    await cluster.time(0.1)
    leader.client.view(NAMESPACES).hold()
    cluster.namespace("n", "beta")
    cluster.tenant("beta", 1)
    deposed.client.view(NAMESPACES).flow()
    await cluster.time(1)
    assert cluster.state("n", "beta") == "open"
    leader.client.release()
    await cluster.time(1)
    leader.client.view(TENANT_QUOTAS).flow()
    leader.client.view(NAMESPACES).flow()
    leader.lead()
    await cluster.time(1)
    assert (cluster.state("n", "alpha"), cluster.state("n", "beta")) == ("", "open")


_step = moving._step


def _without_closing(namespace: str, homes: Any, wanted: Any, accounts: Any) -> Any:
    [*there] = homes.items()
    if len(there) == 1 and there[0][1] == "open" and wanted not in (None, there[0][0]):
        return iter([(wanted, "open", there[0][0])])
    return _step(namespace, homes, wanted, accounts)


@STORIES.of("close", replaced(moving, "_step", _without_closing))
async def a_namespace_is_closed_in_the_old_ledger_before_it_is_opened_in_the_new_one(cluster: Cluster) -> None:
    await opened(cluster)
    cluster.namespace("n", "beta")
    await cluster.time(1)
    assert (cluster.state("n", "alpha"), cluster.state("n", "beta")) == ("", "open")


async def _nothing_carried(*_: object) -> tuple[()]:
    return ()


@STORIES.of("carry", replaced(Moving, "_carried", _nothing_carried))
async def reservations_of_the_old_ledger_move_with_the_namespace(cluster: Cluster) -> None:
    _, replica = await opened(cluster)
    assert await cluster.ask("A", replica) == YES
    cluster.namespace("n", "beta")
    await cluster.time(1)
    assert (cluster.charge("alpha"), cluster.charge("beta")) == (0, 1)
    assert await cluster.ask("B", replica) == NO
    await cluster.store("A")
    await cluster.time(1)


def _dropped_first(namespace: str, homes: Any, wanted: Any, accounts: Any) -> Any:
    [*there] = homes.items()
    if len(there) == 1 and there[0][1] == "closed" and there[0][0] != wanted:
        return iter([(there[0][0], None, "")])
    return _step(namespace, homes, wanted, accounts)


@STORIES.of("last", replaced(moving, "_step", _dropped_first))
async def the_old_ledger_drops_a_namespace_once_the_new_one_has_it(cluster: Cluster) -> None:
    _, replica = await opened(cluster)
    assert await cluster.ask("A", replica) == YES
    cluster.namespace("n", "beta")
    await cluster.time(1)
    assert cluster.charge("beta") == 1


def _unfinished(namespace: str, homes: Any, wanted: Any, accounts: Any) -> Any:
    return iter(()) if len(homes) > 1 else _step(namespace, homes, wanted, accounts)


@STORIES.of("finish", replaced(moving, "_step", _unfinished))
async def one_move_ends_before_the_next_begins(cluster: Cluster) -> None:
    """The label turns back in mid-move: the namespace comes home again."""
    leader, replica = await opened(cluster)
    assert await cluster.ask("A", replica) == YES
    leader.client.hold("PUT")
    cluster.namespace("n", "beta")
    await cluster.let(leader, "closed", "open")
    cluster.namespace("n", "alpha")
    leader.client.release()
    await cluster.time(2)
    assert (cluster.state("n", "alpha"), cluster.state("n", "beta")) == ("open", "")
    assert cluster.charge("alpha") == 1


_carried = Moving._carried


async def _carried_once(self: Any, change: Any) -> Any:
    carried: dict[str, Any] = self.__dict__.setdefault("kept", {})
    if change.carried_from not in carried:
        carried[change.carried_from] = await _carried(self, change)
    return carried[change.carried_from]


@STORIES.of("copy", replaced(Moving, "_carried", _carried_once))
async def what_was_read_of_the_old_ledger_is_read_again_after_each_change(cluster: Cluster) -> None:
    """The old ledger was closed and read, then opened again, and a pod was booked before the namespace moved."""
    leader, replica = await opened(cluster)
    leader.client.fates = _no_write_to("beta")
    cluster.namespace("n", "beta")
    await cluster.time(1)
    assert cluster.state("n", "alpha") == "closed"
    cluster.namespace("n", "alpha")
    leader.client.fates = lambda _: Fate.ANSWERED
    await cluster.time(5)
    assert await cluster.ask("A", replica) == YES
    cluster.namespace("n", "beta")
    await cluster.time(5)
    assert cluster.charge("beta") == 1
    await cluster.store("A")


def _no_write_to(tenant: str) -> Any:
    def fate(request: Any) -> Fate:
        return Fate.AWAY if request.method == "PUT" and f"/{tenant}/" in request.path else Fate.ANSWERED

    return fate


_begin = Restoring.begin


def _without_namespaces(self: Any, *args: Any) -> Any:
    base = _begin(self, *args)
    return base and Account(term=base.term, entries=base.entries)


@STORIES.of("refill", replaced(Restoring, "begin", _without_namespaces))
async def a_rebuild_from_nothing_opens_what_is_the_tenants_by_now(cluster: Cluster) -> None:
    leader, replica = await opened(cluster)
    assert await cluster.ask("A", replica) == YES
    await cluster.store("A")
    await leader.kill()
    await cluster.empty("alpha")
    successor = await cluster.process("heir")
    successor.lead()
    assert await cluster.ask("B", replica) == AGAIN
    await cluster.time(H + 1)
    assert (cluster.state("n", "alpha"), cluster.charge("alpha")) == ("open", 1)


@STORIES.of("restore", replaced(Restoring, "begin", _without_namespaces))
async def an_account_rebuilt_from_memory_has_its_namespaces_back(cluster: Cluster) -> None:
    _, replica = await opened(cluster)
    assert await cluster.ask("A", replica) == YES
    await cluster.store("A")
    await cluster.empty("alpha")
    await cluster.time(1)
    assert (cluster.state("n", "alpha"), cluster.charge("alpha")) == ("open", 1)


def _only_its_own(self: Any, *args: Any) -> Any:
    base = _begin(self, *args)
    opened = {name: state for name, state in base.namespaces.items() if state == "open"} if base else {}
    carried = [each for each in base.entries if each.namespace in opened] if base else []
    return base and Account(term=base.term, namespaces=opened, entries=tuple(carried))


@STORIES.of("replaced", replaced(Restoring, "begin", _only_its_own))
async def reservations_of_a_deleted_tenant_quota_move_with_its_namespace(cluster: Cluster) -> None:
    """The TenantQuota is made again at the moment in which its namespace is given to another."""
    _, replica = await opened(cluster)
    assert await cluster.ask("A", replica) == YES
    cluster.api.remove(TENANT_QUOTAS, ("", "alpha"))
    cluster.tenant("alpha", 1)
    cluster.namespace("n", "beta")
    await cluster.time(1)
    assert (cluster.state("n", "alpha"), cluster.charge("beta")) == ("", 1)
    assert await cluster.ask("B", replica) == NO
    await cluster.store("A")


async def _sealed_ones(self: Any) -> dict[str, Account]:
    versions = self._store.versions
    return {name: versions.newest(name).account for name in versions.names() if versions.newest(name).sealed}


@STORIES.of("sealed", replaced(Moving, "_accounts", _sealed_ones))
async def nothing_opens_while_a_ledger_is_unsealed(cluster: Cluster) -> None:
    """An unsealed ledger may have any namespace."""
    leader, replica = await opened(cluster)
    assert await cluster.ask("A", replica) == YES
    leader.client.view(TENANT_QUOTAS).hold()
    await cluster.empty("alpha")
    await leader.stored.get("alpha")
    cluster.namespace("n", "beta")
    await cluster.time(6)
    leader.client.view(TENANT_QUOTAS).flow()
    await cluster.time(1)
    assert (cluster.state("n", "alpha"), cluster.charge("beta")) == ("", 1)


async def rebuilt_meanwhile(cluster: Cluster) -> None:
    """While alpha, which opens N, is being written, N becomes beta's, which is new and rebuilt in the same moment."""
    cluster.namespace("n", "beta")
    cluster.tenant("beta", 1)
    await cluster.time(0.1)
    assert cluster.account("beta")


async def new_and_claimed(cluster: Cluster) -> Process:
    """Return a new cluster in which a leader has claimed N for alpha, and no other write to alpha gets through."""
    cluster.tenant("alpha", 1)
    cluster.namespace("n", "alpha")
    leader = await cluster.process("leader")
    leader.client.hold("PUT")
    leader.lead(first=True)
    await cluster.time(0.1)
    await leader.client.let("PUT")
    leader.client.hold(WRITE_ALPHA)
    return leader


WRITE_ALPHA = f"PUT {TENANT_QUOTAS}/alpha/"


def _written_ones(self: Any, name: str) -> set[str]:
    others = (self._versions.newest(other) for other in self._versions.names() if other != name)
    return {namespace for other in others for namespace in other.account.namespaces}


@STORIES.of("beside", replaced(Restoring, "_taken", _written_ones))
async def what_one_rebuild_opens_is_taken_while_it_is_written(cluster: Cluster) -> None:
    leader = await new_and_claimed(cluster)
    await rebuilt_meanwhile(cluster)
    leader.client.release()
    await cluster.time(1)
    assert (cluster.state("n", "alpha"), cluster.state("n", "beta")) == ("", "open")


_write = Rebuilding._write


async def _forgotten(self: Any, claimed: Any, account: Any) -> None:
    try:
        await _write(self, claimed, account)
    except TryAgain:
        self._restoring.ended(claimed.name)
        raise


@STORIES.of("doubt", replaced(Rebuilding, "_write", _forgotten))
@STORIES.of("fence", replaced(Restoring, "is_under_way", lambda *_: False))
async def a_write_without_an_answer_is_under_way_until_another_has_won(cluster: Cluster) -> None:
    """Nobody knows whether alpha has N, and alpha is claimed again before anybody else may have it."""
    leader = await new_and_claimed(cluster)
    leader.client.fates = lambda request: Fate.LATE if str(request).startswith(WRITE_ALPHA) else Fate.ANSWERED
    leader.client.release()
    await cluster.time(3.6)
    cluster.namespace("n", "beta")
    leader.client.hold(WRITE_ALPHA)
    await cluster.time(1)
    await rebuilt_meanwhile(cluster)
    leader.client.commit_late()
    await cluster.balance()
    leader.client.fates = lambda _: Fate.ANSWERED
    leader.client.release()
    await cluster.time(5)
    assert (cluster.state("n", "alpha"), cluster.state("n", "beta")) == ("", "open")


@STORIES.tests()
def test_with_the_rule_no_reservation_is_lost(story: Story) -> None:
    passes(story)


@STORIES.tests()
def test_without_the_rule_its_story_fails(story: Story, monkeypatch: pytest.MonkeyPatch) -> None:
    fails_without(story, monkeypatch)
