"""A whole review, and the forms in which it is written: for people, for programs, and for CI."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec
import yaml
from rich.console import Console

from webhook.cli.junit import JUnitCase, JUnitSuite, Tag, as_junit
from webhook.cli.manifests.finding import Finding, verdict_of
from webhook.cli.manifests.left_out import LeftOut
from webhook.cli.output import versioned
from webhook.cli.review.text import as_text, left_alone, summary
from webhook.config.yaml_text import Dumper
from webhook.policy.assignment.assigned_by import assigned_by


class Form(StrEnum):
    """How a review is written."""

    TEXT = "text"
    JSON = "json"
    YAML = "yaml"
    JUNIT = "junit"
    SARIF = "sarif"


class Only(StrEnum):
    """Which findings are written."""

    REFUSED = "refused"
    WARNED = "warned"


@dataclass(frozen=True, slots=True)
class Report:
    """All findings, what was left out, and which findings are to be `shown`; `tenants`: whether any were given."""

    findings: Sequence[Finding]
    left_out: Sequence[LeftOut] = ()
    only: Sequence[Only] = ()
    tenants: bool = False

    @property
    def shown(self) -> list[Finding]:
        """The findings to write."""
        return [each for each in self.findings if not self.only or self._wanted(each)]

    def _wanted(self, finding: Finding) -> bool:
        refused, warned = not finding.allowed, bool(finding.warnings)
        return (refused and Only.REFUSED in self.only) or (warned and Only.WARNED in self.only)


def write_report(report: Report, form: Form) -> None:
    """Write it to stdout; what a form has no place for goes to stderr."""
    if form is Form.TEXT:
        _write_text(report)
        return
    sys.stdout.writelines(_LINES[form](report))
    if form in (Form.JSON, Form.YAML):
        sys.stderr.writelines(f"{each.what}: {each}\n" for each in report.left_out)


def _write_text(report: Report) -> None:
    console = Console()
    for finding in report.shown:
        as_text(finding, console)
    end = summary(report.findings, report.left_out, tenants=report.tenants, shown=bool(report.shown))
    sys.stdout.writelines(f"{line}\n" for line in end)


def _as_json(report: Report) -> Iterator[str]:
    return (f"{msgspec.json.encode(_whole(each)).decode()}\n" for each in report.shown)


def _as_sarif(report: Report) -> Iterator[str]:
    from webhook.cli.review.sarif import as_sarif  # noqa: PLC0415 - its importlib.metadata takes long

    yield as_sarif(report.shown, report.left_out)


def _as_yaml(report: Report) -> Iterator[str]:
    for each in report.shown:
        built = msgspec.to_builtins(_whole(each))
        yield "---\n" + yaml.dump(built, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=4096)


def _whole(finding: Finding) -> dict[str, Any]:
    """The verdict on an object with its place, and what a review alone has: patches, and what comes of the object."""
    document = finding.document
    return versioned({"file": document.file, "line": document.line or None, **_record(finding)})


def _record(finding: Finding) -> dict[str, Any]:
    extras = {
        "notes": finding.notes,
        "placement": finding.verdict.placement,
        "placeholders": finding.document.placeholders,
        "uncounted": finding.uncounted,
        "pods": [_part(each) for each in finding.pods],
        "inside": [_part(each) for each in finding.inside],
    }
    given = {name: value for name, value in extras.items() if value}
    return {**verdict_of(finding).as_json(), "patch": finding.patch, **given}


def _part(part: Finding) -> dict[str, Any]:
    return {"path": part.path, "count": part.count, **_record(part)}


_LINES: Mapping[Form, Callable[[Report], Iterator[str]]] = {
    Form.JSON: _as_json,
    Form.YAML: _as_yaml,
    Form.JUNIT: lambda report: iter([as_junit([review_suite(report.shown, report.left_out)], SUITE)]),
    Form.SARIF: _as_sarif,
}


SUITE = "gpu-tiers review"


def review_suite(findings: Sequence[Finding], left_out: Sequence[LeftOut]) -> JUnitSuite:
    """A refusal is a failure, what is left alone skipped."""
    return JUnitSuite(SUITE, tuple(map(_junit_case, findings)), [f"{each.what}: {each}" for each in left_out])


def _junit_case(finding: Finding) -> JUnitCase:
    document = finding.document
    tag, kind, text = _junit_outcome(finding)
    said = [*_junit_facts(finding), *(f"warning: {each}" for each in finding.warnings)]
    return JUnitCase(finding.title, document.file, document.line, tag, text, kind, said)


def _junit_outcome(finding: Finding) -> tuple[Tag | None, str, str]:
    """Element, type and text; none where the object gets its tier."""
    if finding.message:
        return "failure", finding.refusal_kind, finding.message
    return (None, "", "") if finding.tiered else ("skipped", "", f"left alone: {left_alone(finding)}")


def _junit_facts(finding: Finding) -> Iterator[str]:
    assignment = finding.verdict.assignment
    if assignment is not None and assignment.tier is not None:
        yield f"tier: {assignment.tier.name} ({assigned_by(assignment)})"
    if finding.evidence:
        yield f"type: {finding.evidence}"
