"""Counts the reservations that did not help, in annotations of nodes, and pauses preemption because of them.

After a second failure nobody is evicted for a gang any more. Preemptors that go away, or that do not fit for a reason
which is not judged, also pause their namespace, because a series of them could have pods evicted without end. The first
failure of a namespace is a mistake and pauses nobody. Failures during a pause do not count for the namespace, because a
person may delete many workloads at once.
"""

from collections.abc import Mapping
from math import inf
from typing import Self

import msgspec

from webhook.policy.preemption.cluster_state import ClusterState
from webhook.policy.preemption.node_state import NodeState
from webhook.policy.preemption.reservation import End, Reservation, ReservationEnd, victims_left, waiting_gangs

UNTIL_AGAIN = 60.0
"""Seconds from a failure until the next try. A namespace is paused from its second failure on, doubled each time."""
LONGEST_PAUSE = 3600.0
FORGOTTEN = 2 * LONGEST_PAUSE
"""Seconds after the last failure of a gang or a namespace from which a new failure counts as the first again."""
MOST_FAILURES = 2
"""After so many failures nobody is evicted any more for a gang."""
MOST_KNOWN = 50
"""Failures on one node. Annotations have a size limit, beyond which the reservation could not be removed."""


class Failures(msgspec.Struct, frozen=True):
    """How often reservations did not help, and when the last one ended, in seconds since 1970."""

    count: int
    last: float

    def again(self, now: float) -> Self:
        return type(self)(self.count + 1 if now < self.last + FORGOTTEN else 1, now)


NO_FAILURES = Failures(0, 0.0)


def next_try(gang: str, known: Mapping[str, Failures]) -> float:
    """Return the time from which pods may be evicted for a gang again; infinity if never."""
    own = known.get(gang, NO_FAILURES)
    return inf if own.count >= MOST_FAILURES else own.last + UNTIL_AGAIN


def paused_until(namespace: str, known: Mapping[str, Failures]) -> float:
    """Return the time from which pods may be evicted for a namespace's pods again. Until then these may join others."""
    failed = known.get(_key(namespace), NO_FAILURES)
    pause = min(UNTIL_AGAIN * 2 ** (failed.count - 2), LONGEST_PAUSE) if failed.count > 1 else 0.0
    return failed.last + pause


def failures_after(reservation: Reservation, end: End, state: ClusterState) -> dict[str, Failures]:
    """Return the raised counts of failures that a reservation's end causes, by gang and by namespace.

    A preemptor that goes away counts for its namespace only, and one that does not fit for its gang too. If it goes
    away after the victims' devices are free, it may have used them and finished unseen, so that is no failure. A
    reservation that expires, or fails because of others (`End.lost`), counts for the gang only. Any other end is no
    failure, and none counts for a namespace that is paused.
    """
    gangs = waiting_gangs(reservation, state)
    own, namespaces = gangs, {state.gangs[gang][0].namespace for gang in gangs}
    match end.outcome:
        case ReservationEnd.GONE if not reservation.victims or victims_left(reservation, state):
            own, namespaces = (), {reservation.name.partition("/")[0]}
        case ReservationEnd.FAILED if not end.lost:
            pass
        case ReservationEnd.FAILED | ReservationEnd.EXPIRED:
            namespaces = set()
        case _:
            return {}
    known = failures(state)
    counted = (_key(each) for each in namespaces if state.now >= paused_until(each, known))
    return {key: known.get(key, NO_FAILURES).again(state.now) for key in (*own, *counted)}


def _key(namespace: str) -> str:
    """Return the key of a namespace, which no gang has."""
    return f"{namespace}/"


def failures_on(node: NodeState) -> dict[str, Failures]:
    """Read the failures on a node, by gang and by namespace; none if the annotation can't be read."""
    try:
        return msgspec.json.decode(node.failures, type=dict[str, Failures]) if node.failures else {}
    except msgspec.DecodeError:
        return {}


def with_failures(there: Mapping[str, Failures], more: Mapping[str, Failures]) -> dict[str, Failures]:
    """Return the failures `there` on a node with `more` that are new. The oldest beyond MOST_KNOWN are forgotten."""
    newest = sorted({**there, **more}.items(), key=lambda each: -each[1].last)
    return dict(newest[:MOST_KNOWN])


def failures(state: ClusterState) -> dict[str, Failures]:
    """Return the failures on all nodes, the latest of each gang and of each namespace."""
    found: dict[str, Failures] = {}
    for node in state.nodes.values():
        for key, each in failures_on(node).items():
            if each.last > found.get(key, NO_FAILURES).last:
                found[key] = each
    return found
