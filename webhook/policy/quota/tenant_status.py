"""The status of a TenantQuota, with its usage and conditions, and warnings to whoever writes it.

The conditions are Ready, Exact and GangsWhole. No warning is a reason to refuse, because the policy, the namespaces and
the pods may change tomorrow.

Source of the shape: the CustomResourceDefinition tenantquotas.gpu-tiers.dev; conditions as in the API conventions.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Self

import msgspec

from webhook.objects.data_files import data_file
from webhook.objects.quantities import written
from webhook.objects.refusal import AdmissionWarning, first_of
from webhook.policy.quota.charges import StrandedGang, demotes_not_there, demotes_nowhere, stranded
from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tenants import OnExceed, QuotaRow, Tenant, Usage, by_age
from webhook.policy.values.tier_policy import TierPolicy
from webhook.sentences.sentence import sentence

LONGEST_SUMMARY = 1024
NOTHING = Decimal(0)

Status = dict[str, Any]


class Count(msgspec.Struct, frozen=True):
    """GPUs on a tenant's rows: used by existing pods, reserved for pods not seen yet, and reserved for the queue.

    `stale` says why the pods can't be followed now; the status then keeps the last usage. `repairing` says why nothing
    is known: the account is rebuilt. `stranded` are gangs that can't run within the quota.
    """

    used: Usage = msgspec.field(default_factory=dict)
    reserved: Usage = msgspec.field(default_factory=dict)
    for_queue: Usage = msgspec.field(default_factory=dict)
    stale: str = ""
    repairing: str = ""
    stranded: tuple[StrandedGang, ...] = ()

    @classmethod
    def of(cls, booked: Usage, used: Usage, for_queue: Usage, stale: str = "") -> Self:
        """Return the count of an account: reservations are what is booked beyond what is used."""
        return cls(used, {row: gpus - used[row] for row, gpus in booked.items()}, for_queue, stale)

    def on(self, row: QuotaRow) -> Decimal:
        """Return the GPUs that pods of the tenant have or will have, without those reserved for the queue."""
        return self.used.get(row, NOTHING) + self.reserved.get(row, NOTHING)


def usage_status(tenant: Tenant | None, count: Count, before: Status) -> Status:
    """Return the usage fields of the status; `before` is the previous status."""
    if tenant is None or tenant.charged_elsewhere:
        return {"usage": [], "summary": "charged elsewhere" if tenant else ""}
    if count.stale:
        return {key: before[key] for key in ("usage", "summary") if key in before}
    usage, summary = [], []
    for row in tenant.rows:
        used, reserved, for_queue = (each.get(row, NOTHING) for each in (count.used, count.reserved, count.for_queue))
        numbers = {"hard": row.hard, "used": used, "reserved": reserved}
        numbers |= {"reservedForQueue": for_queue} if for_queue else {}
        shown = {name: text for name, text in (("tier", row.tier), ("resourceFlavor", row.flavor)) if text}
        usage.append(shown | {name: written(number) for name, number in numbers.items()})
        # The usage and the limit; reservations only if there are some.
        parts = (reserved, "reserved"), (for_queue, "for the queue")
        more = ", ".join(f"+{written(gpus)} {what}" for gpus, what in parts if gpus)
        summary.append(f"{row.label} {written(used)}/{written(row.hard)}" + (f" ({more})" if more else ""))
    return {"usage": usage, "summary": ", ".join(summary)[:LONGEST_SUMMARY]}


MOST_NAMES = 5
"""Namespaces that a message names before it counts the rest."""


class Overlap(msgspec.Struct, frozen=True):
    """Namespaces that belong to an older TenantQuota, which selects them too."""

    older: str
    namespaces: tuple[str, ...]


def overlaps(tenants: Iterable[Tenant], namespaces: Iterable[Namespace]) -> dict[str, Overlap]:
    """Return the overlap of each tenant that has one, with the oldest tenant that selects the same namespaces."""
    lost: dict[str, dict[str, list[str]]] = {}
    ranked = by_age(tenants)
    for namespace in namespaces:
        selecting = [tenant.name for tenant in ranked if tenant.selects(namespace.labels)]
        for name in selecting[1:]:
            lost.setdefault(name, {}).setdefault(selecting[0], []).append(namespace.name)
    firsts = {name: next(iter(by_older.items())) for name, by_older in lost.items()}
    return {name: Overlap(older, tuple(sorted(shared))) for name, (older, shared) in firsts.items()}


def conditions_of(found: TenantQuota, overlap: Overlap | None, policy: TierPolicy, count: Count, now: str) -> Status:
    """Return the conditions, and the generation of the spec. `now` is in RFC 3339.

    A condition keeps its time for as long as its status stays.
    """
    # 1. Is the spec active, is its usage exact, and can each gang with GPUs run?
    conditions = [_ready(found, overlap, policy, count)]
    if count.repairing:
        conditions.append(_condition("Exact", "False", "Repairing", f"{count.repairing}; {_UNTIL_REPAIRED}"))
    elif count.stale:
        stale = f"pods can't be watched, so those that have ended since still count: {count.stale}"
        conditions.append(_condition("Exact", "False", "Stale", stale))
    else:
        conditions.append(_condition("Exact", "True", "Counted", ""))
    if count.repairing or count.stale:
        conditions.append(_condition("GangsWhole", "Unknown", "Repairing" if count.repairing else "Stale", ""))
    elif count.stranded:
        conditions.append(_condition("GangsWhole", "False", "Stranded", sentence(stranded(count.stranded))))
    else:
        conditions.append(_condition("GangsWhole", "True", "Whole", ""))

    # 2. The time since when each holds.
    before = {each.get("type"): each for each in found.status.get("conditions") or []}
    for each in conditions:
        was = before.get(each["type"], {})
        since = was.get("lastTransitionTime") if was.get("status") == each["status"] else None
        each |= {"observedGeneration": found.generation, "lastTransitionTime": since or now}
    return {"observedGeneration": found.generation, "conditions": conditions}


_UNTIL_REPAIRED = "until then pods with GPUs are told to try again"


def _ready(found: TenantQuota, overlap: Overlap | None, policy: TierPolicy, count: Count) -> Status:
    """Return the condition Ready. A quota below the usage is active too, and says what that means."""
    trouble = _trouble(found, overlap, policy)
    if trouble is not None:
        return _condition("Ready", "False", *trouble)
    if count.repairing:
        return _condition("Ready", "False", "Repairing", f"{count.repairing}; {_UNTIL_REPAIRED}")
    tenant = found.tenant
    over = [row for row in tenant.rows if count.on(row) > row.hard] if tenant and not tenant.charged_elsewhere else []
    if tenant is None or not over:
        return _condition("Ready", "True", "Active", "")
    # No lower tier has room if a row of every tier has none.
    total = any(row.tier is None and row.flavor is None for row in over) or all(row.tier is None for row in over)
    on_exceed: OnExceed = "Deny" if tenant.demotes and total else tenant.on_exceed
    meanwhile = _MEANWHILE[policy.mode.name]["Hold" if all(row.has_queue for row in over) else on_exceed]
    usage = ", ".join(f"{row.subject} is at {written(count.on(row))} of {written(row.hard)}" for row in over)
    return _condition("Ready", "True", "OverQuota", f"{usage}; nothing is evicted, and {meanwhile}")


_MEANWHILE: Mapping[str, Mapping[OnExceed, str]] = data_file(__name__, "meanwhile.yaml")
"""The text by the installation's mode; a stricter namespace has its own mode."""


