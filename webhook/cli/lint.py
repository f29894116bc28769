"""`gpu-tiers lint`: mistakes in the tiers, quotas, hooks and webhooks of a cluster."""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

import typer

from webhook.cli.cluster.installed import answering, installed_policy, policy_named
from webhook.cli.cluster.reader import cluster_reader
from webhook.cli.cluster.snapshot import read_whole
from webhook.cli.cluster.target import Target, how_to_get
from webhook.cli.command import Answer, Form, Table, fail, warn, with_options, write
from webhook.cli.manifests.inputs import cluster_of, tenants_in, titled
from webhook.cluster.offline import ReadOnceCluster
from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.lint import RULES
from webhook.report.lint.rule import LintFinding, LintReport, LintRule, Severity, fails, lint_report
from webhook.report.lint.snapshot import ClusterSnapshot, Part
from webhook.sentences.sentence import sentence

FOUND = 1
A_CLUSTER = "a cluster"
_OF_FILES: tuple[Part, ...] = ("tenants", "namespaces")


@with_options
def lint(
    policy: Path | None = None,
    tenants: list[Path] | None = None,
    ignore: list[str] | None = None,
    fail_on: Severity = Severity.ERROR,
    output: Form = "table",
    *,
    target: Target,
) -> None:
    """Find what is wrong with the tiers, quotas, hooks and webhooks of a cluster, and say what to do.

    Use it to ask whether gpu-tiers is set up well. `check` shows whether it works now, and `audit` which workloads
    contradict the policy.

    Example: `gpu-tiers lint --policy policy.yaml --tenants tenants/`

    Nothing is changed. Without the right to read something, the rules that need it are named and the others run.
    Exits with 1 for a finding as severe as --fail-on, with 2 if the cluster can't be asked, a file can't be read or an
    option is wrong, and otherwise with 0.
    """
    refuse_unknown(ignore or (), RULES, "rule; the rules are")
    if tenants and policy is None:
        fail("--tenants: needs --policy; without it the TenantQuotas of the cluster are read")
    if policy:
        target.refuse_if_named("about a policy file")
        read, world = policy_named(policy), tenants_in(tenants or ())
        snapshot = snapshot_of(read, cluster_of(read, world))
        for note in (f"{titled(each)}: {sentence(odd)}" for each in world for odd in each.warnings):
            warn(note)
    else:
        snapshot = asyncio.run(_of_cluster(target))
    report = lint_report(snapshot, RULES, ignore or ())
    write(lint_answer(report, how_to_get(snapshot.refused)), output)
    raise typer.Exit(FOUND if fails(report.findings, fail_on) else 0)


def refuse_unknown(ignored: Iterable[str], rules: Iterable[LintRule], instead: str) -> None:
    """End the program if a rule to ignore does not exist."""
    known = {rule.id for rule in rules}
    for each in ignored:
        if each not in known:
            fail(f'--ignore: "{each}" is no {instead} {", ".join(sorted(known))}')


async def _of_cluster(target: Target) -> ClusterSnapshot:
    async with target.client() as client:
        installed = await installed_policy(client)
        async with cluster_reader(client, answering(installed)) as reader:
            return await read_whole(reader, installed)


def snapshot_of(policy: TierPolicy, files: ReadOnceCluster) -> ClusterSnapshot:
    """Return a snapshot with the tenants and the namespaces of files. All its other parts are unread."""
    quotas = tuple(TenantQuota(each.name, 0, each) for each in files.known.tenants())
    namespaces = tuple(files.known.namespaces())
    unread: dict[Part, str] = {each: A_CLUSTER for each in get_args(Part) if each not in _OF_FILES}
    return ClusterSnapshot(policy, datetime.now(UTC), tenants=quotas, namespaces=namespaces, unread=unread)


def lint_answer(report: LintReport, roles: Iterable[str] = ()) -> Answer:
    """Return the answer: the findings, the worst first, the fix of each rule, and the rules that did not run.

    `roles` say how a user gets missing rights.
    """
    missing, more = [], []
    for left in report.not_checked:
        if left.needs == A_CLUSTER:
            more.append(f"{len(left.rules)} more rules need a cluster.")
        else:
            missing.append(f"not checked: {', '.join(left.rules)}; that needs {left.needs}.")
    tables, notes = shown_findings(report.findings)
    nothing = () if report.findings else (f"Nothing found by {report.checked} rules.",)
    return Answer(report, tables, (*notes, *nothing, *more), (*missing, *roles))


MOST_SHOWN = 20
"""The most findings of a rule that a table lists; JSON and YAML have all."""

_TITLES = {Severity.ERROR: "Errors", Severity.WARNING: "Warnings", Severity.INFO: "For your information"}


def shown_findings(findings: Sequence[LintFinding]) -> tuple[list[Table], list[str]]:
    """Return a table for each severity, and notes: the fix for each rule, and how many findings the tables lack."""
    by_rule: dict[str, list[LintFinding]] = {}
    for each in findings:
        by_rule.setdefault(each.id, []).append(each)
    tables = []
    for severity, title in _TITLES.items():
        shown = [each for found in by_rule.values() if found[0].severity is severity for each in found[:MOST_SHOWN]]
        if shown:
            tables.append(Table(("Id", "Where", "What"), [(each.id, each.where, each.what) for each in shown], title))
    fixes = [f"{rule}: {found[0].fix} See {found[0].see}" for rule, found in by_rule.items()]
    more = ((rule, len(found) - MOST_SHOWN) for rule, found in by_rule.items())
    return tables, [*fixes, *(f"{rule}: {number} more; -o json has all." for rule, number in more if number > 0)]
