"""Reviews of workloads: says no where the person applies, before their pods would be refused out of sight.

Nothing is patched and nothing is booked here. What was wrong before is never refused on an update.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import msgspec

from webhook.admission.ports import Cluster, Ledger
from webhook.admission.quota import choices
from webhook.admission.review import Request
from webhook.policy.assignment import Ask, Assignment, asked_by
from webhook.policy.demand import demand_of, flavor_of
from webhook.policy.facts import Facts, Kind, Workload
from webhook.policy.objects import Pod
from webhook.policy.quota import Charge, free, never_fits, too_large
from webhook.policy.recall import settle
from webhook.policy.refusal import Refused, Unreadable
from webhook.policy.templates import workload
from webhook.policy.tenants import tenant_of
from webhook.policy.tier_policy import TierPolicy
from webhook.policy.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Part:
    """The pods of one template: what they ask for, their tier, and the GPUs they hold together."""

    ask: Ask
    assignment: Assignment
    charge: Charge


async def validate(request: Request, cluster: Cluster, ledger: Ledger, policy: TierPolicy) -> Verdict:
    """A workload's verdict; on an update, a refusal that the old object would get as well is only a warning."""
    verdict = await _judge(request.object, request, cluster, ledger, policy)
    if request.operation == "UPDATE" and verdict.refusal is not None:
        before = await _judge(request.old_object, request, cluster, ledger, policy)
        if before.refusal is not None:
            return replace(verdict, refusal=None, warnings=(*verdict.warnings, verdict.refusal))
    return verdict


async def _judge(raw: msgspec.Raw, request: Request, cluster: Cluster, ledger: Ledger, policy: TierPolicy) -> Verdict:
    try:
        facts = await _facts(raw, request, cluster)
        parts = list(parts_of(facts, policy))
    except Refused as refused:
        return Verdict(refusal=refused.sentence)
    if not parts:
        return Verdict()
    warnings = tuple(dict.fromkeys(warning for part in parts for warning in part.assignment.warnings))
    tenant = facts.tenant
    verdict = Verdict(parts[0].assignment, warnings=warnings, tenant=tenant.name if tenant else None)
    return _against_quota(verdict, parts, f"this {request.kind.kind}", ledger)


async def _facts(raw: msgspec.Raw, request: Request, cluster: Cluster) -> Facts:
    tree: Any = msgspec.json.decode(raw)
    if not isinstance(tree, dict):
        raise Refused("object: not an object")
    own = workload(tree, Kind(request.kind.group, request.kind.kind))
    try:
        home = await cluster.namespace(request.namespace)
    except Unreadable as problem:
        raise Refused(str(problem)) from problem
    return Facts(home, cluster.classes(), (own,), tenant_of(home.labels, cluster.tenants()))


def parts_of(facts: Facts, policy: TierPolicy) -> Iterator[Part]:
    """The workload's templates that are ours, as their pods will be judged. Raises Refused as those would be."""
    own: Workload = facts.owners[0]
    demands = [demand_of(member.template, (), policy) for member in own.members]
    if not any(demands):
        return
    for member, demand in zip(own.members, demands, strict=True):
        ask = asked_by(member.template, facts, policy, holds_gpus=demand > 0)
        assignment = settle(ask)
        tier = assignment.tier.name if assignment.tier else None
        yield Part(ask, assignment, Charge(demand * member.count, tier, _flavor(member.template, policy)))


def _flavor(template: Pod, policy: TierPolicy) -> str | None:
    return flavor_of(template, policy.flavors)


def _against_quota(verdict: Verdict, parts: list[Part], what: str, ledger: Ledger) -> Verdict:
    """Refused where the tenant's rows could never hold it, warned about where they can't hold it now."""
    tenant = parts[0].ask.facts.tenant
    if tenant is None or tenant.charged_elsewhere or tenant.on_exceed != "Deny":
        return verdict
    for charge in _by_row_key(parts):
        row = never_fits(charge, tenant)
        if row is not None:
            return replace(verdict, refusal=too_large(row, charge, tenant, choices(parts[0].ask, tenant), what))
        left = free(charge.tier, charge.flavor, tenant, ledger.usage(tenant))
        if left is not None and left < charge.gpus:
            sentence = f"tenant {tenant.name}: {charge.tier} has {left} GPUs free; {what} asks for {charge.gpus} in all"
            verdict = replace(verdict, warnings=(*verdict.warnings, sentence))
    return verdict


def _by_row_key(parts: list[Part]) -> Iterator[Charge]:
    """The parts' charges, summed where they draw on the same rows."""
    sums: dict[tuple[str | None, str | None], Decimal] = {}
    for part in parts:
        key = (part.charge.tier, part.charge.flavor)
        sums[key] = sums.get(key, Decimal(0)) + part.charge.gpus
    for (tier, flavor), gpus in sums.items():
        yield Charge(gpus, tier, flavor)