def _condition(kind: str, status: str, reason: str, message: str) -> Status:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _trouble(found: TenantQuota, overlap: Overlap | None, policy: TierPolicy) -> tuple[str, str] | None:
    """Return why a quota is not, or only partly, active: a word and a sentence."""
    if found.problem is not None:
        effect = "the last good spec stays active" if found.tenant else "this quota is not active"
        return "Broken", f"{sentence(found.problem)}; {effect}"
    unknown = next(unknown_names(found.tenant, policy), None) if found.tenant else None
    if unknown is not None:
        return unknown
    if overlap is None:
        return None
    listed = first_of(overlap.namespaces, MOST_NAMES)
    applies = f"TenantQuota {overlap.older} is older and selects {listed} too, and applies there; "
    return "Overlap", applies + "make the two namespaceSelectors exclude each other"


def unknown_names(tenant: Tenant, policy: TierPolicy, coming: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield tiers and flavors of a tenant that neither the policy nor a `coming` one has: a word, a sentence."""
    flavors = {flavor.name for flavor in policy.flavors}
    tiers = (
        ("spec.maxTier", tenant.max_tier),
        *((f"spec.allowedTiers[{i}]", name) for i, name in enumerate(tenant.allowed_tiers or ())),
        ("spec.defaultTier", tenant.default_tier),
        *((f"spec.demoteTo[{i}]", name) for i, name in enumerate(tenant.demote_to)),
        *((f"spec.quotas[{i}].tier", row.tier) for i, row in enumerate(tenant.rows)),
    )
    for where, name in tiers:
        if name is not None and policy.tiers.get(name) is None and name not in coming:
            yield "UnknownTier", f'{where}: unknown tier "{name}"; known tiers: {policy.tiers.names()}'
    for index, row in enumerate(tenant.rows):
        if row.flavor is not None and row.flavor not in flavors and row.flavor not in coming:
            listed = ", ".join(sorted(flavors)) or "none"
            where = f"spec.quotas[{index}].resourceFlavor"
            yield "UnknownFlavor", f'{where}: "{row.flavor}" is no resource flavor; the policy has {listed}'


MOST_IN_A_WARNING = 2
"""Namespaces that a warning names before it counts the rest, because the API server cuts long warnings."""

UsageOf = Callable[[Tenant], Usage]
"""Returns the booked GPUs on each of a tenant's rows; none for a new tenant."""


def tenant_warnings(
    tenant: Tenant,
    others: Iterable[Tenant],
    namespaces: Sequence[Namespace],
    usage_of: UsageOf,
    policy: TierPolicy,
    coming: Collection[str] = (),
) -> tuple[AdmissionWarning, ...]:
    """Yield the warnings about a TenantQuota and its overlap with others. Without `namespaces` its selector is skipped.

    `coming`: tiers and flavors of a policy that is not active yet.
    """
    ranked = by_age([tenant, *others])
    selecting = {
        each.name: [other for other in ranked if other is tenant or other.selects(each.labels)]
        for each in namespaces
        if tenant.selects(each.labels)
    }
    # The order around a tier that the policy lacks is unknown.
    known = {*(each.name for each in policy.tiers), *(each.name for each in policy.flavors)}
    usage = {} if tenant.charged_elsewhere else usage_of(tenant)
    return (
        *(AdmissionWarning(_IDS[reason], sentence=text) for reason, text in unknown_names(tenant, policy, coming)),
        *(_by_rank(tenant, policy) if known.issuperset(coming) else ()),
        *((AdmissionWarning("holds-nothing"),) if tenant.has_queue and not tenant.rows else ()),
        *(
            AdmissionWarning("not-rendered", field=f"spec.quotas[{index}]")
            for index, row in enumerate(tenant.rows)
            if tenant.backstop and row.flavor is not None
        ),
        *((AdmissionWarning("selects-nothing", tenant=tenant.name),) if namespaces and not selecting else ()),
        *_overlaps(tenant, selecting),
        *(
            AdmissionWarning(
                "below-use", field=f"spec.quotas[{index}].gpus", hard=row.hard, used=usage[row], row=row.label
            )
            for index, row in enumerate(tenant.rows)
            if usage.get(row, NOTHING) > row.hard
        ),
    )


_IDS = {"UnknownTier": "unknown-tier", "UnknownFlavor": "unknown-flavor"}


def _by_rank(tenant: Tenant, policy: TierPolicy) -> Iterator[AdmissionWarning]:
    """Warn of tiers that the tenant names and may not use, and of a demotion to none.

    The API server refuses those next to `allowedTiers`. An unknown maxTier has a warning of its own.
    """
    rows = ((f"spec.quotas[{index}].tier", row.tier) for index, row in enumerate(tenant.rows))
    listed = ((f"spec.demoteTo[{index}]", name) for index, name in enumerate(tenant.demote_to))
    for where, name in (("spec.defaultTier", tenant.default_tier), *rows, *listed):
        tier, ceiling = policy.tiers.get(name or ""), policy.tiers.get(tenant.max_tier or "")
        if tier and ceiling and not tenant.may_use(tier, policy.tiers):
            yield AdmissionWarning("above-ceiling", field=where, tier=tier.name, max_tier=ceiling.name)
    if demotes_nowhere(tenant, policy):
        yield AdmissionWarning("demotes-nowhere")
    else:
        for field, lent in demotes_not_there(tenant, policy):
            yield AdmissionWarning("demotes-not-there", field=field, tier=lent)


def _overlaps(tenant: Tenant, selecting: Mapping[str, Sequence[Tenant]]) -> Iterator[AdmissionWarning]:
    """Warn of namespaces that an older tenant keeps from it, and that it keeps from younger ones."""
    shared: dict[Tenant, list[str]] = {}
    for name, (owner, *younger) in sorted(selecting.items()):
        for other in younger if owner is tenant else (owner,):
            shared.setdefault(other, []).append(name)
    for other, names in shared.items():
        namespaces, older = first_of(names, MOST_IN_A_WARNING), "the older one"
        if tenant.created and other.created and tenant.created != other.created:  # manifests have no age yet
            older = "this one is older and" if tenant.created < other.created else "it is older and"
        yield AdmissionWarning("overlap", other=other.name, namespaces=namespaces, older=older)
