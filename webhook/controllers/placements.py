"""Measures how long pods wait for their node, and how long an eviction takes to free one.

It also measures how long pods were gated until their gate opened, and for how long gates fail to open.
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
"""Pods that are remembered until both their eviction and their node are known."""


class Placements:
    """Measures waits from `bound`, for each pod that waited and has a node now, and `evicted`, for each preemption.

    `waited` gets the seconds of a wait and the pod's tier. `freed` gets the seconds from an eviction until the
    preemptor had its node, the preemptor's tier and the victim's hook. Only a leader that sees a pod wait counts it, so
    a pod that got its node while nobody led is not counted.
    """

    def __init__(self, waited: Callable[[float, str], None], freed: Callable[[float, str, str], None]) -> None:
        self._waited = waited
        self._freed = freed
        self._bound: OrderedDict[str, str] = OrderedDict()
        self._evicted: OrderedDict[str, list[Preemption]] = OrderedDict()

    def note_bound(self, uid: str, pod: WaitingPod, at: str) -> None:
        """Note that a pod got its node at a time in RFC 3339."""
        if (seconds := seconds_between(pod.since, at)) is not None:
            self._waited(seconds, pod.tier)
        for preemption in self._evicted.pop(uid, ()):
            self._measure(preemption, at)
        self._bound[uid] = at
        _forget_oldest(self._bound)

    def note_eviction(self, preemption: Preemption) -> None:
        """Note a preemption whose victim has ended. Its preemptor may have its node by now, or get it later."""
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


def _forget_oldest(remembered: OrderedDict[str, Any]) -> None:
    if len(remembered) > MOST:
        remembered.popitem(last=False)


def seconds_between(since: str, until: str) -> float | None:
    """Return the seconds from one time in RFC 3339 to another, at least 0; None if one of them is not a time."""
    try:
        return max((datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return None


FORGOTTEN = 60.0
"""Seconds after the last try to open a gate until it is forgotten. Tries come every few seconds while the pod waits."""


class OpenedGates:
    """Measures gates. `opened` gets each pod, its GPUs, and for how many seconds it was gated; None if not known."""

    def __init__(self, opened: Callable[[str, Holding, float | None], None]) -> None:
        self._opened = opened
        self._failing: dict[str, tuple[str, float, float]] = {}

    @contextmanager
    def opening(self, uid: str, holding: Holding) -> Iterator[None]:
        """Measure a try to open a gate."""
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
        """Yield the namespace of each pod whose gate can't be opened, and for how many seconds that was tried."""
        now = time.monotonic()
        self._failing = {uid: each for uid, each in self._failing.items() if now - each[2] < FORGOTTEN}
        for namespace, first, _ in self._failing.values():
            yield namespace, now - first
