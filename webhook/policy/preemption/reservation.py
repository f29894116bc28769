"""The reservation of nodes for a preemptor: how it stands on its nodes, and what its next step is.

Its state is on the nodes alone, so a new leader goes on with it:

1. The nodes are tainted. A second later everything is judged again, by what the scheduler has bound meanwhile.
2. The victims are evicted; or the reservation ends, and nothing was lost.
3. The victims end and their claims are free. From then on the scheduler has a while to place the preemptor.
4. It ends: the preemptor is bound, it is gone, another pod of its tier or a higher one has the devices, or its time is
   over. If the devices are free or a lower pod has them, the preemption failed.
"""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

import msgspec

from webhook.objects.refusal import Phrase
from webhook.policy.devices import DeviceKey
from webhook.policy.preemption.cluster_state import OVERDUE, ClusterState
from webhook.policy.preemption.node_state import NodeState
from webhook.policy.preemption.pod_state import PodState
from webhook.policy.preemption.preemptor import EvictionPlan

UNTIL_JUDGED = 1.0
"""Seconds from the reservation until everything is judged again: the scheduler knows the taint by then."""
UNTIL_PLACED = 30.0
"""Seconds from when the devices are free until the preemptor has a node. It is asked again after 10 s of back-off."""
SLACK = 10.0
"""Seconds that the leader may take for its steps, all together."""
MOST_NODES = 20
"""Nodes that are reserved at a time. A gang may need more: then no other has one."""
UNTIL_AGAIN = 60.0
"""Seconds from a failed preemption until the next try."""
MOST_FAILURES = 2
"""After so many failures nobody is evicted any more for a preemptor."""


