"""The gangs of an account as a leader writes them: what their workloads declare, and the promises still open.

A gang ends with its workload, and then its pods count one by one. A workload that nobody booked, because it is older
than the webhook or was applied while that was down, becomes a gang once its pods hold all that it declares: that adds
nothing to what is charged. So it is with more replicas that nobody booked.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal

from msgspec.structs import replace

from webhook.ledger.account import MOST_GANGS, Account, Drawn, Gang, Promise, drawn_of
from webhook.ledger.pod_view import PodView
from webhook.ledger.protocol import Declared

PromiseKey = tuple[str, str]
_ByTier = Mapping[str | None, Decimal]


def promise_key(gang: Gang, promise: Promise) -> PromiseKey:
    """What tells one promise from another, and from a pod's reservation."""
    return f"{gang.namespace}/{gang.uid}", f"generation {promise.generation}, attempt {promise.attempt}"


def gangs_seen(account: Account, view: PodView, lapsed: Collection[PromiseKey]) -> tuple[Gang, ...]:
    """The gangs by this view, in the order in which they came."""
    here = (each for each in account.gangs if each.namespace in account.namespaces)
    seen = (_of_pods(each, view, lapsed) if each.of_pods else _seen(each, view, lapsed) for each in here)
    kept = tuple(each for each in seen if each.declared or each.promises)
    return kept + tuple(_adopted(account, view))


def with_pods(gang: Gang, view: PodView, but: Collection[str]) -> Gang:
    """The gang with what its pods hold, but for those that are listed one by one."""
    return replace(gang, held=view.held_by(gang, but))


def _seen(gang: Gang, view: PodView, lapsed: Collection[PromiseKey]) -> Gang:
    """What its workload declares, and what may still be stored. Nothing is left of one that has ended."""
    workloads, found = view.workloads, view.workloads.get(gang.uid)
    if found is None:
        promises = () if workloads.has_ended(gang.uid) else gang.promises
        is_over = workloads.has_ended(gang.uid) or workloads.lists(gang.kind)
        declared = () if is_over else gang.declared
    else:
        seen = gang.declared if found.charges is None else drawn_of(found.charges, gang.tier)
        known = found.charges is not None
        promises = tuple(each for each in gang.promises if not (known and _is_kept(each, found, seen)))
        declared = _let_in(gang, seen, view)
    return replace(gang, declared=declared, promises=_open(gang, promises, lapsed))


def _is_kept(promise: Promise, found: Declared, seen: tuple[Drawn, ...]) -> bool:
    """Whether the workload is what was let in, or has gone on from there. A changed label makes no new generation."""
    return promise.generation < found.generation or (promise.generation == found.generation and promise.charges == seen)


def _of_pods(gang: Gang, view: PodView, lapsed: Collection[PromiseKey]) -> Gang:
    """A group without a workload holds all that it was let in with while one of its pods exists."""
    if view.held_by(gang, ()):
        return replace(gang, declared=_most(gang), promises=())
    return replace(gang, declared=(), promises=_open(gang, gang.promises, lapsed))


def _open(gang: Gang, promises: tuple[Promise, ...], lapsed: Collection[PromiseKey]) -> tuple[Promise, ...]:
    return tuple(each for each in promises if promise_key(gang, each) not in lapsed)


def _most(gang: Gang) -> tuple[Drawn, ...]:
    """The most that it was let in with."""
    return max((gang.declared, *(each.charges for each in gang.promises)), key=_total)


def _let_in(gang: Gang, declared: tuple[Drawn, ...], view: PodView) -> tuple[Drawn, ...]:
    """What it declares, if that was let in or its pods hold it; else what was let in: nobody may have been asked."""
    asked = _by_tier(declared)
    let_in = (gang.declared, *(each.charges for each in gang.promises))
    fits = any(_is_within(asked, _by_tier(each)) for each in let_in) or _covers(view.held_by(gang, ()), declared)
    return declared if fits else _most(gang)


def _total(charges: tuple[Drawn, ...]) -> Decimal:
    return sum((each.gpus for each in charges), Decimal(0))


def _adopted(account: Account, view: PodView) -> Iterator[Gang]:
    known = {each.uid for each in account.gangs}
    for uid, found in view.workloads.found_in(account.namespaces):
        if found.charges and uid not in known and len(known) < MOST_GANGS:
            gang = Gang(uid=uid, namespace=found.namespace, kind=found.kind, name=found.name)
            declared = drawn_of(found.charges, "")
            if _covers(view.held_by(gang, ()), declared):
                known.add(uid)
                yield replace(gang, declared=declared)


def _covers(held: tuple[Drawn, ...], declared: tuple[Drawn, ...]) -> bool:
    """Whether the pods hold all of it at each tier. On which flavor they run shows where they run."""
    return _is_within(_by_tier(declared), _by_tier(held))


def _by_tier(charges: Iterable[Drawn]) -> _ByTier:
    """Without what they share."""
    sums = defaultdict[str | None, Decimal](Decimal)
    for each in charges:
        sums[each.tier] += each.own
    return sums


def _is_within(asked: _ByTier, there: _ByTier) -> bool:
    return all(there.get(tier, Decimal(0)) >= gpus for tier, gpus in asked.items())
