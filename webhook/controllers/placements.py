"""Measures how long pods wait for their node, and how long an eviction takes to free one."""

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Any

from webhook.report.gpus_now import WaitingPod
from webhook.report.latest import Preemption

MOST = 1000
"""Pods that are remembered until the other half of what is to be known of them comes."""


class Placements:
    """Is told of each pod that waited and has a node now (`bound`), and of each pod that was `evicted` for another.

    `waited` gets the seconds with the pod's tier, `freed` those from an eviction until the pod that it was for had its
    node, with that pod's tier and the victim's hook. Only who sees a pod wait counts it: of those that lead one after
    the other one does, or none for a pod that got its node while nobody led.
    """

    def __init__(self, waited: Callable[[float, str], None], freed: Callable[[float, str, str], None]) -> None:
        self._waited = waited
        self._freed = freed
        self._bound: OrderedDict[str, str] = OrderedDict()
        self._evicted: OrderedDict[str, list[Preemption]] = OrderedDict()

    def bound(self, uid: str, pod: WaitingPod, at: str) -> None:
        if (seconds := seconds_between(pod.since, at)) is not None:
            self._waited(seconds, pod.tier)
        for preemption in self._evicted.pop(uid, ()):
            self._measure(preemption, at)
        self._bound[uid] = at
        _forget_oldest(self._bound)

    def evicted(self, preemption: Preemption) -> None:
        """Its victim has ended; the pod that it made room for may have its node by now, or get it later."""
        if preemption.preemptor is None:
            return
        uid = preemption.preemptor.uid
        if uid in self._bound:
            self._measure(preemption, self._bound[uid])
        else:
            self._evicted.setdefault(uid, []).append(preemption)
            _forget_oldest(self._evicted)

    def _measure(self, preemption: Preemption, at: str) -> None:
        seconds, preemptor = seconds_between(preemption.time, at), preemption.preemptor
        if seconds is not None and preemptor is not None:
            self._freed(seconds, preemptor.tier, preemption.victim.hook)


def _forget_oldest(kept: OrderedDict[str, Any]) -> None:
    if len(kept) > MOST:
        kept.popitem(last=False)


def seconds_between(since: str, until: str) -> float | None:
    """From one time in RFC 3339 to another, 0 at least; None where one of them is none."""
    try:
        return max((datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return None
