"""`gpu-tiers test`: whether a policy does what its tests expect.

1. `cases_of` makes the cases of a suite ready: the policy, the cluster, the object that is applied, what others hold.
2. Each is judged and compared. 3. `report` says what differs.
"""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer
from msgspec.structs import replace

from webhook.cli.ci_formats import JUnitCase, JUnitSuite, as_junit
from webhook.cli.manifests.documents import BadInput, Document, documents
from webhook.cli.manifests.finding import is_fact, verdict_of
from webhook.cli.manifests.judge import cluster_of, judged_alone
from webhook.cli.output import Answer, Form, Table, fail, write
from webhook.cli.policy_tests.suite import CaseSection, ExpectSection, Place, Suite, UsedSection, all_of, suites
from webhook.cluster.offline import ReadOnceCluster
from webhook.config.errors import ConfigError
from webhook.config.load import load, preset_policy
from webhook.ledger.protocol import Holding
from webhook.objects.group_kind import POD, POD_GROUP, SCHEDULING_WORKLOAD
from webhook.objects.refusal import AdmissionWarning
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.lint.snapshot import number_of
from webhook.report.object_verdict import NONE, ObjectVerdict, VerdictName
from webhook.sentences.sentence import has_shown_id, sentence


class SuiteCase(msgspec.Struct, frozen=True):
    """One case, ready to be judged. `where` is its file and line, `number` its place in the suite."""

    suite: Suite
    number: int
    fields: CaseSection
    where: str
    document: Document
    cluster: ReadOnceCluster
    policy: TierPolicy
    held: dict[str, Holding]


def cases_of(suite: Suite) -> list[SuiteCase]:
    """Return the cases of a suite. Raises BadInput with every mistake."""
    policy = _policy_of(suite)
    world = _world_of(suite, policy)
    return all_of(enumerate(suite.fields.cases), lambda numbered: _ready(suite, *numbered, policy, world))


def _policy_of(suite: Suite) -> TierPolicy:
    field = "policy" if suite.fields.policy is not None else "preset"
    try:
        if suite.fields.policy is not None:
            return load(suite.file.parent / suite.fields.policy)
        return preset_policy(suite.fields.preset)
    except ConfigError as error:
        raise _at(f"{suite.at(field)}: {field}", error) from None


def _at(where: str, problem: Exception) -> BadInput:
    """The problem, each of its lines with the place."""
    return BadInput("\n".join(f"{where}: {line}" for line in str(problem).splitlines()))


def _world_of(suite: Suite, policy: TierPolicy) -> tuple[Document, ...]:
    """Return what the tenants' files hold. It is read once, so that a mistake is reported once."""
    found: list[Document] = []
    for number, name in enumerate(suite.fields.tenants):
        try:
            found += read_documents(suite.file.parent / name)
            cluster_of(policy, found)
        except BadInput as bad:
            raise _at(f"{suite.at('tenants', number)}: tenants[{number}]", bad) from None
    return tuple(found)


@lru_cache(maxsize=256)
def read_documents(path: Path) -> tuple[Document, ...]:
    return tuple(documents(str(path)))


def _ready(suite: Suite, number: int, case: CaseSection, policy: TierPolicy, world: tuple[Document, ...]) -> SuiteCase:
    where = suite.at("cases", number)
    try:
        beside, document = _applied(suite, case, where, policy)
        cluster = cluster_of(policy, (*world, *beside, document))
    except BadInput as bad:
        raise _at(f"{suite.at('cases', number, 'workload')}: cases[{number}].workload", bad) from None
    problems = [
        f"{suite.at('cases', number, *place)}: cases[{number}].{problem}"
        for place, problem in missing_references(case, document, cluster, policy)
    ]
    if problems:
        raise BadInput("\n".join(problems))
    return SuiteCase(suite, number, case, where, document, cluster, policy, _held(case.used, document.namespace))


def _applied(suite: Suite, case: CaseSection, where: str, policy: TierPolicy) -> tuple[tuple[Document, ...], Document]:
    """The other objects of the file, and the object that is judged."""
    if isinstance(case.workload, dict):
        found: tuple[Document, ...] = (Document.of(where, case.workload),)
    else:
        found = read_documents(suite.file.parent / case.workload)
    chosen = _chosen(found, case.object, policy)
    beside = tuple(each for each in found if each is not chosen)
    if case.namespace is None:
        return beside, chosen
    own = chosen.metadata.get("namespace")
    if own not in (None, "", case.namespace):
        raise BadInput(f"its namespace is {own}, but the case says {case.namespace}; write one of them")
    placed = {**chosen.tree, "metadata": {**chosen.metadata, "namespace": case.namespace}}
    return beside, replace(chosen, tree=placed)


def _chosen(found: tuple[Document, ...], name: str | None, policy: TierPolicy) -> Document:
    ours = {POD, POD_GROUP, SCHEDULING_WORKLOAD, *policy.kinds.by_kind}
    asked = [each for each in found if each.group_kind in ours] or [each for each in found if not is_fact(each)]
    if name is not None:
        asked = [each for each in found if _title(each) == name]
    if len(asked) == 1:
        return asked[0]
    if name is not None and not asked:
        raise BadInput(f"holds no {name}; it holds {', '.join(map(_title, found))}")
    if not asked:
        raise BadInput("holds no workload")
    raise BadInput(f"holds {len(asked)} workloads; name one in `object`: {', '.join(map(_title, asked))}")


def _title(document: Document) -> str:
    return f"{document.kind}/{document.name}"


def _held(used: tuple[UsedSection, ...], namespace: str) -> dict[str, Holding]:
    """Return a pod for each row."""
    return {
        f"in-use-{number}": Holding(namespace, Charge(row.gpus, row.tier, row.resource_flavor), name=f"in-use-{number}")
        for number, row in enumerate(used)
    }


def missing_references(
    case: CaseSection, document: Document, cluster: ReadOnceCluster, policy: TierPolicy
) -> Iterator[tuple[Place, str]]:
    """Yield a sentence on each unknown name, with the field's place in the case."""
    tiers, flavors = [each.name for each in policy.tiers], [each.name for each in policy.flavors]
    if case.expect.tier is not None:
        yield from _unknown(("expect", "tier"), "expect.tier", case.expect.tier, tiers, "tier")
    if case.used and cluster.known.tenant_name(document.namespace) is None:
        yield ("used",), f"used: no tenant selects namespace {document.namespace}, so nothing is counted there"
    for number, row in enumerate(case.used):
        way = f"used[{number}]"
        if row.tier is not None:
            yield from _unknown(("used", number, "tier"), f"{way}.tier", row.tier, tiers, "tier")
        if row.resource_flavor is not None:
            place = ("used", number, "resourceFlavor")
            yield from _unknown(place, f"{way}.resourceFlavor", row.resource_flavor, flavors, "resource flavor")


def _unknown(place: Place, field: str, value: str, known: list[str], what: str) -> Iterator[tuple[Place, str]]:
    if value not in known:
        there = f"write one of {', '.join(known)}" if known else f"the policy has no {what}"
        yield place, f'{field}: "{value}" is no {what} of the policy; {there}'


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
