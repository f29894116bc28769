"""`gpu-tiers test`: whether a policy does what its tests expect.

1. `cases_of` prepares the cases of a suite: the policy, the cluster, the applied object, the usage of others.
2. Each case is judged and compared with its expectation.
3. `report` shows the differences.
"""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import msgspec
import typer
from msgspec.structs import replace

from webhook.cli.ci_formats import JUnitCase, JUnitSuite, as_junit
from webhook.cli.command import Answer, Form, Table, with_options, write
from webhook.cli.manifests.documents import BadInput, Document, documents
from webhook.cli.manifests.finding import verdict_of
from webhook.cli.manifests.inputs import cluster_of, is_fact, titled
from webhook.cli.manifests.judge import judged_alone
from webhook.cli.policy_tests.suite import CaseSection, ExpectSection, Place, Suite, all_of, suites
from webhook.cluster.offline import ReadOnceCluster
from webhook.config.errors import ConfigError
from webhook.config.load import load, preset_policy
from webhook.ledger.protocol import Holding
from webhook.objects.group_kind import POD, POD_GROUP, SCHEDULING_WORKLOAD
from webhook.objects.refusal import AdmissionWarning
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.tenant_quotas import TENANT_QUOTA, read_tenant
from webhook.policy.quota.tenant_status import unknown_names
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.lint.snapshot import number_of
from webhook.report.object_verdict import NONE, ObjectVerdict, VerdictName
from webhook.sentences.sentence import has_shown_id, sentence


class SuiteCase(msgspec.Struct, frozen=True):
    """One case, ready to be judged. `where` is its file and line, `holdings` has a pod for each entry of `used`."""

    suite: Suite
    fields: CaseSection
    where: str
    document: Document
    cluster: ReadOnceCluster
    policy: TierPolicy
    holdings: dict[str, Holding]


def cases_of(suite: Suite) -> list[SuiteCase]:
    """Return the cases of a suite. Raises BadInput with every mistake."""
    # 1. The policy.
    name = suite.fields.policy
    field = "preset" if name is None else "policy"
    try:
        policy = preset_policy(suite.fields.preset) if name is None else load(suite.file.parent / name)
    except ConfigError as error:
        raise _at(suite.located(field), error) from None

    # 2. The tenants' files. They are read once, so that a mistake is reported once.
    world: list[Document] = []
    for number, tenants in enumerate(suite.fields.tenants):
        try:
            found = read_documents(suite.file.parent / tenants)
            world += found
            cluster_of(policy, world)
        except BadInput as bad:
            raise _at(suite.located("tenants", number), bad) from None
        # The webhook refuses TenantQuotas with names that the policy does not have.
        quotas = ((titled(each), read_tenant(each.tree)) for each in found if each.group_kind == TENANT_QUOTA)
        unknown = [f"{it}: {sentence(name)}" for it, quota in quotas for name in unknown_names(quota, policy)]
        if unknown:
            raise _at(suite.located("tenants", number), BadInput("\n".join(unknown)))

    # 3. The cases.
    return all_of(enumerate(suite.fields.cases), lambda numbered: _ready(suite, *numbered, policy, world))


def _at(where: str, problem: Exception) -> BadInput:
    """Return the problem as BadInput, with the place before each of its lines."""
    return BadInput("\n".join(f"{where}: {line}" for line in str(problem).splitlines()))


@lru_cache(maxsize=256)
def read_documents(path: Path) -> tuple[Document, ...]:
    return tuple(documents(str(path)))


def _ready(suite: Suite, number: int, case: CaseSection, policy: TierPolicy, world: Sequence[Document]) -> SuiteCase:
    where = suite.at("cases", number)
    try:
        others, document = _applied(suite, case, where, policy)
        cluster = cluster_of(policy, (*world, *others, document))
    except BadInput as bad:
        raise _at(suite.located("cases", number, "workload"), bad) from None
    missing = missing_references(case, document, cluster, policy)
    problems = [f"{suite.located('cases', number, *place)}: {problem}" for place, problem in missing]
    if problems:
        raise BadInput("\n".join(problems))
    holdings = {}
    for name, row in ((f"in-use-{index}", row) for index, row in enumerate(case.used)):
        charge = Charge(row.gpus, row.tier, row.resource_flavor)
        holdings[name] = Holding(document.namespace, charge, name=name)
    return SuiteCase(suite, case, where, document, cluster, policy, holdings)


