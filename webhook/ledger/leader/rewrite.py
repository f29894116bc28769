"""The account as a leader writes it: what it sees to exist, and the promises that are still open.

Pods are summed, but for those with which a reservation has to do: the preempted, their heirs, and a pod whose name a
reservation bears. A gang ends with its workload, and then its pods count one by one. A workload that nobody booked,
because it is older than the webhook or was applied while that was down, becomes a gang once its pods hold all that it
declares: that adds nothing to what is charged. So it is with more replicas that nobody booked. Which reservations go,
and why no other may: docs/ledger.md.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal

from msgspec.structs import replace

from webhook.ledger.account import MOST_GANGS, Account, Gang, GangKey, Holder, Promise, at_tier
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.protocol import Declared
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tenants import may_be


def rewritten(
    account: Account, view: PodView, lapsed: Collection[tuple[str, str]] = (), part: GangKey | None = None
) -> Account:
    """The account by this view, without the promises that have come to nothing, `lapsed` ones by their keys.

    `part` is a gang although its pods hold only a part of what it declares.
    """
    namespaces = account.namespaces
    reservations = tuple(each for each in account.reservations if each.key not in lapsed and not is_seen(each, view))
    listed = {each.uid: each for each in _pods_listed(account, reservations, view)}
    live = {*listed, *(each.uid for each in reservations)}
    gangs = gangs_seen(account, view, lapsed, part)
    mates = defaultdict[GangKey, list[str]](list)
    for each in listed.values():
        mates[each.draws_on].append(each.uid)
    return replace(
        account,
        held=view.held(namespaces, listed, gangs),
        claims=view.claims(namespaces, listed),
        pods=tuple(_paired(listed[uid], live) for uid in sorted(listed)),
        reservations=tuple(_paired(each, live) for each in reservations),
        gangs=tuple(replace(each, held=view.held_by(each, mates[each.key])) for each in gangs),
    )


def is_seen(reservation: Holder, view: PodView) -> bool:
    """Whether the view shows its pod, with the charge that was booked, or the pod's end.

    One that was to be of several flavors may have got a node, and so one of them, before it was seen.
    """
    pod = view.get(reservation.uid)
    if pod is None or reservation.moved_from is None:
        return pod is not None or view.has_ended(reservation.uid)
    flavor, booked = pod.charge.flavor, reservation.charges[0].flavor
    return flavor == booked or (flavor is not None and may_be(booked, flavor))


def _pods_listed(account: Account, reservations: tuple[Holder, ...], view: PodView) -> Iterator[Holder]:
    """The pods that are listed one by one, those that pass on their place before their heirs."""
    heirs = {each.uid: each.heir_of for each in (*account.pods, *account.reservations) if view.get(each.heir_of)}
    namesakes = (view.named(each.namespace, each.name) for each in reservations if each.moved_from is None)
    uids = dict.fromkeys((*view.preempted(account.namespaces), *heirs.values(), *heirs, *namesakes))
    for uid in uids:
        pod = view.get(uid) if uid else None
        if uid and pod and pod.namespace in account.namespaces:
            yield Holder(
                uid=uid,
                namespace=pod.namespace,
                name=pod.name,
                controller=pod.controller,
                charges=(pod.charge,),
                gang=pod.gang,
                heir_of=heirs.get(uid, ""),
                preempted=pod.preempted,
            )


def _paired(holder: Holder, live: Collection[str]) -> Holder:
    """An heir stands alone once the pod that it replaces is gone."""
    return holder if not holder.heir_of or holder.heir_of in live else replace(holder, heir_of="")


PromiseKey = tuple[str, str]
_ByTier = Mapping[str | None, Decimal]


def promise_key(gang: Gang, promise: Promise) -> PromiseKey:
    """What tells one promise from another, and from a pod's reservation."""
    return f"{gang.namespace}/{gang.uid}", f"generation {promise.generation}, attempt {promise.attempt}"


