"""`gpu-tiers test`: whether a policy does what its tests expect."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Annotated, Any, Literal

import typer

from webhook.cli.junit import JUnitCase, JUnitSuite, as_junit
from webhook.cli.manifests.documents import BadInput
from webhook.cli.manifests.finding import verdict_of
from webhook.cli.manifests.offline import judged_alone
from webhook.cli.output import Answer, Form, Table, fail, write
from webhook.cli.policy_tests.cases import SuiteCase, cases_of
from webhook.cli.policy_tests.suite import ExpectSection, all_of, suites
from webhook.objects.refusal import AdmissionWarning
from webhook.report.lint.snapshot import number_of
from webhook.report.object_verdict import NONE, ObjectVerdict, VerdictName
from webhook.sentences.sentence import has_shown_id, sentence

FAILED = 1


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that is not as expected."""

    field: str
    expected: str
    actual: str


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a case: it has passed if nothing differs."""

    case: SuiteCase
    verdict: ObjectVerdict
    differences: tuple[Difference, ...]

    @property
    def passed(self) -> bool:
        return not self.differences


def run_tests(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE|FOLDER", help="Suites, or folders of them; without any, this folder."),
    ] = None,
    *,
    output: Annotated[
        Literal[Form, "junit"], typer.Option("--output", "-o", help="table, json, yaml, markdown or junit.")
    ] = "table",
    fail_only: Annotated[bool, typer.Option("--fail-only", help="Show only the cases that fail.")] = False,
) -> None:
    """Run policy tests: workloads, what is in use when they are applied, and the tier or refusal that is expected.

    Use it to ask whether the policy keeps what you promised. `review` shows answers without judging them, and
    `policy diff` shows what a change of the policy changes.

    Example: `gpu-tiers test policies/`

    A suite is a file whose name ends with gpu-tiers-test.yaml. Folders are searched with all that is below them.
    Workloads are judged as in Enforce, with all of their pods, without a cluster. Each case starts anew.
    Exits with 1 if a case fails, and with 2 on bad input; then no case is run.
    """
    try:
        cases = [case for some in all_of(suites(files or ["."]), cases_of) for case in some]
        results = asyncio.run(_results(cases))
    except BadInput as error:
        fail(str(error))
    if output == "junit":
        by_file = groupby(results, key=lambda each: str(each.case.suite.file))
        junit = [JUnitSuite(file, tuple(map(_junit_case, own))) for file, own in by_file]
        sys.stdout.write(as_junit(junit, "gpu-tiers test"))
    else:
        write(report(results, fail_only=fail_only), output)
    raise typer.Exit(0 if all(each.passed for each in results) else FAILED)


async def _results(cases: Sequence[SuiteCase]) -> list[Result]:
    found = []
    for case in cases:
        verdict = verdict_of(await judged_alone(case.document, case.cluster, case.policy, case.held))
        found.append(Result(case, verdict, tuple(_differences(case.fields.expect, verdict))))
    return found


def _differences(expect: ExpectSection, verdict: ObjectVerdict) -> Iterator[Difference]:
    if expect.expected_verdict is not verdict.verdict:
        why = f": {verdict.message}" if verdict.verdict is VerdictName.DENIED else ""
        yield Difference("verdict", expect.expected_verdict, f"{verdict.verdict}{why}")
    said = {
        "tier": verdict.tier or NONE,
        "step": verdict.step,
        "type": verdict.workload_type,
        "hook": verdict.hook_kinds,
    }
    for field, found in said.items():
        wanted = getattr(expect, field)
        if wanted is not None and wanted != found:
            yield Difference(field, wanted, found)
    if expect.message is not None and verdict.message and expect.message not in verdict.message:
        yield Difference("message", expect.message, verdict.message)
    # each warning is one of those expected, by its id or a part of its text, and none is missing
    wanted, told = expect.warnings or (), verdict.told
    as_expected = all(any(_is(each, warning) for warning in told) for each in wanted) and all(
        any(_is(each, warning) for each in wanted) for warning in told
    )
    if expect.warnings is not None and not as_expected:
        yield Difference("warnings", _listed(expect.warnings), _listed(verdict.warnings))


def _is(wanted: str, warning: AdmissionWarning) -> bool:
    return (has_shown_id(warning) and warning.id == wanted) or wanted in sentence(warning)


def _listed(warnings: Sequence[str]) -> str:
    return "; ".join(warnings) or NONE


def report(results: Sequence[Result], *, fail_only: bool = False) -> Answer:
    """Return the cases in a table, then each failure with what was expected and what was said, and a summary.

    The summary is such as: `12 cases in 2 suites: 11 passed, 1 failed`.
    """
    shown = [each for each in results if not (fail_only and each.passed)]
    failures = [_failure(each) for each in shown if not each.passed]
    rows = [
        (str(each.case.suite.file), each.case.fields.name, _object(each), "pass" if each.passed else "FAIL")
        for each in shown
    ]
    cases = [Table(("Suite", "Case", "Object", "Result"), rows)] if shown else []
    failed = sum(not each.passed for each in results)
    value = {"passed": len(results) - failed, "failed": failed, "cases": [_record(each) for each in shown]}
    where = (
        f"{number_of(len(results), 'case')} in {number_of(len({each.case.suite.file for each in results}), 'suite')}"
    )
    return Answer(value, (*cases, *failures), (f"{where}: {value['passed']} passed, {failed} failed",))


def _junit_case(result: Result) -> JUnitCase:
    told = [f"{each.field}: expected {each.expected}, but is {each.actual}" for each in result.differences]
    why = [f"why: {result.verdict.decided_by}"] if result.verdict.decided_by else []
    text = "\n".join((*told, *why))
    case = result.case
    failed: dict[str, Any] = {} if result.passed else {"tag": "failure", "text": text, "kind": "failure"}
    return JUnitCase(case.fields.name, str(case.suite.file), _line(result), **failed)


def _object(result: Result) -> str:
    document = result.case.document
    return f"{document.kind} {document.namespace}/{document.name}"


def _failure(result: Result) -> Table:
    rows = [(each.field, each.expected, each.actual) for each in result.differences]
    if result.verdict.decided_by:
        rows.append(("why", "", result.verdict.decided_by))
    return Table(("Field", "Expected", "Actual"), rows, f"{result.case.where}: {result.case.fields.name}")


def _record(result: Result) -> dict[str, Any]:
    case = result.case
    return {
        "suite": str(case.suite.file),
        "line": _line(result),
        "name": case.fields.name,
        "object": _object(result),
        "passed": result.passed,
        "differences": [
            {"field": each.field, "expected": each.expected, "actual": each.actual} for each in result.differences
        ],
        "actual": result.verdict.as_json(),
    }


def _line(result: Result) -> int:
    return int(result.case.where.rpartition(":")[2])
