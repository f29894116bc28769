"""`gpu-tiers audit`: the policy's effect on each workload of a cluster or a folder, and contradictions to it."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from decimal import Decimal
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import typer
from msgspec.structs import asdict, replace

from webhook.cli.cluster.installed import policy_in, read_active_policy
from webhook.cli.cluster.reader import cluster_reader
from webhook.cli.cluster.target import Target
from webhook.cli.cluster.workloads import Gathering, workloads_of
from webhook.cli.command import Answer, Form, Table, fail, with_options, write
from webhook.cli.lint import refuse_unknown, shown_findings, snapshot_of
from webhook.cli.manifests.documents import BadInput, Document, LeftOut, documents
from webhook.cli.manifests.finding import Finding, every_part, verdict_of
from webhook.cli.manifests.inputs import Inputs, cluster_of, is_fact
from webhook.cli.manifests.judge import NO_TENANTS, judged_quickly
from webhook.cli.progress import shown_while
from webhook.cluster.listed import pod_summary
from webhook.cluster.offline import ClusterAbout, ReadOnceCluster
from webhook.cluster.pod_informer import SeenPod
from webhook.objects.group_kind import POD
from webhook.objects.pods import Pod
from webhook.objects.quantities import written_gpus
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import view
from webhook.policy.quota.charges import named_flavor, tier_counted
from webhook.policy.quota.demand import demand_of, gpus_of_pods, shared_by
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.policy.values.tiers import active_class
from webhook.report.lint import AUDIT_RULES
from webhook.report.lint.rule import LintFinding, Severity, fails
from webhook.report.lint.snapshot import Audited, AuditStanding, ClusterSnapshot, PodsAlike, number_of, standing_of
from webhook.report.lint.workload_rules import quota_note
from webhook.report.object_verdict import NONE
from webhook.report.shown import Gpus, Shown, as_number
from webhook.sentences.sentence import sentence


class Share(Shown, frozen=True):
    """A number of workloads, and the GPUs of their pods."""

    workloads: int
    gpus: Gpus


class AuditCounts(Shown, frozen=True):
    """The workloads of a tenant in a tier, and how many are in each state. Both are "none" if there is none.

    A workload with demoted pods is counted in each tier in which its pods run. The total is of tenant "all", tier "-".
    """

    tenant: str
    tier: str
    all: Share
    agrees: Share
    changed: Share
    queued: Share
    refused: Share
    before: Share
    outside: Share

    @property
    def shares(self) -> tuple[Share, ...]:
        return self.all, self.agrees, self.changed, self.queued, self.refused, self.before, self.outside


class AuditReport(msgspec.Struct, frozen=True):
    """A whole audit. `notes` are sentences on the judging and what was left out, `unread` on what lacks a right."""

    mode: str
    total: AuditCounts
    tenants: tuple[AuditCounts, ...]
    findings: tuple[LintFinding, ...]
    workloads: tuple[Audited, ...]
    notes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "workloads": [_record(each) for each in self.workloads]}


def audit_report(
    snapshot: ClusterSnapshot, ignored: Collection[str] = (), notes: Sequence[str] = (), unread: Sequence[str] = ()
) -> AuditReport:
    """Return the report on the snapshot's workloads, without the ignored rules. Errors come first."""
    by_name = sorted(
        snapshot.workloads, key=lambda each: (_tenant(each), each.namespace, each.kind, each.name, each.source)
    )
    snapshot = replace(snapshot, workloads=tuple(by_name))
    asked = [rule for rule in AUDIT_RULES if rule.id not in ignored]
    found = [(mistake.workload, rule.finding(mistake)) for rule in asked for mistake in rule.check(snapshot)]
    ids: dict[int, list[str]] = {id(each): [] for each in by_name}
    for about, finding in found:
        ids.get(id(about), []).append(finding.id)
    places = {key: place for place, key in enumerate(ids)}
    found.sort(key=lambda each: (each[1].severity.rank, places.get(id(each[0]), len(places))))

    # Counts by tenant and tier, the highest tier first, and workloads without one last.
    groups: dict[tuple[str, str], list[Audited]] = {}
    for each in by_name:
        for tier, pods in each.by_tier.items():
            groups.setdefault((_tenant(each), tier), []).append(replace(each, pods=pods))
    ranks = {name: rank for rank, name in enumerate([*(tier.name for tier in snapshot.policy.tiers), ""])}
    ranked = sorted(groups, key=lambda key: (key[0] == NONE, key[0], ranks[key[1]]))
    return AuditReport(
        mode=snapshot.policy.mode.name,
        total=_counts("all", "-", by_name),
        tenants=tuple(_counts(tenant, tier or NONE, groups[tenant, tier]) for tenant, tier in ranked),
        findings=tuple(finding for _, finding in found),
        workloads=tuple(replace(each, findings=tuple(ids[id(each)])) for each in by_name),
        notes=tuple(notes),
        unread=tuple(unread),
    )


