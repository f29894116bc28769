"""Rewrites an account by the leader's view, with what exists and what was admitted and is not seen yet.

Pods are summed, except those that share a slot with another entry: preempted pods and their replacements, and a pod
whose name a reservation has. A gang ends with its workload, and then its pods count one by one. A workload that nobody
booked, because it is older than gpu-tiers or was applied while that was down, becomes a gang when its pods use all that
it declares, which adds nothing. Which reservations go, and why no other may: docs/decisions/books.md.
"""

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal

from msgspec.structs import replace

from webhook.ledger.account import MOST_GANGS, Account, Entry, EntryKey, GangKey, at_tier
from webhook.ledger.draft import NotNow, gang_to_book
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.vacant_slots import PREEMPTED_SECONDS
from webhook.ledger.protocol import Booked, Declared, GangBooking
from webhook.ledger.versions import WorkingCopy
from webhook.policy.quota.charges import Charge, Shortfall, together
from webhook.policy.values.tenants import may_be

MOST_VACANT = 200
"""Most slots of ended pods that an account reserves, the latest ones."""


def rewritten(
    account: Account,
    view: PodView,
    lapsed: Collection[EntryKey] = (),
    *,
    part: Entry | None = None,
    has_queue: bool = False,
) -> Account:
    """Return the account by this view, without the `lapsed` reservations, which came to nothing.

    `part` is a gang that is not booked yet and whose pods are inside it already. If the tenant `has_queue`, slots of
    ended pods stay reserved for replacements.
    """
    # 1. Keep reservations until they are seen or lapsed, and vacant slots until they are filled or their time is over.
    here = [each for each in account.entries if each.namespace in account.namespaces]
    pods = [each for each in here if each.is_pod]
    reserved = [
        each for each in pods if each.state == "Reserved" and each.key not in lapsed and not is_seen(each, view)
    ]
    known = [entries for (namespace, _), entries in account.gangs.items() if namespace in account.namespaces]
    awaited = {each.gang for each in reserved}
    gangs = [gang for entries in known for gang in _gang_seen(entries, view, lapsed, awaited)]
    gangs += _adopted(account, view)
    gangs += [part] if part is not None and all(each.gang != part.gang for each in gangs) else []
    vacant = list(_vacant(pods, view, account.namespaces)) if has_queue else []

    # 2. List pods one by one that share a slot. A replacement leaves the slot when the replaced pod is gone. Tries of
    #    one pod still share a slot when the first of them has lapsed, because otherwise each would count again.
    with_slots = {each.uid for each in (*reserved, *vacant)} | set(view.preempted(account.namespaces))
    first: dict[str, str] = {}
    for each in reserved:
        if each.slot and each.slot not in with_slots:
            first.setdefault(each.slot, each.uid)
    with_slots |= first.keys()
    slots = {each.uid: first.get(each.slot, each.slot) for each in pods if each.slot in with_slots}
    slots = {uid: slot for uid, slot in slots.items() if uid != slot}
    namesakes = (view.named(each.namespace, each.name) for each in reserved if each.instead_of is None)
    uids = dict.fromkeys((*view.preempted(account.namespaces), *slots, *slots.values(), *namesakes))
    listed = {
        uid: Entry(
            uid=uid,
            namespace=pod.namespace,
            name=pod.name,
            maker=pod.made_by[1],
            of=pod.draws_on[1],
            slot=slots.get(uid, ""),
            wants=(pod.charge,),
            preempted=pod.preempted,
        )
        for uid in uids
        if uid and (pod := view.get(uid)) and pod.namespace in account.namespaces
    }

    # 3. Sum all other pods, those of a gang inside its slot. Reservations for the queue change in queue.py.
    mates = defaultdict[GangKey, list[str]](list)
    for each in listed.values():
        mates[each.gang].append(each.uid)
    keys = dict.fromkeys(each.gang for each in gangs)
    alone = (*view.used(account.namespaces, listed, keys), *view.claims(account.namespaces, listed))
    sums = [
        Entry(wants=alone),
        *(Entry(namespace=key[0], of=key[1], wants=view.used_without_claims(key, mates[key])) for key in keys),
    ]
    waits = any(True for _ in view.gated.of(account.namespaces))
    heads = [each for each in here if each.state == "ForQueue" and waits]
    rest = (replace(each, slot=slots.get(each.uid, "")) for each in (*reserved, *vacant))
    found = (*(each for each in sums if each.wants), *gangs, *(listed[uid] for uid in sorted(listed)), *rest, *heads)

    # 4. Count the pods of each maker for the next leader.
    counts = view.counts(account.namespaces, keys) if has_queue else ()
    is_same = found == account.entries and counts == account.pod_counts
    return account if is_same else replace(account, entries=found, pod_counts=counts)


def book_with_its_pods(copy: WorkingCopy, view: PodView, booking: GangBooking) -> Booked | Shortfall | NotNow:
    """Book a gang with its existing pods inside. A Job of one pod that grows to four needs room for three."""
    key = booking.namespace, booking.uid
    if not copy.sealed or key in copy.account.gangs or not view.used_without_claims(key, ()):
        return copy.book(booking)
    trial = WorkingCopy(copy.version)
    trial.put(rewritten(copy.account, view, part=gang_to_book(booking), has_queue=copy.version.active.has_queue))
    answer = trial.book(booking)
    if isinstance(answer, Booked):
        copy.put(trial.account)
    return answer


