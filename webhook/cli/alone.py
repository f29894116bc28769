"""Judges one object as if it alone were created, all of its pods included, in a cluster where so much is in use."""

import time
from collections.abc import Mapping

from webhook.cli.documents import Document
from webhook.cli.finding import OF_NO_NAMESPACE, Finding
from webhook.cli.review import desk_at
from webhook.cli.show import FACTS_OF_A_NAMESPACE
from webhook.cluster.offline import OfflineCluster
from webhook.ledger.memory import MemoryLedger
from webhook.ledger.protocol import Holding
from webhook.policy.values.tier_policy import TierPolicy

NO_TENANTS = "No ceiling and no quota was checked: no TenantQuota was given (--tenants)."


async def judged_alone(
    document: Document, cluster: OfflineCluster, policy: TierPolicy, held: Mapping[str, Holding] | None = None
) -> Finding:
    """The finding for an object as in Enforce. What it books is forgotten, so that the next one has the same room.

    `held` are the pods that exist, by uid. Where no row counts them, one pod of each template tells it all.
    """
    tenant = cluster.tenant(await cluster.namespace(document.namespace))
    if tenant is None or not tenant.rows:
        return await desk_at(cluster, policy).finding(document)
    ledger = MemoryLedger(time.monotonic, cluster.tenant_name, patience=0)
    ledger.observe_all(held or {})
    return await desk_at(cluster, policy, ledger).finding(document)


async def judged_quickly(document: Document, cluster: OfflineCluster, policy: TierPolicy) -> Finding:
    """The same, with one pod of each template: a whole workload has room or not, and only where a tenant's pods are
    demoted may they differ.
    """
    tenant = cluster.tenant(await cluster.namespace(document.namespace))
    if tenant is not None and tenant.demotes:
        return await judged_alone(document, cluster, policy)
    return await desk_at(cluster, policy).finding(document)


def is_fact(document: Document) -> bool:
    """Whether it is no workload, but used to judge workloads: a Namespace, a TenantQuota, a training runtime."""
    return (OF_NO_NAMESPACE | FACTS_OF_A_NAMESPACE).get(document.kind) == document.group
