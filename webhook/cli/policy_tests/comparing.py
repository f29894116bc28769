"""What a case expects against what the webhook says."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from webhook.cli.alone import judged_alone
from webhook.cli.outcome import Outcome, VerdictName, outcome_of
from webhook.cli.policy_tests.cases import SuiteCase
from webhook.cli.policy_tests.suite import ExpectSection

NOTHING = "none"


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
    outcome: Outcome
    differences: tuple[Difference, ...]

    @property
    def passed(self) -> bool:
        """Whether all is as expected."""
        return not self.differences


async def result_of(case: SuiteCase) -> Result:
    """Judge the case's object, and compare."""
    outcome = outcome_of(await judged_alone(case.document, case.cluster, case.policy, case.held))
    return Result(case, outcome, tuple(_differences(case.fields.expect, outcome)))


def _differences(expect: ExpectSection, outcome: Outcome) -> Iterator[Difference]:
    if expect.expected_verdict is not outcome.verdict:
        yield Difference("verdict", expect.expected_verdict, _with_message(outcome))
    for field in ("tier", "step", "type", "hook"):
        wanted, found = getattr(expect, field), getattr(outcome, field)
        if wanted is not None and wanted != found:
            yield Difference(field, wanted, found)
    if expect.message is not None and outcome.message and expect.message not in outcome.message:
        yield Difference("message", expect.message, outcome.message)
    if expect.warnings is not None and not _as_expected(expect.warnings, outcome.warnings):
        yield Difference("warnings", _listed(expect.warnings), _listed(outcome.warnings))


def _with_message(outcome: Outcome) -> str:
    return f"{outcome.verdict}: {outcome.message}" if outcome.verdict is VerdictName.DENIED else outcome.verdict


def _as_expected(wanted: Sequence[str], found: Sequence[str]) -> bool:
    """Whether each warning is one of those expected, by its id or a part of its text, and none is missing."""
    return all(any(_is(each, warning) for warning in found) for each in wanted) and all(
        any(_is(each, warning) for each in wanted) for warning in found
    )


def _is(wanted: str, warning: str) -> bool:
    return warning.startswith(f"[{wanted}]") or wanted in warning


def _listed(warnings: Sequence[str]) -> str:
    return "; ".join(warnings) or NOTHING
