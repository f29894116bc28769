"""The reservation of nodes for preemptors: its state in annotations of the nodes, and its next step.

All nodes get the annotation, and only that of the first is updated. So a new leader continues from there, and only one
of two leaders writes each step:

1. The nodes are tainted. A second later everything is judged again, by what the scheduler has bound meanwhile. Victims
   that save when they are asked do so first.
2. The victims are evicted; or the reservation ends, and nothing was lost.
3. The victims end and their claims are free. From then on the scheduler has a while to place the preemptor.
4. The reservation ends: the preemptor is bound or gone, another pod of its tier or a higher one has the devices, a
   victim does not end, a node lost its taint or annotation, or the time is over. If the devices stay free or a lower
   pod has them, the preemption failed.

While the victims end, pods of the same tier may share the node of a reservation. More victims are evicted there for
them, or they use devices that the first pods leave. All of them share the devices, because nobody is preferred within a
tier. The reservation ends when none of them waits any more. It is extended only for a pod that evicts others, and a
replacement of the evicted pod can't run there meanwhile, so no node is shared forever.

Pods of other tiers may share the node as well. Nobody is evicted there for pods of a lower tier: the taint is that of
the highest tier that waits, so they use what the others leave. If a pod gets the devices of another reservation, the
pods of that reservation may use what its own victims leave.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from math import inf, sqrt
from typing import Self

import msgspec
from msgspec.structs import replace

from webhook.objects.refusal import Phrase
from webhook.policy.devices import DeviceKey
from webhook.policy.preemption.cluster_state import OVERDUE, ClusterState
from webhook.policy.preemption.node_state import NodeState
from webhook.policy.preemption.pod_state import PodState
from webhook.policy.preemption.preemptor import EvictionPlan

UNTIL_JUDGED = 1.0
"""Seconds from the reservation until everything is judged again: the scheduler knows the taint by then."""
UNTIL_PLACED = 20.0
BACK_OFF = 10.0
"""Seconds from when the devices are free until the preemptor has a node: kube-scheduler tries a pod again after 10 s of
back-off at most, and a PodGroup of n pods after the square root of n times that."""
SLACK = 10.0
"""Seconds that the leader may take for its steps, all together."""
UNTIL_JOINED = 5.0
"""Seconds for which free devices that a reservation leaves stay reserved for others."""
HAS_DEVICES = ("preemption-devices-free", "preemption-holders-ending")
"""The ids of the answers for a preemptor that gets devices without another eviction."""
MOST_NODES = 20
"""Nodes that are reserved at a time. A gang that needs more may reserve them if no other node is reserved."""


class Reservation(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The reserved nodes, and the pods for which they are reserved. `name` is the first preemptor's `shown`.

    `tier` is the value of the taint. `pods` are the uids of all preemptors' pods. `victims` are the uids of evicted
    pods, each with the time by which it must have ended, and `devices` are the devices that they used. `freed_at` is
    when the devices became free. `saving` are the uids of pods that were asked at `asked_at` to save before they are
    evicted, each with its deadline. Times are in seconds since 1970.
    """

    gang: str
    name: str
    pods: tuple[str, ...]
    tier: str
    nodes: tuple[str, ...]
    since: float
    until: float
    victims: Mapping[str, float] = msgspec.field(default_factory=dict)
    devices: tuple[DeviceKey, ...] = ()
    freed_at: float | None = None
    asked_at: float | None = None
    saving: Mapping[str, float] = msgspec.field(default_factory=dict)

    def is_same(self, other: Self | None) -> bool:
        """Tell whether both are one reservation, perhaps in different states; a gang may have another one later."""
        return other is not None and (self.gang, self.since, self.nodes) == (other.gang, other.since, other.nodes)


def reservation_on(node: NodeState) -> Reservation | None:
    """Return the reservation in a node's annotation; None without an annotation, or if it can't be read."""
    try:
        return msgspec.json.decode(node.reservation, type=Reservation) if node.reservation else None
    except msgspec.DecodeError:
        return None


def reservations(state: ClusterState) -> tuple[Reservation, ...]:
    """Return all reservations, each as its first node has it, or as another of its nodes if the first has none."""
    return reservations_on(state.nodes.values())


def reservations_on(nodes: Iterable[NodeState]) -> tuple[Reservation, ...]:
    found: dict[tuple[str, ...], Reservation] = {}
    for node in nodes:
        each = reservation_on(node)
        if each is not None and node.name in each.nodes and (each.nodes not in found or node.name == each.nodes[0]):
            found[each.nodes] = each
    return tuple(found.values())


