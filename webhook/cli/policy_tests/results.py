"""What a case expects against what the webhook says, as people and programs read it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from webhook.cli.junit import JUnitCase, JUnitSuite
from webhook.cli.manifests.finding import verdict_of
from webhook.cli.manifests.offline_desk import judged_alone
from webhook.cli.output import Answer, Table
from webhook.cli.policy_tests.cases import SuiteCase
from webhook.cli.policy_tests.suite import ExpectSection
from webhook.objects.phrase import AdmissionWarning
from webhook.report.object_verdict import NONE, ObjectVerdict, VerdictName
from webhook.sentences.sentence import has_shown_id, sentence


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
        """Whether all is as expected."""
        return not self.differences


async def result_of(case: SuiteCase) -> Result:
    """Judge the case's object, and compare."""
    verdict = verdict_of(await judged_alone(case.document, case.cluster, case.policy, case.held))
    return Result(case, verdict, tuple(_differences(case.fields.expect, verdict)))


def _differences(expect: ExpectSection, verdict: ObjectVerdict) -> Iterator[Difference]:
    if expect.expected_verdict is not verdict.verdict:
        yield Difference("verdict", expect.expected_verdict, _with_message(verdict))
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
    if expect.warnings is not None and not _as_expected(expect.warnings, verdict.told):
        yield Difference("warnings", _listed(expect.warnings), _listed(verdict.warnings))


def _with_message(verdict: ObjectVerdict) -> str:
    return f"{verdict.verdict}: {verdict.message}" if verdict.verdict is VerdictName.DENIED else verdict.verdict


def _as_expected(wanted: Sequence[str], found: Sequence[AdmissionWarning]) -> bool:
    """Whether each warning is one of those expected, by its id or a part of its text, and none is missing."""
    return all(any(_is(each, warning) for warning in found) for each in wanted) and all(
        any(_is(each, warning) for each in wanted) for warning in found
    )


def _is(wanted: str, warning: AdmissionWarning) -> bool:
    return (has_shown_id(warning) and warning.id == wanted) or wanted in sentence(warning)


def _listed(warnings: Sequence[str]) -> str:
    return "; ".join(warnings) or NONE


PASSED, FAILED = "pass", "FAIL"


def report(results: Sequence[Result], *, fail_only: bool = False) -> Answer:
    """The cases in a table, then each failure with what was expected beside what was said, and a summary."""
    shown = [each for each in results if not (fail_only and each.passed)]
    failures = [_failure(each) for each in shown if not each.passed]
    cases = [Table(("Suite", "Case", "Object", "Result"), [_row(each) for each in shown])] if shown else []
    return Answer(_value(results, shown), (*cases, *failures), (results_summary(results),))


def results_summary(results: Sequence[Result]) -> str:
    """Such as: `12 cases in 2 suites: 11 passed, 1 failed`."""
    failed = sum(not each.passed for each in results)
    suites = len({each.case.suite.file for each in results})
    cases = _count(len(results), "case")
    return f"{cases} in {_count(suites, 'suite')}: {len(results) - failed} passed, {failed} failed"


def as_junit_suites(results: Sequence[Result]) -> Iterator[JUnitSuite]:
    """For JUnit: a suite for each file."""
    for file in dict.fromkeys(each.case.suite.file for each in results):
        own = [each for each in results if each.case.suite.file == file]
        yield JUnitSuite(str(file), tuple(_junit_case(each) for each in own))


def _junit_case(result: Result) -> JUnitCase:
    told = [f"{each.field}: expected {each.expected}, but is {each.actual}" for each in result.differences]
    text = "\n".join((*told, *_why(result)))
    case = result.case
    failed: dict[str, Any] = {} if result.passed else {"tag": "failure", "text": text, "kind": "failure"}
    return JUnitCase(case.fields.name, str(case.suite.file), _line(result), **failed)


def _why(result: Result) -> Iterator[str]:
    if result.verdict.decided_by:
        yield f"why: {result.verdict.decided_by}"


def _row(result: Result) -> tuple[str, ...]:
    case = result.case
    return str(case.suite.file), case.fields.name, _object(result), PASSED if result.passed else FAILED


def _object(result: Result) -> str:
    document = result.case.document
    return f"{document.kind} {document.namespace}/{document.name}"


def _failure(result: Result) -> Table:
    rows = [(each.field, each.expected, each.actual) for each in result.differences]
    if result.verdict.decided_by:
        rows.append(("why", "", result.verdict.decided_by))
    return Table(("Field", "Expected", "Actual"), rows, f"{result.case.where}: {result.case.fields.name}")


def _value(results: Sequence[Result], shown: Sequence[Result]) -> dict[str, Any]:
    failed = sum(not each.passed for each in results)
    return {"passed": len(results) - failed, "failed": failed, "cases": [_record(each) for each in shown]}


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


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
