"""Reads a cluster for the rules, each part once: the parts for `check` (`read_running`), or all for `lint`.

A part that the user may not read is noted, and left out.
"""

import base64
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
from msgspec.structs import replace

from webhook.admission.facts import facts_of_workload
from webhook.cli.cluster.installed import RELEASE
from webhook.cli.cluster.lease import leader_of
from webhook.cli.cluster.reader import ClusterReader
from webhook.cli.cluster.target import RIGHTS
from webhook.cli.cluster.workloads import listed_cluster
from webhook.cli.manifests.documents import BadInput
from webhook.cluster import listed
from webhook.cluster.cluster import Cluster
from webhook.cluster.listed import PodSummary, lost_pods, pods_with_json
from webhook.cluster.webhook_configurations import admission_policies, leaves_out, missing_kinds, webhook_configurations
from webhook.config.published import InstalledPolicy, active_map_of
from webhook.kube.client import Client, listed_objects, path
from webhook.kube.discovery import Discovery, served_version, server_version
from webhook.kube.errors import ApiError, Failed, Forbidden, NotFound
from webhook.objects.data_files import data_file
from webhook.objects.podgroups import PodGroup
from webhook.objects.pods import Named
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import Tree, all_at, at, read
from webhook.policy.assignment.request import TIER_LABEL
from webhook.policy.decide_workload import decide_workload
from webhook.policy.values.facts import NAME_LABEL
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kind_table import KindRow
from webhook.report.latest import ANNOTATION, marks_in
from webhook.report.lint.snapshot import CertificateSeen, ClusterSnapshot, DryRun, GangSeen, PreemptionRule, Taken

PATIENCE = 45.0
"""Seconds for a dry run: the API server may wait for each webhook up to its timeout, and ask one of them twice."""
COUNTED_BY_CLAIMS = "nodes whose GPUs are all resources: here ResourceSlices offer some, which it does not add up"
NOT_LEFT_OUT = "a namespace that gpu-tiers does not leave out: name one with --namespace"


async def read_whole(reader: ClusterReader, installed: InstalledPolicy) -> ClusterSnapshot:
    """Read all parts of a cluster. Raises ApiError if the API server can't be asked at all."""
    client, policy = reader.client, reader.policy
    found = await read_running(reader, installed, "default")
    found = replace(found, classes=await reader.part("classes", listed.priority_classes(client), {}))
    pods, taken = await reader.part("pods", _pods(reader), ((), {}))
    if await reader.part("capacity", _listed(client, "resource.k8s.io", "resourceslices", most=1), []):
        reader.lacking["capacity"] = COUNTED_BY_CLAIMS
    nodes = await reader.part("nodes", listed.gpu_nodes(client, policy), ())
    groups = await reader.part("pod_groups", _listed(client, "scheduling.k8s.io", "podgroups"), [])
    return replace(
        found,
        nodes=nodes,
        lost_pods=await reader.part("lost_pods", lost_pods(client, pods, nodes), ()),
        pods=pods,
        taken=taken,
        gangs=await reader.part("gangs", gangs_of_cluster(client, found, listed_cluster(found, reader.lookups)), ()),
        pod_groups=tuple(read(raw, PodGroup) for raw in groups),
        budgets=await reader.part("budgets", listed.disruption_budgets(client), ()),
        failed_hooks=await reader.part("failed_hooks", _failed_hooks(client), {}),
        preemption_rules=await reader.part("preemption_configs", _preemption_rules(client), ()),
        autoscalers=await reader.part("autoscalers", _autoscalers(client), ()),
        version=await reader.part("version", server_version(client), (0, 0)),
        supply=await reader.supply(),
        unread=reader.needs,
        refused=frozenset(reader.unread),
    )


async def read_running(reader: ClusterReader, installed: InstalledPolicy, namespace: str) -> ClusterSnapshot:
    """Read the parts for `check`: webhook configurations, a dry run in `namespace`, the leader, tenants, certificates.

    Raises ApiError if the API server can't be asked at all, BadInput if there is no such namespace.
    """
    client = reader.client
    configurations = await reader.part("configurations", webhook_configurations(client), ())
    found = ClusterSnapshot(reader.policy, datetime.now(UTC), configurations=configurations, installed=installed)
    tenants = tuple(await reader.part("tenants", listed.tenant_quotas(client), []))
    found = replace(
        found,
        dry_run=await dry_run_of(reader, found, namespace),
        leader=await reader.part("leader", leader_of(client, *installed.where.split("/")), ""),
        tenants=tenants,
        has_crd=bool(tenants) or await listed.serves_tenant_quotas(client),
        namespaces=await reader.part("namespaces", listed.listed_namespaces(client), ()),
        admission_policies=await reader.part("admission_policies", admission_policies(client), ()),
    )
    certificates = await _certificates_seen(reader, found)
    return replace(found, certificates=certificates, unread=reader.needs, refused=frozenset(reader.unread))


