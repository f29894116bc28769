"""Hundreds of accounts that are rebuilt at once, as after an installation, don't starve the leader's other requests."""

from tests.ledger.cluster import Cluster
from tests.ledger.virtual_time import in_virtual_time
from webhook.controller.terms import AT_ONCE

TENANTS = [f"tenant-{number}" for number in range(6 * AT_ONCE)]


@in_virtual_time
async def test_accounts_are_rebuilt_some_at_a_time() -> None:
    cluster = Cluster()
    for tenant in TENANTS:
        cluster.tenant(tenant, 1)
    leader = await cluster.process("leader")
    leader.client.hold("PUT")
    leader.lead(first=True)
    most = 0
    while not all(cluster.account(tenant) for tenant in TENANTS):
        await cluster.time(0.1)
        most = max(most, len(leader.client.waiting))
        leader.client.release()
        leader.client.hold("PUT")
    assert most <= 2 * AT_ONCE + 1, "claims, statuses, and the one that is sealed"
