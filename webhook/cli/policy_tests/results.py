"""The results of policy tests as people and programs read them."""

from collections.abc import Iterator, Sequence
from typing import Any

from webhook.cli.junit import JUnitCase, JUnitSuite
from webhook.cli.output import Answer, Table
from webhook.cli.policy_tests.comparing import Result

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
    if result.ruling.why:
        yield f"why: {result.ruling.why}"


def _row(result: Result) -> tuple[str, ...]:
    case = result.case
    return str(case.suite.file), case.fields.name, _object(result), PASSED if result.passed else FAILED


def _object(result: Result) -> str:
    document = result.case.document
    return f"{document.kind} {document.namespace}/{document.name}"


def _failure(result: Result) -> Table:
    rows = [(each.field, each.expected, each.actual) for each in result.differences]
    if result.ruling.why:
        rows.append(("why", "", result.ruling.why))
    return Table(("Field", "Expected", "Actual"), rows, f"{result.case.where}: {result.case.fields.name}")


def _value(results: Sequence[Result], shown: Sequence[Result]) -> dict[str, Any]:
    failed = sum(not each.passed for each in results)
    return {"passed": len(results) - failed, "failed": failed, "cases": [_record(each) for each in shown]}


def _record(result: Result) -> dict[str, Any]:
    case, ruling = result.case, result.ruling
    return {
        "suite": str(case.suite.file),
        "line": _line(result),
        "name": case.fields.name,
        "object": _object(result),
        "passed": result.passed,
        "differences": [
            {"field": each.field, "expected": each.expected, "actual": each.actual} for each in result.differences
        ],
        "actual": {
            "verdict": ruling.verdict,
            "tier": ruling.tier,
            "step": ruling.step,
            "type": ruling.type,
            "hook": ruling.hook,
            "message": ruling.message,
            "warnings": ruling.warnings,
        },
    }


def _line(result: Result) -> int:
    return int(result.case.where.rpartition(":")[2])


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