async def dry_run_of(reader: ClusterReader, found: ClusterSnapshot, namespace: str) -> DryRun:
    """Create a pod as a dry run to get the marks of both webhooks, and note why parts of the answer are unknown."""
    dry_run, lacking = DryRun(()), reader.lacking
    if found.installed.unread:
        reader.unread["read_active_policy"] = f"get ConfigMap {active_map_of(found.installed.where)}"
    if leaves_out(found.configurations, {NAME_LABEL: namespace}):
        lacking["answer"] = NOT_LEFT_OUT
    else:
        reader.steps.begin("asking the webhook")
        try:
            dry_run = await _dry_run(reader.client, namespace, reader.policy.default_tier)
        except Forbidden as error:  # without the right, or refused by something else
            lacking["answer"] = f"the right to create pods in {namespace}, for a dry run ({error.said})"
    gone = () if "configurations" in reader.unread else missing_kinds(found.configurations)
    if gone:  # the API server does not ask a webhook without a configuration, even if it runs
        lacking["answer"] = f"the {' and the '.join(gone)} of gpu-tiers"
    if not dry_run.marks:
        lacking["replica"] = lacking.get("answer", "an answer of the webhook")
    return dry_run


async def _dry_run(client: Client, namespace: str, tier: str) -> DryRun:
    """Return the marks, the time that the dry run took, and the API server's error.

    Raises Forbidden without the right to create pods, or if something refused without a mark, and BadInput without the
    namespace.
    """
    warnings: list[str] = []
    began, said = time.monotonic(), ""
    try:
        await client.try_create(path("v1", "pods", namespace), _pod(tier), warnings, seconds=PATIENCE)
    except NotFound:
        raise BadInput(f"there is no namespace {namespace}") from None
    except ApiError as error:
        if isinstance(error, Forbidden) and not [*marks_in(warnings)]:
            raise
        said = error.said if isinstance(error, Failed) else str(error)
    return DryRun(tuple(marks_in(warnings)), time.monotonic() - began, said)


def _pod(tier: str) -> Tree:
    pod: Tree = data_file(__name__, "dry_run_pod.yaml")
    return pod | {"metadata": pod["metadata"] | {"labels": {TIER_LABEL: tier}, "annotations": {ANNOTATION: ""}}}


async def _certificates_seen(reader: ClusterReader, running: ClusterSnapshot) -> tuple[CertificateSeen, ...]:
    """Return the CAs of our configurations and the serving certificates of the Secrets. Raises ApiError.

    If no Secret has one, the serving certificate is that of the replica that answered the dry run.
    """
    entries = [(each, entry) for each in running.configurations if each.is_ours for entry in each.webhooks]
    bundles = dict.fromkeys((str(each), entry.client_config.ca_bundle) for each, entry in entries)
    found = [each for where, bundle in bundles for each in _certificates(bundle, where, ca=True)]
    hidden = "configurations" in reader.unread
    services = (entry.client_config.service for _, entry in entries)
    # The chart puts the Secret next to the Service that is called; for a URL, look where the default release has it.
    secrets = ((each.namespace, f"{each.name}-tls") if each else (RELEASE, f"{RELEASE}-tls") for each in services)
    for namespace, name in dict.fromkeys(secrets):
        try:
            secret = await reader.client.get(path("v1", "secrets", namespace, name))
        except NotFound:
            continue  # certificates of files, or of a Secret with a name of its own
        except Forbidden:
            hidden = True
            continue
        text = str((secret.get("data") or {}).get("tls.crt") or "")
        found += list(_certificates(text, f"Secret/{name} in {namespace}"))[:1]
    replica = running.replica if all(each.ca for each in found) else None
    if replica:
        found.append(CertificateSeen(f"replica {replica.replica}", datetime.fromtimestamp(replica.certificate, UTC)))
    elif hidden:
        reader.unread["certificates"] = reader.unread.get("configurations", RIGHTS["certificates"])
    return tuple(found)


