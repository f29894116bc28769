"""The steps in which we choose a tier ourselves: by workload type, by default; never against what somebody named."""

from webhook.policy.assignment import DEFAULT_TIER_LABEL, Ask, Assignment, found, named
from webhook.policy.evidence import Evidence
from webhook.policy.tier_policy import TierPolicy
from webhook.policy.tiers import Tier


def by_type(ask: Ask) -> Assignment | None:
    """The policy's tier for the workload type. A guess may lower a workload below its tier without it, never raise."""
    guessed = _of(ask.evidence, ask.policy)
    if guessed is None or ask.evidence is None or not ask.evidence.guess or ask.policy.guesses_may_raise:
        return guessed
    otherwise = _of(ask.evidence.otherwise, ask.policy)
    stands = otherwise.tier if otherwise and otherwise.tier else _without_type(ask)
    return guessed if guessed.tier and guessed.tier.value <= stands.value else otherwise


def _of(evidence: Evidence | None, policy: TierPolicy) -> Assignment | None:
    name = policy.tier_of_type.get(evidence.type) if evidence else None
    return found(named(name, "policy", policy), str(evidence)) if name else None


def _without_type(ask: Ask) -> Tier:
    """The default tier that would apply if nothing told the workload type."""
    default = by_namespace(ask)
    return default.tier if default and default.tier else named(ask.policy.default_tier, "policy", ask.policy)


def by_namespace(ask: Ask) -> Assignment | None:
    """The tenant's default, then the namespace's own."""
    tenant, namespace = ask.facts.tenant, ask.facts.namespace
    if tenant is not None and tenant.default_tier:
        tier = named(tenant.default_tier, f"TenantQuota/{tenant.name}: spec.defaultTier", ask.policy)
        return found(tier, f"the default of tenant {tenant.name}")
    if DEFAULT_TIER_LABEL in namespace.labels:
        field = f"Namespace/{namespace.name}: metadata.labels[{DEFAULT_TIER_LABEL}]"
        tier = named(namespace.labels[DEFAULT_TIER_LABEL], field, ask.policy)
        return found(tier, f"the default of namespace {namespace.name}")
    return None


def by_default(ask: Ask) -> Assignment:
    """The policy's default tier: the presets have one that evicts nobody."""
    return found(named(ask.policy.default_tier, "policy", ask.policy), "the policy's default")
