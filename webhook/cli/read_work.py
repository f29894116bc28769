"""Reads the pods of a cluster for the work at risk: by tenant and tier, since the start of each pod."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime

import typer

from webhook.cli.listed import listed_namespaces, tenant_quotas
from webhook.kube.client import Client
from webhook.policy.checkpoint.at_risk import work_since
from webhook.policy.values.tenants import by_age, tenant_among
from webhook.policy.values.tier_policy import TierPolicy
from webhook.report.at_risk_now import RisksOf

AT_RISK = typer.Option("--at-risk", help="Read all pods too, and show what to evict training pods now would lose.")


async def read_risks(client: Client, policy: TierPolicy) -> RisksOf:
    """Of the pods that run now. Raises ApiError.

    When a pod has saved last its program alone knows, so it is at most what the pod has done since its start. Claims
    are not read.
    """
    from webhook.cluster.pod_listing import list_pods, no_claims  # noqa: PLC0415 - imports what most commands don't need

    ranked = by_age(each.tenant for each in await tenant_quotas(client) if each.tenant)
    homes = {each.name: tenant_among(ranked, each.labels) for each in await listed_namespaces(client)}
    found, now = defaultdict[tuple[str, str, bool], float](float), datetime.now(UTC).timestamp()
    async for pod in list_pods(client, policy, no_claims):
        work = work_since(pod.gpus, now, None, pod.work_to_lose)
        if work is not None and pod.node:
            tenant = homes.get(pod.namespace)
            found[tenant.name if tenant else "", pod.tier or "", work.exact] += work.gpu_seconds
    return found


def risks_of(found: RisksOf, names: Sequence[str]) -> RisksOf:
    """Those of the tenants; of all without names."""
    return {key: gpu_seconds for key, gpu_seconds in found.items() if not names or key[0] in names}
