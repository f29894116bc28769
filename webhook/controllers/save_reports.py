"""Stores what trainings report, and what they are asked in return.

Each pod reports to every replica. It reports only about itself, and can't gain by a lie: without a report all its work
since its start is at risk, which is the most that it could claim.
"""

import time
from collections.abc import Callable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from webhook.policy.checkpoint.work_lost import LastSave
from webhook.policy.saves.save_requests import SaveRequest

SOONEST = 4.0
"""Least seconds between two reports of a pod."""
OFTEN, SELDOM = 5.0, 30.0
"""Seconds between two reports, of which a pod is told in the answer; SELDOM if it is told nothing."""
REPORTS_A_SECOND = 60
"""Reports that a leader asks for at most: a tenth of a core."""
REPORT_SECONDS = 3600.0
"""Seconds for which a report counts. A pod that is gone reports no more."""
MOST_REPORTING = 50_000
"""Pods whose reports are remembered, with 300 bytes each."""
SKEW = 60.0
"""Seconds that a node's clock may be ahead of ours."""

_Step = Annotated[int, Meta(ge=0, le=2**53)]
_Seconds = Annotated[float, Meta(ge=0, le=2**53)]
_Id = Annotated[str, Meta(max_length=100)]


class SaveOutcome(msgspec.Struct, frozen=True):
    """How the last request ended. `unable`: this training can't save at all. `why` is a text of the training's."""

    id: _Id
    outcome: Literal["saved", "failed", "unable"]
    step: _Step | None = None
    seconds: _Seconds | None = None
    why: Annotated[str, Meta(max_length=500)] = ""


class Progress(msgspec.Struct, frozen=True):
    """The progress of a training, as its file `progress` has it. Times are in seconds since 1970.

    `pods` is in how many pods its ranks are, which save together.
    """

    step: _Step
    pods: Annotated[int, Meta(ge=1, le=2**20)] = 1
    last_saved_step: _Step | None = None
    last_saved_at: _Seconds | None = None
    save: SaveOutcome | None = None


class Report(msgspec.Struct, frozen=True):
    """The last report of a pod, heard at a time. `finished` is the last request that it has finished.

    `again` is the time of its next report at the latest. `shared`: the ranks of its run are in several pods, which save
    together.
    """

    heard: float
    step: int
    save: LastSave | None
    finished: SaveOutcome | None = None
    shared: bool = False
    again: float = 0.0


class AskedToSave(msgspec.Struct, frozen=True):
    """A request as a pod reads it: `in_seconds` from now, because its clock may be another."""

    id: str
    step: int
    in_seconds: float = msgspec.field(name="in")


class ReportAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a report: the seconds until the next one, and a request."""

    report_in: float | None = None
    save: AskedToSave | None = None


Heard = Literal["heard", "too-soon", "ahead", "no-room"]
"""The result of a report. `ahead`: its save is in the future, by our clock."""


class SaveReports:
    """The last report of each pod, by its uid, and the requests that the leader makes of them (`asked`)."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._reports: dict[str, Report] = {}
        self.asked: dict[str, SaveRequest] = {}
        self.leading = False
        """Whether this replica makes requests. Only then do its answers say when to report again."""

    def of(self, uid: str) -> Report | None:
        """Return the last report of a pod; None if it reports nothing."""
        found = self._reports.get(uid)
        return found if found is not None and self._clock() - found.heard < REPORT_SECONDS else None

    def last_save(self, uid: str) -> LastSave | None:
        """Return the last save of a pod; None if it reports nothing, or has not saved yet."""
        found = self.of(uid)
        return found.save if found else None

    def __len__(self) -> int:
        """Return the number of pods that have reported within REPORT_SECONDS."""
        over = self._clock() - REPORT_SECONDS
        while self._reports and next(iter(self._reports.values())).heard <= over:
            del self._reports[next(iter(self._reports))]
        return len(self._reports)

    @property
    def period(self) -> float:
        """The seconds between two reports of a pod: the more pods report, the seldomer each does."""
        return min(max(OFTEN, len(self) / REPORTS_A_SECOND), SELDOM)

    def report(self, uid: str, progress: Progress) -> Heard:
        """Note the progress of a pod. Nothing is remembered of a report that is not heard."""
        now, at = self._clock(), progress.last_saved_at
        before = self._reports.get(uid)
        if before is not None and now - before.heard < SOONEST:
            return "too-soon"
        if at is not None and at > now + SKEW:
            return "ahead"
        if before is None and len(self._reports) >= MOST_REPORTING and len(self) >= MOST_REPORTING:
            return "no-room"
        self._reports.pop(uid, None)  # the pod that was heard longest ago comes first
        save = None if at is None else LastSave(progress.last_saved_step, min(at, now))
        again = now + (self.period if self.leading else SELDOM)
        self._reports[uid] = Report(now, progress.step, save, progress.save, progress.pods > 1, again)
        return "heard"

    def answer(self, uid: str) -> ReportAnswer | None:
        """Return the answer to a report that was heard; None where there is nothing to say."""
        if not self.leading:
            return None
        request = self.asked.get(uid)
        if request is None:
            return ReportAnswer(round(self.period, 1))
        wait = round(max(0.0, request.at - self._clock()), 1)
        return ReportAnswer(round(self.period, 1), AskedToSave(request.id, request.step, wait))
