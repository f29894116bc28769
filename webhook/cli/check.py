"""`gpu-tiers check`: whether the webhook of a cluster works, like `cmctl check api` for cert-manager."""

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from enum import StrEnum

import typer
from msgspec.structs import replace

from webhook.cli.cluster.installed import RELEASE, installed_policy
from webhook.cli.cluster.reader import cluster_reader
from webhook.cli.cluster.snapshot import read_running
from webhook.cli.cluster.target import Target, how_to_get
from webhook.cli.command import Answer, Form, Table, with_options, write
from webhook.cluster.webhook_configurations import OF_PODS
from webhook.config.errors import ConfigError
from webhook.config.load import parse, preset_policy
from webhook.config.published import InstalledPolicy, Published
from webhook.kube.client import Client
from webhook.kube.errors import ApiError, Forbidden
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.report.lint import RULES
from webhook.report.lint.rule import clauses_once, lint_report
from webhook.report.lint.snapshot import ClusterSnapshot, number_of
from webhook.report.shown import Shown
from webhook.report.waiting import tells_of_an_outage

POLL_SECONDS = 2.0
_UNITS = {"s": 1, "m": 60, "h": 3600}


ANOTHER = "check asks the one installation of a cluster, which --kubeconfig and --context name"


class Word(StrEnum):
    """The answer of a line of the check, and of the whole check."""

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


CODES: Mapping[Word, int] = {Word.OK: 0, Word.FAILED: 1, Word.UNKNOWN: 3}
"""The exit code of each answer. 2 means, as for every command, that the cluster can't be asked or an option is wrong.
"""

WAY_OUT = "GPU pods are refused until the webhook answers. If they can't wait, docs/break-glass.md has the way out."

UNTIERED = "without a tier, a hook or quota. docs/break-glass.md says how to restore it, and what to do about them."

WRITTEN_BY_THE_LEADER = ("ledger", "policy")
"""Lines that depend on the leader's writes, which may be old without a leader."""

DETAILS: Mapping[str, Callable[[ClusterSnapshot], str]] = {
    "registered": lambda _: "both webhook configurations and their admission policies exist",
    "webhook": lambda found: f"answered a dry run in {found.dry_run.seconds:.1f} s",
    "certificates": lambda found: (
        f"good until {min(each.not_after for each in found.certificates):%Y-%m-%d}"
        if found.certificates
        else "no certificate was read"
    ),
    "leader": lambda found: f"{found.leader} leads",
    "ledger": lambda found: f"{number_of(len(found.tenants), 'tenant')} counted",
    "tenants": lambda found: f"{number_of(len(found.tenants), 'TenantQuota')} active",
    "policy": lambda found: (
        f"the file is active since {now.since}, digest {now.digest}" if (now := found.installed.published) else ""
    ),
    "replica": lambda found: (
        f"{mark.replica}: its watches are at most {mark.watches} s old" if (mark := found.replica) else ""
    ),
}
"""The lines of a check, and the text of each if none of its rules finds anything."""


class CheckLine(Shown, frozen=True):
    """One line of the check. `what` is the detail or the problem."""

    name: str
    word: Word
    code: int
    what: str


class CheckReport(Shown, frozen=True):
    """The report: all lines, the answer of the whole check, and in `missing` how to get missing rights.

    `way_out` says how GPU pods can start before the webhook answers, or that they start without a tier; "" for neither.
    """

    word: Word
    code: int
    checks: tuple[CheckLine, ...]
    missing: tuple[str, ...] = ()
    way_out: str = ""


@with_options
def check(wait: str = "0s", output: Form = "table", namespace: str | None = None, *, target: Target) -> None:
    """Check whether the webhook of a cluster works: it is reached, has a leader and a policy, and counts.

    Use it to ask whether gpu-tiers works now. `lint` looks for mistakes in how it is set up, and `audit` judges the
    workloads.

    Example: `gpu-tiers check --wait 3m`

    A dry run of a pod in the namespace must come back with the mark of both webhooks; nothing is stored. Exits with 0
    if everything works, with 1 if something fails, with 3 if nothing fails and a right is missing to check the rest,
    and with 2 if the cluster can't be asked.
    """
    report = asyncio.run(_reported(target, namespace, _seconds(wait)))
    table = Table(("Check", "Answer", "What"), [(each.name, each.word, each.what) for each in report.checks])
    write(Answer(report, [table], [each for each in (report.way_out, *report.missing) if each]), output)
    raise typer.Exit(report.code)


