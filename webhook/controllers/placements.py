"""Measures how long pods wait for their node, and how long an eviction takes to free one.

Also how long pods were gated when their gate opens, and how long gates can't be opened that should be.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from webhook.kube.errors import ApiError, NotFound
from webhook.ledger.protocol import Holding
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


FORGOTTEN = 60.0
"""Seconds after the last try to open a gate, which comes every few seconds: then its pod is gone, or waits again."""


class OpenedGates:
    """`opened` gets each pod, what it holds and the seconds for which it was held; None where they are not known."""

    def __init__(self, opened: Callable[[str, Holding, float | None], None]) -> None:
        self._opened = opened
        self._failing: dict[str, tuple[str, float, float]] = {}

    @contextmanager
    def opening(self, uid: str, holding: Holding) -> Iterator[None]:
        """Around each try."""
        try:
            yield
        except NotFound:
            self._failing.pop(uid, None)
            raise
        except ApiError:
            now = time.monotonic()
            first = self._failing[uid][1] if uid in self._failing else now
            self._failing[uid] = holding.namespace, first, now
            raise
        self._failing.pop(uid, None)
        since = holding.gated.since if holding.gated else ""
        self._opened(uid, holding, seconds_between(since, datetime.now(UTC).isoformat()))

    def stuck(self) -> Iterator[tuple[str, float]]:
        """Namespaces with pods whose gates can't be opened, and for how many seconds each has been tried."""
        now = time.monotonic()
        self._failing = {uid: each for uid, each in self._failing.items() if now - each[2] < FORGOTTEN}
        for namespace, first, _ in self._failing.values():
            yield namespace, now - first
