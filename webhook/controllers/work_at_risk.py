"""Adds up the work at risk: what the training pods on nodes have done since they saved last, by tenant and tier.

Trainings report their saves, each pod to every replica. A pod speaks only of itself, and gains nothing by it: without
a report all its work since its start is at risk, which is the most that it could claim.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from webhook.controllers.gpu_seconds import counted_once
from webhook.ledger.protocol import Holding
from webhook.policy.checkpoint.work_lost import LastSave
from webhook.report.at_risk_now import RisksOf

SOONEST = 5.0
"""Seconds between two reports of a pod; it sends one each 30 s."""
REPORTS_KEPT = 3600.0
"""Seconds for which a report counts. A pod that is gone reports no more."""
MOST = 50_000
"""Pods whose reports are kept. 200 bytes each."""
SKEW = 60.0
"""Seconds that a node's clock may be ahead of ours."""


class Progress(msgspec.Struct, frozen=True):
    """How far a training is, as it stands in its file `progress`. Times in seconds since 1970."""

    step: Annotated[int, Meta(ge=0, le=2**53)]
    last_saved_step: Annotated[int, Meta(ge=0, le=2**53)] | None = None
    last_saved_at: Annotated[float, Meta(ge=0)] | None = None


Heard = Literal["heard", "too-soon", "ahead", "no-room"]
"""How a report is taken. `ahead`: its save has not come yet, by our clock."""


class LastSaves:
    """The last save of each pod that reports, by its uid."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._heard: dict[str, tuple[float, LastSave | None]] = {}

    def of(self, uid: str) -> LastSave | None:
        """None where the pod reports nothing, or has not saved yet."""
        heard, save = self._heard.get(uid, (0.0, None))
        return save if self._clock() - heard < REPORTS_KEPT else None

    def __len__(self) -> int:
        """So many pods have been heard within the time that counts."""
        self._forget()
        return len(self._heard)

    def report(self, uid: str, progress: Progress) -> Heard:
        """A pod has told how far it is. Of a report that is not heard nothing is kept."""
        now, at = self._clock(), progress.last_saved_at
        before = self._heard.get(uid)
        if before is not None and now - before[0] < SOONEST:
            return "too-soon"
        if at is not None and at > now + SKEW:
            return "ahead"
        if before is None and len(self._heard) >= MOST and len(self) >= MOST:
            return "no-room"
        self._heard.pop(uid, None)  # who was heard longest ago stands first
        self._heard[uid] = now, None if at is None else LastSave(progress.last_saved_step, min(at, now))
        return "heard"

    def _forget(self) -> None:
        over = self._clock() - REPORTS_KEPT
        while self._heard and next(iter(self._heard.values()))[0] <= over:
            del self._heard[next(iter(self._heard))]


KEPT = 10.0
"""Seconds for which a sum is good: to make one of tens of thousands of pods takes the time of reviews."""


class PodAtRisk(NamedTuple):
    """A pod whose work would be lost since then, in seconds since 1970. `exact`: since a save that was told."""

    uid: str
    holding: Holding
    gpus: float
    since: float
    exact: bool


class WorkAtRisk:
    """`working` tells of the pods with work to lose: of none where this replica does not lead.

    `tenant_name` tells whose a namespace is, `last_save` by uid when a pod has saved last, where that was reported.
    """

    def __init__(
        self,
        working: Callable[[], Iterable[tuple[str, Holding, float]]],
        tenant_name: Callable[[str], str | None],
        last_save: Callable[[str], LastSave | None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._working = working
        self._tenant_name = tenant_name
        self._last_save = last_save
        self._clock = clock
        self._kept: RisksOf = {}
        self._until = 0.0

    def gpu_seconds(self) -> RisksOf:
        now = self._clock()
        if now >= self._until:
            by_namespace = defaultdict[tuple[str, str, bool], float](float)
            for _, holding, gpus, since, exact in self.pods():
                by_namespace[holding.namespace, holding.charge.tier or "", exact] += gpus * max(0.0, now - since)
            found = defaultdict[tuple[str, str, bool], float](float)
            for (namespace, tier, exact), gpu_seconds in by_namespace.items():
                found[self._tenant_name(namespace) or "", tier, exact] += gpu_seconds
            self._kept, self._until = found, now + KEPT
        return self._kept

    def samples(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """The same as a metric has it."""
        for (tenant, tier, exact), gpu_seconds in self.gpu_seconds().items():
            yield (tenant, tier, str(exact).lower()), gpu_seconds

    def pods(self) -> Iterator[PodAtRisk]:
        """The pods with work to lose, as work_since reckons it. The GPUs of a claim that pods share are the first's."""
        claims: set[tuple[str, str]] = set()
        for uid, holding, began in self._working():
            saved = self._last_save(uid)
            gpus = float(_first(holding, claims) if holding.charge.shared else holding.charge.gpus)
            yield PodAtRisk(uid, holding, gpus, began if saved is None else max(saved.at, began), saved is not None)


def _first(holding: Holding, claims: set[tuple[str, str]]) -> Decimal:
    """The GPUs of a pod, those of a claim that pods share only at the first."""
    ((_, _, gpus),) = counted_once([("", holding)], claims)
    return gpus
