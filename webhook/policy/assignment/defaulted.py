"""The steps in which we choose a tier ourselves: by workload type, by namespace, by default."""

from webhook.policy.assignment.request import DEFAULT_TIER_LABEL, Assignment, TierRequest, found, named
from webhook.policy.classification.evidence import Evidence, Trust
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier


def by_type(request: TierRequest) -> Assignment | None:
    """The policy's tier for the workload type. A guess may lower the tier that applies without it, but not raise it."""
    guessed = _of(request.evidence, request.policy)
    if (
        guessed is None
        or request.evidence is None
        or request.evidence.trust is not Trust.GUESS
        or request.policy.guesses_may_raise
    ):
        return guessed
    otherwise = _of(request.evidence.otherwise, request.policy)
    stands = otherwise.tier if otherwise and otherwise.tier else _without_type(request)
    return guessed if guessed.tier and guessed.tier.value <= stands.value else otherwise


def _of(evidence: Evidence | None, policy: TierPolicy) -> Assignment | None:
    name = policy.tier_of_type.get(evidence.type) if evidence else None
    return found(named(name, "policy", policy), str(evidence)) if name else None


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