def is_seen(reservation: Entry, view: PodView) -> bool:
    """Tell whether the view shows the reserved pod, or its end. A pod that moves must be on the booked flavor.

    A pod that was booked on several flavors may have got a node, and so one of them, before it was seen.
    """
    pod = view.get(reservation.uid)
    if pod is None or reservation.instead_of is None:
        return pod is not None or view.has_ended(reservation.uid)
    flavor, booked = pod.charge.flavor, reservation.wants[0].flavor
    return flavor == booked or (flavor is not None and may_be(booked, flavor))


def _vacant(pods: Iterable[Entry], view: PodView, namespaces: Container[str]) -> Iterator[Entry]:
    """Yield the vacant slots. A slot is filled when its replacement was seen, which then counts by itself."""
    for each in pods:
        if each.slot and view.last_used(each.uid) is not None:
            view.vacant.forget(each.slot)
    filled = {each.slot for each in pods if each.slot and view.last_used(each.uid) is not None}
    known = {each.uid: each for each in pods if each.state == "Vacant"}
    known |= {each.uid: each for each in view.vacant.of(namespaces) if each.uid not in known}
    now = view.vacant.now()
    for each in sorted(known.values(), key=lambda each: (-each.until, each.uid))[:MOST_VACANT]:
        over = each.until <= now or view.workloads.has_ended(each.of) or each.uid in filled
        if not over:
            latest = int(now) + PREEMPTED_SECONDS  # the clock of another leader may be ahead
            yield each if each.until <= latest else replace(each, until=latest)


def _largest(charges: Iterable[tuple[Charge, ...]]) -> tuple[Charge, ...]:
    """Return the charges with the most GPUs."""
    return max(charges, key=together, default=())


def _gang_seen(
    entries: Sequence[Entry], view: PodView, lapsed: Collection[EntryKey], awaited: Collection[GangKey]
) -> Iterator[Entry]:
    """Yield the entries of a gang by this view: what it declares, and the reservations that are still open.

    `awaited` are the gangs with a reserved pod that is not seen yet.
    """
    gang, admitted = entries[0], [each.wants for each in entries]
    declared = next((each.wants for each in entries if each.state == "Used"), ())
    reserved = [each for each in entries if each.state == "Reserved"]
    found, used = view.workloads.get(gang.uid), view.used_by(gang.gang)
    is_of_workload = gang.uid.partition("/")[0] not in (gang.uid, gang.kind)  # that of a PodGroup is its kind and name
    if is_of_workload and (view.workloads.has_ended(gang.uid) or view.workloads.is_gone(gang.uid)):
        # A group whose workload was deleted without its pods gets no others.
        declared, reserved = (), []
    elif gang.of_pods:
        # A group without a workload is booked with its first pod, and keeps all of it while one of its pods exists or
        # is awaited: three of its pods may be deleted before the fourth is created.
        exists = used or gang.gang in awaited
        declared, reserved = (_largest(admitted), []) if used else ((), reserved if exists else [])
    elif found is None:  # a workload that ended has nothing
        ended = view.workloads.has_ended(gang.uid)
        declared = () if ended or view.workloads.lists(gang.kind) else declared
        reserved = [] if ended else reserved
    else:  # what it declares, if that was admitted or its pods use it; else what was admitted
        seen = declared if found.charges is None else at_tier(found.charges, gang.tier)
        if found.charges is not None:
            reserved = [each for each in reserved if not _is_fulfilled(each, found, seen)]
        fits = any(_is_within(_by_tier(seen), _by_tier(each)) for each in admitted) or _covers(used, seen)
        declared = seen if fits else _largest(admitted)
    if declared:
        yield replace(gang, state="Used", wants=declared, generation=0, attempt=0)
    yield from (each for each in reserved if each.key not in lapsed)


def _is_fulfilled(reservation: Entry, found: Declared, seen: tuple[Charge, ...]) -> bool:
    """Tell whether the workload has the generation and charges that were reserved, or a later generation.

    A changed label makes no new generation. A Job with succeeded pods asks for fewer GPUs at the same tier.
    """
    if reservation.generation != found.generation:
        return reservation.generation < found.generation
    needs_fewer = found.partly_done and _is_within(_by_tier(seen), _by_tier(reservation.wants))
    return reservation.wants == seen or needs_fewer


def _adopted(account: Account, view: PodView) -> Iterator[Entry]:
    known = {uid for _, uid in account.gangs}
    for uid, found in view.workloads.found_in(account.namespaces):
        if found.charges and uid not in known and len(known) < MOST_GANGS:
            declared = at_tier(found.charges, "")
            if _covers(view.used_by((found.namespace, uid)), declared):
                known.add(uid)
                yield Entry(uid=uid, namespace=found.namespace, kind=found.kind, name=found.name, wants=declared)


def _covers(used: tuple[Charge, ...], declared: tuple[Charge, ...]) -> bool:
    """Tell whether pods use all that is declared at each tier. Their flavor is only known when they run."""
    return _is_within(_by_tier(declared), _by_tier(used))


def _by_tier(charges: Iterable[Charge]) -> Mapping[tuple[str | None, str], Decimal]:
    """Sum charges by tier, and what is shared by tier and ResourceClaim."""
    sums = defaultdict[tuple[str | None, str], Decimal](Decimal)
    for each in charges:
        sums[each.tier, ""] += each.own
        for claim, gpus in each.shared.items():
            sums[each.tier, claim] = gpus
    return sums


def _is_within(
    asked: Mapping[tuple[str | None, str], Decimal], there: Mapping[tuple[str | None, str], Decimal]
) -> bool:
    return all(there.get(key, Decimal(0)) >= gpus for key, gpus in asked.items())
