"""Judges objects without a cluster: files are all that the webhook knows, and each object is created by itself."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from webhook.cli.manifests.documents import BadInput, Document
from webhook.cli.manifests.finding import Finding
from webhook.cli.manifests.judge import Judge, judge_of
from webhook.cluster.offline import ClusterAbout, ReadOnceCluster, offline_cluster
from webhook.config.tenant_quota_schema import tenant_quota_problems
from webhook.ledger.account import Account
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.rewrite import rewritten
from webhook.ledger.memory import MemoryLedger
from webhook.ledger.protocol import Holding
from webhook.objects.manifests import Manifest
from webhook.objects.refusal import Refused
from webhook.policy.classification.by_shape import with_objects_inside
from webhook.policy.quota.tenant_quotas import TENANT_QUOTA
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.sentences.sentence import sentence

NO_TENANTS = "No ceiling and no quota was checked: no TenantQuota was given (--tenants)."


def judge_for(policy: TierPolicy, world: Sequence[Document]) -> Judge:
    """Return a judge for whom the cluster has nothing but these objects, and nobody has booked anything."""
    return judge_at(cluster_of(policy, world), policy)


def judge_at(cluster: ReadOnceCluster, policy: TierPolicy, ledger: MemoryLedger | None = None) -> Judge:
    """Return a judge in that cluster, where nobody has booked anything; with a ledger it books what it judges."""
    policy = replace(policy, classes={**policy.classes, **cluster.known.device_classes})
    books = ledger or MemoryLedger()
    return judge_of(cluster, books, policy, dry_run=ledger is None)


def cluster_of(policy: TierPolicy, world: Sequence[Document]) -> ReadOnceCluster:
    """The cluster that these objects are. Raises BadInput naming those that are broken."""
    objects = [each for document in world for each in with_objects_inside(document, policy.kinds)]
    quotas = (each for each in objects if each.group_kind == TENANT_QUOTA)
    # what its schema refuses, an API server would not have
    problems = [f"{titled(each)}: {problem}" for each in quotas for problem in tenant_quota_problems(each.tree)]
    if problems:
        raise BadInput("\n".join(problems))
    try:
        return offline_cluster(policy.tiers, [each.identified for each in objects])
    except Refused as refused:
        for each in objects:
            try:
                offline_cluster(policy.tiers, [each.tree])
            except Refused as broken:
                problems.append(f"{titled(each)}: {sentence(broken.refusal)}")
        raise BadInput("\n".join(problems) or sentence(refused.refusal)) from None


def in_all(cluster: ReadOnceCluster) -> ClusterAbout:
    """Judge every object in that cluster."""
    return lambda _: cluster


def titled(document: Manifest) -> str:
    return f"{document.source}: {document.kind}/{document.name}"


async def judged_alone(
    document: Document, cluster: ReadOnceCluster, policy: TierPolicy, held: Mapping[str, Holding] | None = None
) -> Finding:
    """The finding for an object as in Enforce. What it books is forgotten, so that the next one has the same room.

    `held` are the pods that exist, by uid. Where no row counts them, one pod of each template tells it all.
    """
    tenant = cluster.known.tenant(await cluster.known.namespace(document.namespace))
    if tenant is None or not tenant.rows:
        return await judge_at(cluster, policy).finding(document)
    ledger = MemoryLedger()
    ledger.store.set(tenant, _account(tenant, cluster, held or {}))
    return await judge_at(cluster, policy, ledger).finding(document)


def _account(tenant: Tenant, cluster: ReadOnceCluster, held: Mapping[str, Holding]) -> Account:
    theirs = {each.namespace for each in held.values() if cluster.known.tenant_name(each.namespace) == tenant.name}
    view = PodView(lambda _: None)
    view.observe_all(held)
    return rewritten(Account(namespaces=dict.fromkeys(theirs, "open")), view)


async def judged_quickly(document: Document, cluster: ReadOnceCluster, policy: TierPolicy) -> Finding:
    """Judge an object with one pod of each template, because a whole workload has room or not.

    Only where a tenant's pods are demoted may they differ: then each is judged.
    """
    tenant = cluster.known.tenant(await cluster.known.namespace(document.namespace))
    if tenant is not None and tenant.demotes:
        return await judged_alone(document, cluster, policy)
    return await judge_at(cluster, policy).finding(document)
