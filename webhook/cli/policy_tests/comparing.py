"""What a case expects against what the webhook says."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from webhook.cli.alone import judged_alone
from webhook.cli.policy_tests.cases import SuiteCase
from webhook.cli.policy_tests.suite import ExpectSection
from webhook.cli.ruling import Ruling, VerdictName, ruling_of

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
    ruling: Ruling
    differences: tuple[Difference, ...]

    @property
    def passed(self) -> bool:
        """Whether all is as expected."""
        return not self.differences


async def result_of(case: SuiteCase) -> Result:
    """Judge the case's object, and compare."""
    ruling = ruling_of(await judged_alone(case.document, case.cluster, case.policy, case.held))
    return Result(case, ruling, tuple(_differences(case.fields.expect, ruling)))


def _differences(expect: ExpectSection, ruling: Ruling) -> Iterator[Difference]:
    if expect.expected_verdict is not ruling.verdict:
        yield Difference("verdict", expect.expected_verdict, _with_message(ruling))
    for field in ("tier", "step", "type", "hook"):
        wanted, found = getattr(expect, field), getattr(ruling, field)
        if wanted is not None and wanted != found:
            yield Difference(field, wanted, found)
    if expect.message is not None and ruling.message and expect.message not in ruling.message:
        yield Difference("message", expect.message, ruling.message)
    if expect.warnings is not None and not _as_expected(expect.warnings, ruling.warnings):
        yield Difference("warnings", _listed(expect.warnings), _listed(ruling.warnings))


def _with_message(ruling: Ruling) -> str:
    return f"{ruling.verdict}: {ruling.message}" if ruling.verdict is VerdictName.DENIED else ruling.verdict


def _as_expected(wanted: Sequence[str], found: Sequence[str]) -> bool:
    """Whether each warning is one of those expected, by its id or a part of its text, and none is missing."""
    return all(any(_is(each, warning) for warning in found) for each in wanted) and all(
        any(_is(each, warning) for each in wanted) for warning in found
    )


def _is(wanted: str, warning: str) -> bool:
    return warning.startswith(f"[{wanted}]") or wanted in warning


def _listed(warnings: Sequence[str]) -> str:
    return "; ".join(warnings) or NOTHING
