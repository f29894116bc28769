"""Hundreds of accounts that are rebuilt at once, as after an installation, don't starve the leader's other requests."""

from tests.ledger.cluster import Cluster
from tests.ledger.process import Process
from tests.ledger.virtual_time import in_virtual_time
from webhook.ledger.leader.terms import AT_ONCE

TENANTS = [f"tenant-{number}" for number in range(3 * AT_ONCE)]


async def installed(cluster: Cluster) -> Process:
    """A leader whose requests wait, each tenant with a namespace."""
    for tenant in TENANTS:
        cluster.tenant(tenant, 1)
        cluster.namespace(f"of-{tenant}", tenant)
    leader = await cluster.process("leader")
    leader.client.hold("PUT", "LIST /api/v1/namespaces/")
    leader.lead(first=True)
    return leader


async def most_at_once(cluster: Cluster, leader: Process, method: str) -> int:
    """Return how many requests of a method wait together until all accounts are rebuilt."""
    most = 0
    while not all(cluster.account(tenant) for tenant in TENANTS):
        await cluster.time(0.1)
        most = max(most, sum(each.method == method for each in leader.client.waiting))
        leader.client.release()
        leader.client.hold("PUT", "LIST /api/v1/namespaces/")
    return most


@in_virtual_time
async def test_accounts_are_rebuilt_some_at_a_time() -> None:
    cluster = Cluster()
    leader = await installed(cluster)
    assert AT_ONCE <= await most_at_once(cluster, leader, "PUT") <= 2 * AT_ONCE, "rebuilds, and conditions beside them"
    await cluster.end()


@in_virtual_time
async def test_their_namespaces_are_listed_side_by_side() -> None:
    cluster = Cluster()
    leader = await installed(cluster)
    assert await most_at_once(cluster, leader, "LIST") == AT_ONCE
    await cluster.end()
