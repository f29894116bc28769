"""One leader makes the ledger equal to the pods after anything, and clocks decide nothing."""

from decimal import Decimal

import pytest

from tests.ledger.cluster import AGAIN, NO, YES, Cluster
from tests.ledger.process import H
from tests.ledger.simulated_api import PODS
from tests.ledger.simulated_client import Fate, SimulatedClient
from tests.ledger.virtual_time import in_virtual_time, loop


async def gpus_by_a_quorum_list(cluster: Cluster) -> Decimal:
    pages = [page async for page in SimulatedClient(cluster.api).list_pages(PODS)]
    assert len(pages) == 1
    assert len(pages[0].items or ()) == len(cluster.api.objects(PODS))
    return sum((Decimal(pod["metadata"]["labels"]["gpus"]) for pod in cluster.api.objects(PODS)), Decimal(0))


@in_virtual_time
async def test_everything_stops_one_leads_and_usage_is_what_exists_after_h() -> None:
    """Two of six creates are stored, one unseen; one is gone unseen, two fail after us, one is admitted twice."""
    cluster = Cluster()
    cluster.tenant("alpha", 9)
    cluster.namespace("n", "alpha")
    first, second = await cluster.process("first"), await cluster.process("second")
    first.lead(first=True)
    await cluster.time(1)
    for name in ("seen", "gone", "unseen", "refused", "lost", "twice"):
        assert await cluster.ask(name, second) == YES
    await cluster.store("seen", "gone", "twice")
    await cluster.time(1)
    first.client.view(PODS).hold()
    assert await cluster.ask("twice", second) == YES
    await cluster.store("unseen")
    await cluster.gone("gone")
    await cluster.never("refused")
    await cluster.never("lost")
    await first.kill()
    await second.kill()
    last = await cluster.process("last")
    last.lead()
    await cluster.time(H + 6)
    assert cluster.charge() == await gpus_by_a_quorum_list(cluster) == 3
    await cluster.end()


async def story_with(ahead: tuple[float, float]) -> list[object]:
    """One story, and all that was answered and counted in it."""
    cluster = Cluster()
    cluster.tenant("alpha", 2)
    cluster.namespace("n", "alpha")
    one, two = await cluster.process("one", ahead[0]), await cluster.process("two", ahead[1])
    one.lead(first=True)
    await cluster.time(1)
    heard: list[object] = [await cluster.ask("A", two), await cluster.ask("B", one, controller="rs")]
    heard.append(await cluster.ask("C", two))
    await cluster.store("B")
    await cluster.time(H / 2)
    await one.stop_leading()
    two.lead()
    await cluster.time(H - 1)
    heard.append(cluster.charge())
    await cluster.never("A")
    await cluster.time(2)
    heard += [cluster.charge(), await cluster.ask("D", one)]
    await cluster.preempt("B")
    await cluster.time(1)
    heard += [await cluster.ask("E", one, controller="rs"), await cluster.ask("F", two)]
    await cluster.empty("alpha")
    await cluster.time(1)
    heard.append(cluster.charge())
    await cluster.end()
    return heard


@pytest.mark.parametrize("ahead", [(0.0, 600.0), (600.0, 0.0), (-600.0, 600.0)])
def test_clocks_ten_minutes_apart_give_the_same_answers(ahead: tuple[float, float]) -> None:
    answers: list[list[object]] = []

    @in_virtual_time
    async def story(clocks: tuple[float, float]) -> None:
        answers.append(await story_with(clocks))

    story((0.0, 0.0))
    story(ahead)
    assert answers[0] == answers[1] == [YES, YES, NO, 2, 1, YES, YES, NO, 2]


@in_virtual_time
async def test_a_leader_that_stops_between_a_conflict_and_its_next_read_writes_nothing_old() -> None:
    cluster = Cluster()
    cluster.tenant("alpha", 2)
    cluster.namespace("n", "alpha")
    stopped, other = await cluster.process("stopped"), await cluster.process("other")
    stopped.lead(first=True)
    await cluster.time(1)
    assert await cluster.ask("Z", other) == YES
    await cluster.store("Z")
    await cluster.time(1)
    stopped.client.hold("PUT", "GET")
    await cluster.gone("Z")
    await cluster.time(0.1)
    await stopped.client.let("PUT", fate=Fate.CONFLICT)
    await cluster.time(0.1)
    assert [each.method for each in stopped.client.waiting] == ["GET"]
    stopped.client.view(PODS).hold()
    assert await cluster.ask("A", other) == YES
    await cluster.store("A")
    other.lead()
    await cluster.time(5)
    stopped.client.release()
    await cluster.time(5)
    assert not stopped.leads
    assert cluster.charge() == 1
    await cluster.end()


@in_virtual_time
async def test_an_api_server_that_is_away_lets_nothing_in_and_refuses_nothing() -> None:
    cluster = Cluster()
    cluster.tenant("alpha", 1)
    cluster.namespace("n", "alpha")
    leader = await cluster.process("leader")
    leader.lead(first=True)
    await cluster.time(1)
    cluster.api.away = True
    began = loop().time()
    assert await cluster.ask("A", leader) == AGAIN
    assert loop().time() - began < 5
    cluster.api.away = False
    await cluster.time(10)
    assert await cluster.ask("A", leader) == YES
    await cluster.end()


@pytest.mark.parametrize("fate", [Fate.CONFLICT, Fate.LOST, Fate.AWAY, Fate.LATE])
@in_virtual_time
async def test_a_booking_whose_write_fails_is_booked_once(fate: Fate) -> None:
    """The ledger reads whether a write with a lost answer was stored; one that is stored late changes nothing."""
    cluster = Cluster()
    cluster.tenant("alpha", 2)
    cluster.namespace("n", "alpha")
    leader, replica = await cluster.process("leader"), await cluster.process("replica")
    leader.lead(first=True)
    await cluster.time(1)
    fates = iter([fate])
    replica.client.fates = lambda asked: next(fates, Fate.ANSWERED) if asked.method == "PUT" else Fate.ANSWERED
    assert await cluster.ask("A", replica) == YES
    replica.client.commit_late()
    assert cluster.charge() == 1
    assert await cluster.ask("B", replica) == YES
    assert await cluster.ask("C", replica) == NO
    await cluster.end()


@in_virtual_time
async def test_replacements_are_known_of_a_tenant_quota_that_is_made_again() -> None:
    cluster = Cluster()
    cluster.tenant("alpha", 1)
    cluster.namespace("n", "alpha")
    leader = await cluster.process("leader")
    leader.lead(first=True)
    await cluster.time(1)
    assert await cluster.ask("V", leader, controller="rs") == YES
    await cluster.store("V")
    await cluster.preempt("V")
    await cluster.time(1)
    assert await cluster.ask("H", leader, controller="rs") == YES
    await cluster.store("H")
    await cluster.time(1)
    await cluster.delete("alpha")
    cluster.tenant("alpha", 1)
    await cluster.time(1)
    assert cluster.charge() == 1
    await cluster.end()
