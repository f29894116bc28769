"""Reads a cluster for `gpu-tiers lint`: each part once, gangs and certificates among them."""

import base64
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from cryptography import x509

from webhook.admission.facts import facts_of_workload
from webhook.cli.cluster_reader import ClusterReader, Listed, listed_cluster
from webhook.cli.installed import RELEASE, installed_policy
from webhook.cli.read_running import certificate_of, running_webhook, unread_of
from webhook.cli.rights import RIGHTS
from webhook.cluster.cluster import Cluster
from webhook.cluster.disruption_budgets import disruption_budgets
from webhook.cluster.gpu_nodes import gpu_nodes
from webhook.cluster.pod_listing import PodSummary, list_pods
from webhook.cluster.webhook_configurations import WebhookConfiguration, webhook_configurations
from webhook.kube.client import Client
from webhook.kube.discovery import Discovery, served_version
from webhook.kube.errors import Forbidden, NotFound
from webhook.kube.paths import path
from webhook.kube.wire import listed_objects
from webhook.objects.podgroups import PodGroup
from webhook.objects.pods import Named
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import Tree, read
from webhook.policy.decide_workload import decide_workload
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kinds.table import KindRow
from webhook.report.cluster_parts import Part
from webhook.report.lint.snapshot import (
    CertificateSeen,
    ClusterSnapshot,
    FailedHook,
    GangSeen,
    PodGroupSeen,
    Running,
    Taken,
)

COUNTED_BY_CLAIMS = "GPUs that lie on nodes as resources: here ResourceSlices offer them too, by the claim"


async def read_snapshot(reader: ClusterReader) -> ClusterSnapshot:
    """A cluster as it is now. Raises ApiError where the API server can't be asked at all."""
    client, policy, listed = reader.client, reader.policy, await reader.listed()
    pods, taken = await reader.part("pods", _pods(reader), ((), {}))
    configurations = await reader.part("configurations", webhook_configurations(client), ())
    running = await running_webhook(reader, await installed_policy(client), "default", configurations)
    certificates = await certificates_seen(reader, configurations, running)
    without_slices = await reader.part("capacity", _without_slices(client), otherwise=True)
    counted_by_claims: dict[Part, str] = {} if without_slices else {"capacity": COUNTED_BY_CLAIMS}
    return ClusterSnapshot(
        policy=policy,
        now=datetime.now(UTC),
        classes=listed.classes,
        tenants=listed.quotas,
        namespaces=listed.namespaces,
        nodes=await reader.part("nodes", gpu_nodes(client, policy), ()),
        pods=pods,
        taken=taken,
        gangs=await reader.part("gangs", gangs_of_cluster(client, listed), ()),
        pod_groups=await reader.part("pod_groups", _pod_groups(client), ()),
        budgets=await reader.part("budgets", disruption_budgets(client), ()),
        configurations=configurations,
        certificates=certificates,
        running=running,
        failed_hooks=await reader.part("failed_hooks", _failed_hooks(client), ()),
        version=await reader.part("version", _version(client), (0, 0)),
        unread=counted_by_claims | unread_of(reader, running),
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


async def _version(client: Client) -> tuple[int, int]:
    found = await client.get("/version")
    major, minor = (int("".join(filter(str.isdigit, str(found.get(key))))[:4] or 0) for key in ("major", "minor"))
    return major, minor


async def certificates_seen(
    reader: ClusterReader, configurations: Iterable[WebhookConfiguration], running: Running
) -> tuple[CertificateSeen, ...]:
    """Those of our configurations and of the Secret, else that of the replica that answered. Raises ApiError."""
    ours = [each for each in configurations if each.is_ours]
    found = [certificate for each in ours for certificate in _trusted(each)]
    hidden = "configurations" in reader.unread
    for namespace, name in dict.fromkeys(place for each in ours for place in _secrets(each)):
        try:
            secret = await reader.client.get(path("v1", "secrets", namespace, name))
        except NotFound:
            continue  # certificates of files, or of a Secret with a name of its own
        except Forbidden:
            hidden = True
            continue
        pem = _decoded(str((secret.get("data") or {}).get("tls.crt") or ""))
        found += list(_certificates(pem, f"Secret/{name} in {namespace}"))[:1]
    served = () if any(not each.ca for each in found) else certificate_of(running)
    if hidden and not served:
        reader.unread["certificates"] = reader.unread.get("configurations", RIGHTS["certificates"])
    return (*found, *served)


def _trusted(configuration: WebhookConfiguration) -> Iterator[CertificateSeen]:
    """The CAs of all entries; each once."""
    bundles = dict.fromkeys(entry.client_config.ca_bundle for entry in configuration.webhooks)
    for bundle in bundles:
        yield from _certificates(_decoded(bundle), str(configuration), ca=True)


def _secrets(configuration: WebhookConfiguration) -> Iterator[tuple[str, str]]:
    """Where the chart keeps it: beside the Service that is called, else as the default release has it."""
    for entry in configuration.webhooks:
        service = entry.client_config.service
        yield (service.namespace, f"{service.name}-tls") if service else (RELEASE, f"{RELEASE}-tls")


def _certificates(pem: bytes, where: str, *, ca: bool = False) -> Iterator[CertificateSeen]:
    """The leaf first. What can't be read as a certificate is told by the webhook itself."""
    try:
        found = x509.load_pem_x509_certificates(pem) if pem.strip() else []
    except ValueError:
        return
    for each in found:
        yield CertificateSeen(where, each.not_valid_after_utc, ca)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except ValueError:
        return b""


async def gangs_of_cluster(client: Client, known: Listed) -> tuple[GangSeen, ...]:
    """The gangs of each kind that is served; one that nobody understands is left out. Raises ApiError."""
    discovery, cluster = Discovery(client), listed_cluster(known)
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