def _applied(suite: Suite, case: CaseSection, where: str, policy: TierPolicy) -> tuple[tuple[Document, ...], Document]:
    """Return the other objects of the file, and the object that is judged. Raises BadInput if that is not one."""
    if isinstance(case.workload, dict):
        found: tuple[Document, ...] = (Document.of(where, case.workload),)
    else:
        found = read_documents(suite.file.parent / case.workload)
    # The object of that name, or the only workload.
    ours = {POD, POD_GROUP, SCHEDULING_WORKLOAD, *policy.kinds.by_kind}
    there = [each for each in found if each.group_kind in ours] or [each for each in found if not is_fact(each)]
    if case.object is not None:
        there = [each for each in found if _title(each) == case.object]
    if len(there) != 1:
        if there:
            raise BadInput(f"holds {len(there)} workloads; name one in `object`: {', '.join(map(_title, there))}")
        named = f"{case.object}; it holds {', '.join(map(_title, found))}"
        raise BadInput(f"holds no {named if case.object else 'workload'}")
    chosen = there[0]
    others = tuple(each for each in found if each is not chosen)
    if case.namespace is None:
        return others, chosen
    own = chosen.metadata.get("namespace")
    if own not in (None, "", case.namespace):
        raise BadInput(f"its namespace is {own}, but the case says {case.namespace}; write one of them")
    placed = {**chosen.tree, "metadata": {**chosen.metadata, "namespace": case.namespace}}
    return others, replace(chosen, tree=placed)


def _title(document: Document) -> str:
    return f"{document.kind}/{document.name}"


def missing_references(
    case: CaseSection, document: Document, cluster: ReadOnceCluster, policy: TierPolicy
) -> Iterator[tuple[Place, str]]:
    """Yield the place in the case and a sentence for each unknown tier or flavor, and for usage without a tenant."""
    yield from _unknown(("expect", "tier"), case.expect.tier, policy)
    if case.used and cluster.known.tenant_name(document.namespace) is None:
        yield ("used",), f"no tenant selects namespace {document.namespace}, so nothing is counted there"
    for number, row in enumerate(case.used):
        yield from _unknown(("used", number, "tier"), row.tier, policy)
        yield from _unknown(("used", number, "resourceFlavor"), row.resource_flavor, policy)


def _unknown(place: Place, name: str | None, policy: TierPolicy) -> Iterator[tuple[Place, str]]:
    what, known = "resource flavor", [each.name for each in policy.flavors]
    if place[-1] == "tier":
        what, known = "tier", [each.name for each in policy.tiers]
    if name is not None and name not in known:
        there = f"write one of {', '.join(known)}" if known else f"the policy has no {what}"
        yield place, f'"{name}" is no {what} of the policy; {there}'


FAILED = 1


