"""The status of a TenantQuota, with its usage and conditions, and the refusal and warnings that its author gets.

The conditions are Ready, Exact and GangsWhole, and WithinBudgets of a tenant with budgets. A name that the policy does
not know is refused when it is written, and named in Ready if the policy loses it later. No warning is a reason to
refuse, because the namespaces and the pods may change tomorrow.

Source of the shape: the CustomResourceDefinition tenantquotas.gpu-tiers.dev; conditions as in the API conventions.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Self

import msgspec

from webhook.objects.data_files import data_file
from webhook.objects.quantities import written
from webhook.objects.refusal import AdmissionWarning, Reason, Refusal, first_of
from webhook.policy.quota.budgets import granted, within_budgets
from webhook.policy.quota.charges import StrandedGang, lent_from, stranded
from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tenants import OnExceed, QuotaRow, Tenant, Usage, by_age
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.sentences.sentence import sentence, warning_words

LONGEST_SUMMARY = 1024
NOTHING = Decimal(0)

Status = dict[str, Any]


class Count(msgspec.Struct, frozen=True):
    """GPUs on a tenant's rows: used by existing pods, reserved for pods not seen yet, and reserved for the queue.

    `stale` says why the pods can't be followed now; the status then keeps the last usage. `repairing` says why nothing
    is known: the account is rebuilt. `stranded` are gangs that can't run within the quota.

    `left` are the GPUs that new pods of each row may still use while some are reserved for the queue, {} otherwise.
    """

    used: Usage = msgspec.field(default_factory=dict)
    reserved: Usage = msgspec.field(default_factory=dict)
    for_queue: Usage = msgspec.field(default_factory=dict)
    stale: str = ""
    repairing: str = ""
    stranded: tuple[StrandedGang, ...] = ()
    left: Usage = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, booked: Usage, used: Usage, for_queue: Usage, stale: str = "") -> Self:
        """Return the count of an account: reservations are what is booked beyond what is used."""
        return cls(used, {row: gpus - used[row] for row, gpus in booked.items()}, for_queue, stale)

    def on(self, row: QuotaRow) -> Decimal:
        """Return the GPUs that pods of the tenant have or will have, without those reserved for the queue."""
        return self.used.get(row, NOTHING) + self.reserved.get(row, NOTHING)


def is_active(row: QuotaRow, policy: TierPolicy) -> bool:
    """Tell whether the policy has the tier and the flavor of a row; otherwise the row limits nothing."""
    flavors = (None, *(flavor.name for flavor in policy.flavors))
    return (row.tier is None or policy.tiers.get(row.tier) is not None) and row.flavor in flavors


def usage_status(
    tenant: Tenant | None, count: Count, before: Status, active: Callable[[QuotaRow], bool] = lambda _: True
) -> Status:
    """Return the usage fields of the status; `before` is the previous status, whose usage stays if pods can't be seen.

    A row that is not `active` is shown as such. A tenant that is charged elsewhere has no usage.
    """
    if tenant is None or tenant.charged_elsewhere:
        return {"usage": [], "summary": "charged elsewhere" if tenant else ""}
    if count.stale:
        return {key: before[key] for key in ("usage", "summary") if key in before}
    usage, summary = [], []
    for row in tenant.rows:
        used, reserved, for_queue = (each.get(row, NOTHING) for each in (count.used, count.reserved, count.for_queue))
        numbers = {"hard": row.hard, "used": used, "reserved": reserved}
        numbers |= {"reservedForQueue": for_queue} if for_queue else {}
        numbers |= {"left": count.left[row]} if row in count.left else {}
        shown: Status = {name: text for name, text in (("tier", row.tier), ("resourceFlavor", row.flavor)) if text}
        shown |= {name: written(number) for name, number in numbers.items()}
        hard = written(row.hard)
        if not active(row):
            shown["active"], hard = False, "-"
        usage.append(shown)
        # The usage and the limit; reservations only if there are some.
        parts = (reserved, "reserved"), (for_queue, "for the queue")
        more = ", ".join(f"+{written(gpus)} {what}" for gpus, what in parts if gpus)
        summary.append(f"{row.label} {written(used)}/{hard}" + (f" ({more})" if more else ""))
    return {"usage": usage, "summary": ", ".join(summary)[:LONGEST_SUMMARY]}


MOST_NAMES = 5
"""Namespaces that a message names before it counts the rest."""


class Overlap(msgspec.Struct, frozen=True):
    """Namespaces that a tenant and another one select. Manifests have no age, so which one applies may be unknown."""

    tenant: Tenant
    other: Tenant
    namespaces: tuple[str, ...]

    def warning(self, most: int) -> AdmissionWarning:
        """Return the warning for the author of the tenant. It names `most` namespaces, and counts the rest."""
        first, second = by_age([self.tenant, self.other])
        if not (first.created and second.created):
            applies = "the one that was created first applies"
        elif first.created < second.created:
            applies = f"{first.name} is older and applies"
        else:
            applies = f"both were created in the same second, so {first.name}, the first by name, applies"
        namespaces = first_of(self.namespaces, most)
        return AdmissionWarning("overlap", other=self.other.name, namespaces=namespaces, applies=applies)


def overlaps(tenants: Iterable[Tenant], namespaces: Iterable[Namespace]) -> dict[str, Overlap]:
    """Return by name the overlap of each tenant that loses namespaces, with the older tenant that wins them.

    If a tenant loses namespaces to several others, its overlap is that with the winner of the first such namespace.
    """
    lost: dict[Tenant, dict[Tenant, list[str]]] = {}
    ranked = by_age(tenants)
    for namespace in namespaces:
        selecting = [tenant for tenant in ranked if tenant.selects(namespace.labels)]
        for tenant in selecting[1:]:
            lost.setdefault(tenant, {}).setdefault(selecting[0], []).append(namespace.name)
    firsts = {tenant: next(iter(by_older.items())) for tenant, by_older in lost.items()}
    return {each.name: Overlap(each, older, tuple(sorted(shared))) for each, (older, shared) in firsts.items()}


def conditions_of(found: TenantQuota, overlap: Overlap | None, policy: TierPolicy, count: Count, now: str) -> Status:
    """Return the conditions, the generation of the spec, and its action above the quota. `now` is in RFC 3339.

    A condition keeps its time for as long as its status stays.
    """
    # 1. Is the spec active, is its usage exact, and can each gang with GPUs run?
    said = {"Ready": _ready(found, overlap, policy, count)}
    if count.repairing:
        said["Exact"] = "False", "Repairing", f"{count.repairing}; {_UNTIL_REPAIRED}"
        said["GangsWhole"] = "Unknown", "Repairing", ""
    elif count.stale:
        stale = f"pods can't be watched, so those that have ended since still count: {count.stale}"
        said |= {"Exact": ("False", "Stale", stale), "GangsWhole": ("Unknown", "Stale", "")}
    else:
        said |= {"Exact": ("True", "Counted", ""), "GangsWhole": ("True", "Whole", "")}
        if count.stranded:
            said["GangsWhole"] = "False", "Stranded", sentence(stranded(count.stranded))
    tenant = found.tenant
    within = within_budgets(tenant, found.status, lambda row: is_active(row, policy)) if tenant else None
    if within is not None:
        status, reason, words = within
        said["WithinBudgets"] = status, reason, sentence(words)

    # 2. The time since which each has its status.
    before = {each.get("type"): each for each in found.status.get("conditions") or []}
    conditions = []
    for kind, (status, reason, message) in said.items():
        was = before.get(kind, {})
        since = was.get("lastTransitionTime") if was.get("status") == status else None
        shown = {"type": kind, "status": status, "reason": reason, "message": message}
        conditions.append(shown | {"observedGeneration": found.generation, "lastTransitionTime": since or now})
    above = tenant.above_quota[:LONGEST_SUMMARY] if tenant else ""
    return {"observedGeneration": found.generation, "onExceed": above, "conditions": conditions}


_UNTIL_REPAIRED = "until then pods with GPUs are told to try again"


def _ready(found: TenantQuota, overlap: Overlap | None, policy: TierPolicy, count: Count) -> tuple[str, str, str]:
    """Return status, reason and message of Ready. A quota below the usage is active too, and says what that means."""
    tenant = found.tenant
    if found.problem is not None:
        effect = "the last good spec stays active" if tenant else "this quota is not active"
        return "False", "Broken", f"{sentence(found.problem)}; {effect}"
    trouble = trouble_of(tenant, overlap, policy) if tenant else None
    if trouble is not None:
        return "False", *trouble
    if count.repairing:
        return "False", "Repairing", f"{count.repairing}; {_UNTIL_REPAIRED}"
    over = [row for row in tenant.rows if count.on(row) > row.hard] if tenant and not tenant.charged_elsewhere else []
    if tenant is None or not over:
        return "True", "Active", "; ".join(map(sentence, granted(found.status)))
    # No lower tier has room if a row of every tier has none.
    total = any(row.tier is None and row.flavor is None for row in over) or all(row.tier is None for row in over)
    on_exceed: OnExceed = "Deny" if tenant.on_exceed == "Demote" and total else tenant.on_exceed
    queued = all(tenant.holds_on(row.tier, row.flavor) for row in over)
    meanwhile = _MEANWHILE[policy.mode.name]["Hold" if queued else on_exceed]
    # A pod is queued if any of its rows queues, also where it is the total that has no room.
    queues = [row.label for row in tenant.rows if row.has_queue and any(map(row.overlaps, over))]
    if queues and not queued and policy.mode is Mode.Enforce:
        meanwhile += f", except those of {first_of(queues, MOST_NAMES)}, which are queued (onExceed: Hold)"
    usage = ", ".join(f"{row.subject} is at {written(count.on(row))} of {written(row.hard)}" for row in over)
    return "True", "OverQuota", f"{usage}; nothing is evicted, and {meanwhile}"


_MEANWHILE: Mapping[str, Mapping[OnExceed, str]] = data_file(__name__, "meanwhile.yaml")
"""The text by the installation's mode and by onExceed; a stricter namespace has its own mode."""


