"""A whole review, and the forms in which it is written: for people, for programs, and for CI."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec
import yaml
from rich.console import Console

from webhook.cli.finding import Finding
from webhook.cli.json_line import as_json, record
from webhook.cli.junit import as_junit
from webhook.cli.left_out import LeftOut
from webhook.cli.review_cases import SUITE, review_suite
from webhook.cli.sarif import as_sarif
from webhook.cli.show import as_text
from webhook.cli.summary import summary
from webhook.config.yaml_text import Dumper


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
        """The findings to write; one that could not be asked always is."""
        return [each for each in self.findings if not self.only or each.unasked or self._wanted(each)]

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
        sys.stderr.writelines(f"left out: {each}\n" for each in report.left_out)


def _write_text(report: Report) -> None:
    console = Console()
    for finding in report.shown:
        as_text(finding, console)
    end = summary(report.findings, report.left_out, tenants=report.tenants, shown=bool(report.shown))
    sys.stdout.writelines(f"{line}\n" for line in end)


def _as_json(report: Report) -> Iterator[str]:
    return (f"{as_json(each)}\n" for each in report.shown)


def _as_yaml(report: Report) -> Iterator[str]:
    for each in report.shown:
        built = msgspec.to_builtins(record(each))
        yield "---\n" + yaml.dump(built, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=4096)


_LINES: Mapping[Form, Callable[[Report], Iterator[str]]] = {
    Form.JSON: _as_json,
    Form.YAML: _as_yaml,
    Form.JUNIT: lambda report: iter([as_junit([review_suite(report.shown, report.left_out)], SUITE)]),
    Form.SARIF: lambda report: iter([as_sarif(report.shown, report.left_out)]),
}
