"""Gangs that hold a part of the GPUs that they need, in a tenant that has no room for the rest: they can't run.

One that was booked keeps the place of a pod that was preempted, and is never such. It is one that nobody booked,
because it is older than gpu-tiers or was applied while that was away.
"""

from collections.abc import Collection, Iterable, Iterator
from decimal import Decimal

from webhook.ledger.account import Account, Drawn, Gang, drawn_of
from webhook.ledger.account_usage import usage_of
from webhook.ledger.pod_view import PodView
from webhook.policy.quota.gangs import StrandedGang
from webhook.policy.values.tenants import QuotaRow, Tenant, Usage


def stranded_gangs(account: Account, tenant: Tenant, view: PodView) -> tuple[StrandedGang, ...]:
    """Those of a tenant that refuses what is over its quota, by name. A demoted pod may find room elsewhere."""
    if tenant.charged_elsewhere or tenant.on_exceed != "Deny":
        return ()
    found = list(_in_part(account, view))
    usage = usage_of(account, tenant) if found else {}
    stranded = (gang for gang, missing in found if not _has_room(missing, tenant.rows, usage))
    return tuple(sorted(stranded, key=lambda each: (each.namespace, each.name)))


def _in_part(account: Account, view: PodView) -> Iterator[tuple[StrandedGang, tuple[Drawn, ...]]]:
    """The gangs that nobody booked and whose pods hold a part, and what is missing. Pods that are promised hold too."""
    booked = {each.uid for each in account.gangs}
    for uid, found in view.workloads.found_in(account.namespaces):
        if uid in booked or not found.charges or found.partly_done:
            continue
        gang = Gang(uid=uid, namespace=found.namespace, kind=found.kind, name=found.name)
        promised = [drawn for each in account.reservations if each.draws_on == gang.key for drawn in each.charges]
        needs, held = drawn_of(found.charges, ""), (*view.held_by(gang, ()), *promised)
        if 0 < _total(held) < _total(needs):
            told = StrandedGang(uid, found.kind, found.namespace, found.name, _total(held), _total(needs))
            yield told, tuple(_missing(needs, held))


def _missing(needs: Collection[Drawn], held: Collection[Drawn]) -> Iterator[Drawn]:
    """By tier alone: on which flavor a pod will run shows where it runs. Pods may run at another tier, or none."""
    left = _total(needs) - _total(held)
    for tier in dict.fromkeys(each.tier for each in needs):
        needed, there = (_total(each for each in some if each.tier == tier) for some in (needs, held))
        gpus = min(max(needed - there, Decimal(0)), left)
        left -= gpus
        yield Drawn(gpus=gpus, tier=tier)


def _has_room(missing: Collection[Drawn], rows: Collection[QuotaRow], usage: Usage) -> bool:
    """Whether all of it fits at once."""
    asked = ((row, _total(each for each in missing if row.counts(each.tier, each.flavor))) for row in rows)
    return all(usage[row] + gpus <= row.hard for row, gpus in asked if gpus)


def _total(charges: Iterable[Drawn]) -> Decimal:
    return sum((each.own for each in charges), Decimal(0))
