"""Work at risk as people are shown it: what to evict all training pods of a tier now would lose."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from webhook.cluster.listed import listed_namespaces, tenant_quotas
from webhook.kube.client import Client
from webhook.policy.checkpoint.work_lost import Work, summed, work_since
from webhook.policy.values.tenants import by_age, tenant_among
from webhook.policy.values.tier_policy import TierPolicy
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


async def read_risks(client: Client, policy: TierPolicy, names: Sequence[str] = ()) -> RisksOf:
    """Those of the pods that run now, of these tenants or of all. Raises ApiError.

    When a pod has saved last its program alone knows, so it is at most what the pod has done since its start. Claims
    are not read.
    """
    from webhook.cluster.pod_listing import list_pods, no_claims  # noqa: PLC0415 - imports what most commands don't need

    ranked = by_age(each.tenant for each in await tenant_quotas(client) if each.tenant)
    homes = {each.name: tenant_among(ranked, each.labels) for each in await listed_namespaces(client)}
    found, now = defaultdict[tuple[str, str, bool], float](float), datetime.now(UTC).timestamp()
    async for pod in list_pods(client, policy, no_claims):
        work, tenant = work_since(pod.gpus, now, None, pod.work_to_lose), homes.get(pod.namespace)
        name = tenant.name if tenant else ""
        if work is not None and pod.node and (not names or name in names):
            found[name, pod.tier or "", work.exact] += work.gpu_seconds
    return found
