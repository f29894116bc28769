"""Decides which trainings are asked to save now and to train on, and how many may save at the same time.

A request means: a whole checkpoint of at least `step` has to exist. So it is a hint that may be lost or repeated. It
is made again from the pod's reports, and a training that has that checkpoint does nothing. Its id follows from the
state of the cluster too, so that the next leader asks for the same.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappush, heapreplace
from math import inf
from typing import Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from webhook.policy.values.tier_policy import AtOnce

SAVED, NOT_SAVED = "Saved", "NotSaved"
"""The reasons of the events on a pod that tell what came of an urgent request."""
SAVE_REQUESTED = "gpu-tiers.dev/save-requested"
"""The annotation of a pod that a person wants to save, with the time in RFC 3339 of the request."""

Cause = Literal["eviction", "node", "by-hand", "at-risk"]
"""Why a training is asked: we evict it next, its node goes, a person asks, or it has more unsaved work than its tier
allows."""
URGENT: tuple[Cause, ...] = ("eviction", "node", "by-hand")
"""Causes for which a training saves at once, the most urgent first. The cause at-risk has a time."""


class SaveRequest(msgspec.Struct, frozen=True):
    """A request. `at` is the time before which it is not made, in seconds since 1970."""

    id: str
    cause: Cause
    step: int
    at: float


class Training(msgspec.Struct, frozen=True):
    """A pod that reports its steps and has work to lose. Times are in seconds since 1970.

    `run` is what its save is a part of: pods of one gang save together. `since` is the time of its last save, or of its
    start. `save_seconds` is how long its last save took. `shares` are what saves share: its tenant, its volume claims.
    It gets no request before `next_report`. `finished` is the id of the last request that it has finished.
    `max_at_risk` is in seconds, None without a bound. `asked_at` is when a person asked, and `evicted_at` when its
    eviction was decided. `node_goes` is the id of the signal that its node goes, and `node_since` when that was seen.
    `retry` is how many requests since its last save have failed: another try needs another id.
    """

    uid: str
    run: tuple[str, str]
    gpus: float
    since: float
    step: int
    saved_step: int | None = None
    save_seconds: float = 0.0
    shares: frozenset[tuple[str, str]] = frozenset()
    next_report: float = 0.0
    finished: str = ""
    max_at_risk: int | None = None
    asked_at: float | None = None
    evicted_at: float | None = None
    node_goes: str = ""
    node_since: float = 0.0
    retry: int = 0

    @property
    def has_saved_for_eviction(self) -> bool:
        """Tell whether it has finished a request to save before it is evicted, also if that save failed."""
        return _is_try_of(f"eviction-{self.evicted_at}", self.finished)

    def work(self, now: float) -> float:
        """Return the unsaved work in GPU-seconds."""
        return self.gpus * max(0.0, now - self.since)


def requested(training: Training) -> SaveRequest | None:
    """Return the request that a training should get, for the most urgent cause; None without a cause."""
    step = max(training.step, 0 if training.saved_step is None else training.saved_step + 1)
    retry = f"-{training.retry}" if training.retry else ""
    causes: tuple[tuple[Cause, str, float | None], ...] = (
        ("eviction", f"{training.evicted_at}", training.evicted_at),
        ("node", training.node_goes, training.node_since if training.node_goes else None),
        ("by-hand", f"{training.asked_at}", training.asked_at),
        ("at-risk", f"{training.since:.0f}", training.since + training.max_at_risk if training.max_at_risk else None),
    )
    for cause, name, at in causes:
        if at is None or (cause in URGENT and training.since > at):
            continue
        # Without a failure since the last save, a finished request for this cause was one that succeeded.
        first, finished = f"{cause}-{name}", training.finished
        id_ = f"{first}{retry}"
        if finished != id_ and (retry or not _is_try_of(first, finished)):
            return SaveRequest(id_, cause, step, at)
    return None


def _is_try_of(first: str, finished: str) -> bool:
    """Tell whether a finished request has the id of this first try, or that of another try for the same cause."""
    before, _, number = finished.rpartition("-")
    return finished == first or (before == first and number.isdecimal())


Share = tuple[str, str]
"""Something that saves share: what it is, and its name."""
CLUSTER: Share = ("cluster", "")


class Due(NamedTuple):
    """A request that a training should get. The whole run saves then."""

    training: Training
    request: SaveRequest


def latest_starts(due: Sequence[float], at_once: int, seconds: float) -> list[float]:
    """Return when saves must begin so that the last one can be in time, if each takes so many seconds.

    `due` are the times at which they should begin, the first one first. At most `at_once` of them are under way, so
    where many are due together the first ones begin earlier.
    """
    starts = [*due]
    for index in reversed(range(len(starts) - at_once)):
        starts[index] = min(starts[index], starts[index + at_once] - seconds)
    return starts


LONG_SAVE = 30.0
"""Seconds that a save is assumed to take if no earlier save was seen."""


class _Save(NamedTuple):
    """A save of a run: what its pods are asked, when it should begin, how long it may take, and what it shares."""

    due: Sequence[Due]
    start: float
    seconds: float
    shares: frozenset[Share]

    @property
    def is_urgent(self) -> bool:
        return any(each.request.cause in URGENT for each in self.due)

    def order(self, now: float) -> tuple[int, float, float]:
        """Return its sort key: the most urgent first, then by time; of those that may begin, the one with most work."""
        urgency = min(URGENT.index(each.request.cause) if each.request.cause in URGENT else 9 for each in self.due)
        return urgency, max(self.start, now), -sum(each.training.work(now) for each in self.due)


def chosen(
    trainings: Iterable[Training], under_way: Iterable[Due], at_once: AtOnce, now: float, ahead: float
) -> Iterator[Due]:
    """Yield what is asked now: each save that can begin within `ahead` seconds, at a time when there is room for it.

    `trainings` are those that nobody has asked yet, and `under_way` the requests that have not been answered. The time
    `at` of a yielded request is when its save begins. That is not before the first `next_report` of the run's pods.
    """
    # 1. All pods of a run are asked together, as early as the first of them.
    asked = ((each, requested(each)) for each in trainings)
    saves = _saves(Due(training, request) for training, request in asked if request is not None)

    # 2. If many saves share something, some begin earlier than they are due.
    waiting = sorted((each for each in saves if not each.is_urgent), key=lambda each: each.start)
    sharing = defaultdict[Share, list[int]](list)
    for number, save in enumerate(waiting):
        for share in save.shares:
            sharing[share].append(number)
    for share, numbers in sharing.items():
        seconds = max(waiting[number].seconds for number in numbers)
        latest = latest_starts([waiting[number].start for number in numbers], at_once.of(share[0]), seconds)
        for number, start in zip(numbers, latest, strict=True):
            waiting[number] = waiting[number]._replace(start=min(start, waiting[number].start))

    # 3. Each begins when a place is free in all that it shares. A save that takes longer than expected keeps its place
    #    until its report.
    places = defaultdict[Share, list[float]](list)

    def take(save: _Save, end: float) -> None:
        for share in save.shares:
            if len(places[share]) < at_once.of(share[0]):
                heappush(places[share], end)
            else:
                heapreplace(places[share], end)

    for save in _saves(under_way):
        end = save.start + save.seconds
        take(save, end if end > now else inf)
    urgent = [each for each in saves if each.is_urgent]
    for save in sorted((*urgent, *waiting), key=lambda each: each.order(now)):
        full = (places[share][0] for share in save.shares if len(places[share]) >= at_once.of(share[0]))
        heard = min(each.training.next_report for each in save.due)
        start = max(now if save.is_urgent else save.start, heard, now, *full)
        if start <= now + ahead:
            take(save, start + save.seconds)
            yield from (Due(each.training, replace(each.request, at=start)) for each in save.due)


def _saves(requests: Iterable[Due]) -> list[_Save]:
    """Return the save of each run."""
    runs = defaultdict[tuple[str, str], list[Due]](list)
    for each in requests:
        runs[each.training.run].append(each)
    return [
        _Save(
            due,
            min(each.request.at for each in due),
            max(each.training.save_seconds or LONG_SAVE for each in due),
            frozenset({CLUSTER}).union(*(each.training.shares for each in due)),
        )
        for due in runs.values()
    ]
