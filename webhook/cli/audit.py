"""`gpu-tiers audit`: what the policy would do to each workload of a cluster or a folder, and what contradicts it."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from functools import partial
from itertools import compress
from operator import not_
from typing import Annotated

import msgspec
import typer
from msgspec.structs import replace

from webhook.cli.cluster.gathering import Gathered, Gathering
from webhook.cli.cluster.installed import policy_in, policy_in_force
from webhook.cli.cluster.reader import cluster_reader
from webhook.cli.cluster.target import ContextOption, KubeconfigOption, Target, answered
from webhook.cli.cluster.workloads import workloads_of
from webhook.cli.lint import refuse_unknown, shown_findings, snapshot_of
from webhook.cli.manifests.documents import BadInput, Document, documents
from webhook.cli.manifests.finding import Finding, every_part, is_fact, verdict_of
from webhook.cli.manifests.inputs import (
    FilenameOption,
    HelmOption,
    Inputs,
    KustomizeOption,
    TenantsOption,
    ValuesOption,
)
from webhook.cli.manifests.offline import NO_TENANTS, cluster_of, in_all, judged_quickly
from webhook.cli.options import with_options
from webhook.cli.output import Answer, FormOption, Table, fail, write
from webhook.cli.progress import Steps
from webhook.cluster.offline import ClusterAbout, ReadOnceCluster
from webhook.cluster.pod_informer import SeenPod
from webhook.cluster.pod_listing import pod_summary
from webhook.config.errors import ConfigError
from webhook.objects.group_kind import POD
from webhook.objects.pods import Pod
from webhook.objects.quantities import written_gpus
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import view
from webhook.policy.quota.charges import named_flavor, tier_counted
from webhook.policy.quota.demand import demand_of, held_by, shared_by
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.policy.values.tiers import class_in_force
from webhook.report.audit_report import AuditReport, audit_report, quota_note
from webhook.report.lint import AUDIT_RULES
from webhook.report.lint.audited import Audited, PodsAlike, standing_of
from webhook.report.lint.rule import Severity, fails
from webhook.report.lint.snapshot import number_of
from webhook.report.object_verdict import NONE
from webhook.report.shown import as_number
from webhook.sentences.sentence import sentence

FOUND = 1
ENDED = ("Succeeded", "Failed")


class AuditOptions(msgspec.Struct, frozen=True):
    """The options of an audit."""

    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE|FOLDER|-", help="Manifests; - is standard input. Without any, the cluster."),
    ] = None
    filename: FilenameOption = None
    kustomize: KustomizeOption = None
    helm: HelmOption = None
    values: ValuesOption = None
    policy: Annotated[
        str | None,
        typer.Option(help="Policy file or preset; else the installation's, and for manifests the preset four-tier."),
    ] = None
    tenants: TenantsOption = None
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Audit only this namespace; for manifests, where they name none."),
    ] = None
    workloads: Annotated[
        bool, typer.Option("--workloads", help="Show each workload too; json and yaml always have all.")
    ] = False
    ignore: Annotated[list[str] | None, typer.Option(help="Id of a finding to leave out (repeatable).")] = None
    fail_on: Annotated[Severity, typer.Option(help="Least severity to exit with 1 for.")] = Severity.ERROR
    output: FormOption = "table"
    kubeconfig: KubeconfigOption = None
    context: ContextOption = None

    @property
    def target(self) -> Target:
        return Target(self.kubeconfig, self.context)

    @property
    def inputs(self) -> Inputs:
        names = [*(self.files or ()), *(self.filename or ())]
        return Inputs(names, self.kustomize or (), self.helm or (), self.values or (), self.namespace)


@with_options(AuditOptions)
def audit(asked: AuditOptions) -> None:
    """Show what the policy would do to each workload of a cluster or of a folder, and what contradicts it.

    Use it to ask what Enforce would refuse or change of all that runs. `check` shows whether the webhook works, `lint`
    whether it is set up well, and `review` the whole answer for one manifest.

    Example: `gpu-tiers audit -n team-alpha`

    Each workload is judged once, as if it were created now in Enforce, and its pods are counted with it. Nothing is
    changed. The first lines name what can't be said without a right. Exits with 1 for a finding as severe as --fail-on,
    with 2 if the cluster can't be asked or an option is wrong, and otherwise with 0.
    """
    refuse_unknown(asked.ignore or (), AUDIT_RULES, "finding; there are")
    if asked.inputs.names or asked.kustomize or asked.helm or asked.values:
        asked.target.refuse_if_named("about manifests")
        report = _of_files(asked)
    elif asked.tenants:
        fail("--tenants: goes with manifests; without them the cluster's own TenantQuotas are read")
    else:
        report = answered(lambda: _of_cluster(asked))
    write(audit_answer(report, each_workload=asked.workloads), asked.output)
    raise typer.Exit(FOUND if fails(report.findings, asked.fail_on) else 0)


async def _of_cluster(asked: AuditOptions) -> AuditReport:
    async with asked.target.client() as client:
        policy = await policy_in_force(client, asked.policy)
        async with cluster_reader(client, policy) as reader:
            there = await workloads_of(reader, asked.namespace)
            auditor = Auditor(there.judged_by(reader.policy), reader.policy)
            await there.gather(auditor.gathering, asked.namespace)
            found = auditor.audited(running=True)
            mode = f"The mode is {policy.mode.name}; workloads are judged as in Enforce."
            notes = [*([] if policy.mode is Mode.Enforce else [mode]), *quota_note(found), *there.notes]
            snapshot = replace(there.listed, workloads=tuple(found))
            return audit_report(snapshot, asked.ignore or (), notes, reader.missing())


def _of_files(asked: AuditOptions) -> AuditReport:
    """Audit the objects of files, which are all that the cluster has."""
    inputs = asked.inputs
    try:
        world = [each for path in asked.tenants or () for each in documents(str(path))]
        policy, manifests = policy_in(asked.policy), inputs.read()
        cluster = cluster_of(policy, [*world, *manifests])
        auditor = Auditor(in_all(cluster), policy)
        asyncio.run(_gather(manifests, cluster, policy, auditor.gathering))
        found = snapshot_of(policy, [*world, *manifests])
    except (BadInput, ConfigError) as error:
        fail(str(error))
    notes = [*(() if cluster.known.tenants() else (NO_TENANTS,)), *(f"left out: {each}" for each in inputs.left_out)]
    snapshot = replace(found, workloads=tuple(auditor.audited(running=False)))
    return audit_report(snapshot, asked.ignore or (), notes)


async def _gather(
    manifests: Sequence[Document], cluster: ReadOnceCluster, policy: TierPolicy, gathering: Gathering[Audited | None]
) -> None:
    """Gather all workloads, then the pods that an API server stored, which gave them a uid. Raises BadInput."""
    judged = [each for each in manifests if not is_fact(each)]
    stored = [each.group_kind == POD and bool(each.metadata.get("uid")) for each in judged]
    with Steps() as steps:
        steps.begin("judging", len(judged))
        for document in compress(judged, map(not_, stored)):
            await gathering.workload(document)
            steps.done()
        for document in compress(judged, stored):
            try:
                found = view(document.tree, SeenPod)
                pod = await pod_summary(found, policy, cluster.lookups.devices)
            except Refused as refused:
                raise BadInput(f"{document.source}: {sentence(refused.refusal)}") from None
            if pod.gpus and found.status.phase not in ENDED:
                await gathering.pod(pod, partial(dict, document.tree))
            steps.done()
        for document in gathering.without_maker():
            await gathering.by_itself(document)


_COLUMNS = ("Tenant", "Tier", "All", "Agrees", "Would be changed", "Would be refused", "Before gpu-tiers")


_OF_ALL = ("There is no workload with GPUs.", "Nothing contradicts the policy.")
_OF_A_PART = (
    "Of what could be read, no workload has GPUs.",
    "Of what could be read, nothing contradicts the policy.",
)


def audit_answer(report: AuditReport, *, each_workload: bool) -> Answer:
    total, (tables, notes) = report.total.all, shown_findings(report.findings)
    title = f"{number_of(total.workloads, 'workload')} with {written_gpus(Decimal(str(total.gpus)))} (GPUs in brackets)"
    if report.tenants:
        rows = [
            (
                row.tenant,
                row.tier,
                *(f"{each.workloads} ({each.gpus})" if each.workloads else "-" for each in row.shares),
            )
            for row in (*report.tenants, report.total)
        ]
        tables = [Table(_COLUMNS, rows, title), *tables]
    if each_workload and report.workloads:
        columns = ("Workload", "Namespace", "Tier", "Type", "Grade", "Hook", "Verdict", "Stands", "GPUs", "Findings")
        tables.append(Table(columns, [_workload(each) for each in report.workloads], "Workloads"))
    none, nothing = _OF_A_PART if report.unread else _OF_ALL
    none_found = [none] if not report.workloads else [nothing] if not report.findings else []
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


class Auditor:
    """Judges what is gathered by a policy. `facts` gives the cluster in which an object is judged."""

    def __init__(self, facts: ClusterAbout, policy: TierPolicy) -> None:
        self._facts, self._policy = facts, policy
        self.gathering: Gathering[Audited | None] = Gathering(policy.kinds, self._judged)

    def audited(self, *, running: bool) -> list[Audited]:
        """Return all that is not left alone. `running`: only pods that exist hold GPUs."""
        found = (with_its_pods(each, running=running) for each in self.gathering.found.values())
        return [each for each in found if each is not None]

    async def _judged(self, document: Document) -> Audited | None:
        cluster = self._facts(document)
        return await audited_by(await judged_quickly(document, cluster, self._policy), cluster, self._policy)


async def audited_by(finding: Finding, cluster: ReadOnceCluster, policy: TierPolicy) -> Audited | None:
    """Return the audit of a finding, with the pods that its templates would make; None where it is left alone."""
    if finding.allowed and not finding.tiered:
        return None
    verdict = verdict_of(finding, adoption=policy.adoption)
    adoption, assignments = policy.adoption, (each.verdict.assignment for each in every_part(finding))
    tiers = dict.fromkeys(each.tier for each in assignments if each and each.tier)
    return Audited(
        **verdict.as_fields(),
        tenant=cluster.known.tenant(await cluster.known.namespace(verdict.namespace)),
        classes={class_in_force(each, adoption=adoption): each.value for each in tiers},
        pods=tuple([each async for each in _pods(finding, cluster, policy)]),
    )


def with_its_pods(found: Gathered[Audited | None], *, running: bool) -> Audited | None:
    """Return the audit of a workload with the pods that it has; None where it is left alone and has none.

    If its pods are of several sorts, a refused one counts. `running`: only pods that exist hold GPUs.
    """
    judged = [each for each in found.judged if each is not None]
    said = next((each for each in judged if each.message), judged[0] if judged else None)
    pods = found.pods_alike
    if said is None:  # its pods may hold GPUs though its template asks for none
        alone = Audited(kind=found.kind.kind, group=found.kind.group, namespace=found.namespace, name=found.name)
        return replace(alone, pods=pods) if pods else None
    unmade = tuple(replace(each, count=0, gpus=Decimal(0)) for each in said.pods) if running else said.pods
    named = replace(said, kind=found.kind.kind, group=found.kind.group, name=found.name)
    return replace(named, pods=pods or unmade)


async def _pods(finding: Finding, cluster: ReadOnceCluster, policy: TierPolicy) -> AsyncIterator[PodsAlike]:
    """Yield the pods that would be made and hold GPUs."""
    for each in finding.pods or finding.inside or (finding,):
        if each.inside or each.pods:
            async for pods in _pods(each, cluster, policy):
                yield pods
        elif each.document.kind == "Pod":
            made = await _made(each, cluster, policy)
            if made and made.gpus:
                yield made


async def _made(part: Finding, cluster: ReadOnceCluster, policy: TierPolicy) -> PodsAlike | None:
    try:
        pod = view(part.before, Pod)
        lookups, namespace = cluster.lookups, part.document.namespace
        devices = [each for claim in pod.spec.resource_claims for each in await lookups.devices(namespace, claim)]
        held = held_by(part.count, demand_of(pod, devices, policy), shared_by(devices, policy))
    except (Refused, Unreadable):  # its verdict says so
        return None
    name = pod.spec.priority_class_name
    return PodsAlike(
        count=part.count,
        gpus=held,
        class_name=name,
        tier=tier_counted(name, None, policy.tiers) if name else None,
        flavor=named_flavor(pod, policy.flavors),
        exist=False,
    )