def _certificates(text: str, where: str, *, ca: bool = False) -> Iterator[CertificateSeen]:
    """Yield the certificates of PEM in base64, the leaf first. The webhook itself reports what can't be read."""
    from cryptography import x509  # noqa: PLC0415 - an audit, or a check that gets no answer, reads none

    try:
        pem = base64.b64decode(text)
        found = x509.load_pem_x509_certificates(pem) if pem.strip() else []
    except ValueError:
        return
    for each in found:
        yield CertificateSeen(where, each.not_valid_after_utc, ca)


async def _pods(reader: ClusterReader) -> tuple[tuple[PodSummary, ...], dict[str, Taken]]:
    """Return the pods with GPUs, and the resources that all pods take, by node."""
    with_gpus: list[PodSummary] = []
    taken: defaultdict[str, Taken] = defaultdict(Taken)
    async for _, pod in pods_with_json(reader.client, reader.policy, reader.lookups.devices):
        if pod.node:
            before = taken[pod.node]
            taken[pod.node] = Taken(before.gpus + pod.gpus, before.cpu + pod.cpu, before.memory + pod.memory)
        if pod.gpus:
            with_gpus.append(pod)
        reader.steps.done()
    return tuple(with_gpus), dict(taken)


async def _listed(client: Client, group: str, plural: str, most: int | None = None) -> list[msgspec.Raw]:
    """Return the objects of a kind; with `most`, stop after the page that reaches it. [] if not served."""
    version = await served_version(client, group, plural)
    if version is None:
        return []
    found: list[msgspec.Raw] = []
    async for page in client.list_pages(path(version, plural)):
        found += page.items or ()
        if most is not None and len(found) >= most:
            break
    return found


async def _failed_hooks(client: Client) -> dict[tuple[str, str], int]:
    times: Counter[tuple[str, str]] = Counter()
    for event in await listed.listed_trees(client, path("v1", "events"), {"fieldSelector": "reason=FailedPreStopHook"}):
        about, series = event.get("involvedObject") or {}, event.get("series") or {}
        count = event.get("count") or series.get("count") or 1
        times[str(about.get("namespace")), str(about.get("name"))] += int(count)
    return dict(sorted(times.items()))


async def _preemption_rules(client: Client) -> tuple[PreemptionRule, ...]:
    found: list[PreemptionRule] = []
    for raw in await _listed(client, "kueue.x-k8s.io", "preemptionconfigs"):
        config: Tree = msgspec.json.decode(raw)
        for _, rule in all_at(config, "spec.rules.*"):
            modes = tuple(str(at(each, "priority.mode") or "") for _, each in all_at(rule, "candidateSelectors.*"))
            found.append(PreemptionRule(str(at(config, "metadata.name")), str(at(rule, "name")), modes))
    return tuple(found)


async def _autoscalers(client: Client) -> tuple[str, ...]:
    """Return the names of the cluster's autoscalers, by Karpenter's API and Cluster Autoscaler's ConfigMap."""
    found = ["Karpenter"] if await served_version(client, "karpenter.sh", "nodepools") else []
    try:
        await client.get(path("v1", "configmaps", "kube-system", "cluster-autoscaler-status"))
    except NotFound:
        return tuple(found)
    return (*found, "Cluster Autoscaler")


async def gangs_of_cluster(client: Client, known: ClusterSnapshot, cluster: Cluster) -> tuple[GangSeen, ...]:
    """Return the gangs of each served kind, without unreadable ones. Raises ApiError."""
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
    """Return the gang. None for a workload that is no gang, is part of another one, has ended or is suspended.

    None too if the workload, its runtime or its claims can't be read.
    """
    with suppress(Refused, ValueError, TypeError, RecursionError):
        tree: Tree = msgspec.json.decode(raw)
        metadata = read(raw, Named).metadata
        if policy.kinds.is_gang(metadata.controller):
            return None
        known = await facts_of_workload(tree, row, metadata, metadata.namespace, cluster, policy)
        facts = known.facts
        unread = known.unread_runtime or facts.unread_claims
        decision = None if unread else decide_workload(known.whole, facts, policy)
        if decision is not None and decision.gang is not None:
            about = metadata.uid, row.kind, metadata.namespace, metadata.name
            return GangSeen(*about, decision.gang.charges, facts.tenant, facts.owners[0].shards)
    return None
