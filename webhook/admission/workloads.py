"""Reviews of workloads: says no where the person applies, before their pods would be refused out of sight.

Nothing is patched and nothing is booked here. What was wrong before is never refused on an update.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import Any

import msgspec

from webhook.admission.facts import owners_of
from webhook.admission.parts import Part, parts_of
from webhook.admission.ports import Cluster, Ledger
from webhook.admission.review import Request
from webhook.admission.verdict import Verdict
from webhook.admission.workload_quota import against_quota
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Named
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import read
from webhook.policy.checkpoint.hook_warnings import Subject, hook_warnings
from webhook.policy.checkpoint.job_failures import job_warnings
from webhook.policy.values.facts import Facts
from webhook.policy.values.tenants import tenant_of
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.workload import workload
from webhook.policy.workloads.workload_types import WorkloadType


async def validate(request: Request, cluster: Cluster, ledger: Ledger, policy: TierPolicy) -> Verdict:
    """A workload's verdict; on an update, a refusal of the same mistake that the old object had is only a warning.

    A warning that was said before is not said again: controllers update what they reconcile all the time.
    """
    verdict = await _judge(request.object, request, cluster, ledger, policy)
    if request.operation != "UPDATE" or not (verdict.refusal or verdict.warnings):
        return verdict
    before = await _judge(request.old_object, request, cluster, ledger, policy)
    verdict = replace(verdict, warnings=tuple(each for each in verdict.warnings if each not in before.warnings))
    if verdict.refusal is not None and _alike(verdict.refusal, before.refusal):
        return replace(verdict, refusal=None, warnings=(*verdict.warnings, verdict.refusal))
    return verdict


def _alike(refusal: str, before: str | None) -> bool:
    """Whether it is the same mistake, its numbers aside: a workload that is too large may be scaled down in steps."""
    return before is not None and re.sub(r"[0-9.]+", "", refusal) == re.sub(r"[0-9.]+", "", before)


async def _judge(raw: msgspec.Raw, request: Request, cluster: Cluster, ledger: Ledger, policy: TierPolicy) -> Verdict:
    try:
        facts = await _facts(raw, request, cluster, policy)
        parts = list(parts_of(facts, policy))
    except Refused as refused:
        return Verdict(refusal=refused.sentence)
    if not parts:
        return Verdict()
    warnings = [warning for part in parts for warning in part.assignment.warnings]
    warnings += _of_hooks(raw, parts, facts, policy)
    tenant, once = facts.tenant, tuple(dict.fromkeys(warnings))
    speaker = max(parts, key=_weight)
    verdict = Verdict(speaker.assignment, warnings=once, tenant=tenant.name if tenant else None)
    return against_quota(verdict, parts, request, ledger)


def _weight(part: Part) -> tuple[Decimal, bool]:
    """Whose tier and type are said of the whole: who holds most; of a pipeline's like steps, the one that trains."""
    evidence = part.assignment.evidence
    return part.charge.gpus, evidence is not None and evidence.type is WorkloadType.TRAINING


async def _facts(raw: msgspec.Raw, request: Request, cluster: Cluster, policy: TierPolicy) -> Facts:
    """The facts as the workload's pods will see them: it is their nearest owner, its own owners come after."""
    tree: Any = msgspec.json.decode(raw)
    if not isinstance(tree, dict):
        raise Refused("object: not an object")
    own = workload(tree, policy.kinds.by_kind[GroupKind(request.kind.group, request.kind.kind)])
    try:
        home = await cluster.namespace(request.namespace)
        above = await owners_of(read(raw, Named).metadata.controller, request.namespace, cluster, policy)
    except Unreadable as problem:
        raise Refused(f"{problem}; without it the tier cannot be told") from problem
    return Facts(home, cluster.classes(), (own, *above), tenant_of(home.labels, cluster.tenants()))


def _of_hooks(raw: msgspec.Raw, parts: list[Part], facts: Facts, policy: TierPolicy) -> Iterator[str]:
    """What a person should know of the hooks; where another workload makes this one, it was said of that."""
    own, *above = facts.owners
    if any(owner.members for owner in above):
        return
    for part in parts:
        yield from hook_warnings(Subject(part.ask.pod, part.hook, policy.checkpoint))
    if any(part.hook.plan is not None for part in parts):
        yield from job_warnings(msgspec.json.decode(raw), own.kind)