def _counts(tenant: str, tier: str, found: Sequence[Audited]) -> AuditCounts:
    def share(some: Sequence[Audited]) -> Share:
        return Share(len(some), as_number(sum((each.gpus for each in some), Decimal(0))))

    parts = {name.value: share([each for each in found if standing_of(each) is name]) for name in AuditStanding}
    return AuditCounts(tenant, tier, all=share(found), **parts)


def _tenant(found: Audited) -> str:
    return found.tenant.name if found.tenant else NONE


def _record(found: Audited) -> dict[str, Any]:
    pods = [
        {"count": each.count, "gpus": as_number(each.gpus), "className": each.class_name}
        | {"priority": each.priority, "exist": each.exist}
        for each in found.pods
    ]
    return {
        **found.as_json(),
        "tenant": found.tenant.name if found.tenant else None,
        "standing": standing_of(found),
        "gpus": as_number(found.gpus),
        "pods": pods,
        "findings": found.findings,
    }


FOUND = 1
ENDED = ("Succeeded", "Failed")


class Given(msgspec.Struct, frozen=True):
    """The policy and tenants by which workloads are judged, and the namespace to audit.

    For manifests it is the namespace of objects that name none.
    """

    policy: str | None = None
    tenants: list[Path] | None = None
    namespace: str | None = None


@with_options
def audit(
    *,
    inputs: Inputs,
    given: Given,
    workloads: bool = False,
    ignore: list[str] | None = None,
    fail_on: Severity = Severity.ERROR,
    output: Form = "table",
    target: Target,
) -> None:
    """Show what the policy would do to each workload of a cluster or of a folder, and what contradicts it.

    Use it to ask what Enforce would refuse or change of all that runs. `check` shows whether the webhook works, `lint`
    whether it is set up well, and `review` the whole answer for one manifest.

    Example: `gpu-tiers audit -n team-alpha`

    Each workload is judged by itself, as if it were created now in Enforce in a tenant that uses nothing, and its pods
    are counted with it. `demand-over-quota` names the rows too small for all. Nothing is changed.
    The first lines name what can't be said without a right. Exits with 1 for a finding as severe as --fail-on,
    with 2 if the cluster can't be asked or an option is wrong, and otherwise with 0.
    """
    refuse_unknown(ignore or (), AUDIT_RULES, "finding; there are")
    if inputs.given:
        target.refuse_if_named("about manifests")
        report = asyncio.run(_of_files(inputs, given, ignore or ()))
    elif given.tenants:
        fail("--tenants: needs manifests; without manifests the TenantQuotas of the cluster are read")
    else:
        report = asyncio.run(_of_cluster(target, given, ignore or ()))
    write(audit_answer(report, each_workload=workloads), output)
    raise typer.Exit(FOUND if fails(report.findings, fail_on) else 0)


async def _of_cluster(target: Target, given: Given, ignored: Collection[str]) -> AuditReport:
    async with target.client() as client:
        policy = await read_active_policy(client, given.policy)
        async with cluster_reader(client, policy) as reader:
            there = await workloads_of(reader, given.namespace)
            gathering = audited_by(there.judged_by(reader.policy), reader.policy)
            await there.gather(gathering, given.namespace)
            found = audited(gathering, running=True)
            mode = f"The mode is {policy.mode.name}; workloads are judged as in Enforce."
            notes = [*([] if policy.mode is Mode.Enforce else [mode]), *quota_note(found), *there.notes]
            snapshot = replace(there.listed, workloads=tuple(found))
            return audit_report(snapshot, ignored, notes, reader.missing())


async def _of_files(inputs: Inputs, given: Given, ignored: Collection[str]) -> AuditReport:
    """Audit manifests as if the cluster had only the objects of the files. Raises BadInput and ConfigError."""
    left_out: list[LeftOut] = []
    world = [each for path in given.tenants or () for each in documents(str(path))]
    policy, manifests = policy_in(given.policy), inputs.read(given.namespace, left_out)
    cluster = cluster_of(policy, [*world, *manifests])
    gathering = audited_by(lambda _: cluster, policy)

    # All workloads first, then the pods that an API server stored, which gave them a uid.
    judged = [each for each in manifests if not is_fact(each)]
    stored = [each.group_kind == POD and bool(each.metadata.get("uid")) for each in judged]
    for is_pod, document in shown_while("judging", sorted(zip(stored, judged, strict=True), key=itemgetter(0))):
        if not is_pod:
            await gathering.workload(document)
            continue
        try:
            seen = view(document.tree, SeenPod)
            pod = await pod_summary(seen, policy, cluster.lookups.devices)
        except Refused as refused:
            raise BadInput(f"{document.source}: {sentence(refused.refusal)}") from None
        if pod.gpus and seen.status.phase not in ENDED:
            await gathering.pod(pod, partial(dict, document.tree))
    for document in gathering.without_maker():
        await gathering.by_itself(document)

    found = audited(gathering, running=False)
    notes = [*(() if cluster.known.tenants() else (NO_TENANTS,)), *quota_note(found)]
    notes += [f"left out: {each}" for each in left_out]
    return audit_report(replace(snapshot_of(policy, cluster), workloads=tuple(found)), ignored, notes)


