"""Sorts the gated pods of a tenant into its queue, as a pure function of a view and an account.

A pod that adds nothing to a row never waits for that row: a pod of a booked gang, and the replacement of an ended pod.
All others are queued by tier, then by the age of their workload.
"""

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from webhook.ledger.account import Account, GangKey, at_tier
from webhook.ledger.leader.gated_pods import GatedPod
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.protocol import Booking, Declared, GangBooking
from webhook.policy.quota.charges import Charge, Shortfall
from webhook.policy.values.tenants import Tenant

QueueKey = tuple[int, str, int]


class QueuedUnit(msgspec.Struct, frozen=True):
    """A queued unit: a gang with those of its pods that exist, or a single pod.

    `sort_key` is the negated value of its tier, its creationTimestamp (RFC 3339), and a number in the order in which
    the leader saw units. `grows`: the pod belongs to a booked gang that waits to grow, so alone it may only use what
    the gang has already.
    """

    pods: tuple[GatedPod, ...]
    sort_key: QueueKey
    gang: GangBooking | None = None
    grows: bool = False

    @property
    def first(self) -> GatedPod:
        return self.pods[0]

    @property
    def uid(self) -> str:
        """The uid of the gang, or of the pod."""
        return self.gang.uid if self.gang else self.first.uid

    @property
    def charges(self) -> tuple[Charge, ...]:
        return self.gang.charges if self.gang else tuple(each.holding.charge for each in self.pods)


class Queued(msgspec.Struct, frozen=True):
    """A unit that stays queued, because a row is `short` or because it is behind another one."""

    waiting: QueuedUnit
    short: Shortfall | None = None


def booking_of(pod: GatedPod, tenant: Tenant) -> Booking:
    """Return the booking of a single pod."""
    of = pod.holding
    return Booking(
        pod.uid, of.namespace, tenant, (of.charge,), of.controller, of.name, gang=of.gang, workload=of.workload
    )


def admitted_pods(account: Account, view: PodView) -> Iterator[GatedPod]:
    """Yield the pods whose gates may be opened.

    The account has a reservation for the GPUs that they ask for. A pod without GPUs waits until its gang is booked.
    """
    for each in account.reserved:
        pod = view.gated.get(each.uid)
        if pod is not None and pod.asks_for(each):
            yield pod
    gangs = account.gangs
    for pod in view.gated.of(account.namespaces):
        if not pod.asks_for_gpus and ((key := queued_with(pod, view)) is None or key in gangs):
            yield pod


def queue_of(account: Account, view: PodView, tenant: Tenant) -> list[QueuedUnit]:
    """Return the queue of the open namespaces of an account, in order.

    It leaves out pods that are booked already, gangs whose workload is not seen yet, and namespaces that are moving.
    """
    # 1. Queue a pod alone only if it belongs to no gang for sure, because half a gang would hold GPUs and never run.
    admitted = {each.uid for each in admitted_pods(account, view)}
    gangs, found = defaultdict[GangKey, list[GatedPod]](list), list[QueuedUnit]()
    for pod in view.gated.of(namespace for namespace, state in account.namespaces.items() if state == "open"):
        if pod.uid not in admitted:
            key = queued_with(pod, view)
            if key is None:
                found.append(QueuedUnit((pod,), _sort_key(pod, view.workloads.get(pod.holding.controller))))
            else:
                gangs[key].append(pod)

    # 2. Queue a gang as a whole until it is booked with all that it asks for. Its pods may use what it has at any time,
    #    also while it waits to grow, or while nobody can tell what it asks for.
    booked = account.gangs
    for key, pods in gangs.items():
        declared, entries = view.workloads.get(key[1]), booked.get(key, ())
        asked = declared.charges if declared else None
        wants = at_tier(asked or (), entries[0].tier if entries else "")
        is_admitted = entries and (not wants or any(each.wants == wants for each in entries))
        waits = declared is not None and bool(asked) and not is_admitted
        if entries:
            found += (QueuedUnit((pod,), _sort_key(pod, declared), grows=waits) for pod in pods)
        if declared is None or not asked or is_admitted:
            continue
        ordered = sorted(pods, key=lambda pod: (-pod.priority, pod.gated.since, pod.seen))
        rank, since, _ = max(_sort_key(pod, declared) for pod in ordered)  # a gang ranks by the lowest of its tiers
        _, of_pods, number = key[1].partition("/")  # a further group of a workload exists as long as its pods do
        name, generation = f"{declared.name}-{number}" if of_pods else declared.name, declared.generation
        booking = GangBooking(
            key[1], declared.kind, key[0], name, tenant, asked, generation=generation, of_pods=bool(of_pods)
        )
        found.append(QueuedUnit(tuple(ordered), (rank, since, min(each.seen for each in pods)), booking))
    return sorted(found, key=lambda each: each.sort_key)


def _sort_key(pod: GatedPod, maker: Declared | None) -> QueueKey:
    """Return the sort key of a pod: the age of the Job or gang that makes it, or its own if a workload scales."""
    return -pod.priority, (maker.created if maker else "") or pod.gated.since, pod.seen


def queued_with(pod: GatedPod, view: PodView) -> GangKey | None:
    """Return the gang with which a pod is queued; None for a single pod.

    The view may not show the gang yet, because a Job's first pods are often seen before the Job.
    """
    of, maker = pod.holding, view.workloads.get(pod.holding.controller)
    awaits_controller = maker is not None or pod.gated.awaits_controller
    uid = of.gang or (of.controller if awaits_controller else "")
    if not of.controller or not uid:
        return None  # its workload was deleted without its pods, or is of a kind that is no gang
    found = view.workloads.get(uid)
    if found is None:
        orphaned = maker is not None and bool(maker.charges)  # a JobSet was deleted without its Jobs
        ended = uid == of.controller and view.workloads.has_ended(uid)
        return None if orphaned or ended or view.workloads.is_gone(uid) else (of.namespace, uid)
    if found.namespace != of.namespace:
        return None  # a pod can't belong to a workload of another namespace
    if found.charges == () and not found.stopped:
        return None  # it makes a single pod, or another controller makes its pods
    return of.namespace, uid  # a stopped one makes no pods, so it was resumed and the view lags, or they are deleted
