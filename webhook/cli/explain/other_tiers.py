"""Finds the tiers that would take an object if it named them, and what closes the others."""

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal

import msgspec
from msgspec.structs import replace

from webhook.admission.facts import usage_met
from webhook.cli.cluster.one_object import AskedCluster
from webhook.kube.discovery import is_allowed, use_of_class
from webhook.ledger.protocol import Ledger
from webhook.objects.quantities import written, written_gpus
from webhook.policy.assignment.limits import acceptable, charge_of_all
from webhook.policy.decide import Decision, whole_charge
from webhook.policy.quota.charges import never_fits, row_usage, shortfall
from webhook.policy.quota.native_quotas import NativeQuota, native_rooms
from webhook.policy.values.tiers import Tier
from webhook.sentences.sentence import sentence


class Situation(msgspec.Struct, frozen=True):
    """The situation of an object that names another tier: the ledger without the pods that it replaces.

    `native` are the ResourceQuotas of its namespace, and `may_name` the tiers that its user may name; None for all.
    `own` are the uids under which the queue reserves GPUs for it.
    """

    ledger: Ledger
    native: Collection[NativeQuota] = ()
    may_name: Collection[str] | None = None
    own: Collection[str] = ()


async def tiers_to_name(asked: AskedCluster, namespace: str) -> tuple[str, ...] | None:
    """Return the tiers that the user may name in a namespace; None if anyone may name all. Raises ApiError."""
    if asked.policy.tier_access == "Anyone":
        return None
    names = [tier.name for tier in asked.policy.tiers]
    return tuple([each for each in names if await is_allowed(asked.reader.client, None, use_of_class(each, namespace))])


def closed_tiers(decision: Decision, situation: Situation, *, together: bool) -> dict[str, str]:
    """Return what closes each tier of the policy to the object; "" for a tier that would take it or queue it.

    `together`: all of its pods need room at once.
    """
    return {
        tier.name: next(_obstacles(tier, decision, situation, together=together), "")
        for tier in decision.tier_request.policy.tiers
    }


def none_open(closed: Mapping[str, str], own: Collection[str | None]) -> str:
    """Return the sentence that no tier except its `own` ones is open, with each reason once."""
    named = dict.fromkeys(reason for tier, reason in closed.items() if tier not in own)
    return f"No other tier is open to it: {'; '.join(named) or 'the policy has no other'}."


def _obstacles(tier: Tier, decision: Decision, situation: Situation, *, together: bool) -> Iterator[str]:
    asked, charge = decision.tier_request, decision.charge
    tenant, policy = asked.facts.tenant, asked.policy
    # 1. Who may name the tier at all, and for what.
    if tenant is not None and not tenant.may_use(tier, policy.tiers):
        field = f"maxTier {tenant.max_tier}" if tenant.allowed_tiers is None else "allowedTiers"
        yield f"{field} of TenantQuota/{tenant.name} excludes {tier.name}"
    if tier not in acceptable(asked) and asked.evidence is not None:
        yield f"allowedTiersByType of the policy excludes {tier.name} for {asked.evidence.type} workloads"
    if situation.may_name is not None and tier.name not in situation.may_name:
        yield f"you may not name {tier.name} here (tierAccess: RBAC)"
    if charge is None:
        return

    # 2. ResourceQuotas, by which the API server refuses even if the tenant's quota has room or a queue.
    charge = replace(charge, tier=tier.name)
    room = native_rooms(asked.pod, charge.gpus, situation.native, policy).get(tier.name)
    if room is not None and room.left < charge.gpus:
        yield f"ResourceQuota/{room.quota} leaves {written_gpus(max(room.left, Decimal(0)))} of {tier.name}"

    # 3. The tenant's rows: whether they could ever hold all of its pods, and then whether they have room or a queue.
    if tenant is None or tenant.charged_elsewhere:
        return
    whole = charge_of_all(asked, charge)
    whole = replace(whole, gpus=max(whole.gpus, whole_charge(charge, asked.facts.together).gpus))
    needs = whole if together else charge
    row = never_fits(whole if tenant.on_exceed != "Demote" else needs, tenant)
    if row is not None and tenant.action(row) != "Warn":
        hard = f"{row.subject} of TenantQuota/{tenant.name} allows {written_gpus(row.hard)}"
        yield f"{hard}, and all of its pods ask for {written(whole.gpus)}"
    usage, reserved = usage_met(situation.ledger, tenant, policy.tiers.rank(tier.name), own=situation.own)
    short = shortfall((needs,), tenant, usage)
    if short is not None and tenant.action(short.row) != "Warn" and not replace(decision, charge=charge).gets_gate:
        used, quota = sentence(row_usage(short.row, usage, reserved)), f"TenantQuota/{tenant.name}"
        yield (
            f"{quota}: {used}"
            if short.row.spent
            else f"{used} of {quota} without it, and it asks for {written(needs.gpus)}"
        )