NO_WORKLOAD, NOTHING = "There is no workload with GPUs.", "Nothing contradicts the policy."
_COLUMNS = (
    "Tenant",
    "Tier",
    "All",
    "Agrees",
    "Would be changed",
    "Would be queued",
    "Would be refused",
    "Before gpu-tiers",
    "Outside the tiers",
)


def audit_answer(report: AuditReport, *, each_workload: bool) -> Answer:
    total, (tables, notes) = report.total.all, shown_findings(report.findings)
    title = f"{number_of(total.workloads, 'workload')} with {written_gpus(Decimal(str(total.gpus)))} (GPUs in brackets)"
    if report.tenants:
        every = (*report.tenants, report.total)
        shares = (
            [f"{each.workloads} ({each.gpus})" if each.gpus else str(each.workloads or "-") for each in row.shares]
            for row in every
        )
        rows = [(row.tenant, row.tier, *its) for row, its in zip(every, shares, strict=True)]
        tables = [Table(_COLUMNS, rows, title), *tables]
    if each_workload and report.workloads:
        columns = ("Workload", "Namespace", "Tier", "Type", "Grade", "Hook", "Verdict", "Stands", "GPUs", "Findings")
        tables.append(Table(columns, [_workload(each) for each in report.workloads], "Workloads"))
    none_found = []
    if not report.workloads:
        none_found = ["No workload that could be read has GPUs." if report.unread else NO_WORKLOAD]
    elif not report.findings:
        none_found = ["Nothing that could be read contradicts the policy." if report.unread else NOTHING]
    return Answer(report.as_json(), tables, (*notes, *none_found, *report.notes), report.unread)


def _workload(found: Audited) -> tuple[str, ...]:
    return (
        f"{found.kind}/{found.name}",
        found.namespace,
        ", ".join(found.by_tier) if found.due else NONE,
        found.workload_type,
        found.grade or "-",
        found.hooks[0].kind if found.hooks else NONE,
        found.verdict,
        standing_of(found),
        str(as_number(found.gpus)),
        ", ".join(found.findings) or "-",
    )


def audited(gathering: Gathering[Audited | None], *, running: bool) -> list[Audited]:
    """Return all workloads that are not left alone, with their pods. `running`: only existing pods use GPUs."""
    workloads = []
    for found in gathering.found.values():
        judged, pods = [each for each in found.judged if each is not None], found.pods_alike
        if not judged and not pods:
            continue
        # Pods may have GPUs although the template has none. If the verdicts on pods differ, a refusal counts.
        alone = Audited(kind=found.kind.kind, namespace=found.namespace, name=found.name)
        said = next((each for each in judged if each.message), judged[0] if judged else alone)
        if running and not pods:
            pods = tuple(replace(each, count=0, gpus=Decimal(0)) for each in said.pods)
        kind, group = found.kind.kind, found.kind.group
        workloads.append(replace(said, kind=kind, group=group, name=found.name, pods=pods or said.pods))
    return workloads


def audited_by(facts: ClusterAbout, policy: TierPolicy) -> Gathering[Audited | None]:
    """Return a gathering that audits its objects. `facts` returns the cluster in which an object is judged."""

    async def judged(document: Document) -> Audited | None:
        """Return the audit of an object with the pods that its templates would make; None if it is left alone."""
        cluster = facts(document)
        finding = await judged_quickly(document, cluster, policy)
        if finding.allowed and not finding.tiered:
            return None
        verdict = verdict_of(finding, adoption=policy.adoption)
        assignments = (each.verdict.assignment for each in every_part(finding))
        tiers = dict.fromkeys(each.tier for each in assignments if each and each.tier)
        return Audited(
            **verdict.as_fields(),
            tenant=cluster.known.tenant(await cluster.known.namespace(verdict.namespace)),
            classes={active_class(each, adoption=policy.adoption): each.value for each in tiers},
            pods=tuple([each async for each in _pods(finding, cluster, policy)]),
        )

    return Gathering(policy.kinds, judged)


async def _pods(finding: Finding, cluster: ReadOnceCluster, policy: TierPolicy) -> AsyncIterator[PodsAlike]:
    """Yield the pods with GPUs that an object would make, alike ones together."""
    for part in finding.pods or finding.inside:
        async for pods in _pods(part, cluster, policy):
            yield pods
    if finding.parts or finding.document.kind != "Pod":
        return
    try:
        pod, namespace = view(finding.document.tree, Pod), finding.document.namespace
        claimed = [await cluster.lookups.devices(namespace, claim) for claim in pod.spec.resource_claims]
        devices = [*chain.from_iterable(claimed)]
        demand = gpus_of_pods(finding.count, demand_of(pod, devices, policy), shared_by(devices, policy))
    except (Refused, Unreadable):  # its verdict says so
        return
    name = pod.spec.priority_class_name
    tier = tier_counted(name, None, policy.tiers) if name else None
    if demand:
        flavor = named_flavor(pod, policy.flavors)
        yield PodsAlike(finding.count, demand, class_name=name, tier=tier, flavor=flavor, exist=False)
