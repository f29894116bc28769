"""What whoever writes a TenantQuota should hear at once: names that nothing has, namespaces, a quota below its use.

None of it is a reason to refuse: the policy, the namespaces and the pods may change tomorrow. Each starts with its id.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from webhook.objects.quantities import written
from webhook.objects.refusal import first_of
from webhook.policy.quota.conditions import unknown_names
from webhook.policy.quota.usage_status import NOTHING
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tenants import Tenant, Usage, by_age
from webhook.policy.values.tier_policy import TierPolicy

MOST_NAMES = 2
"""Namespaces that a warning names before it counts the others: the API server cuts a long one."""

UsageOf = Callable[[Tenant, Collection[str]], Usage]
"""GPUs on each of a tenant's rows that these namespaces hold."""


def tenant_warnings(
    tenant: Tenant, others: Iterable[Tenant], namespaces: Sequence[Namespace], usage_of: UsageOf, policy: TierPolicy
) -> tuple[str, ...]:
    """The warnings about a TenantQuota beside these others. Without `namespaces` nothing is said of its selector."""
    ranked = by_age([tenant, *others])
    selecting = {
        each.name: [other for other in ranked if other is tenant or other.selects(each.labels)]
        for each in namespaces
        if tenant.selects(each.labels)
    }
    own = {name for name, (owner, *_) in selecting.items() if owner is tenant}
    return (
        *(f"{_IDS[reason]} {sentence}" for reason, sentence in unknown_names(tenant, policy)),
        *_above_ceiling(tenant, policy),
        *_not_rendered(tenant),
        *(_selects_nothing(namespaces) if not selecting else ()),
        *_overlaps(tenant, selecting),
        *_below_use(tenant, usage_of(tenant, own)),
    )


_IDS = {"UnknownTier": "[unknown-tier]", "UnknownFlavor": "[unknown-flavor]"}


def _above_ceiling(tenant: Tenant, policy: TierPolicy) -> Iterator[str]:
    """Tiers that the tenant names and may not use. The API server refuses those beside `allowedTiers`."""
    rows = ((f"spec.quotas[{index}].tier", row.tier) for index, row in enumerate(tenant.rows))
    for where, name in (("spec.defaultTier", tenant.default_tier), *rows):
        tier = policy.tiers.get(name or "")
        if tier is not None and tenant.max_tier and not tenant.may_use(tier, policy.tiers):
            yield f"[above-ceiling] {where}: {tier.name} is above spec.maxTier, {tenant.max_tier}; no pod may have it"


def _not_rendered(tenant: Tenant) -> Iterator[str]:
    """Rows that the backstop lacks."""
    for index, row in enumerate(tenant.rows if tenant.backstop else ()):
        if row.flavor is not None:
            yield (
                f"[not-rendered] spec.quotas[{index}]: a ResourceQuota can't count by resourceFlavor; "
                "the backstop lacks this row, and gpu-tiers alone holds it"
            )


def _selects_nothing(namespaces: Sequence[Namespace]) -> Iterator[str]:
    if namespaces:
        yield (
            "[selects-nothing] spec.namespaceSelector selects no namespace that exists now; "
            "compare it with kubectl get namespaces --show-labels"
        )


def _overlaps(tenant: Tenant, selecting: Mapping[str, Sequence[Tenant]]) -> Iterator[str]:
    """Namespaces that an older one keeps from it, and those that it keeps from younger ones."""
    shared: dict[Tenant, list[str]] = {}
    for name, (owner, *younger) in sorted(selecting.items()):
        for other in younger if owner is tenant else (owner,):
            shared.setdefault(other, []).append(name)
    for other, names in shared.items():
        yield (
            f"[overlap] TenantQuota {other.name} selects {first_of(names, MOST_NAMES)} too; "
            f"{_older(tenant, other)} applies there. Make the selectors exclude each other"
        )


def _older(tenant: Tenant, other: Tenant) -> str:
    """Which of the two it is; manifests have no age yet."""
    if not tenant.created or not other.created or tenant.created == other.created:
        return "the older one"
    return "this one is older and" if tenant.created < other.created else "it is older and"


def _below_use(tenant: Tenant, usage: Usage) -> Iterator[str]:
    for index, row in enumerate(tenant.rows if not tenant.charged_elsewhere else ()):
        used = usage.get(row, NOTHING)
        if used > row.hard:
            yield (
                f"[below-use] spec.quotas[{index}].gpus: {written(row.hard)} is below the {written(used)} in use "
                f"({row.subject.removeprefix('the ')}); nothing is evicted, and new pods are over the quota"
            )
