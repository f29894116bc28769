"""A rule of `lint`, `check` or `audit`, and the report of all that were asked."""

from collections.abc import Callable, Collection, Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

import msgspec

from webhook.report.lint.snapshot import Audited, ClusterSnapshot, Part
from webhook.report.shown import Shown
from webhook.sentences.sentence import FIXES, address


class Severity(StrEnum):
    """The severity of a finding, the worst first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """Return the position among the severities; 0 is the worst."""
        return list(Severity).index(self)


class Mistake(NamedTuple):
    """A mistake that a rule found: the object and its problem. `workload` is the audited workload, None for others."""

    where: str
    what: str
    workload: Audited | None = None


Check = Callable[[ClusterSnapshot], Iterator[Mistake]]


class LintFinding(Shown, frozen=True):
    """A mistake as it is reported, with the first step to fix it."""

    id: str
    severity: Severity
    where: str
    what: str
    fix: str
    see: str


class LintRule(msgspec.Struct, frozen=True):
    """A mistake to look for: the parts of a snapshot that it needs, and its line of `check`.

    It runs only if all its parts were read. docs/lint.md explains it under its id.
    """

    id: str
    severity: Severity
    needs: tuple[Part, ...]
    line: str
    check: Check

    def finding(self, found: Mistake) -> LintFinding:
        see = address(f"docs/lint.md#{self.id}")
        return LintFinding(self.id, self.severity, found.where, found.what, FIXES[self.id], see)


def rule(name: str, severity: Severity, *needs: Part, line: str = "") -> Callable[[Check], LintRule]:
    """Return a decorator that makes a rule of a function, which yields the mistakes.

    `name` is its id. `needs`: without these parts of the snapshot the rule does not run. `line`: the line of `check`
    that it belongs to, "" for none.
    """
    return lambda check: LintRule(name, severity, needs, line, check)


def clauses_once(sentences: str) -> str:
    """Keep the last of equal clauses, such as the list of tiers that ends several sentences of a line."""
    clauses = reversed(sentences.split("; "))
    return "; ".join(reversed(dict.fromkeys(clauses)))


def fails(findings: Iterable[LintFinding], least: Severity) -> bool:
    """Tell whether a finding is at least as severe as `least`."""
    return any(each.severity.rank <= least.rank for each in findings)


class NotChecked(Shown, frozen=True):
    """Rules that could not run, and what they need."""

    needs: str
    rules: tuple[str, ...]


class LintReport(Shown, frozen=True):
    """The findings, the worst first, the rules that did not run, and how many did."""

    findings: tuple[LintFinding, ...]
    not_checked: tuple[NotChecked, ...] = ()
    checked: int = 0


def lint_report(snapshot: ClusterSnapshot, rules: Iterable[LintRule], ignored: Collection[str] = ()) -> LintReport:
    asked = sorted((each for each in rules if each.id not in ignored), key=lambda rule: rule.severity.rank)
    missing = {
        rule.id: ", ".join(dict.fromkeys(snapshot.unread[part] for part in rule.needs if part in snapshot.unread))
        for rule in asked
    }
    return LintReport(
        tuple(rule.finding(found) for rule in asked if not missing[rule.id] for found in rule.check(snapshot)),
        tuple(
            NotChecked(needs, tuple(name for name, its in missing.items() if its == needs))
            for needs in dict.fromkeys(filter(None, missing.values()))
        ),
        checked=sum(not needs for needs in missing.values()),
    )
