"""A suite's cases with all that they need: the policy, the cluster, the object that is applied, what others hold."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from webhook.cli.manifests.documents import BadInput, Document, documents
from webhook.cli.manifests.finding import is_fact
from webhook.cli.manifests.offline import cluster_of
from webhook.cli.policy_tests.suite import CaseSection, Place, Suite, UsedSection, all_of
from webhook.cluster.offline import ReadOnceCluster
from webhook.config.errors import ConfigError
from webhook.config.load import load, preset_policy
from webhook.ledger.protocol import Holding
from webhook.objects.group_kind import POD, POD_GROUP, SCHEDULING_WORKLOAD
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tier_policy import TierPolicy


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
