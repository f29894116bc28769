"""`gpu-tiers lint`: what is wrong with the tiers, quotas, hooks and webhooks of a cluster."""

from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from webhook.cli.cluster_options import ContextOption, KubeconfigOption, Target, answered
from webhook.cli.documents import BadInput, Document, documents
from webhook.cli.fail import fail
from webhook.cli.findings_shown import finding_notes, finding_tables
from webhook.cli.installed import ALONE, policy_of
from webhook.cli.named_policy import policy_named
from webhook.cli.output import Answer, AnswerForm, FormOption, write
from webhook.cli.progress import Steps
from webhook.cli.read_snapshot import read_snapshot
from webhook.config.errors import ConfigError
from webhook.objects.pods import Named
from webhook.objects.view import view
from webhook.policy.quota.tenant_quotas import TENANT_QUOTA, tenant_quota_of
from webhook.policy.values.facts import NAME_LABEL, Namespace
from webhook.readmodel.lint.rule import LintReport, Severity, lint_report
from webhook.readmodel.lint.rules import RULES
from webhook.readmodel.lint.snapshot import ClusterSnapshot, Part

FOUND = 1
A_CLUSTER = "a cluster"
_OFFLINE: tuple[Part, ...] = (
    "classes",
    "nodes",
    "pods",
    "gangs",
    "pod_groups",
    "budgets",
    "configurations",
    "certificates",
    "failed_hooks",
    "version",
)


def lint(
    policy: Annotated[
        Path | None, typer.Option(help="Ask only the rules that need no cluster, of a policy file or preset.")
    ] = None,
    tenants: Annotated[
        list[Path] | None, typer.Option(help="With --policy: file or folder of TenantQuotas and Namespaces.")
    ] = None,
    ignore: Annotated[list[str] | None, typer.Option(help="Id of a rule to leave out; may be repeated.")] = None,
    fail_on: Annotated[Severity, typer.Option(help="Least severity to exit with 1 for.")] = Severity.ERROR,
    output: FormOption = AnswerForm.TABLE,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Find what is wrong with the tiers, quotas, hooks and webhooks of a cluster, and say what to do.

    Nothing is changed. What you may not read is named, and the other rules are asked. Exits with 1 for a finding as
    severe as --fail-on, with 2 if the cluster can't be asked or an option is wrong, else with 0.
    """
    known = [rule.id for rule in RULES]
    for each in ignore or ():
        if each not in known:
            fail(f'--ignore: "{each}" is no rule; the rules are {", ".join(sorted(known))}')
    if tenants and policy is None:
        fail("--tenants: needs --policy; without it the TenantQuotas of the cluster are read")
    target = Target(kubeconfig, context)
    if policy:
        target.refuse_if_named("about a policy file")
    snapshot = _of_files(policy, tenants or ()) if policy else answered(lambda: _of_cluster(target))
    report = lint_report(snapshot, RULES, ignore or ())
    write(lint_answer(report), output)
    raise typer.Exit(FOUND if report.fails(fail_on) else 0)


async def _of_cluster(target: Target) -> ClusterSnapshot:
    async with target.client() as client:
        policy = await policy_of(client, instead=ALONE)
        with Steps() as steps:
            return await read_snapshot(client, policy, steps=steps)


def _of_files(policy: Path, tenants: Collection[Path]) -> ClusterSnapshot:
    """What files say; of the cluster nothing is known."""
    try:
        world = [each for place in tenants for each in documents(str(place))]
        quotas = [tenant_quota_of(each.tree) for each in world if each.group_kind == TENANT_QUOTA]
        namespaces = tuple(_namespace(each) for each in world if each.kind == "Namespace")
        unread = dict.fromkeys(_OFFLINE, A_CLUSTER)
        return ClusterSnapshot(
            policy_named(policy), datetime.now(UTC), tenants=tuple(quotas), namespaces=namespaces, unread=unread
        )
    except (BadInput, ConfigError) as error:
        fail(str(error))


def _namespace(document: Document) -> Namespace:
    metadata = view(document.tree, Named).metadata
    return Namespace(metadata.name, {**metadata.labels, NAME_LABEL: metadata.name})


def lint_answer(report: LintReport) -> Answer:
    """What people read of it: where and what, the worst first, then why it matters and what to do, once a rule."""
    return Answer(report, tuple(finding_tables(report.findings)), tuple(_notes(report)))


def _notes(report: LintReport) -> Iterator[str]:
    yield from finding_notes(report.findings)
    for left in report.not_checked:
        rules = f"{len(left.rules)} rules" if left.needs == A_CLUSTER else ", ".join(left.rules)
        yield f"not checked: {rules} (needs {left.needs})."
    if not report.findings:
        yield "Nothing found."
