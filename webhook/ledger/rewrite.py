"""The account as a leader writes it: what it sees to exist, and the promises that are still open.

Pods are summed, but for those with which a reservation has to do: the preempted, their heirs, and a pod whose name a
reservation bears. Which reservations go, and why no other may: docs/ledger.md.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator

from msgspec.structs import replace

from webhook.ledger.account import Account, Drawn, GangKey, Holder
from webhook.ledger.pod_view import PodView
from webhook.ledger.rewritten_gangs import gangs_seen, with_pods


def rewritten(account: Account, view: PodView, lapsed: Collection[tuple[str, str]] = ()) -> Account:
    """The account by this view, without the promises that have come to nothing, `lapsed` ones by their keys."""
    namespaces = account.namespaces
    reservations = tuple(each for each in account.reservations if each.key not in lapsed and not settled(each, view))
    listed = {each.uid: each for each in _pods_apart(account, reservations, view)}
    live = {*listed, *(each.uid for each in reservations)}
    gangs = gangs_seen(account, view, lapsed)
    mates = defaultdict[GangKey, list[str]](list)
    for each in listed.values():
        mates[each.draws_on].append(each.uid)
    return replace(
        account,
        held=view.held(namespaces, listed, gangs),
        claims=view.claims(namespaces, listed),
        pods=tuple(_paired(listed[uid], live) for uid in sorted(listed)),
        reservations=tuple(_paired(each, live) for each in reservations),
        gangs=tuple(with_pods(each, view, mates[each.key]) for each in gangs),
    )


def settled(reservation: Holder, view: PodView) -> bool:
    """Whether the view shows its pod, with the charge that was booked, or the pod's end."""
    pod = view.get(reservation.uid)
    if pod is None or reservation.moved_from is None:
        return pod is not None or view.has_ended(reservation.uid)
    return pod.charge.flavor == reservation.charges[0].flavor


def _pods_apart(account: Account, reservations: tuple[Holder, ...], view: PodView) -> Iterator[Holder]:
    """The pods that are listed one by one, those that pass on their place before their heirs."""
    heirs = {each.uid: each.heir_of for each in (*account.pods, *account.reservations) if view.get(each.heir_of)}
    namesakes = (view.named(each.namespace, each.name) for each in reservations if each.moved_from is None)
    uids = dict.fromkeys((*view.preempted(account.namespaces), *heirs.values(), *heirs, *namesakes))
    for uid in uids:
        pod = view.get(uid) if uid else None
        if uid and pod and pod.namespace in account.namespaces:
            charge = Drawn.of(pod.charge)
            yield Holder(
                uid=uid,
                namespace=pod.namespace,
                name=pod.name,
                controller=pod.controller,
                charges=(charge,),
                gang=pod.gang,
                heir_of=heirs.get(uid, ""),
                preempted=pod.preempted,
            )


def _paired(holder: Holder, live: Collection[str]) -> Holder:
    """An heir stands alone once the pod that it replaces is gone."""
    return holder if not holder.heir_of or holder.heir_of in live else replace(holder, heir_of="")
