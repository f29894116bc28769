"""The line of a tenant whose quota holds: who of its gated pods waits, as what, and in which order.

Pure: from a view and an account.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from itertools import chain
from operator import attrgetter

from webhook.ledger.account import Account, Gang, GangKey, at_tier
from webhook.ledger.account_usage import own_on
from webhook.ledger.draft import gang_to_book
from webhook.ledger.leader.gated_pods import GatedPod, LeftPlace, may_inherit
from webhook.ledger.leader.line_entry import LineEntry
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.protocol import Declared, GangBooking
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tenants import QuotaRow, Tenant


def let_in_by(account: Account, view: PodView) -> Iterator[GatedPod]:
    """The pods that wait for their gate alone.

    The account promises them what they ask for; or they ask for no GPUs, and it has their gang, or they are of none.
    """
    for promise in account.reservations:
        pod = view.gated.get(promise.uid)
        if pod is not None and pod.asks_for(promise):
            yield pod
    gangs = {each.key for each in account.gangs}
    for pod in view.gated.of(account.namespaces):
        if not pod.asks_for_gpus and ((key := _gang_of(pod, view)) is None or key in gangs):
            yield pod


def line_of(account: Account, view: PodView, tenant: Tenant) -> list[LineEntry]:
    """Who waits in the open namespaces of an account, in the order of their turns.

    Who is let in waits for its gate alone, a gang for its workload to be seen, and a namespace that moves for its next
    account.
    """
    let_in = {each.uid for each in let_in_by(account, view)}
    gangs, alone, opening = defaultdict[GangKey, list[GatedPod]](list), list[GatedPod](), list[GatedPod]()
    ranks = dict[str | None, int]()
    here = (namespace for namespace, state in account.namespaces.items() if state == "open")
    for pod in sorted(view.gated.of(here), key=attrgetter("turn")):
        ranks.setdefault(pod.holding.charge.tier, pod.turn[0])
        if pod.uid in let_in:
            opening.append(pod)
        else:
            key = _gang_of(pod, view)
            (gangs[key] if key else alone).append(pod)
    found = _of_gangs(gangs, account, view, tenant)
    within = [each for each in found if each.gang or each.draws]
    alone += (each.first for each in found if not (each.gang or each.draws))
    opening += (each.first for each in found if each.draws)
    singly = _singly(alone, opening, {each.key for each in account.gangs}, view, tenant)
    return sorted([*within, *singly], key=lambda each: _turn(each, ranks))


def _of_gangs(
    gangs: Mapping[GangKey, list[GatedPod]], account: Account, view: PodView, tenant: Tenant
) -> list[LineEntry]:
    booked = {each.key: each for each in account.gangs}
    drawn = defaultdict[GangKey, list[Charge]](list)
    for each in account.reservations if gangs else ():
        drawn[each.draws_on] += each.charges
    found = (_of_gang(key, pods, booked.get(key), drawn[key], view, tenant) for key, pods in gangs.items())
    return [*chain(*found)]


def _gang_of(pod: GatedPod, view: PodView) -> GangKey | None:
    """The gang that a pod waits with; None for a pod alone.

    A pod is alone only where that is sure, because half a gang would hold its GPUs and never run. It waits with a gang
    that the view does not show yet: a Job's first pods are often seen before the Job.
    """
    of, maker = pod.holding, view.workloads.get(pod.holding.controller)
    awaits_controller = maker is not None or (of.gated is not None and of.gated.awaits_controller)
    uid = of.gang or (of.controller if awaits_controller else "")
    if not of.controller or not uid:
        return None  # its workload was deleted without its pods, or is of a kind that is no gang
    found = view.workloads.get(uid)
    if found is None:
        orphaned = maker is not None and bool(maker.charges)  # a JobSet was deleted without its Jobs
        ended = uid == of.controller and view.workloads.has_ended(uid)
        return None if orphaned or ended else (of.namespace, uid)
    if found.namespace != of.namespace:
        return None  # nobody is of a workload of another namespace, whatever it says
    if found.charges == () and not found.stopped:
        return None  # it makes a single pod, or another controller makes its pods
    return of.namespace, uid  # one that is stopped makes no pods: it was resumed and the view lags, or they are deleted


def _turn(waiting: LineEntry, ranks: Mapping[str | None, int]) -> tuple[bool, bool, tuple[int, str, int]]:
    """Who has a place already comes first, and before all one whose GPUs nobody has got meanwhile.

    A gang of several tiers passes nobody of the lowest of them, by the `ranks` of those who wait.
    """
    rank, since, seen = waiting.turn
    rank = max((ranks.get(each.tier, rank) for each in waiting.gang.charges), default=rank) if waiting.gang else rank
    return not (waiting.kept or waiting.draws), not waiting.entitled, (rank, since, seen)


def _singly(
    pods: Iterable[GatedPod], opening: Iterable[GatedPod], gangs: Container[GangKey], view: PodView, tenant: Tenant
) -> Iterator[LineEntry]:
    """Of a workload's pods as many are entitled as have ended, each to no more than one of those held.

    Those whose gates are being opened, or that draw on what their gang holds, have taken theirs: the gates may be long
    in coming. What a pod of a gang held is the gang's yet, whoever owned the pod in the end.
    """
    vacant = view.gated.vacant()
    for pod in opening:
        _take_place(pod, vacant, gangs, tenant)
    for pod in pods:
        place = _take_place(pod, vacant, gangs, tenant)
        yield LineEntry((pod,), entitled=place is not None, kept=place is not None and view.gated.is_kept(place))


def _take_place(
    pod: GatedPod, vacant: Mapping[GangKey, list[LeftPlace]], gangs: Container[GangKey], tenant: Tenant
) -> LeftPlace | None:
    """The place that there is for it, which is vacant no more. One of a flavor is none on the row of another."""
    places, own = vacant.get(pod.holding.made_by, []), pod.holding.draws_on
    rows = set(pod.holding.charge.rows(tenant)) if places else set[QuotaRow]()
    open_to_it = (each for each in places if each.holding.draws_on == own or each.holding.draws_on not in gangs)
    alike = (each for each in open_to_it if may_inherit(pod.holding, each.holding))
    place = next((each for each in alike if rows.issubset(each.holding.charge.rows(tenant))), None)
    if place is not None:
        places.remove(place)
    return place


def _of_gang(
    key: GangKey, pods: list[GatedPod], gang: Gang | None, drawn: list[Charge], view: PodView, tenant: Tenant
) -> Iterator[LineEntry]:
    """What waits of a gang on which promised pods have `drawn`. It lets no more in than it asks for.

    Whoever may create pods may say that they are of it. Without a pod that it asks for it has no turn. While it waits
    to grow, or nobody can tell what it asks for now, its pods draw on what it was let in with.
    """
    declared = view.workloads.get(key[1])
    asked = declared.charges if declared else None
    if asked is None and gang is not None:
        asked = gang.let_in_with
    if declared is None or not asked:
        return
    charges = at_tier(asked, gang.tier if gang else "")
    has = _room_of(gang, charges)
    booking = _booking(key[1], declared, tenant)
    held = [*view.held_by(gang_to_book(booking), ()), *drawn]
    drawing, more = _divided(pods, has, held, tenant) if has else ([], pods)
    yield from (LineEntry((pod,), entitled=True, draws=True) for pod in drawing)
    within, beyond = _divided(more, charges, [*held, *(each.holding.charge for each in drawing)], tenant)
    if within:
        has = has or tuple(held)
        yield LineEntry((*within, *beyond), booking, beyond=len(beyond), grown=declared.grown, has=has)
    else:
        yield from (LineEntry((pod,)) for pod in beyond)


def _divided(
    pods: list[GatedPod], charges: tuple[Charge, ...], held: list[Charge], tenant: Tenant
) -> tuple[list[GatedPod], list[GatedPod]]:
    """Those that a gang still asks for, on each row on which they count, and what is beyond that.

    A pod of another tier or flavor, or with another claim, would take of a row that the gang holds nothing of.
    """
    left = {row: own_on(row, charges) - own_on(row, held) for row in tenant.rows}
    shared = {claim for each in charges for claim in each.shared}
    within, beyond = list[GatedPod](), list[GatedPod]()
    for pod in pods:
        charge = pod.holding.charge
        rows = charge.rows(tenant) if pod.asks_for_gpus else ()
        fits = shared.issuperset(charge.shared) and all(charge.own <= left[row] for row in rows)
        left |= {row: left[row] - charge.own for row in rows if fits}
        (within if fits else beyond).append(pod)
    return within, beyond


def _room_of(gang: Gang | None, charges: tuple[Charge, ...]) -> tuple[Charge, ...]:
    """What its account holds for it: these charges, where it has been promised them."""
    if gang is None:
        return ()
    return charges if any(each.charges == charges for each in gang.promises) else gang.declared


def _booking(uid: str, declared: Declared, tenant: Tenant) -> GangBooking:
    charges = declared.charges or ()
    return GangBooking(
        uid, declared.kind, declared.namespace, declared.name, tenant, charges, generation=declared.generation
    )
