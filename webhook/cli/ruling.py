"""A finding in the few words that a person compares: verdict, tier, step, type, hook, warnings."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from webhook.cli.finding import Finding
from webhook.policy.assignment.request import Assignment
from webhook.policy.values.tiers import Tier

NONE = "none"
UNKNOWN = "unknown"


class VerdictName(StrEnum):
    """What becomes of an object. It is denied where any pod that comes of it is, and demoted likewise."""

    ALLOWED = "Allowed"
    DEMOTED = "Demoted"
    DENIED = "Denied"
    LEFT_ALONE = "LeftAlone"


@dataclass(frozen=True, slots=True)
class Ruling:
    """What is said of one object. `tiers` are several only where its kind is unknown and its parts differ.

    `hook` names the kinds of its pods' hooks, `graces` their grace periods in seconds.
    """

    verdict: VerdictName
    tiers: tuple[Tier, ...]
    step: str
    why: str
    type: str
    hook: str
    graces: tuple[int, ...]
    message: str
    warnings: tuple[str, ...]

    @property
    def tier(self) -> str:
        """The name of its tier."""
        return ", ".join(tier.name for tier in self.tiers) or NONE


def ruling_of(finding: Finding) -> Ruling:
    """What a finding comes to, in short."""
    every = list(every_part(finding))
    assignments = _assignments(finding, every)
    hooks = [hook for each in every if (hook := each.hook)]
    deciding = assignments[0] if assignments else None
    evidence = finding.evidence
    return Ruling(
        verdict=_verdict(finding, every),
        tiers=tuple(dict.fromkeys(each.tier for each in assignments if each.tier)),
        step=deciding.step if deciding else NONE,
        why=str(deciding) if deciding else "",
        type=evidence.type.value if evidence else UNKNOWN,
        hook=", ".join(dict.fromkeys(hook["kind"] for hook in hooks)) or NONE,
        graces=tuple(dict.fromkeys(hook["gracePeriodSeconds"] for hook in hooks)),
        message=finding.message or "",
        warnings=finding.warnings,
    )


def every_part(finding: Finding) -> Iterator[Finding]:
    """It and all that would come of it."""
    yield finding
    for part in finding.parts:
        yield from every_part(part)


def _assignments(finding: Finding, every: list[Finding]) -> list[Assignment]:
    """A workload's own, but that of its pods where they were demoted; of an unknown kind those of its parts."""
    found = [each.verdict.assignment for each in every if each.verdict.assignment]
    demoted = [each for each in found if each.demoted_from]
    return [*demoted, *found][:1] if finding.verdict.assignment else found


def _verdict(finding: Finding, every: list[Finding]) -> VerdictName:
    if not finding.allowed:
        return VerdictName.DENIED
    if not finding.tiered:
        return VerdictName.LEFT_ALONE
    demoted = (each.verdict.assignment and each.verdict.assignment.demoted_from for each in every)
    return VerdictName.DEMOTED if any(demoted) else VerdictName.ALLOWED
