"""What a rule is, and what comes of asking all of them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

import msgspec

from webhook.report.cluster_parts import Part
from webhook.report.lint.snapshot import ClusterSnapshot
from webhook.report.shown import Shown
from webhook.sentences.sentence import address

T = TypeVar("T")


class Severity(StrEnum):
    """How bad it is, the worst first."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    def reaches(self, other: "Severity") -> bool:
        """Whether it is as bad as another, or worse."""
        order = list(Severity)
        return order.index(self) <= order.index(other)


class Mistake(NamedTuple):
    """Something that a rule found: the object, and what is wrong with it."""

    where: str
    what: str


class LintFinding(Shown, frozen=True):
    """A mistake that was found."""

    id: str
    severity: Severity
    where: str
    what: str
    fix: str
    see: str


class LintRule(msgspec.Struct, Generic[T], frozen=True):
    """A mistake that is looked for: an id, the parts of a cluster that tell it, and what to do first.

    `check` finds it in a cluster, in a workload of it, or in all of its workloads; it is asked only where all that it
    needs was read. docs/lint.md says under the id why it matters and what to do.
    """

    id: str
    severity: Severity
    needs: tuple[Part, ...]
    check: Callable[[T], Iterator[Mistake]]
    fix: str

    def findings(self, about: T) -> Iterator[LintFinding]:
        for where, what in self.check(about):
            yield LintFinding(self.id, self.severity, where, what, self.fix, address(f"docs/lint.md#{self.id}"))


ClusterRule = LintRule[ClusterSnapshot]


def clauses_once(sentences: str) -> str:
    """Sentences of one line; what several of them end in, such as the tiers that there are, stands after the last."""
    clauses = reversed(sentences.split("; "))
    return "; ".join(reversed(dict.fromkeys(clauses)))


def fails(findings: Iterable[LintFinding], least: Severity) -> bool:
    """Whether one of them is as severe as `least`, or more."""
    return any(each.severity.reaches(least) for each in findings)


class NotChecked(Shown, frozen=True):
    """Rules that could not be asked, and what that takes."""

    needs: str
    rules: tuple[str, ...]


class LintReport(Shown, frozen=True):
    """What was found, the worst first, and what was not looked at."""

    findings: tuple[LintFinding, ...]
    not_checked: tuple[NotChecked, ...] = ()


def lint_report(snapshot: ClusterSnapshot, rules: Iterable[ClusterRule], ignored: Collection[str] = ()) -> LintReport:
    order = list(Severity)
    asked = sorted((each for each in rules if each.id not in ignored), key=lambda rule: order.index(rule.severity))
    able = [rule for rule in asked if not _missing(rule, snapshot)]
    return LintReport(
        tuple(finding for rule in able for finding in rule.findings(snapshot)), tuple(_not_checked(asked, snapshot))
    )


def _missing(rule: ClusterRule, snapshot: ClusterSnapshot) -> str:
    """What it takes to ask a rule; "" where it can be asked."""
    return ", ".join(dict.fromkeys(snapshot.unread[part] for part in rule.needs if part in snapshot.unread))


def _not_checked(rules: Sequence[ClusterRule], snapshot: ClusterSnapshot) -> Iterator[NotChecked]:
    reasons = dict.fromkeys(filter(None, (_missing(rule, snapshot) for rule in rules)))
    for reason in reasons:
        yield NotChecked(reason, tuple(rule.id for rule in rules if _missing(rule, snapshot) == reason))
