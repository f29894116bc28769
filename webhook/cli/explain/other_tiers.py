"""Finds the tiers that would take an object if it named them, and what closes the others."""

from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from webhook.admission.facts import usage_met
from webhook.cli.cluster.one_object import AskedCluster
from webhook.kube.discovery import is_allowed, use_of_class
from webhook.ledger.protocol import Ledger
from webhook.objects.pods import Pod
from webhook.objects.quantities import written, written_gpus
from webhook.policy.assignment.limits import acceptable, charge_of_all
from webhook.policy.assignment.request import TierRequest, tier_request
from webhook.policy.classification.classify import classify
from webhook.policy.decide import Decision, whole_charge
from webhook.policy.quota.charges import never_fits, row_usage, shortfall, together
from webhook.policy.quota.native_quotas import NativeQuota, NativeRoom, native_rooms
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier
from webhook.sentences.sentence import sentence


class Situation(msgspec.Struct, frozen=True):
    """The situation of an object that names another tier: the ledger without the pods that it replaces.

    `native` are the ResourceQuotas of its namespace without these pods, and `may_name` the tiers that its user may
    name; None for all. `own` are the uids under which the queue reserves GPUs for it. `count` is the number of pods
    that need room; `together`: all that its workload needs, at once.
    """

    ledger: Ledger
    native: Collection[NativeQuota] = ()
    may_name: Collection[str] | None = None
    own: Collection[str] = ()
    count: int = 1
    together: bool = False


class Offer(NamedTuple):
    """The reasons that keep an object from a tier, "" for none: what bars it for good, and what has no room for it now.

    `queues`: those of its pods that have no room are queued.
    """

    barred: str = ""
    lacks: str = ""
    queues: bool = False

    @property
    def closed(self) -> str:
        """Return what closes the tier to it; "" for a tier that would take it or queue it."""
        return self.barred or ("" if self.queues else self.lacks)

    @property
    def has_room(self) -> bool:
        return not (self.barred or self.lacks)


async def tiers_to_name(asked: AskedCluster, namespace: str) -> tuple[str, ...] | None:
    """Return the tiers that the user may name in a namespace; None if anyone may name all. Raises ApiError."""
    if asked.policy.tier_access == "Anyone":
        return None
    names = [tier.name for tier in asked.policy.tiers]
    return tuple([each for each in names if await is_allowed(asked.reader.client, None, use_of_class(each, namespace))])


def tiers_of_type(pod: Pod, facts: Facts, policy: TierPolicy) -> list[Tier]:
    """Return the tiers that a pod may have by its type and its tenant, also if the tier that it names is refused."""
    evidence = classify(pod, facts.owners, policy.kinds)
    return acceptable(tier_request(pod, facts, policy, evidence, holds_gpus=True))


def offers(decision: Decision, situation: Situation) -> dict[str, Offer]:
    """Return what each tier of the policy would do with the object."""
    found = dict[str, Offer]()
    for tier in decision.tier_request.policy.tiers:
        charge = replace(decision.charge, tier=tier.name) if decision.charge else None
        barred = next(_bars(tier, decision.tier_request, situation), "")
        found[tier.name] = Offer(barred) if barred else _fit(tier, replace(decision, charge=charge), situation)
    return found


def full_resource_quota(room: NativeRoom | None, gpus: Decimal) -> str:
    """Return the ResourceQuota that leaves less than these GPUs, with what it leaves; "" if none does."""
    if room is None or room.left >= gpus:
        return ""
    return f"ResourceQuota/{room.quota} leaves {written_gpus(max(room.left, Decimal(0)))}"


def none_open(offered: Mapping[str, Offer], own: Collection[str | None]) -> str:
    """Return the sentence that no tier except its `own` ones is open, with each reason once."""
    named = dict.fromkeys(each.closed for tier, each in offered.items() if tier not in own)
    return f"No other tier is open to it: {'; '.join(named) or 'the policy has no other'}."


def _bars(tier: Tier, asked: TierRequest, situation: Situation) -> Iterator[str]:
    """Yield what bars the tier for good: the tenant's limits, the policy's limits for the type, or tierAccess."""
    tenant, policy = asked.facts.tenant, asked.policy
    if tenant is not None and not tenant.may_use(tier, policy.tiers):
        field = f"maxTier {tenant.max_tier}" if tenant.allowed_tiers is None else "allowedTiers"
        yield f"{field} of TenantQuota/{tenant.name} excludes {tier.name}"
    if tier not in acceptable(asked) and asked.evidence is not None:
        yield f"allowedTiersByType of the policy excludes {tier.name} for {asked.evidence.type} workloads"
    if situation.may_name is not None and tier.name not in situation.may_name:
        yield f"you may not name {tier.name} here (tierAccess: RBAC)"


def _fit(tier: Tier, decision: Decision, situation: Situation) -> Offer:
    asked, charge = decision.tier_request, decision.charge
    tenant, policy = asked.facts.tenant, asked.policy
    if charge is None:
        return Offer()
    whole = charge_of_all(asked, charge)
    whole = replace(whole, gpus=max(whole.gpus, whole_charge(charge, asked.facts.together).gpus))
    needs = (whole,) if situation.together else (charge,) * situation.count
    gpus = together(needs)
    count = gpus / charge.gpus if charge.gpus else Decimal(1)
    who = "all of its pods ask" if situation.together else f"its {situation.count} pods ask" if count > 1 else "it asks"
    asks = f"{who} for {written(gpus)}"

    # 1. ResourceQuotas, by which the API server refuses even if the tenant's quota has room or a queue.
    room = native_rooms(asked.pod, gpus, situation.native, policy, count).get(tier.name)
    if full := full_resource_quota(room, gpus):
        left = f"{full} of {tier.name}"
        return Offer(lacks=f"{left}, and {asks}" if count > 1 else left)

    # 2. The tenant's rows: whether they could ever hold all of its pods, and then whether they have room or a queue.
    if tenant is None or tenant.charged_elsewhere:
        return Offer()
    row = never_fits(whole if situation.together or tenant.on_exceed != "Demote" else charge, tenant)
    if row is not None and tenant.action(row) != "Warn":
        hard = f"{row.subject} of TenantQuota/{tenant.name} allows {written_gpus(row.hard)}"
        return Offer(lacks=f"{hard}, but this workload asks for {written(whole.gpus)} in all")
    usage, reserved = usage_met(situation.ledger, tenant, policy.tiers.rank(tier.name), own=situation.own)
    short = shortfall(needs, tenant, usage)
    if short is None or tenant.action(short.row) == "Warn":
        return Offer()
    used, quota = sentence(row_usage(short.row, usage, reserved)), f"TenantQuota/{tenant.name}"
    which = f"which asks for {written(gpus)}" if count == 1 and not situation.together else f"and {asks}"
    without = f"in {quota} {used} without this workload, {which}"
    return Offer(lacks=f"{quota}: {used}" if short.row.spent else without, queues=decision.gets_gate)
