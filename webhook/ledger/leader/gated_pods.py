"""Pods that wait behind the gate of gpu-tiers, and the places that others of their controller have left."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import count

import msgspec

from webhook.ledger.account import GangKey, Holder
from webhook.ledger.protocol import Gated, Holding

VACANT_SECONDS = 30.0
"""So long the place of a pod that has ended is kept in mind for the one that its controller makes instead."""

KEPT_SECONDS = 5.0
"""So long the GPUs of a pod that was deleted are kept for that one: some controllers make it only afterwards."""

PREEMPTED_SECONDS = 120.0
"""So long those of a pod that another one has evicted: the Job controller waits 10 s before it makes the next one, then
20 and 40, and meanwhile the evictor has them anyway."""


class LeftPlace(msgspec.Struct, frozen=True):
    """That of a pod that has ended, in mind `until` then, with its GPUs kept until `kept`: times of our own clock."""

    holding: Holding
    until: float
    kept: float


class GatedPod(msgspec.Struct, frozen=True):
    """One of them. `turn` sorts them: by tier, then by when they were held first, then by which was seen first."""

    uid: str
    holding: Holding
    turn: tuple[int, str, int]

    @property
    def priority(self) -> int:
        return -self.turn[0]

    @property
    def asks_for_gpus(self) -> bool:
        """Not where it only waits for the others of its gang."""
        return self.holding.charge.gpus > 0

    def asks_for(self, promise: Holder) -> bool:
        """Whether it still asks for what it was promised: it may have got a node selector since."""
        return promise.charges == (self.holding.charge,)


class GatedPods:
    """They hold nothing. The leader books them, and then opens the gate (docs/decisions/hold.md)."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pods: defaultdict[str, dict[str, GatedPod]] = defaultdict(dict)
        self._namespace_of: dict[str, str] = {}
        self._seen = count()
        self._left: dict[tuple[GangKey, int], LeftPlace] = {}

    def __contains__(self, uid: str) -> bool:
        return uid in self._namespace_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._namespace_of)

    def get(self, uid: str) -> GatedPod | None:
        return self._pods[self._namespace_of[uid]][uid] if uid in self._namespace_of else None

    def of(self, namespaces: Iterable[str]) -> Iterator[GatedPod]:
        for namespace in namespaces:
            yield from self._pods.get(namespace, {}).values()

    def namespaces(self) -> Collection[str]:
        """Where there are any."""
        return [namespace for namespace, pods in self._pods.items() if pods]

    def uids_in(self, namespace: str) -> Collection[str]:
        return self._pods.get(namespace, {}).keys()

    def put(self, uid: str, holding: Holding) -> None:
        """Such a pod exists. It keeps its turn."""
        before = self._pods[holding.namespace].get(uid)
        gated = holding.gated or Gated(0, "", "")
        seen = before.turn[2] if before else next(self._seen)
        self._pods[holding.namespace][uid] = GatedPod(uid, holding, (-gated.priority, gated.since, seen))
        self._namespace_of[uid] = holding.namespace

    def take_out(self, uid: str) -> Holding | None:
        """It is gone, or its gate is open."""
        namespace = self._namespace_of.pop(uid, None)
        return self._pods[namespace].pop(uid).holding if namespace is not None else None

    def left(self, holding: Holding) -> None:
        """A pod has ended that held GPUs."""
        if holding.controller:
            now = self._clock()
            kept = now if holding.ends_in is None else now + KEPT_SECONDS
            place = LeftPlace(holding, now + VACANT_SECONDS, kept)
            if holding.preempted:
                place = LeftPlace(holding, now + PREEMPTED_SECONDS, now + PREEMPTED_SECONDS)
            self._left[holding.made_by, next(self._seen)] = place

    def vacant(self) -> dict[GangKey, list[LeftPlace]]:
        """Those of the pods of each workload that have ended a short while ago, the latest first."""
        now = self._clock()
        self._left = {key: each for key, each in self._left.items() if each.until > now}
        found = defaultdict[GangKey, list[LeftPlace]](list)
        for (key, _), place in reversed(self._left.items()):
            found[key].append(place)
        return found

    def is_kept(self, place: LeftPlace) -> bool:
        """Whether its GPUs are kept yet."""
        return place.kept > self._clock()

    def kept(self) -> Iterator[Holding]:
        """What pods held whose GPUs are kept for the next ones of their controllers."""
        now = self._clock()
        return (each.holding for each in self._left.values() if each.kept > now)

    def next_end(self) -> float | None:
        """When the first of them is kept no more."""
        now = self._clock()
        return min((each.kept for each in self._left.values() if each.kept > now), default=None)

    def fill(self, holding: Holding) -> None:
        """This pod has taken one of these places."""
        mine = (key for key, each in reversed(self._left.items()) if may_inherit(holding, each.holding))
        latest = next(mine, None)
        if latest is not None:
            del self._left[latest]


def may_inherit(heir: Holding, before: Holding) -> bool:
    """Whether a pod may take the place of one that has ended: it asks for no more, and shares no other claim.

    Whoever may create pods may say who made them, and would get eight GPUs past the line for each one that he gives up.
    Of a claim that others share as well he has given up nothing.
    """
    asked, left = heir.charge, before.charge
    same = heir.made_by == before.made_by and asked.tier == left.tier
    return same and asked.gpus > 0 and asked.own <= left.own and asked.shared.items() <= left.shared.items()