def reserve(preemption: EvictionPlan, now: float, longest_grace: int) -> Reservation:
    """Return the reservation for a plan, from `now` on. It names no victims, because they are judged again first.

    It ends a while after the longest grace period of the plan's victims, of which at most `longest_grace` counts.
    """
    preemptor = preemption.preemptor
    grace = min(max((each.grace for each in preemption.victims), default=0), longest_grace)
    return Reservation(
        preemptor.gang,
        preemptor.shown,
        tuple(need.pod.uid for need in preemptor.needs),
        preemptor.tier.name,
        preemption.nodes,
        now,
        now + UNTIL_JUDGED + grace + OVERDUE + _until_placed(len(preemptor.needs)) + SLACK,
    )


def _until_placed(pods: int) -> float:
    return UNTIL_PLACED + BACK_OFF * sqrt(pods)


def shared_with(reservation: Reservation, plan: EvictionPlan, now: float, longest_grace: int) -> Reservation:
    """Return the reservation with one more preemptor, extended so that its victims have their whole time to end.

    Without victims it is not extended, because otherwise pods that come and go could keep a node closed. If no pods are
    left in it, the preemptor becomes its first, and the devices no longer count as freed.
    """
    more = reserve(plan, now, longest_grace)
    until = max(reservation.until, more.until) if plan.victims else reservation.until
    if not reservation.pods:
        reservation = replace(reservation, gang=more.gang, name=more.name, freed_at=None)
    return replace(reservation, pods=(*reservation.pods, *more.pods), until=until)


def is_shareable(reservation: Reservation, state: ClusterState) -> bool:
    """Tell whether one more pod may share the node of a reservation, which must have only one.

    All victims must be ending, or they could be chosen twice. None may still save first. Once the devices are free,
    only a reservation whose own pods are gone is shared.
    """
    are_ending = all(uid not in state.pods or state.pods[uid].ends_at is not None for uid in reservation.victims)
    is_freeing = bool(reservation.victims) and not reservation.saving and are_ending
    is_passed_on = not reservation.pods
    return is_freeing and (reservation.freed_at is None or is_passed_on) and len(reservation.nodes) == 1


def waiting_gangs(reservation: Reservation, state: ClusterState) -> tuple[str, ...]:
    """Return the gangs of a reservation that still wait for a node."""
    pods = (state.pods[uid] for uid in reservation.pods if uid in state.pods)
    return tuple(dict.fromkeys(each.gang for each in pods if not each.node and each.ends_at is None))


def asking(
    reservation: Reservation, victims: Iterable[PodState], state: ClusterState, longest_grace: int
) -> Reservation:
    """Return the reservation with those of the victims that are asked to save first, because they save on request.

    Each has as long as its grace period, at most `longest_grace`, so a pod that only claims to save can at most double
    its time. The reservation is extended by the longest of these. It stays as it is if no victim saves on request.
    """
    grace = {each.uid: min(each.grace, longest_grace) for each in victims if each.uid in state.unsaved_since}
    if not grace:
        return reservation
    saving = {uid: state.now + seconds for uid, seconds in grace.items()}
    until = reservation.until + max(grace.values())
    return replace(reservation, asked_at=state.now, saving=saving, until=until)


def with_victims(reservation: Reservation, victims: Iterable[PodState], state: ClusterState) -> Reservation:
    """Return the reservation with more victims, which are evicted now, and the devices that they use.

    No victim is waited for to save any more.
    """
    due = {each.uid: state.now + each.grace + OVERDUE for each in victims}
    holders = state.inventory.holders.items()
    used = (key for key, (claim, _) in holders if any(user.uid in due for user in claim.status.reserved_for))
    devices = tuple(dict.fromkeys((*reservation.devices, *used)))
    going = {**reservation.victims, **due}
    return replace(reservation, victims=going, devices=devices, asked_at=None, saving={})


def victims_left(reservation: Reservation, state: ClusterState) -> dict[str, float]:
    """Return the victims that still exist or have allocated claims, each with the time by which it must have ended."""
    holding = (claim for claim in state.claims.values() if claim.is_allocated)
    users = {user.uid for claim in holding for user in claim.status.reserved_for}
    return {uid: due for uid, due in reservation.victims.items() if uid in state.pods or uid in users}


class ReservationEnd(StrEnum):
    """Why a reservation ends."""

    BOUND = "bound"
    GONE = "gone"
    NOT_NEEDED = "not-needed"
    TAKEN = "taken"
    STUCK = "victim-stuck"
    EXPIRED = "expired"
    INCOMPLETE = "incomplete"
    """A node lacks its taint or annotation: a leader ended while it reserved, or somebody removed the taint."""
    FAILED = "failed"


