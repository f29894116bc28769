"""A review as cases of JUnit: one for each object."""

from collections.abc import Iterator, Sequence

from webhook.cli.finding import Finding
from webhook.cli.junit import JUnitCase, JUnitSuite, Tag
from webhook.cli.left_out import LeftOut
from webhook.cli.show import left_alone

SUITE = "gpu-tiers review"


def review_suite(findings: Sequence[Finding], left_out: Sequence[LeftOut]) -> JUnitSuite:
    """A refusal is a failure, what could not be asked an error, what is left alone skipped."""
    return JUnitSuite(SUITE, tuple(map(_case, findings)), [f"left out: {each}" for each in left_out])


def _case(finding: Finding) -> JUnitCase:
    document = finding.document
    tag, kind, text = _outcome(finding)
    said = [*_facts(finding), *(f"warning: {each}" for each in finding.warnings)]
    return JUnitCase(finding.title, document.file, document.line, tag, text, kind, said)


def _outcome(finding: Finding) -> tuple[Tag | None, str, str]:
    """Element, type and text; none where the object gets its tier."""
    if finding.unasked:
        return "error", "not-asked", finding.unasked
    if finding.message:
        return "failure", finding.refusal_kind, finding.message
    return (None, "", "") if finding.tiered else ("skipped", "", f"left alone: {left_alone(finding)}")


def _facts(finding: Finding) -> Iterator[str]:
    assignment = finding.verdict.assignment
    if assignment is not None and assignment.tier is not None:
        yield f"tier: {assignment.tier.name} ({assignment})"
    if finding.evidence:
        yield f"type: {finding.evidence}"
