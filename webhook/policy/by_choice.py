"""The steps in which we choose a tier ourselves: by workload type, by default; never against what somebody named."""

from webhook.policy.assignment import DEFAULT_TIER_LABEL, Ask, Assignment, found, named
from webhook.policy.tiers import Tier


def by_type(ask: Ask) -> Assignment | None:
    """The policy's tier for the workload type. A guess may lower a workload below its default tier, never raise it."""
    evidence = ask.evidence
    name = ask.policy.tier_of_type.get(evidence.type) if evidence else None
    if evidence is None or name is None:
        return None
    tier = named(name, "policy", ask.policy)
    if evidence.guess and not ask.policy.guesses_may_raise and tier.value > _without_type(ask).value:
        return None
    return found(tier, str(evidence))


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