def trouble_of(tenant: Tenant, overlap: Overlap | None, policy: TierPolicy) -> tuple[str, str] | None:
    """Return why a quota that can be read is not Ready: a word, and the words on unknown names or the overlap."""
    unknown = [*unknown_names(tenant, policy)]
    if unknown:
        return _NOT_READY[unknown[0].id], "; ".join(map(unknown_and_effect, unknown))
    return ("Overlap", warning_words(overlap.warning(MOST_NAMES))) if overlap else None


_NOT_READY = {"unknown-tier": "UnknownTier", "unknown-flavor": "UnknownFlavor"}
"""The reason of Ready, by the id of the refusal that a new TenantQuota with such a name gets."""


def unknown_names(tenant: Tenant, policy: TierPolicy, coming: Collection[str] = ()) -> Iterator[Refusal]:
    """Yield the refusal of each tier and flavor of a tenant that neither the policy nor a `coming` one has."""
    flavors = {flavor.name for flavor in policy.flavors}
    tiers = (
        ("spec.maxTier", tenant.max_tier),
        *((f"spec.allowedTiers[{i}]", name) for i, name in enumerate(tenant.allowed_tiers or ())),
        ("spec.defaultTier", tenant.default_tier),
        *((f"spec.demoteTo[{i}]", name) for i, name in enumerate(tenant.demote_to)),
        *((f"spec.quotas[{i}].tier", row.tier) for i, row in enumerate(tenant.rows)),
        *((f"spec.budgets[{i}].tier", each.tier) for i, each in enumerate(tenant.budgets)),
    )
    for where, name in tiers:
        if name is not None and policy.tiers.get(name) is None and name not in coming:
            yield Refusal(Reason.UNKNOWN_TIER, "unknown-tier", where, name=name, tiers=policy.tiers.names())
    named = (
        *((f"spec.quotas[{i}].resourceFlavor", row.flavor) for i, row in enumerate(tenant.rows)),
        *((f"spec.budgets[{i}].resourceFlavor", each.flavor) for i, each in enumerate(tenant.budgets)),
    )
    for where, name in named:
        if name is not None and name not in flavors and name not in coming:
            known = tuple(sorted(flavors)) or ("none",)
            yield Refusal(Reason.INVALID, "unknown-flavor", where, name=name, flavors=known)


