"""`gpu-tiers audit`: what the policy would do to each workload of a cluster or a folder, and what contradicts it."""

import asyncio
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from webhook.cli.audit.auditor import Auditor, WorkloadFiles
from webhook.cli.cluster.installed import policy_in, policy_in_force
from webhook.cli.cluster.reader import cluster_reader
from webhook.cli.cluster.target import ContextOption, KubeconfigOption, Target, answered
from webhook.cli.cluster.workloads import workloads_of
from webhook.cli.lint import finding_notes, finding_tables, refuse_unknown, snapshot_of
from webhook.cli.manifests.documents import BadInput, documents
from webhook.cli.manifests.inputs import (
    FilenameOption,
    HelmOption,
    Inputs,
    KustomizeOption,
    TenantsOption,
    ValuesOption,
)
from webhook.cli.manifests.offline import in_all
from webhook.cli.output import Answer, FormOption, Table, fail, write
from webhook.cli.progress import Steps
from webhook.config.errors import ConfigError
from webhook.policy.values.tier_policy import Mode
from webhook.report.audit.audit_report import AuditCounts, AuditReport, audit_report, quota_note
from webhook.report.audit.audited import Audited, standing_of
from webhook.report.audit.contradictions import AUDIT_RULES, number_of_gpus
from webhook.report.lint.rule import Severity, fails
from webhook.report.lint.snapshot import number_of
from webhook.report.lint.untiered_pods import NAMESPACE_LABEL
from webhook.report.object_verdict import NONE
from webhook.report.shown import as_number

FOUND = 1


def audit(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE|FOLDER|-", help="Manifests; - is standard input. Without any, the cluster."),
    ] = None,
    filename: FilenameOption = None,
    kustomize: KustomizeOption = None,
    helm: HelmOption = None,
    values: ValuesOption = None,
    policy: Annotated[
        str | None,
        typer.Option(help="Policy file or preset; else the installation's, and for manifests the preset four-tier."),
    ] = None,
    tenants: TenantsOption = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Audit this one alone; of manifests, that of those that name none."),
    ] = None,
    *,
    workloads: Annotated[
        bool, typer.Option("--workloads", help="Show each workload too; json and yaml always have all.")
    ] = False,
    ignore: Annotated[list[str] | None, typer.Option(help="Id of a finding to leave out; may be repeated.")] = None,
    fail_on: Annotated[Severity, typer.Option(help="Least severity to exit with 1 for.")] = Severity.ERROR,
    output: FormOption = "table",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Show what the policy would do to each workload of a cluster or of a folder, and what contradicts it.

    Each workload is judged once, as if it were created now in Enforce, and its pods are counted with it. Nothing is
    changed. What can't be told without a right is named first. Exits with 1 for a finding as severe as --fail-on,
    with 2 if the cluster can't be asked or an option is wrong, else with 0.
    """
    refuse_unknown(ignore or (), AUDIT_RULES, "finding; there are")
    target, named = Target(kubeconfig, context), [*(files or ()), *(filename or ())]
    if named or kustomize or helm or values:
        target.refuse_if_named("about manifests")
        inputs = Inputs(named, kustomize or (), helm or (), values or (), namespace)
        report = _of_files(policy, inputs, tenants or (), ignore or ())
    elif tenants:
        fail("--tenants: goes with manifests; without them the cluster's own TenantQuotas are read")
    else:
        report = answered(lambda: _of_cluster(policy, target, namespace, ignore or ()))
    write(audit_answer(report, each_workload=workloads), output)
    raise typer.Exit(FOUND if fails(report.findings, fail_on) else 0)


async def _of_cluster(named: str | None, target: Target, namespace: str | None, ignored: Sequence[str]) -> AuditReport:
    async with target.client() as client:
        policy = await policy_in_force(client, named)
        async with cluster_reader(client, policy) as reader:
            there = await workloads_of(reader, namespace)
            auditor = Auditor(there.judged_by(reader.policy), reader.policy)
            await there.gather(auditor.gathering, namespace)
            found = auditor.audited(running=True)
            mode = f"The mode is {policy.mode.name}; workloads are judged as in Enforce."
            notes = [*([] if policy.mode is Mode.Enforce else [mode]), *quota_note(found), *there.notes]
            labels = NAMESPACE_LABEL.findings(there.listed)
            return audit_report(found, reader.policy, ignored, notes, labels, reader.missing())


def _of_files(named: str | None, inputs: Inputs, tenants: Sequence[Path], ignored: Sequence[str]) -> AuditReport:
    try:
        world = [each for path in tenants for each in documents(str(path))]
        policy, manifests = policy_in(named), inputs.read()
        there = WorkloadFiles(manifests, world, policy)
        auditor = Auditor(in_all(there.cluster), policy)
        with Steps() as steps:
            asyncio.run(there.gather(auditor.gathering, steps))
        labels = NAMESPACE_LABEL.findings(snapshot_of(policy, [*world, *manifests]))
    except (BadInput, ConfigError) as error:
        fail(str(error))
    left_out = [f"left out: {each}" for each in inputs.left_out]
    return audit_report(auditor.audited(running=False), policy, ignored, [*there.notes, *left_out], labels)


_COLUMNS = ("Tenant", "Tier", "All", "Agrees", "Would be changed", "Would be refused", "Before gpu-tiers")


_OF_ALL = ("There is no workload with GPUs.", "Nothing contradicts the policy.")
_OF_A_PART = (
    "Of what could be read, no workload has GPUs.",
    "Of what could be read, nothing contradicts the policy.",
)


def audit_answer(report: AuditReport, *, each_workload: bool) -> Answer:
    tables = tuple(_tables(report, each_workload=each_workload))
    none, nothing = _OF_A_PART if report.unread else _OF_ALL
    none_found = [none] if not report.workloads else [nothing] if not report.findings else []
    notes = (*finding_notes(report.findings), *none_found, *report.notes)
    return Answer(report.as_json(), tables, notes, report.unread)


def _tables(report: AuditReport, *, each_workload: bool) -> Iterator[Table]:
    total = report.total.all
    gpus = number_of_gpus(Decimal(str(total.gpus)))
    title = f"{number_of(total.workloads, 'workload')} with {gpus} (GPUs in brackets)"
    if report.tenants:
        yield Table(_COLUMNS, [_cells(each) for each in (*report.tenants, report.total)], title)
    yield from finding_tables(report.findings)
    if each_workload and report.workloads:
        columns = ("Workload", "Namespace", "Tier", "Type", "Grade", "Hook", "Verdict", "Stands", "GPUs", "Findings")
        yield Table(columns, [_workload(each) for each in report.workloads], "Workloads")


def _cells(row: AuditCounts) -> tuple[str, ...]:
    shares = (row.all, row.agrees, row.changed, row.refused, row.before)
    return (row.tenant, row.tier, *(f"{each.workloads} ({each.gpus})" if each.workloads else "-" for each in shares))


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
