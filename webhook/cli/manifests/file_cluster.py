"""The objects of files as the cluster in which others are judged: TenantQuotas, Namespaces and what else they hold."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from webhook.cli.manifests.documents import BadInput, Document, LeftOut, called, documents
from webhook.cluster.offline import ReadOnceCluster, offline_cluster
from webhook.config.tenant_quota_schema import tenant_quota_problems
from webhook.objects.manifests import Manifest
from webhook.objects.refusal import Refused
from webhook.policy.classification.by_shape import with_objects_inside
from webhook.policy.quota.tenant_quotas import TENANT_QUOTA
from webhook.policy.values.tier_policy import TierPolicy
from webhook.sentences.sentence import sentence


def tenants_in(paths: Iterable[Path], left_out: list[LeftOut] | None = None) -> list[Document]:
    """Return the objects of --tenants. Raises BadInput, also for a file without a TenantQuota or a Namespace."""
    world: list[Document] = []
    for path in paths:
        found = list(documents(str(path), left_out))
        if not any(document.kind in ("TenantQuota", "Namespace") for document in found):
            raise BadInput(f"{called(str(path))}: holds no TenantQuota and no Namespace")
        world += found
    return world


def cluster_of(policy: TierPolicy, world: Sequence[Document]) -> ReadOnceCluster:
    """Return the cluster of these objects. Raises BadInput naming the broken ones."""
    objects = [each for document in world for each in with_objects_inside(document, policy.kinds)]
    quotas = (each for each in objects if each.group_kind == TENANT_QUOTA)
    # an API server would refuse these by their schema
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


def titled(document: Manifest) -> str:
    return f"{document.source}: {document.kind}/{document.name}"