class Reservation(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The nodes for a preemptor, of which `name` is the first pod and `pods` are the uids.

    `victims` are those that were evicted, with the time by which each has ended, and `devices` are what they used.
    Times are in seconds since 1970.
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


def reservation_on(node: NodeState) -> Reservation | None:
    """Read the annotation of a node; None where it has none that we have written."""
    try:
        return msgspec.json.decode(node.reservation, type=Reservation) if node.reservation else None
    except msgspec.DecodeError:
        return None


def reservations(state: ClusterState) -> dict[str, Reservation]:
    """Return all reservations by the gang that they are for. Each node of one bears the same."""
    found = (reservation_on(node) for node in state.nodes.values() if node.reservation)
    return {each.gang: each for each in found if each is not None}


def reserve(preemption: EvictionPlan, now: float, longest_grace: int) -> Reservation:
    """Return the reservation for a preemption. It lasts until the last victim must have ended and a while longer."""
    preemptor = preemption.preemptor
    grace = min(max((each.grace for each in preemption.victims), default=0), longest_grace)
    return Reservation(
        preemptor.gang,
        preemptor.shown,
        tuple(need.pod.uid for need in preemptor.needs),
        preemptor.tier.name,
        preemption.nodes,
        now,
        now + UNTIL_JUDGED + grace + OVERDUE + UNTIL_PLACED + SLACK,
    )


def with_victims(reservation: Reservation, victims: Iterable[PodState], state: ClusterState) -> Reservation:
    """Return the reservation with pods that are evicted now, and the devices that they use."""
    due = {each.uid: state.now + each.grace + OVERDUE for each in victims}
    used = (
        key
        for key, (claim, _) in state.inventory.holders.items()
        if any(user.uid in due for user in claim.status.reserved_for)
    )
    devices = tuple(dict.fromkeys((*reservation.devices, *used)))
    return msgspec.structs.replace(reservation, victims={**reservation.victims, **due}, devices=devices)


class ReservationEnd(StrEnum):
    """Why a reservation ends."""

    BOUND = "bound"
    GONE = "gone"
    NOT_NEEDED = "not-needed"
    TAKEN = "taken"
    STUCK = "victim-stuck"
    EXPIRED = "expired"
    INCOMPLETE = "incomplete"
    """One of its nodes does not bear it: a leader ended while it reserved, or somebody took the taint off."""
    FAILED = "failed"


class Wait(msgspec.Struct, frozen=True):
    """No step is due now."""


class Evict(msgspec.Struct, frozen=True):
    """The pods that are evicted now."""

    victims: tuple[PodState, ...]


class Keep(msgspec.Struct, frozen=True):
    """The reservation goes on, and is written as it is now."""

    reservation: Reservation


class End(msgspec.Struct, frozen=True):
    """The taint and the annotation are removed. `why` is what was judged last."""

    outcome: ReservationEnd
    why: Phrase | None = None


Step = Wait | Evict | Keep | End
Decide = Callable[[str, frozenset[str]], EvictionPlan | Phrase]
"""Judges a gang again, with the nodes on which pods may be evicted."""


def next_step(reservation: Reservation, state: ClusterState, decide: Decide) -> Step:
    """Tell what is to be done now for a reservation."""
    pods = [state.pods[uid] for uid in reservation.pods if uid in state.pods]
    ended = (
        (ReservationEnd.GONE, all(each.ends_at is not None for each in pods)),
        (ReservationEnd.BOUND, all(each.node for each in pods)),
        (ReservationEnd.EXPIRED, state.now >= reservation.until),
        (ReservationEnd.INCOMPLETE, not all(_stands_on(name, reservation, state) for name in reservation.nodes)),
    )
    if (outcome := next((each for each, holds in ended if holds), None)) is not None:
        return End(outcome)
    if not reservation.victims:
        return _before_eviction(reservation, state, decide)
    return (
        _victims_end(reservation, state, decide)
        if reservation.freed_at is None
        else _placing(reservation, state, decide)
    )


def _stands_on(name: str, reservation: Reservation, state: ClusterState) -> bool:
    node = state.nodes.get(name)
    there = reservation_on(node) if node and node.reserved_for else None
    return there is not None and there.gang == reservation.gang


def _before_eviction(reservation: Reservation, state: ClusterState, decide: Decide) -> Step:
    nodes = frozenset(reservation.nodes)
    if state.now < reservation.since + UNTIL_JUDGED:
        return Wait()
    judged = decide(reservation.gang, nodes)
    if isinstance(judged, Phrase):
        return End(ReservationEnd.NOT_NEEDED, judged)
    return Evict(judged.victims) if nodes.issuperset(judged.nodes) else End(ReservationEnd.NOT_NEEDED)


def _victims_end(reservation: Reservation, state: ClusterState, decide: Decide) -> Step:
    """Wait for the claims of the victims: the time of the preemptor begins when the last of them is free."""
    # 1. A victim has changed before it could be deleted, or the leader ended between two of them.
    victims = reservation.victims
    staying = {uid for uid in victims if uid in state.pods and state.pods[uid].ends_at is None}
    if staying:
        judged = decide(reservation.gang, frozenset(reservation.nodes))
        if isinstance(judged, EvictionPlan):
            return Evict(judged.victims)
        going = {uid: due for uid, due in victims.items() if uid not in staying}
        return Keep(msgspec.structs.replace(reservation, victims=going))

    # 2. They end.
    holding = (claim for claim in state.claims.values() if claim.is_allocated)
    users = {user.uid for claim in holding for user in claim.status.reserved_for}
    left = [due for uid, due in victims.items() if uid in state.pods or uid in users]
    if not left:
        return Keep(msgspec.structs.replace(reservation, freed_at=state.now))
    return Wait() if state.now < max(left) else End(ReservationEnd.STUCK)


def _placing(reservation: Reservation, state: ClusterState, decide: Decide) -> Step:
    """Wait for the scheduler, and tell who got the devices: within a tier nobody is preferred."""
    # 1. Another pod has some of them.
    members = [state.pods[uid] for uid in reservation.pods if uid in state.pods]
    holders = [state.inventory.holders[key][0] for key in reservation.devices if key in state.inventory.holders]
    users = {user.uid for claim in holders for user in claim.status.reserved_for} - set(reservation.pods)
    if users:
        priority = min(each.priority for each in members)
        lower = any(uid in state.pods and state.pods[uid].priority < priority for uid in users)
        return End(ReservationEnd.FAILED if lower else ReservationEnd.TAKEN)

    # 2. Nobody has, and the scheduler had its time.
    if reservation.freed_at is None or state.now < reservation.freed_at + UNTIL_PLACED:
        return Wait()
    judged = decide(reservation.gang, frozenset(reservation.nodes))
    return End(ReservationEnd.FAILED, judged if isinstance(judged, Phrase) else None)


def may_reserve(nodes: int, there: Mapping[str, Reservation]) -> bool:
    """Tell whether so many nodes more may be reserved."""
    taken = sum(len(each.nodes) for each in there.values())
    return not taken or taken + nodes <= MOST_NODES


class Failures(msgspec.Struct, frozen=True):
    """How often a preemption failed for a preemptor, and when last."""

    count: int
    last: float

    def allows(self, now: float) -> bool:
        """Tell whether pods may be evicted for the preemptor again."""
        return self.count < MOST_FAILURES and now >= self.last + UNTIL_AGAIN


def failures_on(node: NodeState) -> dict[str, Failures]:
    """Read the failures on a node, by gang."""
    try:
        return msgspec.json.decode(node.failures, type=dict[str, Failures]) if node.failures else {}
    except msgspec.DecodeError:
        return {}


def failures(state: ClusterState) -> dict[str, Failures]:
    """Return all failures by gang."""
    found: dict[str, Failures] = {}
    for node in state.nodes.values():
        for gang, each in failures_on(node).items():
            if gang not in found or each.count > found[gang].count:
                found[gang] = each
    return found