def gangs_seen(
    account: Account, view: PodView, lapsed: Collection[PromiseKey], part: GangKey | None = None
) -> tuple[Gang, ...]:
    """The gangs by this view, in the order in which they came."""
    here = (each for each in account.gangs if each.namespace in account.namespaces)
    seen = (_of_pods(each, view, lapsed) if each.of_pods else _seen(each, view, lapsed) for each in here)
    kept = tuple(each for each in seen if each.declared or each.promises)
    return kept + tuple(_adopted(account, view, part))


def _seen(gang: Gang, view: PodView, lapsed: Collection[PromiseKey]) -> Gang:
    """What its workload declares, and what may still be stored. Nothing is left of one that has ended."""
    workloads, found = view.workloads, view.workloads.get(gang.uid)
    if found is None:
        promises = () if workloads.has_ended(gang.uid) else gang.promises
        is_over = workloads.has_ended(gang.uid) or workloads.lists(gang.kind)
        declared = () if is_over else gang.declared
    else:
        seen = gang.declared if found.charges is None else at_tier(found.charges, gang.tier)
        known = found.charges is not None
        promises = tuple(each for each in gang.promises if not (known and _is_fulfilled(each, found, seen)))
        declared = _let_in(gang, seen, view)
    return replace(gang, declared=declared, promises=_open(gang, promises, lapsed))


def _is_fulfilled(promise: Promise, found: Declared, seen: tuple[Charge, ...]) -> bool:
    """Tells whether the workload is what was let in, or has gone on from there: then the promise is done with.

    A changed label makes no new generation.
    """
    return promise.generation < found.generation or (promise.generation == found.generation and promise.charges == seen)


def _of_pods(gang: Gang, view: PodView, lapsed: Collection[PromiseKey]) -> Gang:
    """A group without a workload holds all that it was let in with while one of its pods exists."""
    if view.held_by(gang, ()):
        return replace(gang, declared=gang.let_in_with, promises=())
    return replace(gang, declared=(), promises=_open(gang, gang.promises, lapsed))


def _open(gang: Gang, promises: tuple[Promise, ...], lapsed: Collection[PromiseKey]) -> tuple[Promise, ...]:
    return tuple(each for each in promises if promise_key(gang, each) not in lapsed)


def _let_in(gang: Gang, declared: tuple[Charge, ...], view: PodView) -> tuple[Charge, ...]:
    """What it declares, if that was let in or its pods hold it; else what was let in: nobody may have been asked."""
    asked = _by_tier(declared)
    let_in = (gang.declared, *(each.charges for each in gang.promises))
    fits = any(_is_within(asked, _by_tier(each)) for each in let_in) or _covers(view.held_by(gang, ()), declared)
    return declared if fits else gang.let_in_with


def _adopted(account: Account, view: PodView, part: GangKey | None) -> Iterator[Gang]:
    known = {each.uid for each in account.gangs}
    for uid, found in view.workloads.found_in(account.namespaces):
        if found.charges and uid not in known and len(known) < MOST_GANGS:
            gang = Gang(uid=uid, namespace=found.namespace, kind=found.kind, name=found.name)
            declared = at_tier(found.charges, "")
            whole = _covers(view.held_by(gang, ()), declared)
            if whole or gang.key == part:
                known.add(uid)
                yield replace(gang, declared=declared if whole else ())


def _covers(held: tuple[Charge, ...], declared: tuple[Charge, ...]) -> bool:
    """Whether the pods hold all of it at each tier. On which flavor they run shows where they run."""
    return _is_within(_by_tier(declared), _by_tier(held))


def _by_tier(charges: Iterable[Charge]) -> _ByTier:
    """Without what they share."""
    sums = defaultdict[str | None, Decimal](Decimal)
    for each in charges:
        sums[each.tier] += each.own
    return sums


def _is_within(asked: _ByTier, there: _ByTier) -> bool:
    return all(there.get(tier, Decimal(0)) >= gpus for tier, gpus in asked.items())