def newly_unknown(
    tenant: Tenant, before: Tenant | None, policy: TierPolicy, coming: Collection[str] = ()
) -> Refusal | None:
    """Return the refusal of a TenantQuota for the first unknown name that it did not have in such a field `before`.

    A policy that drops a tier must not lock the TenantQuotas that name it, whatever else is changed in them.
    """
    had = {_name_in_field(each) for each in unknown_names(before, policy)} if before else set()
    return next((each for each in unknown_names(tenant, policy, coming) if _name_in_field(each) not in had), None)


def _name_in_field(unknown: Refusal) -> tuple[str, object]:
    """Return the name with its field, without the number of its row, because rows may move."""
    return re.sub(r"\[\d+\]", "", unknown.field), unknown.get("name")


def unknown_and_effect(unknown: Refusal) -> str:
    """Return the words on an unknown name that is stored, and its effect."""
    words = warning_words(AdmissionWarning(unknown.id, unknown=unknown))
    return f"{words}; {_EFFECTS[unknown.field.partition('[')[0]]}"


_EFFECTS = {
    "spec.maxTier": "no tier is allowed",
    "spec.allowedTiers": "this name allows nothing",
    "spec.defaultTier": "pods that would get it are refused",
    "spec.demoteTo": "nothing is demoted to it",
    "spec.quotas": "this row limits nothing",
    "spec.budgets": "this budget counts nothing",
}


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
) -> Iterator[AdmissionWarning]:
    """Yield the warnings about a TenantQuota and its overlap with others.

    Without `namespaces`, its selector is not checked.
    `coming`: tiers and flavors of a policy that is not active yet.
    """
    ranked = by_age([tenant, *others])
    selecting = {
        each.name: [other for other in ranked if other is tenant or other.selects(each.labels)]
        for each in namespaces
        if tenant.selects(each.labels)
    }
    # 1. Names that the policy lacks, and tiers in the wrong order. The order around a tier that it lacks is unknown.
    yield from (AdmissionWarning(each.id, unknown=each) for each in unknown_names(tenant, policy, coming))
    known = {*(each.name for each in policy.tiers), *(each.name for each in policy.flavors)}
    if known.issuperset(coming):
        yield from _by_rank(tenant, policy)

    # 2. Rows that are missing, or that are not rendered.
    if tenant.has_queue and not tenant.rows:
        yield AdmissionWarning("holds-nothing")
    for index, row in enumerate(tenant.rows):
        if tenant.backstop and row.flavor is not None:
            yield AdmissionWarning("not-rendered", field=f"spec.quotas[{index}]")

    # 3. Namespaces that an older tenant keeps from it, and that it keeps from younger ones.
    if namespaces and not selecting:
        yield AdmissionWarning("selects-nothing", tenant=tenant.name)
    shared: dict[Tenant, list[str]] = {}
    for name, (owner, *younger) in sorted(selecting.items()):
        for other in younger if owner is tenant else (owner,):
            shared.setdefault(other, []).append(name)
    yield from (Overlap(tenant, other, tuple(names)).warning(MOST_IN_A_WARNING) for other, names in shared.items())

    # 4. Rows below what is in use.
    usage = {} if tenant.charged_elsewhere else usage_of(tenant)
    for index, row in enumerate(tenant.rows):
        used, field = usage.get(row, NOTHING), f"spec.quotas[{index}].gpus"
        if used > row.hard:
            yield AdmissionWarning("below-use", field=field, hard=row.hard, used=used, row=row.label)