class End(msgspec.Struct, frozen=True):
    """The end of a reservation: taint and annotation are removed, or replaced by those of `passed_on`.

    `why` is the last judgement. `lost`: the reservation failed because of others: a pod of a lower tier has the
    devices, or an eviction is refused.
    """

    outcome: ReservationEnd
    why: Phrase | None = None
    lost: bool = False
    passed_on: Reservation | None = None


Step = EvictionPlan | Reservation | End | None
"""The next step: evict the pods of a plan, write the changed reservation, or end it; None to wait."""
Decide = Callable[[str, frozenset[str]], EvictionPlan | Phrase]
"""Judges a gang again, with the nodes on which pods may be evicted."""


def next_step(reservation: Reservation, state: ClusterState, longest_grace: int, decide: Decide) -> Step:
    """Return what to do now for a reservation; None to wait. `decide` judges its waiting gangs again.

    A victim that saves first has at most `longest_grace` seconds to save.
    """
    if not waiting_gangs(reservation, state):
        return _without_waiting(reservation, state)
    if state.now >= reservation.until:
        return End(ReservationEnd.EXPIRED)
    nodes = [state.nodes.get(name) for name in reservation.nodes]
    if not all(node and node.reserved_for and reservation.is_same(reservation_on(node)) for node in nodes):
        return End(ReservationEnd.INCOMPLETE)
    if reservation.saving or not reservation.victims:
        return _before_eviction(reservation, state, longest_grace, decide)
    changed = _without_one(reservation, state, decide)
    waiting = (pod for gang in waiting_gangs(changed, state) for pod in state.gangs[gang] if not pod.node)
    changed = replace(changed, tier=max(waiting, key=lambda pod: pod.priority).class_name)
    if changed != reservation:
        return changed
    step = _victims_end if reservation.freed_at is None else _placing
    return step(reservation, state, decide)


def _without_waiting(reservation: Reservation, state: ClusterState) -> Step:
    """End a reservation whose pods wait no more, or pass what it leaves on to other waiting pods, which may join.

    A reservation that was passed on ends at the latest UNTIL_JOINED seconds after its devices are free. Until then the
    answer is None to wait, or the reservation with the time at which the devices became free.
    """
    waiting = (each for each in state.pods.values() if each.waits_since is not None and each.ends_at is None)
    is_ending = any(uid in state.pods for uid in reservation.victims)
    leaves_any = is_ending or any(key not in state.inventory.holders for key in reservation.devices)
    remains = leaves_any and len(reservation.nodes) == 1 and state.now < reservation.until
    remains = remains and any(each.may_be_reserved_for for each in waiting)
    # 1. Its own pods wait no more.
    if reservation.pods:
        is_bound = any(state.pods[uid].node for uid in reservation.pods if uid in state.pods)
        outcome = ReservationEnd.BOUND if is_bound else ReservationEnd.GONE
        left = replace(reservation, pods=(), freed_at=None, asked_at=None, saving={})
        return End(outcome, passed_on=left if remains else None)

    # 2. It was passed on, and nobody has joined it so far.
    if remains and not is_ending and reservation.freed_at is None:
        return replace(reservation, freed_at=state.now)
    is_late = reservation.freed_at is not None and state.now >= reservation.freed_at + UNTIL_JOINED
    return None if remains and not is_late else End(ReservationEnd.NOT_NEEDED)


def _judged(reservation: Reservation, state: ClusterState, decide: Decide) -> EvictionPlan | Phrase:
    """Judge the waiting gangs again; return the first plan, or why nobody is evicted for the last one."""
    answer: EvictionPlan | Phrase = Phrase("preemptor-gone")
    for gang in waiting_gangs(reservation, state):
        answer = decide(gang, frozenset(reservation.nodes))
        if isinstance(answer, EvictionPlan):
            break
    return answer


def _before_eviction(reservation: Reservation, state: ClusterState, longest_grace: int, decide: Decide) -> Step:
    """Judge again which pods are evicted, and first ask those to save that do so on request: once, all together.

    Return None to wait for the second judgement or for the saves, and the end if no eviction on these nodes helps. A
    shared reservation goes on then, because the victims of others still end.
    """
    now, asked_at = state.now, reservation.asked_at
    if now < reservation.since + UNTIL_JUDGED:
        return None
    if asked_at is not None and any(
        now < until and state.unsaved_since.get(uid, inf) < asked_at for uid, until in reservation.saving.items()
    ):
        return None
    judged = _judged(reservation, state, decide)
    victims = () if isinstance(judged, Phrase) else judged.victims
    if isinstance(judged, Phrase) or not victims or not set(judged.nodes) <= set(reservation.nodes):
        # Where the node is shared, the victims of others end.
        if reservation.victims:
            return replace(reservation, asked_at=None, saving={})
        return End(ReservationEnd.NOT_NEEDED, judged if isinstance(judged, Phrase) else None)
    asked = reservation if asked_at is not None else asking(reservation, victims, state, longest_grace)
    return judged if asked is reservation else asked


