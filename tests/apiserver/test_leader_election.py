"""Leader election by a Lease on the real API server."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from localcluster import Cluster
from tests.unit.clock import Clock
from webhook.kube.client import Client
from webhook.kube.leader_election import LeaderElection

pytestmark = pytest.mark.apiserver

SECONDS = 3


class Replica:
    """One that competes; `terms` tells of each time that it led, and whether nobody had before."""

    def __init__(
        self, client: Client, namespace: str, identity: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.address, lease = f"{identity}.example.com:9445", f"{namespace}/gpu-tiers"
        self.election = LeaderElection(client, lease, identity, SECONDS, clock, self.address)
        self.identity = identity
        self.terms: list[bool] = []
        self.tired = asyncio.Event()
        self.task = asyncio.create_task(self.election.run(self._lead))

    async def _lead(self, first: bool) -> None:
        self.terms.append(first)
        await self.tired.wait()
        self.tired.clear()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


def make_lease(cluster: Cluster, namespace: str) -> None:
    """Make a Lease without a spec, as the chart does."""
    metadata = {"name": "gpu-tiers", "namespace": namespace}
    cluster.api.apply({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata})


@pytest.fixture
async def replicas(client: Client, namespace: str, cluster: Cluster) -> AsyncIterator[list[Replica]]:
    make_lease(cluster, namespace)
    both = [Replica(client, namespace, name) for name in ("a", "b")]
    yield both
    for each in both:
        await each.stop()


async def until(what: Callable[[], bool], seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while not what():  # noqa: ASYNC110 - what is waited for happens in the cluster
            await asyncio.sleep(0.05)


async def leading(replicas: list[Replica], seconds: float = 120) -> Replica:
    """The one that leads; there is at most one."""
    await until(lambda: any(each.election.leading and each.terms for each in replicas), seconds)
    (leader,) = [each for each in replicas if each.election.leading]
    return leader


def shown(cluster: Cluster, namespace: str) -> dict[str, Any]:
    """The Lease's spec."""
    spec: dict[str, Any] = cluster.api.get("lease/gpu-tiers", namespace)["spec"]
    return spec


async def test_the_next_one_leads_at_once_where_the_leader_stops(
    replicas: list[Replica], namespace: str, cluster: Cluster
) -> None:
    first = await leading(replicas)
    (other,) = [each for each in replicas if each is not first]
    assert (first.terms, other.terms) == ([True], [])
    await until(lambda: {each.election.holder for each in replicas} == {first.identity}, 120)
    assert {each.election.holder_address for each in replicas} == {first.address}
    await first.stop()
    assert shown(cluster, namespace)["holderIdentity"] in {"", other.identity}, "nobody waits for it to run out"
    assert await leading([other]) is other
    assert (other.terms, other.election.holder_address) == ([False], other.address)


async def test_a_leader_whose_work_ends_gives_the_lease_up(replicas: list[Replica]) -> None:
    first = await leading(replicas)
    first.tired.set()
    await until(lambda: sum(len(each.terms) for each in replicas) > 1, 120)
    assert sum(sum(each.terms) for each in replicas) == 1, "only the first term is the first"


async def test_a_leader_that_was_paused_leads_no_more(client: Client, namespace: str, cluster: Cluster) -> None:
    """Another one may lead by then. It need not have heard of that."""
    make_lease(cluster, namespace)
    clock = Clock()
    replica = Replica(client, namespace, "a", clock)
    await until(lambda: replica.election.leading, 120)
    clock.now += SECONDS
    assert not replica.election.leading
    await replica.stop()


async def test_a_lease_that_somebody_deletes_is_made_again_and_is_not_the_first(
    replicas: list[Replica], client: Client, namespace: str, cluster: Cluster
) -> None:
    first = await leading(replicas)
    await until(lambda: {each.election.holder for each in replicas} == {first.identity}, 120)
    cluster.api.delete("lease/gpu-tiers", namespace=namespace)
    await until(lambda: cluster.api.has("lease/gpu-tiers", namespace), 120)
    another = Replica(client, namespace, "c")
    for replica in replicas:
        await replica.stop()
    await leading([another])
    terms = [term for each in (*replicas, another) for term in each.terms]
    assert terms.count(True) == 1, "a process that never saw it takes it for no first one either"
    await another.stop()


async def test_a_lease_that_was_made_again_empty_is_not_the_first(
    replicas: list[Replica], namespace: str, cluster: Cluster
) -> None:
    first = await leading(replicas)
    await until(lambda: {each.election.holder for each in replicas} == {first.identity}, 120)
    cluster.api.delete("lease/gpu-tiers", namespace=namespace)
    make_lease(cluster, namespace)
    first.tired.set()
    await until(lambda: sum(len(each.terms) for each in replicas) > 1, 120)
    assert [term for each in replicas for term in each.terms].count(True) == 1


async def test_an_empty_lease_has_no_holder(client: Client, namespace: str, cluster: Cluster) -> None:
    make_lease(cluster, namespace)
    replica = Replica(client, namespace, "a")
    await leading([replica])
    assert replica.terms == [True]
    lease = shown(cluster, namespace)
    assert (lease["holderIdentity"], lease["leaseDurationSeconds"]) == ("a", SECONDS)
    await replica.stop()
