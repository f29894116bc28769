"""Findings of lint and audit as people read them: where and what, the worst first; then why and what to do, once."""

from collections.abc import Iterator, Sequence

from webhook.cli.output import Table
from webhook.readmodel.lint.rule import LintFinding, Severity

MOST_SHOWN = 20
"""Findings of a rule that a table lists; JSON and YAML have all."""

_TITLES = {Severity.ERROR: "Errors", Severity.WARNING: "Warnings", Severity.INFO: "For your information"}


def finding_tables(findings: Sequence[LintFinding]) -> Iterator[Table]:
    """A table for each severity of which there is something."""
    for severity, title in _TITLES.items():
        found = [each for each in findings if each.severity is severity]
        shown = [each for rule in dict.fromkeys(f.id for f in found) for each in _of(rule, findings)[:MOST_SHOWN]]
        if shown:
            yield Table(("Id", "Where", "What"), [(each.id, each.where, each.what) for each in shown], title)


def finding_notes(findings: Sequence[LintFinding]) -> Iterator[str]:
    """Why each rule matters and what to do, and how many findings the tables don't list."""
    for rule, why, fix in dict.fromkeys((each.id, each.why, each.fix) for each in findings):
        yield f"{rule}: {why} {fix}"
    for rule in dict.fromkeys(each.id for each in findings):
        more = len(_of(rule, findings)) - MOST_SHOWN
        if more > 0:
            yield f"{rule}: {more} more; -o json has all."


def _of(rule: str, findings: Sequence[LintFinding]) -> list[LintFinding]:
    return [each for each in findings if each.id == rule]