class Difference(msgspec.Struct, frozen=True):
    """A field that is not as expected."""

    field: str
    expected: str
    actual: str


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a case: it has passed if nothing differs."""

    case: SuiteCase
    verdict: ObjectVerdict
    differences: tuple[Difference, ...]

    @property
    def passed(self) -> bool:
        return not self.differences

    @property
    def line(self) -> int:
        return int(self.case.where.rpartition(":")[2])

    @property
    def object(self) -> str:
        document = self.case.document
        return f"{document.kind} {document.namespace}/{document.name}"


@with_options
def run_tests(
    *, files: list[str] | None = None, output: Literal[Form, "junit"] = "table", fail_only: bool = False
) -> None:
    """Run policy tests: workloads, what is in use when they are applied, and the tier or refusal that is expected.

    Use it to ask whether the policy does what you expect. `review` shows answers without judging them, and
    `policy diff` shows what a change of the policy changes.

    Example: `gpu-tiers test policies/`

    A suite is a file whose name ends with gpu-tiers-test.yaml. Folders are searched with all that is below them.
    Workloads are judged as in Enforce, with all of their pods, without a cluster. Cases are independent.
    Exits with 1 if a case fails, and with 2 on bad input; then no case is run.
    """
    cases = [case for some in all_of(suites(files or ["."]), cases_of) for case in some]
    results = asyncio.run(_results(cases))
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
        verdict = verdict_of(await judged_alone(case.document, case.cluster, case.policy, case.holdings))
        found.append(Result(case, verdict, tuple(_differences(case.fields.expect, verdict))))
    return found


def _differences(expect: ExpectSection, verdict: ObjectVerdict) -> Iterator[Difference]:
    if expect.expected_verdict is not verdict.verdict:
        why = f": {verdict.message}" if verdict.verdict is VerdictName.DENIED else ""
        yield Difference("verdict", expect.expected_verdict, f"{verdict.verdict}{why}")
    said = (verdict.tier or NONE, verdict.step, verdict.workload_type, verdict.hook_kinds)
    for field, found in zip(("tier", "step", "type", "hook"), said, strict=True):
        wanted = getattr(expect, field)
        if wanted is not None and wanted != found:
            yield Difference(field, wanted, found)
    if expect.message is not None and verdict.message and expect.message not in verdict.message:
        yield Difference("message", expect.message, verdict.message)
    # Each warning is an expected one, by its id or a part of its text, and none is missing.
    wanted, given = expect.warnings or (), verdict.shown_warnings
    as_expected = all(any(_is(each, warning) for warning in given) for each in wanted) and all(
        any(_is(each, warning) for each in wanted) for warning in given
    )
    if expect.warnings is not None and not as_expected:
        yield Difference("warnings", "; ".join(expect.warnings) or NONE, "; ".join(verdict.warnings) or NONE)


def _is(wanted: str, warning: AdmissionWarning) -> bool:
    return (has_shown_id(warning) and warning.id == wanted) or wanted in sentence(warning)


def report(results: Sequence[Result], *, fail_only: bool = False) -> Answer:
    """Return the cases in a table, then each failure with the expected and the actual value, and a summary.

    The summary has the form `12 cases in 2 suites: 11 passed, 1 failed`.
    """
    shown = [each for each in results if not (fail_only and each.passed)]
    rows = [
        (str(each.case.suite.file), each.case.fields.name, each.object, "pass" if each.passed else "FAIL")
        for each in shown
    ]
    tables = [Table(("Suite", "Case", "Object", "Result"), rows)] if shown else []
    for each in (result for result in shown if not result.passed):
        differences = [(differs.field, differs.expected, differs.actual) for differs in each.differences]
        why = [("why", "", each.verdict.decided_by)] if each.verdict.decided_by else []
        title = f"{each.case.where}: {each.case.fields.name}"
        tables.append(Table(("Field", "Expected", "Actual"), [*differences, *why], title))
    failed = sum(not each.passed for each in results)
    value = {"passed": len(results) - failed, "failed": failed, "cases": [_record(each) for each in shown]}
    suites_run = number_of(len({each.case.suite.file for each in results}), "suite")
    summary = f"{number_of(len(results), 'case')} in {suites_run}: {value['passed']} passed, {failed} failed"
    return Answer(value, tables, (summary,))


def _junit_case(result: Result) -> JUnitCase:
    case = JUnitCase(result.case.fields.name, str(result.case.suite.file), result.line)
    if result.passed:
        return case
    lines = [f"{each.field}: expected {each.expected}, but is {each.actual}" for each in result.differences]
    lines += [f"why: {result.verdict.decided_by}"] if result.verdict.decided_by else []
    return replace(case, tag="failure", text="\n".join(lines), kind="failure")


def _record(result: Result) -> dict[str, Any]:
    case = result.case
    return {
        "suite": str(case.suite.file),
        "line": result.line,
        "name": case.fields.name,
        "object": result.object,
        "passed": result.passed,
        "differences": result.differences,
        "actual": result.verdict.as_json(),
    }
