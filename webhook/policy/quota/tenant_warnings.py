"""Warns whoever writes a TenantQuota: of names that nothing has, of its namespaces, of a quota below its use.

None of it is a reason to refuse: the policy, the namespaces and the pods may change tomorrow.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from webhook.objects.phrase import AdmissionWarning
from webhook.objects.refusal import first_of
from webhook.policy.quota.charges import demotes_not_there, demotes_nowhere
from webhook.policy.quota.tenant_status import NOTHING, unknown_names
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tenants import Tenant, Usage, by_age
from webhook.policy.values.tier_policy import TierPolicy

MOST_NAMES = 2
"""Namespaces that a warning names before it counts the others: the API server cuts a long one."""

UsageOf = Callable[[Tenant], Usage]
"""GPUs on each of a tenant's rows, as they are booked; nothing for a tenant that is new."""


def tenant_warnings(
    tenant: Tenant,
    others: Iterable[Tenant],
    namespaces: Sequence[Namespace],
    usage_of: UsageOf,
    policy: TierPolicy,
    coming: Collection[str] = (),
) -> tuple[AdmissionWarning, ...]:
    """The warnings about a TenantQuota beside these others. Without `namespaces` nothing is said of its selector.

    `coming`: tiers and flavors of a policy that is not in force yet.
    """
    ranked = by_age([tenant, *others])
    selecting = {
        each.name: [other for other in ranked if other is tenant or other.selects(each.labels)]
        for each in namespaces
        if tenant.selects(each.labels)
    }
    return (
        *(AdmissionWarning(_IDS[reason], sentence=told) for reason, told in unknown_names(tenant, policy, coming)),
        *(_by_rank(tenant, policy) if _in_force(policy, coming) else ()),
        *((AdmissionWarning("holds-nothing"),) if tenant.has_queue and not tenant.rows else ()),
        *(
            AdmissionWarning("not-rendered", field=f"spec.quotas[{index}]")
            for index, row in enumerate(tenant.rows)
            if tenant.backstop and row.flavor is not None
        ),
        *((AdmissionWarning("selects-nothing", tenant=tenant.name),) if namespaces and not selecting else ()),
        *_overlaps(tenant, selecting),
        *_below_use(tenant, usage_of(tenant)),
    )


_IDS = {"UnknownTier": "unknown-tier", "UnknownFlavor": "unknown-flavor"}


def _in_force(policy: TierPolicy, coming: Collection[str]) -> bool:
    """Tell whether the policy has all that is to come: of a tier that it lacks nobody can tell which ones lie below."""
    return {*(each.name for each in policy.tiers), *(each.name for each in policy.flavors)}.issuperset(coming)


def _by_rank(tenant: Tenant, policy: TierPolicy) -> Iterator[AdmissionWarning]:
    """Tiers that the tenant names and may not use, and a demotion to none.

    The API server refuses those beside `allowedTiers`.
    """
    rows = ((f"spec.quotas[{index}].tier", row.tier) for index, row in enumerate(tenant.rows))
    listed = ((f"spec.demoteTo[{index}]", name) for index, name in enumerate(tenant.demote_to))
    for where, name in (("spec.defaultTier", tenant.default_tier), *rows, *listed):
        tier = policy.tiers.get(name or "")
        if tier is not None and tenant.max_tier and not tenant.may_use(tier, policy.tiers):
            yield AdmissionWarning("above-ceiling", field=where, tier=tier.name, max_tier=tenant.max_tier)
    if demotes_nowhere(tenant, policy):
        yield AdmissionWarning("demotes-nowhere")
    else:
        for field, lent in demotes_not_there(tenant, policy):
            yield AdmissionWarning("demotes-not-there", field=field, tier=lent)


def _overlaps(tenant: Tenant, selecting: Mapping[str, Sequence[Tenant]]) -> Iterator[AdmissionWarning]:
    """Namespaces that an older one keeps from it, and those that it keeps from younger ones."""
    shared: dict[Tenant, list[str]] = {}
    for name, (owner, *younger) in sorted(selecting.items()):
        for other in younger if owner is tenant else (owner,):
            shared.setdefault(other, []).append(name)
    for other, names in shared.items():
        namespaces = first_of(names, MOST_NAMES)
        yield AdmissionWarning("overlap", other=other.name, namespaces=namespaces, older=_older(tenant, other))


def _older(tenant: Tenant, other: Tenant) -> str:
    """Which of the two it is; manifests have no age yet."""
    if not tenant.created or not other.created or tenant.created == other.created:
        return "the older one"
    return "this one is older and" if tenant.created < other.created else "it is older and"


def _below_use(tenant: Tenant, usage: Usage) -> Iterator[AdmissionWarning]:
    for index, row in enumerate(tenant.rows if not tenant.charged_elsewhere else ()):
        used = usage.get(row, NOTHING)
        if used > row.hard:
            field = f"spec.quotas[{index}].gpus"
            yield AdmissionWarning(
                "below-use",
                field=field,
                hard=row.hard,
                used=used,
                row=row.label,
            )
