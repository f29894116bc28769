"""Reads the workloads that are gangs, with what each needs by the policy."""

from typing import Any

import msgspec

from webhook.admission.facts import facts_of_workload
from webhook.cli.listed_cluster import Listed, ListedCluster
from webhook.kube.client import Client
from webhook.kube.discovery import Discovery
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
from webhook.objects.pods import Named
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import read
from webhook.policy.decide_workload import decide_workload
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kinds.row import KindRow
from webhook.readmodel.lint.snapshot import GangSeen

Tree = dict[str, Any]


async def gangs_of_cluster(client: Client, known: Listed) -> tuple[GangSeen, ...]:
    """The gangs of each kind that is served; one that nobody understands is left out. Raises ApiError."""
    discovery, cluster = Discovery(client), ListedCluster(known)
    found: list[GangSeen] = []
    for row in (each for each in known.policy.kinds.rows if each.gang):
        try:
            version = await discovery.api_version(row.group, row.plural)
        except Unreadable:
            continue
        async for raw in listed_objects(client.list_pages(path(version, row.plural))):
            gang = await _gang(raw, row, cluster, known.policy)
            found += [gang] if gang else []
    return tuple(found)


async def _gang(raw: msgspec.Raw, row: KindRow, cluster: ListedCluster, policy: TierPolicy) -> GangSeen | None:
    """None for a workload that is none, has ended or is suspended, or is part of another gang."""
    try:
        tree: Tree = msgspec.json.decode(raw)
        metadata = read(raw, Named).metadata
        if policy.kinds.is_gang(metadata.controller):
            return None
        known = await facts_of_workload(tree, row, metadata, metadata.namespace, cluster, policy)
        unread = known.unread or known.facts.unread
        decision = None if unread else decide_workload(known.whole, known.facts, policy)
    except (Refused, ValueError, TypeError, RecursionError):
        return None
    if decision is None or decision.gang is None:
        return None
    charges = decision.gang.charges
    return GangSeen(metadata.uid, row.kind, metadata.namespace, metadata.name, charges, known.facts.tenant)
