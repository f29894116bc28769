"""Gathers the facts about a pod, a PodGroup or a workload: what the cluster says now."""

from webhook.admission.cluster_protocol import Cluster
from webhook.objects.pods import Metadata, OwnerReference, Pod, PodSpec
from webhook.objects.refusal import Refused, Unreadable
from webhook.policy.values.facts import Devices, Facts, Group
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.workload import Workload


async def facts_of(
    found: Pod | Metadata, namespace: str, cluster: Cluster, policy: TierPolicy, *, own: Workload | None = None
) -> Facts:
    """The facts about a pod, or about another object by its metadata; `own` is a workload itself, its pods' owner.

    Raises Refused where one of them can't be read.
    """
    pod, metadata = (found, found.metadata) if isinstance(found, Pod) else (None, found)
    try:
        home = await cluster.namespace(namespace)
        above = await _owners(metadata.controller, namespace, cluster, policy)
        return Facts(
            namespace=home,
            classes=cluster.classes(),
            owners=above if own is None else (own, *above),
            tenant=cluster.tenant(home),
            group=await _group(pod.spec, namespace, cluster) if pod else None,
            devices=await _devices(pod, namespace, cluster) if pod else (),
        )
    except Unreadable as problem:
        raise Refused(f"{problem}; without it gpu-tiers can't choose a tier") from problem


async def _owners(
    controller: OwnerReference | None, namespace: str, cluster: Cluster, policy: TierPolicy
) -> tuple[Workload, ...]:
    """The owners; where one can't be read, no tier is guessed unless the policy says so."""
    if controller is None:
        return ()
    try:
        return await cluster.owners(namespace, controller, policy.kinds)
    except Unreadable:
        if policy.unreadable_owners == "DefaultTier":
            return ()
        raise


async def _group(spec: PodSpec, namespace: str, cluster: Cluster) -> Group | None:
    scheduled = spec.scheduling_group
    return await cluster.group(namespace, scheduled.pod_group_name) if scheduled else None


async def _devices(pod: Pod, namespace: str, cluster: Cluster) -> tuple[Devices, ...]:
    return await cluster.devices(namespace, pod) if pod.spec.resource_claims else ()
