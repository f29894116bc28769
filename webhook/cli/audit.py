"""`gpu-tiers audit`: what the policy would do to each workload of a cluster or a folder, and what contradicts it."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from webhook.cli.asked_cluster import policy_in_force
from webhook.cli.audit_answer import audit_answer
from webhook.cli.auditor import Auditor
from webhook.cli.cluster_options import ContextOption, KubeconfigOption, Target, answered
from webhook.cli.documents import BadInput, documents
from webhook.cli.fail import fail
from webhook.cli.inputs import FilenameOption, HelmOption, Inputs, KustomizeOption, ValuesOption
from webhook.cli.named_policy import policy_in
from webhook.cli.output import AnswerForm, FormOption, write
from webhook.cli.progress import Steps
from webhook.cli.read_workloads import workloads_of
from webhook.cli.workload_files import WorkloadFiles
from webhook.config.errors import ConfigError
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.readmodel.audit.audit_report import AuditReport, audit_report, quota_note
from webhook.readmodel.audit.contradictions import AUDIT_RULES
from webhook.readmodel.lint.rule import Severity

FOUND = 1


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the audit is of, and what is left out of it."""

    policy: str | None
    namespace: str | None
    ignored: Sequence[str]


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
    tenants: Annotated[
        list[Path] | None, typer.Option(help="With manifests: file or folder of TenantQuotas and Namespaces.")
    ] = None,
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
    output: FormOption = AnswerForm.TABLE,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Show what the policy would do to each workload of a cluster or of a folder, and what contradicts it.

    Each workload is judged once, as if it were created now in Enforce, and its pods are counted with it. Nothing is
    changed. What you may not read is named, and the rest is audited. Exits with 1 for a finding as severe as --fail-on,
    with 2 if the cluster can't be asked or an option is wrong, else with 0.
    """
    known = [rule.id for rule in AUDIT_RULES]
    for each in ignore or ():
        if each not in known:
            fail(f'--ignore: "{each}" is no finding; there are {", ".join(sorted(known))}')
    asked = _Asked(policy, namespace, ignore or ())
    target, named = Target(kubeconfig, context), [*(files or ()), *(filename or ())]
    if named or kustomize or helm or values:
        target.refuse_if_named("about manifests")
        inputs = Inputs(named, kustomize or (), helm or (), values or (), namespace)
        report = _of_files(asked, inputs, tenants or ())
    elif tenants:
        fail("--tenants: goes with manifests; without them the cluster's own TenantQuotas are read")
    else:
        report = answered(lambda: _of_cluster(asked, target))
    write(audit_answer(report, each_workload=workloads), output)
    raise typer.Exit(FOUND if report.fails(fail_on) else 0)


async def _of_cluster(asked: _Asked, target: Target) -> AuditReport:
    async with target.client() as client:
        policy = await policy_in_force(client, asked.policy)
        with Steps() as steps:
            async with workloads_of(client, policy, steps) as there:
                auditor = Auditor(there.judged_by(policy), policy)
                await there.gather(auditor.gathering, asked.namespace)
                found = auditor.audited(running="pods" not in there.reading.unread)
                notes = [*_mode(policy), *quota_note(found), *there.notes]
                return audit_report(found, policy, asked.ignored, notes)


def _mode(policy: TierPolicy) -> Iterator[str]:
    if policy.mode is not Mode.Enforce:
        yield f"The mode is {policy.mode.name}; workloads are judged as in Enforce."


def _of_files(asked: _Asked, inputs: Inputs, tenants: Sequence[Path]) -> AuditReport:
    try:
        world = [each for path in tenants for each in documents(str(path))]
        policy = policy_in(asked.policy)
        there = WorkloadFiles(inputs.read(), world, policy)
        auditor = Auditor(lambda _: there.cluster, policy)
        with Steps() as steps:
            asyncio.run(there.gather(auditor.gathering, steps))
    except (BadInput, ConfigError) as error:
        fail(str(error))
    left_out = [f"left out: {each}" for each in inputs.left_out]
    return audit_report(auditor.audited(running=False), policy, asked.ignored, [*there.notes, *left_out])
