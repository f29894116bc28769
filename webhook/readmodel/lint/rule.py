"""What a rule is, and what comes of asking all of them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from webhook.readmodel.lint.snapshot import ClusterSnapshot, Part
from webhook.readmodel.shown import Shown


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


@dataclass(frozen=True, slots=True)
class LintRule:
    """A mistake that is looked for: an id, the parts of a cluster that tell it, why it matters and what to do.

    `check` finds it; it is asked only where all that it needs was read.
    """

    id: str
    severity: Severity
    needs: tuple[Part, ...]
    check: Callable[[ClusterSnapshot], Iterator[Mistake]]
    why: str
    fix: str


class LintFinding(Shown, frozen=True):
    """A mistake that was found."""

    id: str
    severity: Severity
    where: str
    what: str
    why: str
    fix: str


class NotChecked(Shown, frozen=True):
    """Rules that could not be asked, and what that takes."""

    needs: str
    rules: tuple[str, ...]


class LintReport(Shown, frozen=True):
    """What was found, the worst first, and what was not looked at."""

    findings: tuple[LintFinding, ...]
    not_checked: tuple[NotChecked, ...] = ()

    def fails(self, least: Severity) -> bool:
        """Whether something is as bad as that."""
        return any(each.severity.reaches(least) for each in self.findings)


def lint_report(snapshot: ClusterSnapshot, rules: Iterable[LintRule], ignored: Collection[str] = ()) -> LintReport:
    """What the rules say of a cluster, those aside that are ignored."""
    order = list(Severity)
    asked = sorted((each for each in rules if each.id not in ignored), key=lambda rule: order.index(rule.severity))
    able = [rule for rule in asked if not _missing(rule, snapshot)]
    return LintReport(
        tuple(finding for rule in able for finding in _findings(rule, snapshot)), tuple(_not_checked(asked, snapshot))
    )


def _findings(rule: LintRule, snapshot: ClusterSnapshot) -> Iterator[LintFinding]:
    for where, what in rule.check(snapshot):
        yield LintFinding(rule.id, rule.severity, where, what, rule.why, rule.fix)


def _missing(rule: LintRule, snapshot: ClusterSnapshot) -> str:
    """What it takes to ask a rule; "" where it can be asked."""
    return ", ".join(dict.fromkeys(snapshot.unread[part] for part in rule.needs if part in snapshot.unread))


def _not_checked(rules: Sequence[LintRule], snapshot: ClusterSnapshot) -> Iterator[NotChecked]:
    reasons = dict.fromkeys(filter(None, (_missing(rule, snapshot) for rule in rules)))
    for reason in reasons:
        yield NotChecked(reason, tuple(rule.id for rule in rules if _missing(rule, snapshot) == reason))
