"""Reads a cluster for `gpu-tiers lint`: each part once, all that `check` looks at among them."""

from collections import defaultdict
from typing import Any

import msgspec
from msgspec.structs import replace

from webhook.admission.facts import facts_of_workload
from webhook.cli.cluster.installed import installed_policy
from webhook.cli.cluster.many_objects import listed_cluster
from webhook.cli.cluster.reader import ClusterReader
from webhook.cli.cluster.running import running_snapshot, unread_of
from webhook.cluster.cluster import Cluster
from webhook.cluster.gpu_nodes import ending_on_node, gpu_nodes, lost_pods
from webhook.cluster.listed import disruption_budgets, priority_classes
from webhook.cluster.pod_listing import PodSummary, list_pods
from webhook.kube.client import Client
from webhook.kube.discovery import Discovery, served_version, server_version
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
from webhook.objects.podgroups import PodGroup
from webhook.objects.pods import Named
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import Tree, all_at, at, read
from webhook.policy.decide_workload import decide_workload
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kind_table import KindRow
from webhook.report.cluster_parts import Part
from webhook.report.lint.snapshot import ClusterSnapshot, FailedHook, GangSeen, PodGroupSeen, PreemptionRule, Taken

COUNTED_BY_CLAIMS = "GPUs that lie on nodes as resources: here ResourceSlices offer them too, by the claim"


async def read_snapshot(reader: ClusterReader) -> ClusterSnapshot:
    """A cluster as it is now. Raises ApiError where the API server can't be asked at all."""
    client, policy = reader.client, reader.policy
    found = await running_snapshot(reader, await installed_policy(client), "default")
    found = replace(found, classes=await reader.part("classes", priority_classes(client), {}))
    pods, taken = await reader.part("pods", _pods(reader), ((), {}))
    slices = await reader.part("capacity", _listed(client, "resource.k8s.io", "resourceslices", most=1), [])
    counted_by_claims: dict[Part, str] = {"capacity": COUNTED_BY_CLAIMS} if slices else {}
    nodes = await reader.part("nodes", gpu_nodes(client, policy), ())
    ending = [ending_on_node(p.namespace, p.name, p.node, p.owner, ends=bool(p.ends)) for p in pods]
    return replace(
        found,
        nodes=nodes,
        lost_pods=await reader.part("lost_pods", lost_pods(client, ending, nodes), ()),
        pods=pods,
        taken=taken,
        gangs=await reader.part("gangs", gangs_of_cluster(client, found, listed_cluster(found, reader.lookups)), ()),
        pod_groups=await reader.part("pod_groups", _pod_groups(client), ()),
        budgets=await reader.part("budgets", disruption_budgets(client), ()),
        failed_hooks=await reader.part("failed_hooks", _failed_hooks(client), ()),
        preemption_rules=await reader.part("preemption_configs", _preemption_rules(client), ()),
        version=await reader.part("version", server_version(client), (0, 0)),
        supply=await reader.supply(),
        unread=counted_by_claims | unread_of(reader, found.running),
    )


async def _pods(reader: ClusterReader) -> tuple[tuple[PodSummary, ...], dict[str, Taken]]:
    """Those with GPUs, and what all take of the nodes."""
    held: list[PodSummary] = []
    taken: defaultdict[str, Taken] = defaultdict(Taken)
    async for pod in list_pods(reader.client, reader.policy, reader.lookups.claims.devices):
        if pod.node:
            before = taken[pod.node]
            taken[pod.node] = Taken(before.gpus + pod.gpus, before.cpu + pod.cpu, before.memory + pod.memory)
        if pod.gpus:
            held.append(pod)
        reader.steps.done()
    return tuple(held), dict(taken)


async def _pod_groups(client: Client) -> tuple[PodGroupSeen, ...]:
    groups = [read(raw, PodGroup) for raw in await _listed(client, "scheduling.k8s.io", "podgroups")]
    return tuple(
        PodGroupSeen(each.metadata.namespace, each.metadata.name, each.spec.priority or 0, each.goes_whole)
        for each in groups
    )


async def _listed(client: Client, group: str, plural: str, most: int | None = None) -> list[msgspec.Raw]:
    """The objects of a kind, the first pages of them where `most` are enough; none where it is not served."""
    version = await served_version(client, group, plural)
    if version is None:
        return []
    found: list[msgspec.Raw] = []
    async for page in client.list_pages(path(version, plural)):
        found += page.items or ()
        if most is not None and len(found) >= most:
            break
    return found


async def _failed_hooks(client: Client) -> tuple[FailedHook, ...]:
    times: defaultdict[tuple[str, str], int] = defaultdict(int)
    selected = {"fieldSelector": "reason=FailedPreStopHook"}
    async for raw in listed_objects(client.list_pages(path("v1", "events"), selected)):
        event: dict[str, Any] = msgspec.json.decode(raw)
        about, series = event.get("involvedObject") or {}, event.get("series") or {}
        count = event.get("count") or series.get("count") or 1
        times[str(about.get("namespace")), str(about.get("name"))] += int(count)
    return tuple(FailedHook(namespace, name, count) for (namespace, name), count in sorted(times.items()))


async def _preemption_rules(client: Client) -> tuple[PreemptionRule, ...]:
    found: list[PreemptionRule] = []
    for raw in await _listed(client, "kueue.x-k8s.io", "preemptionconfigs"):
        config: Tree = msgspec.json.decode(raw)
        for _, rule in all_at(config, "spec.rules.*"):
            modes = tuple(str(at(each, "priority.mode") or "") for _, each in all_at(rule, "candidateSelectors.*"))
            found.append(PreemptionRule(str(at(config, "metadata.name")), str(at(rule, "name")), modes))
    return tuple(found)


async def gangs_of_cluster(client: Client, known: ClusterSnapshot, cluster: Cluster) -> tuple[GangSeen, ...]:
    """The gangs of each kind that is served; one that nobody understands is left out. Raises ApiError."""
    discovery = Discovery(client)
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


async def _gang(raw: msgspec.Raw, row: KindRow, cluster: Cluster, policy: TierPolicy) -> GangSeen | None:
    """None for a workload that is none, has ended or is suspended, or is part of another gang."""
    try:
        tree: Tree = msgspec.json.decode(raw)
        metadata = read(raw, Named).metadata
        if policy.kinds.is_gang(metadata.controller):
            return None
        known = await facts_of_workload(tree, row, metadata, metadata.namespace, cluster, policy)
        unread = known.unread_runtime or known.facts.unread_claims
        decision = None if unread else decide_workload(known.whole, known.facts, policy)
    except (Refused, ValueError, TypeError, RecursionError):
        return None
    if decision is None or decision.gang is None:
        return None
    facts, charges = known.facts, decision.gang.charges
    shards = facts.owners[0].shards
    return GangSeen(metadata.uid, row.kind, metadata.namespace, metadata.name, charges, facts.tenant, shards)