def _victims_end(reservation: Reservation, state: ClusterState, decide: Decide) -> Step:
    """Wait until the last claim of the victims is free, because the preemptor's time begins then.

    If victims are not being deleted, evict again or drop them. If one has not ended in time, the reservation ends.
    """
    # 1. A victim has changed before it could be deleted, or the leader ended between two of them.
    victims = reservation.victims
    staying = {uid for uid in victims if uid in state.pods and state.pods[uid].ends_at is None}
    if staying:
        judged = _judged(reservation, state, decide)
        if isinstance(judged, EvictionPlan) and judged.victims:
            return judged
        going = {uid: due for uid, due in victims.items() if uid not in staying}
        return replace(reservation, victims=going)

    # 2. They end.
    left = victims_left(reservation, state)
    if not left:
        return replace(reservation, freed_at=state.now)
    return None if state.now < max(left.values()) else End(ReservationEnd.STUCK)


def _placing(reservation: Reservation, state: ClusterState, decide: Decide) -> Step:
    """Wait for the scheduler, and find out which pods got the devices. Within a tier nobody is preferred.

    After the time of the highest tier, pods of lower tiers get a time of their own. Without such pods the reservation
    has failed.
    """
    is_late = state.now >= (reservation.freed_at or 0.0) + _until_placed(len(reservation.pods))
    members = [state.pods[uid] for uid in reservation.pods if uid in state.pods]
    # 1. Another pod has some of them, and nobody waits who could have the rest.
    takers = _takers(reservation, state)
    if takers and (is_late or len(waiting_gangs(reservation, state)) == 1):
        if not (lower := _lower(takers, reservation, state)):
            return End(ReservationEnd.TAKEN)
        return End(ReservationEnd.FAILED, Phrase("devices-taken-by-lower", pod=lower[0].shown), lost=True)

    # 2. Nobody has, and the scheduler had its time. Those of lower tiers, which the taint kept off, have theirs now.
    if not is_late:
        return None
    lower_tiers = tuple(each.uid for each in members if not each.node and each.class_name != reservation.tier)
    if lower_tiers:
        return replace(reservation, pods=lower_tiers, freed_at=state.now)
    judged = _judged(reservation, state, decide)
    return End(ReservationEnd.FAILED, judged if isinstance(judged, Phrase) else None)


def _without_one(reservation: Reservation, state: ClusterState, decide: Decide) -> Reservation:
    """Return the reservation without one waiting gang, if other pods of this or a higher tier have its devices.

    The gang of the lowest priority that gets no devices there is left out. It looks for other devices at once, and may
    join another reservation. The reservation stays as it is if only one gang waits, or if each gang gets devices.
    """
    waiting, takers = waiting_gangs(reservation, state), _takers(reservation, state)
    if len(waiting) > 1 and takers and not _lower(takers, reservation, state):
        for gang in sorted(waiting, key=lambda each: (state.gangs[each][0].priority, -waiting.index(each))):
            judged = decide(gang, frozenset(reservation.nodes))
            if isinstance(judged, EvictionPlan) or judged.id not in HAS_DEVICES:
                own = {pod.uid for pod in state.gangs[gang]}
                return replace(reservation, pods=tuple(each for each in reservation.pods if each not in own))
    return reservation


def _takers(reservation: Reservation, state: ClusterState) -> list[PodState]:
    """Return the pods that have devices of a reservation and are neither its preemptors nor its victims."""
    holders = (state.inventory.holders[key][0] for key in reservation.devices if key in state.inventory.holders)
    users = {user.uid for claim in holders for user in claim.status.reserved_for}
    others = users.difference(reservation.pods, reservation.victims)
    return [state.pods[uid] for uid in sorted(others) if uid in state.pods and state.pods[uid].node]


def _lower(pods: Iterable[PodState], reservation: Reservation, state: ClusterState) -> list[PodState]:
    """Return those of the pods that have a lower priority than all preemptors of the reservation."""
    priority = min(state.pods[uid].priority for uid in reservation.pods if uid in state.pods)
    return [each for each in pods if each.priority < priority]


def may_reserve(nodes: int, there: Iterable[Reservation]) -> bool:
    """Tell whether so many more `nodes` may be reserved next to those of `there`.

    At most MOST_NODES may be in all, or any number if no node is reserved yet.
    """
    taken = sum(len(each.nodes) for each in there)
    return not taken or taken + nodes <= MOST_NODES
