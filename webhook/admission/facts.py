"""Gathers the facts about one pod and what it asks for; decides nothing."""

from dataclasses import dataclass
from decimal import Decimal

from webhook.admission.ports import Cluster
from webhook.objects.pods import OwnerReference, Pod, PodGroup
from webhook.objects.refusal import Refused, Unreadable
from webhook.policy.assignment.request import TierRequest, tier_request
from webhook.policy.assignment.scope import concerns, may_concern
from webhook.policy.quota.demand import demand_of, flavor_of
from webhook.policy.values.facts import Facts, Workload
from webhook.policy.values.tenants import tenant_of
from webhook.policy.values.tier_policy import TierPolicy


@dataclass(frozen=True, slots=True)
class Examined:
    """A pod that is ours: what it asks for, the GPUs it holds, and their flavor where it names one."""

    ask: TierRequest
    demand: Decimal
    flavor: str | None


async def examine(pod: Pod, namespace: str, cluster: Cluster, policy: TierPolicy) -> Examined | None:
    """The pod's examination; None where it is not ours. Raises Refused where a fact is missing that must be there."""
    if not may_concern(pod, policy):
        return None
    facts = await _facts(pod, namespace, cluster, policy)
    demand = demand_of(pod, facts.devices, policy)
    if not concerns(pod, demand, facts, policy):
        return None
    ask = tier_request(pod, facts, policy, holds_gpus=demand > 0)
    return Examined(ask, demand, flavor_of(pod, policy.flavors))


def whole(found: Pod | PodGroup) -> None:
    """Raises Refused where an object lacks a half: a patch below a path that is not there fails with a 500."""
    nothing = type(found)()  # what a view holds in the place of an absent half is the same object in each
    for field, half, absent in (("metadata", found.metadata, nothing.metadata), ("spec", found.spec, nothing.spec)):
        if half is absent:
            raise Refused(f"{field}: absent; without it there is nothing to give a tier to")


async def _facts(pod: Pod, namespace: str, cluster: Cluster, policy: TierPolicy) -> Facts:
    try:
        home = await cluster.namespace(namespace)
        scheduled = pod.spec.scheduling_group
        return Facts(
            namespace=home,
            classes=cluster.classes(),
            owners=await owners_of(pod.metadata.controller, namespace, cluster, policy),
            tenant=tenant_of(home.labels, cluster.tenants()),
            group=await cluster.group(namespace, scheduled.pod_group_name) if scheduled else None,
            devices=await cluster.devices(namespace, pod) if pod.spec.resource_claims else (),
        )
    except Unreadable as problem:
        raise Refused(f"{problem}; without it the tier cannot be told") from problem


async def owners_of(
    controller: OwnerReference | None, namespace: str, cluster: Cluster, policy: TierPolicy
) -> tuple[Workload, ...]:
    """The owners; where one can't be read, nobody's tier is guessed unless the policy says so."""
    if controller is None:
        return ()
    try:
        return await cluster.owners(namespace, controller, policy.kinds)
    except Unreadable:
        if policy.unreadable_owners == "DefaultTier":
            return ()
        raise