def _by_rank(tenant: Tenant, policy: TierPolicy) -> Iterator[AdmissionWarning]:
    """Warn of tiers above the ceiling that the tenant names, of a demotion to no tier, and of one to no lower tier.

    The API server refuses tiers that are not among `allowedTiers`. An unknown maxTier has a warning of its own.
    """
    rows = ((f"spec.quotas[{index}].tier", row.tier) for index, row in enumerate(tenant.rows))
    listed = ((f"spec.demoteTo[{index}]", name) for index, name in enumerate(tenant.demote_to))
    for where, name in (("spec.defaultTier", tenant.default_tier), *rows, *listed):
        tier, ceiling = policy.tiers.get(name or ""), policy.tiers.get(tenant.max_tier or "")
        if tier and ceiling and not tenant.may_use(tier, policy.tiers):
            yield AdmissionWarning("above-ceiling", field=where, tier=tier.name, max_tier=ceiling.name)
    # A row without a tier counts pods of every tier, so a lower tier has no more room in it.
    tiers = [tier for row in tenant.rows if (tier := policy.tiers.get(row.tier or ""))]
    demotes = tenant.on_exceed == "Demote" and not tenant.charged_elsewhere and bool(tenant.rows)
    if demotes and not any(lent_from(each, tenant, policy) for each in tiers):
        yield AdmissionWarning("demotes-nowhere")
        return
    highest = max((tier.value for tier in tiers), default=None)
    for index, name in enumerate(tenant.demote_to):
        lent = policy.tiers.get(name)
        if lent is not None and highest is not None and lent.value >= highest:  # below the tier of no row
            yield AdmissionWarning("demotes-not-there", field=f"spec.demoteTo[{index}]", tier=name)
