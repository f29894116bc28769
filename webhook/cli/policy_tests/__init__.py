"""`gpu-tiers test`: whether a policy does what its tests expect."""

import asyncio
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from webhook.cli.junit import as_junit
from webhook.cli.manifests.documents import BadInput
from webhook.cli.output import AnswerForm, fail, write
from webhook.cli.policy_tests.cases import SuiteCase, cases_of
from webhook.cli.policy_tests.reading import suites
from webhook.cli.policy_tests.results import Result, as_junit_suites, report, result_of

FAILED = 1


class ResultsForm(StrEnum):
    """Forms of the results: those of other commands, and JUnit's XML for CI."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    MARKDOWN = "markdown"
    JUNIT = "junit"


def run_tests(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE|FOLDER", help="Suites, or folders of them; without any, this folder."),
    ] = None,
    *,
    output: Annotated[
        ResultsForm, typer.Option("--output", "-o", help="table, json, yaml, markdown or junit.")
    ] = ResultsForm.TABLE,
    fail_only: Annotated[bool, typer.Option("--fail-only", help="Show only the cases that fail.")] = False,
) -> None:
    """Run policy tests: workloads, what is in use when they are applied, and the tier or refusal that is expected.

    A suite is a file whose name ends with gpu-tiers-test.yaml. Folders are searched with all that is below them.
    Workloads are judged as in Enforce, with all of their pods, without a cluster. Each case starts anew.
    Exits with 1 if a case fails, and with 2 on bad input; no case is run then.
    """
    try:
        results = asyncio.run(_results(_cases(files or ["."])))
    except BadInput as error:
        fail(str(error))
    if output is ResultsForm.JUNIT:
        sys.stdout.write(as_junit(as_junit_suites(results), "gpu-tiers test"))
    else:
        write(report(results, fail_only=fail_only), AnswerForm(output.value))
    raise typer.Exit(0 if all(each.passed for each in results) else FAILED)


def _cases(where: Sequence[str]) -> list[SuiteCase]:
    """All cases of all suites. Raises BadInput with every mistake."""
    found, problems = [], []
    for suite in suites(where):
        try:
            found += cases_of(suite)
        except BadInput as bad:
            problems.append(str(bad))
    if problems:
        raise BadInput("\n".join(problems))
    return found


async def _results(cases: Sequence[SuiteCase]) -> list[Result]:
    return [await result_of(case) for case in cases]
