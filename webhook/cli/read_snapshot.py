"""Reads a cluster for `gpu-tiers lint`: what may not be read is left out, and named."""

from collections import defaultdict
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from webhook.cli.installed import listed_namespaces, priority_classes, tenant_quotas
from webhook.cli.listed_cluster import Listed
from webhook.cli.progress import Steps
from webhook.cli.read_certificates import certificates_seen
from webhook.cli.read_gangs import gangs_of_cluster
from webhook.cluster.disruption_budgets import disruption_budgets
from webhook.cluster.gpu_nodes import gpu_nodes
from webhook.cluster.lookups import Lookups
from webhook.cluster.pod_listing import PodSummary, list_pods
from webhook.cluster.webhook_configurations import webhook_configurations
from webhook.kube.client import Client
from webhook.kube.discovery import Discovery
from webhook.kube.errors import Forbidden
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
from webhook.objects.podgroups import PodGroup
from webhook.objects.refusal import Unreadable
from webhook.objects.view import read
from webhook.policy.values.tier_policy import TierPolicy
from webhook.readmodel.lint.snapshot import ClusterSnapshot, FailedHook, Part, PodGroupSeen, Taken

T = TypeVar("T")

RIGHTS: Mapping[Part, str] = {
    "classes": "list of priorityclasses.scheduling.k8s.io",
    "tenants": "list of tenantquotas.gpu-tiers.dev",
    "namespaces": "list of namespaces",
    "nodes": "list of nodes",
    "capacity": "list of resourceslices.resource.k8s.io",
    "pods": "list of pods",
    "gangs": "list of the workloads that are gangs",
    "pod_groups": "list of podgroups.scheduling.k8s.io",
    "budgets": "list of poddisruptionbudgets.policy",
    "configurations": "list of webhook configurations (admissionregistration.k8s.io)",
    "certificates": "get of the Secret with the certificate",
    "failed_hooks": "list of events",
    "version": "get of /version",
}
COUNTED_BY_CLAIMS = "GPUs that lie on nodes as resources: here ResourceSlices offer them too, by the claim"


@dataclass
class Reading:
    """Parts of a cluster as they are read; those that may not be are left out, and noted."""

    steps: Steps
    unread: dict[Part, str] = field(default_factory=dict)

    async def part(self, part: Part, ask: Awaitable[T], otherwise: T) -> T:
        """What comes of asking for a part; where that is not allowed, it is noted. Raises ApiError."""
        self.steps.begin(f"reading {part.replace('_', ' ')}")
        try:
            return await ask
        except Forbidden:
            self.unread[part] = RIGHTS[part]
            return otherwise


async def read_snapshot(
    client: Client, policy: TierPolicy, now: datetime | None = None, *, steps: Steps
) -> ClusterSnapshot:
    """A cluster as it is now. Raises ApiError where the API server can't be asked at all."""
    reading, lookups = Reading(steps), Lookups(client)
    try:
        classes = await reading.part("classes", priority_classes(client), {})
        tenants = tuple(await reading.part("tenants", tenant_quotas(client), []))
        namespaces = await reading.part("namespaces", listed_namespaces(client), ())
        pods, taken = await reading.part("pods", _pods(client, policy, lookups, steps), ((), {}))
        configurations = await reading.part("configurations", webhook_configurations(client), ())
        certificates, hidden = await certificates_seen(client, configurations)
        gangs = Listed(policy, lookups, namespaces, tuple(each.tenant for each in tenants if each.tenant), classes)
        if hidden or "configurations" in reading.unread:
            reading.unread["certificates"] = reading.unread.get("configurations", RIGHTS["certificates"])
        if not await reading.part("capacity", _without_slices(client), otherwise=True):
            reading.unread["capacity"] = COUNTED_BY_CLAIMS
        return ClusterSnapshot(
            policy=policy,
            now=now or datetime.now(UTC),
            classes=classes,
            tenants=tenants,
            namespaces=namespaces,
            nodes=await reading.part("nodes", gpu_nodes(client, policy), ()),
            pods=pods,
            taken=taken,
            gangs=await reading.part("gangs", gangs_of_cluster(client, gangs), ()),
            pod_groups=await reading.part("pod_groups", _pod_groups(client), ()),
            budgets=await reading.part("budgets", disruption_budgets(client), ()),
            configurations=configurations,
            certificates=certificates,
            failed_hooks=await reading.part("failed_hooks", _failed_hooks(client), ()),
            version=await reading.part("version", _version(client), (0, 0)),
            unread=reading.unread,
        )
    finally:
        await lookups.close()


async def _pods(
    client: Client, policy: TierPolicy, lookups: Lookups, steps: Steps
) -> tuple[tuple[PodSummary, ...], dict[str, Taken]]:
    """Those with GPUs, and what all take of the nodes."""
    held: list[PodSummary] = []
    taken: defaultdict[str, Taken] = defaultdict(Taken)
    async for pod in list_pods(client, policy, lookups.devices):
        if pod.node:
            before = taken[pod.node]
            taken[pod.node] = Taken(before.gpus + pod.gpus, before.cpu + pod.cpu, before.memory + pod.memory)
        if pod.gpus:
            held.append(pod)
        steps.done()
    return tuple(held), dict(taken)


async def _without_slices(client: Client) -> bool:
    """Whether all GPUs are resources of nodes: what ResourceSlices offer can't be counted by device class here."""
    found = await _listed(client, "resource.k8s.io", "resourceslices", most=1)
    return not found


async def _pod_groups(client: Client) -> tuple[PodGroupSeen, ...]:
    groups = [read(raw, PodGroup) for raw in await _listed(client, "scheduling.k8s.io", "podgroups")]
    return tuple(
        PodGroupSeen(each.metadata.namespace, each.metadata.name, each.spec.priority or 0, each.goes_whole)
        for each in groups
    )


async def _listed(client: Client, group: str, plural: str, most: int | None = None) -> list[msgspec.Raw]:
    """The objects of a kind, the first pages of them where `most` are enough; none where it is not served."""
    try:
        version = await Discovery(client).api_version(group, plural)
    except Unreadable:
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


async def _version(client: Client) -> tuple[int, int]:
    found = await client.get("/version")
    major, minor = (int("".join(filter(str.isdigit, str(found.get(key))))[:4] or 0) for key in ("major", "minor"))
    return major, minor
