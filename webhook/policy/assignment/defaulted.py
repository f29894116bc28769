"""The steps in which we choose a tier ourselves: by workload type, by namespace, by default."""

from webhook.policy.assignment.request import DEFAULT_TIER_LABEL, Assignment, TierRequest, found, named
from webhook.policy.classification.evidence import Evidence
from webhook.policy.values.tiers import Tier


def by_type(request: TierRequest) -> Assignment | None:
    """The policy's tier for the workload type, if the evidence is good enough for it."""
    return _by_evidence(request.evidence, request)


def held_back(request: TierRequest) -> Tier | None:
    """The tier that a guess is too weak for; None where the type gives a tier, or the policy has none for it."""
    evidence = request.evidence
    if evidence is None or evidence.grade >= request.policy.raise_by:
        return None
    tier, given = _of_type(evidence, request), by_type(request)
    return tier if tier and (given is None or given.tier != tier) else None


def _of_type(evidence: Evidence | None, request: TierRequest) -> Tier | None:
    name = request.policy.tier_of_type.get(evidence.type) if evidence else None
    return named(name, "policy", request.policy) if name else None


def _by_evidence(evidence: Evidence | None, request: TierRequest) -> Assignment | None:
    """Evidence below the policy's raiseBy may lower the tier that stands without it, but not raise it."""
    tier = _of_type(evidence, request)
    if evidence is None or tier is None:
        return None
    if evidence.grade >= request.policy.raise_by:
        return found(tier, str(evidence))
    without = _by_evidence(evidence.otherwise, request)
    stands = without.tier if without and without.tier else _without_type(request)
    return found(tier, str(evidence)) if tier.value <= stands.value else without


def _without_type(request: TierRequest) -> Tier:
    """The default tier that would apply if nothing told the workload type."""
    default = by_namespace(request)
    return default.tier if default and default.tier else named(request.policy.default_tier, "policy", request.policy)


def by_namespace(request: TierRequest) -> Assignment | None:
    """The tenant's default, then the namespace's own."""
    tenant, namespace = request.facts.tenant, request.facts.namespace
    if tenant is not None and tenant.default_tier:
        tier = named(tenant.default_tier, f"TenantQuota/{tenant.name}: spec.defaultTier", request.policy)
        return found(tier, f"the default of tenant {tenant.name}")
    if DEFAULT_TIER_LABEL in namespace.labels:
        field = f"Namespace/{namespace.name}: metadata.labels[{DEFAULT_TIER_LABEL}]"
        tier = named(namespace.labels[DEFAULT_TIER_LABEL], field, request.policy)
        return found(tier, f"the default of namespace {namespace.name}")
    return None


def by_default(request: TierRequest) -> Assignment:
    """The policy's default tier: the presets have one that evicts nobody."""
    return found(named(request.policy.default_tier, "policy", request.policy), "the policy's default")
