"""The refusals of a pod or a whole workload over quota, now or forever.

`what` names the object that asks for the GPUs: POD, "this PyTorchJob". A workload's pods are booked, the workload is
not.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType

import msgspec
from msgspec import structs

from webhook.objects.refusal import AdmissionWarning, Aside, Phrase, Reason, Refusal
from webhook.policy.quota.charges import (
    Charge,
    GangDemand,
    QuotaVerdict,
    Shortfall,
    alternatives,
    never_fits,
    reserved_for_queue,
    row_usage,
    shortfall,
    together,
)
from webhook.policy.quota.native_quotas import NativeRoom
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage, is_maybe
from webhook.policy.values.tiers import Tier

POD = Phrase("this-pod")


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that somebody applies, and the quota for it.

    `what` is its name in sentences. `usage` leaves out the claims that its pods share. `reserved` is the part of each
    row's usage that is reserved for the queue. `tiers` are those that it may name, `lower` those to which it may be
    demoted, and `smallest` the GPUs of its smallest pod. `can_wait`: its pods may be queued. `recurs`: later runs make
    them. `whole`: its pods start together or not at all.
    """

    what: str
    usage: Usage
    reserved: Usage = msgspec.field(default_factory=dict)
    tiers: Collection[Tier] = ()
    lower: Collection[Tier] = ()
    smallest: Decimal = Decimal(0)
    can_wait: bool = True
    recurs: bool = False
    whole: bool = False

    def may_queue(self, charge: Charge, tenant: Tenant) -> bool:
        """Tell whether pods of this charge that have no room are queued."""
        return self.can_wait and tenant.holds_on(charge.tier, charge.flavor)

    def never_fits(self, row: QuotaRow, charge: Charge, tenant: Tenant) -> bool:
        """Tell whether this row, and the tiers to which pods may be demoted from it, could never hold the charge.

        A gang is demoted as a whole, other workloads pod by pod. A row of every tier counts all of them.
        """
        if row.spent:
            return False  # there will be new hours
        if charge.gpus <= row.hard or row.tier is None:
            return charge.gpus > row.hard
        at_once = charge.gpus if self.whole else self.smallest
        hards = [row.hard]
        for tier in self.lower:
            rows = structs.replace(charge, tier=tier.name).rows(tenant)
            hards.append(min((each.hard for each in rows if not each.spent), default=Decimal("Infinity")))
        return charge.gpus > sum(hard // at_once * at_once if at_once else hard for hard in hards)


NOWHERE: Mapping[str, NativeRoom] = MappingProxyType({})
_NONE = Decimal(0)
TOO_LARGE = "too-large"
"""The id of the refusal of a demand that can never fit."""


def fit_over_quota(refusal: Refusal, tenant: Tenant, row: QuotaRow) -> QuotaVerdict:
    """Return the refusal because a row has no room, or a warning if the tenant only warns above that row."""
    if tenant.action(row) == "Warn":
        return QuotaVerdict(None, (AdmissionWarning("let-in-over-quota", refusal=refusal),))
    return QuotaVerdict(refusal)


def pod_fit(
    short: Shortfall,
    tenant: Tenant,
    tiers: Collection[Tier],
    native: Mapping[str, NativeRoom] = NOWHERE,
    what: Phrase | str = POD,
) -> QuotaVerdict:
    """Return the refusal of a pod whose charge falls short, or a warning, with the tiers in which it would fit.

    `native` is the room that the ResourceQuotas of its namespace leave in each tier.
    """
    full = _in_the_way(short, (short.charge,), tenant)
    charge, bounds = full.charge, {tier: room.left for tier, room in native.items()}
    offered = full.alternatives(tenant, tiers, bounds)
    if full.row.spent:
        fits = _without_hours(full, tenant, tiers, offered)
        return fit_over_quota(_no_room_on(full, tenant, what, fits), tenant, short.row)
    if charge.gpus > full.row.hard:
        return fit_over_quota(too_large(full.row, charge, tenant, tiers, what, now=offered), tenant, short.row)
    own = full.alternatives(tenant, tiers)
    lower = dict.fromkeys(native[tier.name].quota for tier, left in own.items() if offered.get(tier, -1) != left)
    fits = _would_fit(offered, tenant, *(f"ResourceQuota/{name}" for name in lower))
    return fit_over_quota(_no_room_on(full, tenant, what, fits), tenant, short.row)


def beyond_budgets(charges: Iterable[Charge], tenant: Tenant) -> Iterator[AdmissionWarning]:
    """Warn of budgets that are used up, if `onExhausted` is Warn."""
    for row in tenant.spent:
        if row.on_exceed == "Warn" and any(row.counts(each.tier, each.flavor) for each in charges if each.gpus):
            yield AdmissionWarning("over-budget", tenant=tenant.name, row=row_usage(row, {}, {}))


def _no_room_on(short: Shortfall, tenant: Tenant, what: Phrase | str, fits: Aside) -> Refusal:
    """Return the refusal that holds until a row has room, or a budget has new hours."""
    return Refusal(
        Reason.OVER_QUOTA,
        "budget-used-up" if short.row.spent else "over-quota",
        tenant=tenant.name,
        row=row_usage(short.row, short.usage, short.reserved),
        what=what,
        gpus=short.charge.gpus,
        flavor=_flavor_unnamed(short.charge, short.row),
        fits=fits,
    )


def _without_hours(
    short: Shortfall, tenant: Tenant, tiers: Iterable[Tier], offered: Mapping[Tier, Decimal | None]
) -> Aside:
    """Return the words for the tiers in which the charge fits before the budget has new hours.

    If the charge may be demoted, tiers that are full now count too.
    """
    if tenant.action(short.row) != "Demote":
        return _would_fit(offered, tenant)
    others = (tier for tier in tiers if tier.name != short.charge.tier)
    ever = [tier for tier in others if never_fits(structs.replace(short.charge, tier=tier.name), tenant) is None]
    return _would_ever_fit(ever, offered, tenant)


def _in_the_way(short: Shortfall, charges: Sequence[Charge], tenant: Tenant) -> Shortfall:
    """Return the shortfall on a row of every tier, if the tenant demotes and there is one; otherwise `short`.

    A full row of one tier stops nobody, because the pods are demoted.
    """
    if tenant.action(short.row) != "Demote":
        return short
    found = shortfall(charges, tenant.bounding_every_tier(), short.usage)
    return structs.replace(found, reserved=short.reserved, in_tier=short.in_tier) if found else short


def too_large(
    row: QuotaRow,
    charge: Charge,
    tenant: Tenant,
    tiers: Collection[Tier],
    what: Phrase | str,
    most: Decimal = _NONE,
    now: Collection[Tier] | None = None,
) -> Refusal:
    """Return the refusal that holds forever, because the row is smaller than the charge.

    With `most` above the charge, the charge is the least of a request for `most` GPUs.

    `now` are the tiers that have room now, if known.
    """
    floor = most > charge.gpus
    ever = [tier for tier in tiers if never_fits(Charge(charge.gpus, tier.name, charge.flavor), tenant) is None]
    return Refusal(
        Reason.OVER_QUOTA,
        TOO_LARGE,
        tenant=tenant.name,
        row=row.subject,
        hard=row.hard,
        what=what,
        at_least="at least " if floor else "",
        gpus=charge.gpus,
        whole="" if what == POD else Phrase("of-wished", gpus=most) if floor else " in all",
        flavor=_flavor_unnamed(charge, row),
        fits=_would_ever_fit(ever, ever if now is None else now, tenant),
    )


def no_room_for_gang(
    gang: GangDemand, short: Shortfall, tenant: Tenant, tiers: Collection[Tier], what: Phrase | str, *, floor: bool
) -> Refusal:
    """Return the refusal of a whole gang: what it asks for, what is left, and in which of the tiers it would fit.

    `floor`: the gang needs only the charge that falls short, and asks for more.
    """
    short = _in_the_way(short, gang.charges, tenant)
    row, offered = short.row, short.alternatives(tenant, tiers)
    if row.spent:
        return _no_room_on(short, tenant, what, _without_hours(short, tenant, tiers, offered))
    left = max(row.hard - short.usage.get(row, Decimal(0)), Decimal(0))
    return Refusal(
        Reason.OVER_QUOTA,
        "no-room-for-gang",
        what=what,
        at_least="at least " if floor else "",
        gpus=short.charge.gpus,
        shape=gang.shape,
        tenant=tenant.name,
        left=left,
        reserved=reserved_for_queue(short.reserved.get(row, _NONE)),
        fewer=gang.fewer(left),
        of=f"of {row.subject} " if row.tier or row.flavor else "",
        flavor=_flavor_unnamed(short.charge, row),
        fits=_would_fit(offered, tenant),
    )


def whole_fit(
    charges: Sequence[Charge],
    tenant: Tenant,
    applied: Applied,
    *,
    at_once: bool,
    wished: Sequence[Charge] = (),
    limits_only: bool = False,
    strict: bool = True,
) -> QuotaVerdict:
    """Return a refusal if a row could never hold all charges, or a warning if a row can't hold them now.

    A tenant that warns gets only warnings, and so does any that is not `strict`. `at_once`: the pods of all templates
    run together. `wished` are all charges, if `charges` are the fewest that it runs with. `limits_only`: room does not
    count, because it is booked next, does not start now, or its own pods are in the usage. Pods that can't be queued
    are refused for now.
    """
    most = {row: charge.gpus for row, charge in drawn(wished, tenant, at_once=at_once)}
    warnings: list[AdmissionWarning] = []
    usage, queued = applied.usage, False
    for row, charge in drawn(charges, tenant, at_once=at_once):
        if usage.get(row, _NONE) + charge.gpus <= row.hard:
            continue
        if applied.never_fits(row, charge, tenant):
            now = dict(alternatives(charge, tenant, usage, applied.tiers))
            refusal = too_large(row, charge, tenant, applied.tiers, applied.what, most.get(row, _NONE), now)
            if strict and tenant.on_exceed != "Warn":
                return QuotaVerdict(refusal, tuple(warnings), charge.gpus)
            warnings.append(AdmissionWarning("let-in", refusal=refusal))
            queued |= applied.may_queue(charge, tenant)
        elif not limits_only:
            counts_all = all(row.counts(each.tier, each.flavor) for each in charges)
            full = usage.get(row, _NONE) + applied.smallest > row.hard and counts_all
            # An elastic gang begins with its least.
            start = "none" if (applied.whole and strict) or full else "not all"
            warnings.append(_no_room(_NOW, applied, tenant, row, charge, start=start))
            queued |= applied.may_queue(charge, tenant)
    return QuotaVerdict(None, tuple(warnings), queued=queued)


def growth_warnings(
    charges: Sequence[Charge], before: Sequence[Charge], tenant: Tenant, applied: Applied
) -> Iterator[AdmissionWarning]:
    """Warn of rows that could hold all charges, but have no room now for the increase."""
    for row, charge in drawn(charges, tenant, at_once=True):
        more = charge.gpus - together(each for each in before if row.counts(each.tier, each.flavor))
        exceeds = more > 0 and applied.usage.get(row, _NONE) + more > row.hard
        if exceeds and not applied.never_fits(row, charge, tenant):
            asked = charge if applied.recurs else structs.replace(charge, gpus=more)
            yield _no_room(_MORE, applied, tenant, row, asked, start="not all")


_NOW = ("no-room-now", "its-pods-over", "its-pods-wait")
_MORE = ("no-room-for-more", "more-pods-over", "more-pods-wait")
_RUN = ("no-room-for-a-run", "a-run-over", "a-run-waits")
"""The warnings of pods that are refused until others of the tenant end, that run over the quota, or that are queued."""


def _no_room(
    said: tuple[str, str, str], applied: Applied, tenant: Tenant, row: QuotaRow, charge: Charge, *, start: str
) -> AdmissionWarning:
    """Return the warning of pods that will be refused, queued, or over the quota, until others of the tenant end."""
    refused, over, waits = _RUN if applied.recurs else said
    now = over if tenant.action(row) == "Warn" else refused
    then, used = waits if applied.may_queue(charge, tenant) else now, row_usage(row, applied.usage, applied.reserved)
    queued, name, gpus = Phrase("all-queued") if start == "none" else Phrase("some-queued"), tenant.name, charge.gpus
    return AdmissionWarning(then, tenant=name, row=used, what=applied.what, gpus=gpus, start=start, queued=queued)


def drawn(charges: Sequence[Charge], tenant: Tenant, *, at_once: bool) -> Iterator[tuple[QuotaRow, Charge]]:
    """Yield the charge on each row that counts some of the charges, under tier and flavor of the first of these.

    If the charges are not `at_once`, the largest counts, because steps run one after another. For a tenant that
    demotes, the rows of every tier come first, because no lower tier avoids them.
    """
    for row in sorted(tenant.bounds, key=lambda row: tenant.demotes and row.tier is not None):
        drawing = [each for each in charges if each.gpus and row.counts(each.tier, each.flavor)]
        if drawing:
            gpus = together(drawing) if at_once else max(each.gpus for each in drawing)
            yield row, structs.replace(drawing[0], gpus=gpus)


def _would_fit(offered: Mapping[Tier, Decimal | None], tenant: Tenant, *lower: str) -> Aside:
    """Return the words for the tiers that have room now, with the GPUs left, and for where the limits are."""
    offers = tuple(
        Phrase("offer-unlimited", tier=tier.name) if left is None else Phrase("offer", tier=tier.name, left=left)
        for tier, left in offered.items()
    )
    see = f"TenantQuota/{tenant.name}", *lower
    return Aside("would-fit", by_right=_by_right(offered), offers=offers or ("no tier now",), later="", see=see)


def _would_ever_fit(ever: Collection[Tier], now: Collection[Tier], tenant: Tenant) -> Aside:
    """Return the words for the tiers that could `ever` hold a charge, first those that have room `now`."""
    roomy = tuple(tier.name for tier in ever if tier in now)
    full = tuple(tier.name for tier in ever if tier not in now)
    later = Phrase("would-fit-later", tiers=full) if full else ""
    offers, see = roomy or ("no tier now" if full else "no tier",), (f"TenantQuota/{tenant.name}",)
    return Aside("would-fit", by_right=_by_right(ever), offers=offers, later=later, see=see)


def _by_right(offered: Iterable[Tier]) -> Phrase | str:
    return Phrase("would-fit-by-right") if any(each.by_right for each in offered) else ""


def _flavor_unnamed(charge: Charge, row: QuotaRow) -> Phrase | str:
    return Phrase("flavor-unnamed") if row.flavor is not None and is_maybe(charge.flavor) else ""
