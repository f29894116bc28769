"""Work at risk as people are shown it: what to evict all training pods of a tier now would lose."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from webhook.policy.checkpoint.at_risk import Work, summed
from webhook.report.shown import Shown

RisksOf = Mapping[tuple[str, str, bool], float]
"""GPU-seconds by tenant, tier, and whether they are exact."""


class TierAtRisk(Shown, frozen=True):
    """The work at risk in a tier. `tier` is "" for pods without one."""

    tier: str
    work: Work


class TenantAtRisk(Shown, frozen=True):
    """The same of a tenant in a tier, both "" for none."""

    tenant: str
    tier: str
    work: Work


def at_risk_by_tier(found: RisksOf, tiers: Sequence[str]) -> tuple[TierAtRisk, ...]:
    """The highest tier first; without those where nothing is."""
    parts: defaultdict[str, list[Work]] = defaultdict(list)
    for (_, tier, exact), gpu_seconds in found.items():
        parts[tier].append(Work(gpu_seconds, exact))
    names = [*tiers, *sorted(parts.keys() - {*tiers})]
    return tuple(TierAtRisk(name, summed(parts[name])) for name in names if name in parts)