def _seconds(duration: str) -> float:
    """Return the seconds of a duration such as 1h30m or 90s. Raises BadParameter."""
    if not re.fullmatch(r"(\d+[smh])+", duration):
        raise typer.BadParameter(f'"{duration}" is not a duration; write 90s, 3m or 1h', param_hint="--wait")
    return sum(int(number) * _UNITS[unit] for number, unit in re.findall(r"(\d+)([smh])", duration))


async def _reported(target: Target, namespace: str | None, seconds: float) -> CheckReport:
    """Return the first report within `seconds` in which nothing fails, or else the last report.

    Raises ApiError or ConfigError if the last attempt does.
    """
    home, deadline = target.namespace(namespace), time.monotonic() + seconds
    while True:
        late = time.monotonic() >= deadline
        try:
            async with target.client() as client:
                installed, policy, no_tiers = await _installed(client)
                async with cluster_reader(client, policy) as reader:
                    if no_tiers:  # only the rule on tenants needs namespaces, and it needs tiers too
                        reader.lacking["namespaces"] = no_tiers
                    report = check_report(await read_running(reader, installed, home))
            if late or report.word is not Word.FAILED:
                return report
        except (ApiError, ConfigError):
            if late:
                raise
        await asyncio.sleep(min(POLL_SECONDS, max(deadline - time.monotonic(), 0)))


async def _installed(client: Client) -> tuple[InstalledPolicy, TierPolicy, str]:
    """Return the installation, its policy, and what is missing to check the tiers of tenants, "" for nothing.

    Instead of a policy that is unreadable or invalid, it returns the default preset. A dry run with a tier of that
    preset gets the marks too.
    """
    try:
        found = await installed_policy(client, ANOTHER)
    except Forbidden:
        unread = InstalledPolicy(f"{RELEASE}/{RELEASE}", "", unread=True)
        return unread, preset_policy(), "the right to get the policy's ConfigMap"
    try:
        return found, parse(found.text, found.where), ""
    except ConfigError as error:
        nothing = Published("", "", problem="; ".join(error.problems))
        broken = replace(found, published=found.published or nothing)
        return broken, preset_policy(), "a policy that can be read"


def check_report(found: ClusterSnapshot) -> CheckReport:
    """Return the report: a line fails if one of its rules finds something, and is unknown if a rule could not run.

    A line that depends on the leader's writes is unknown without a leader.
    """
    lines = []
    for name, well in DETAILS.items():
        report = lint_report(found, [rule for rule in RULES if rule.line == name])
        if report.findings:
            word = Word.FAILED
            what = clauses_once("; ".join(f"{each.where}: {each.what}" for each in report.findings))
        elif report.not_checked:
            word, what = Word.UNKNOWN, f"can't be checked without {report.not_checked[0].needs}"
        elif name in WRITTEN_BY_THE_LEADER and not found.leader:
            word, what = Word.UNKNOWN, f"can't be checked without {found.unread.get('leader', 'a replica that leads')}"
        else:
            word, what = Word.OK, well(found)
        lines.append(CheckLine(name, word, CODES[word], what))
    word = next((each for each in (Word.FAILED, Word.UNKNOWN) if any(line.word is each for line in lines)), Word.OK)
    return CheckReport(word, CODES[word], tuple(lines), how_to_get(found.refused), _way_out(found))


def _way_out(found: ClusterSnapshot) -> str:
    """Return what happens to new GPU pods while the webhook does not answer.

    "" if it answers under failurePolicy Fail, or outside Enforce unless the API server refused the dry run.
    """
    if tells_of_an_outage(found.dry_run.said):
        return WAY_OUT
    if found.policy.mode is not Mode.Enforce:
        return ""
    if not found.dry_run.said and all(mark.webhook != "validate" for mark in found.dry_run.marks):
        return f"The API server goes on without an answer of the webhook, so GPU pods start now {UNTIERED}"
    entries = [entry for each in found.configurations if each.is_ours for entry in each.webhooks]
    if any(entry.name == OF_PODS and entry.failure_policy == "Ignore" for entry in entries):
        return f"failurePolicy is Ignore: whenever the webhook does not answer, GPU pods start {UNTIERED}"
    return ""
