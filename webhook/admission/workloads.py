"""Reviews of workloads: says no where the person applies, before their pods would be refused out of sight.

Nothing is patched and nothing is booked here. What was wrong before is never refused on an update.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import msgspec

from webhook.admission.examine import owners_of
from webhook.admission.ports import Cluster, Ledger
from webhook.admission.quota import tier_counted
from webhook.admission.review import Request
from webhook.policy.agreement import live_class
from webhook.policy.assignment import Ask, Assignment, asked_by
from webhook.policy.checkpoint import hook_plan
from webhook.policy.demand import demand_of, flavor_of
from webhook.policy.facts import Facts, Kind, Workload
from webhook.policy.limits import acceptable
from webhook.policy.objects import Named, Pod, read
from webhook.policy.quantity import written
from webhook.policy.quota import Charge, too_large
from webhook.policy.recall import settle
from webhook.policy.refusal import Refused, Unreadable
from webhook.policy.templates import workload
from webhook.policy.tenants import Row, Tenant, tenant_of
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
        facts = await _facts(raw, request, cluster, policy)
        parts = list(parts_of(facts, policy))
    except Refused as refused:
        return Verdict(refusal=refused.sentence)
    if not parts:
        return Verdict()
    warnings = tuple(dict.fromkeys(warning for part in parts for warning in part.assignment.warnings))
    tenant = facts.tenant
    verdict = Verdict(parts[0].assignment, warnings=warnings, tenant=tenant.name if tenant else None)
    return _against_quota(verdict, parts, request, ledger)


async def _facts(raw: msgspec.Raw, request: Request, cluster: Cluster, policy: TierPolicy) -> Facts:
    """The facts as the workload's pods will see them: it is their nearest owner, its own owners come after."""
    tree: Any = msgspec.json.decode(raw)
    if not isinstance(tree, dict):
        raise Refused("object: not an object")
    own = workload(tree, Kind(request.kind.group, request.kind.kind))
    try:
        home = await cluster.namespace(request.namespace)
        above = await owners_of(read(raw, Named).metadata.controller, request.namespace, cluster, policy)
    except Unreadable as problem:
        raise Refused(f"{problem}; without it the tier cannot be told") from problem
    return Facts(home, cluster.classes(), (own, *above), tenant_of(home.labels, cluster.tenants()))


def parts_of(facts: Facts, policy: TierPolicy) -> Iterator[Part]:
    """The workload's templates that are ours, as their pods will be judged. Raises Refused as those would be."""
    own: Workload = facts.owners[0]
    demands = [demand_of(member.template, (), policy) for member in own.members]
    if not any(demands):
        return
    for member, demand in zip(own.members, demands, strict=True):
        ask = asked_by(member.template, facts, policy, holds_gpus=demand > 0)
        assignment = settle(ask)
        _could_be_patched(member.template, assignment, ask)
        flavor = flavor_of(member.template, policy.flavors)
        yield Part(ask, assignment, Charge(demand * member.count, tier_counted(assignment, ask), flavor))


def _could_be_patched(template: Pod, assignment: Assignment, ask: Ask) -> None:
    """Raises Refused where the template's pods would be: no class to give them, or a hook that there is not."""
    if assignment.tier is not None:
        live_class(assignment.tier, ask)
    hook_plan(template, ask.evidence.type if ask.evidence else None, ask.facts.owners, ask.policy)


def _against_quota(verdict: Verdict, parts: list[Part], request: Request, ledger: Ledger) -> Verdict:
    """Refused where a row of the tenant could never hold it; at CREATE, warned about where one can't hold it now.

    At an update the pods that run already are among those that use the row, so that nothing is known of now.
    """
    tenant = parts[0].ask.facts.tenant
    if tenant is None or tenant.charged_elsewhere or tenant.on_exceed != "Deny":
        return verdict
    what, usage = f"this {request.kind.kind}", ledger.usage(tenant)
    for row, charge in _drawn(parts, tenant):
        if charge.gpus > row.hard:
            return replace(verdict, refusal=too_large(row, charge, tenant, acceptable(parts[0].ask), what))
        used = usage.get(row, Decimal(0))
        if request.operation == "CREATE" and used + charge.gpus > row.hard:
            verdict = replace(verdict, warnings=(*verdict.warnings, no_room_now(row, used, charge, tenant, what)))
    return verdict


def _drawn(parts: list[Part], tenant: Tenant) -> Iterator[tuple[Row, Charge]]:
    """What all parts together draw on each row, under the tier and flavor of the first that does."""
    for row in tenant.rows:
        charges = [
            part.charge for part in parts if part.charge.gpus and row.counts(part.charge.tier, part.charge.flavor)
        ]
        if charges:
            yield row, replace(charges[0], gpus=sum((each.gpus for each in charges), Decimal(0)))


def no_room_now(row: Row, used: Decimal, charge: Charge, tenant: Tenant, what: str) -> str:
    """The warning for a workload whose pods will be refused until others of the tenant end."""
    return (
        f"tenant {tenant.name}: {row.subject} is at {written(used)} of {written(row.hard)} GPUs; {what} asks for "
        f"{written(charge.gpus)} in all, so that not all of its pods can start now"
    )
