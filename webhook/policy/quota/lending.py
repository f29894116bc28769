"""Finds the lower tiers in which a tenant's workloads may run above its quota (onExceed: Demote)."""

from collections.abc import Iterator

from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier
from webhook.policy.workloads.workload_types import WorkloadType


def lent_tiers(chosen: Tier, workload_type: WorkloadType | None, tenant: Tenant, policy: TierPolicy) -> list[Tier]:
    """The lower tiers that a tenant's workloads of a type may be demoted to, in the order of choice.

    1. Those of `demoteTo`: the tenant's, else the policy's.
    2. Where neither names any, the highest first: all but those that `workloadTypes` gives to other types alone. So
       training does not take the GPUs of notebooks. The tiers of batch are for all: nobody waits for what runs there.
    """
    below = [tier for tier in policy.tiers if tier.value < chosen.value and tenant.may_use(tier, policy.tiers)]
    listed = tenant.demote_to or policy.demote_to
    if listed:
        return sorted((tier for tier in below if tier.name in listed), key=lambda tier: listed.index(tier.name))
    own = {name for each, name in policy.tier_of_type.items() if each in (WorkloadType.BATCH, workload_type)}
    others = set(policy.tier_of_type.values()) - own
    return [tier for tier in below if tier.name not in others]


def lent_from(chosen: Tier, tenant: Tenant, policy: TierPolicy) -> list[Tier]:
    """The same of the workloads that the policy puts into a tier: those of its types, and those of no known type."""
    types = [*(each for each, name in policy.tier_of_type.items() if name == chosen.name), None]
    return list(dict.fromkeys(tier for each in types for tier in lent_tiers(chosen, each, tenant, policy)))


def demotes_nowhere(tenant: Tenant, policy: TierPolicy) -> bool:
    """Whether a tenant is to demote, and can't: no lower tier takes what is over one of its rows.

    A row without a tier counts pods of every tier, so a lower one has no more room in it.
    """
    tiers = [policy.tiers.get(row.tier) for row in tenant.rows if row.tier]
    return tenant.demotes and bool(tenant.rows) and not any(lent_from(each, tenant, policy) for each in tiers if each)


def demotes_not_there(tenant: Tenant, policy: TierPolicy) -> Iterator[tuple[str, str]]:
    """The tiers of a tenant's demoteTo that lie below the tier of no row: the field and the tier."""
    rows = [tier.value for row in tenant.rows if (tier := policy.tiers.get(row.tier or ""))]
    for index, name in enumerate(tenant.demote_to if rows else ()):
        tier = policy.tiers.get(name)
        if tier is not None and tier.value >= max(rows):
            yield f"spec.demoteTo[{index}]", name
