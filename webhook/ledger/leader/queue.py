"""The queue of a tenant whose quota holds: who of its gated pods waits, as what, and in which order.

What adds nothing to a row never waits for that row: a pod of a gang that is booked, and the next pod of one that has
ended. All others come by tier, then by the age of their workload. Pure: from a view and an account.
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


class Waiting(msgspec.Struct, frozen=True):
    """What waits as one: a gang with those of its pods that are there, or a pod alone.

    `turn` sorts them: by tier, the highest first, then by when it was made (RFC 3339), then by uid. `grows`: the pod is
    of a gang that is booked and waits to grow; by itself it gets what its gang has already.
    """

    pods: tuple[GatedPod, ...]
    turn: tuple[int, str, str]
    gang: GangBooking | None = None
    grows: bool = False

    @property
    def first(self) -> GatedPod:
        return self.pods[0]

    @property
    def uid(self) -> str:
        """What it is as a whole: a gang stays the same, whichever of its pods are made anew."""
        return self.gang.uid if self.gang else self.first.uid

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What it asks for."""
        return self.gang.charges if self.gang else tuple(each.holding.charge for each in self.pods)


class Queued(msgspec.Struct, frozen=True):
    """Who waits on: for what is short, or behind somebody else where nothing is. One `in_vain` reserves nothing."""

    waiting: Waiting
    short: Shortfall | None = None
    in_vain: bool = False


def booking_of(pod: GatedPod, tenant: Tenant) -> Booking:
    """What is booked for a pod by itself."""
    of = pod.holding
    return Booking(
        pod.uid, of.namespace, tenant, (of.charge,), of.controller, of.name, gang=of.gang, workload=of.workload
    )


def let_in_by(account: Account, view: PodView) -> Iterator[GatedPod]:
    """The pods that wait for their gate alone.

    The account promises them what they ask for; or they ask for no GPUs, and it has their gang, or they are of none.
    """
    for each in account.reserved:
        pod = view.gated.get(each.uid)
        if pod is not None and pod.asks_for(each):
            yield pod
    gangs = account.gangs
    for pod in view.gated.of(account.namespaces):
        if not pod.asks_for_gpus and ((key := gang_of(pod, view)) is None or key in gangs):
            yield pod


def queue_of(account: Account, view: PodView, tenant: Tenant) -> list[Waiting]:
    """Who waits in the open namespaces of an account, in the order of their turns.

    Who is let in waits for its gate alone, a gang for its workload to be seen, and a namespace that moves for its next
    account.
    """
    # 1. A pod waits alone only where that is sure: half a gang would hold its GPUs and never run.
    let_in = {each.uid for each in let_in_by(account, view)}
    gangs, found = defaultdict[GangKey, list[GatedPod]](list), list[Waiting]()
    for pod in view.gated.of(namespace for namespace, state in account.namespaces.items() if state == "open"):
        if pod.uid not in let_in:
            key = gang_of(pod, view)
            if key is None:
                found.append(Waiting((pod,), _turn(pod, view.workloads.get(pod.holding.controller))))
            else:
                gangs[key].append(pod)

    # 2. A gang waits as a whole, until it is booked with what it asks for; then each of its pods draws on that. While
    #    it waits to grow, or nobody can tell what it asks for now, they may still draw on what it was let in with.
    booked = account.gangs
    for key, pods in gangs.items():
        declared, entries = view.workloads.get(key[1]), booked.get(key, ())
        asked = declared.charges if declared else None
        wants = at_tier(asked or (), entries[0].tier if entries else "")
        is_let_in = entries and (not wants or any(each.wants == wants for each in entries))
        waits = declared is not None and bool(asked) and not is_let_in
        if entries:
            found += (Waiting((pod,), _turn(pod, declared), grows=waits) for pod in pods)
        if declared is None or not asked or is_let_in:
            continue
        ordered = sorted(pods, key=lambda pod: (-pod.priority, pod.gated.since, pod.uid))
        rank, since, _ = max(_turn(pod, declared) for pod in ordered)  # it is of the lowest of its tiers
        booking = GangBooking(
            key[1], declared.kind, declared.namespace, declared.name, tenant, asked, generation=declared.generation
        )
        found.append(Waiting(tuple(ordered), (rank, since, key[1]), booking))
    return sorted(found, key=lambda each: each.turn)


def _turn(pod: GatedPod, maker: Declared | None) -> tuple[int, str, str]:
    """By the age of the Job or gang that makes it; what scales makes pods at any time, and each has its own age."""
    return -pod.priority, (maker.created if maker else "") or pod.gated.since, pod.uid


def gang_of(pod: GatedPod, view: PodView) -> GangKey | None:
    """The gang that a pod waits with; None for a pod alone.

    It waits with a gang that the view does not show yet: a Job's first pods are often seen before the Job.
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
        return None if orphaned or ended else (of.namespace, uid)
    if found.namespace != of.namespace:
        return None  # nobody is of a workload of another namespace, whatever it says
    if found.charges == () and not found.stopped:
        return None  # it makes a single pod, or another controller makes its pods
    return of.namespace, uid  # one that is stopped makes no pods: it was resumed and the view lags, or they are deleted
