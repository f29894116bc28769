"""Stores what trainings report, and asks them to save and to train on, in the answers to their reports.

Each pod reports to every replica. It reports only about itself, and can't gain by a lie: without a report all its work
since its start is at risk, which is the most that it could claim.

Only the leader asks, because it sees all pods and so how many save at the same time. It remembers its requests; the
next leader makes the same again, which costs a training nothing (policy/saves/save_requests.py). Trainings on
a node with a signal that it will end are asked too (policy/saves/node_signals.py).
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from webhook.controllers.event_writer import EventWriter, Regarding
from webhook.controllers.work_at_risk import PodAtRisk
from webhook.kube.client import Client, path
from webhook.kube.reflector import Reflector, Reflectors, Source
from webhook.objects.refusal import Phrase, shown
from webhook.objects.view import read
from webhook.policy.checkpoint.work_lost import LastSave
from webhook.policy.preemption.node_state import SchedulableNode
from webhook.policy.saves.node_signals import signal_of
from webhook.policy.saves.save_requests import NOT_SAVED, SAVED, URGENT, Due, SaveRequest, Training, chosen
from webhook.policy.values.tier_policy import TierPolicy
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)

SOONEST = 4.0
"""Least seconds between two reports of a pod."""
OFTEN, SELDOM = 5.0, 30.0
"""Least and most seconds between two reports of a pod, as the answer says; SELDOM without an answer."""
REPORTS_A_SECOND = 60
"""Reports that a leader asks for in a second: a tenth of a core. It gets more where over 1,800 pods report (SELDOM)."""
REPORT_SECONDS = 3600.0
"""Seconds for which a report counts, because a pod that is gone reports no more."""
MOST_REPORTING = 50_000
"""Pods whose reports are remembered, with 300 bytes each."""
SKEW = 60.0
"""Seconds that a node's clock may be ahead of ours."""

_Step = Annotated[int, Meta(ge=0, le=2**53)]
_Seconds = Annotated[float, Meta(ge=0, le=2**53)]
_Id = Annotated[str, Meta(max_length=100)]


class SaveOutcome(msgspec.Struct, frozen=True):
    """The end of the last request. `unable`: this training can't save at all. `why` is a text from the training."""

    id: _Id
    outcome: Literal["saved", "failed", "unable"]
    step: _Step | None = None
    seconds: _Seconds | None = None
    why: Annotated[str, Meta(max_length=500)] = ""


class Progress(msgspec.Struct, frozen=True):
    """The progress of a training, as its file `progress` has it. Times are in seconds since 1970.

    `pods` is the number of pods with ranks of this run, which save together.
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
        """Return the last report of a pod; None if it has not reported within REPORT_SECONDS."""
        found = self._reports.get(uid)
        return found if found is not None and self._clock() - found.heard < REPORT_SECONDS else None

    def last_save(self, uid: str) -> LastSave | None:
        """Return the last save of a pod; None if it has not reported within REPORT_SECONDS, or has not saved yet."""
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
        """The seconds between two reports of a pod, from OFTEN to SELDOM: more if more pods report."""
        return min(max(OFTEN, len(self) / REPORTS_A_SECOND), SELDOM)

    def report(self, uid: str, progress: Progress) -> Heard:
        """Note the progress of a pod. Nothing is stored unless the result is "heard"."""
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
        """Return the answer to a report that was heard; None if this replica makes no requests."""
        if not self.leading:
            return None
        request = self.asked.get(uid)
        if request is None:
            return ReportAnswer(round(self.period, 1))
        wait = round(max(0.0, request.at - self._clock()), 1)
        return ReportAnswer(round(self.period, 1), AskedToSave(request.id, request.step, wait))


ROUND = 1.0
"""Least seconds between two rounds."""
LEAST_REST = 20
"""How many times as long as a round computes the pause after it lasts. If 5,000 pods report, reviews wait 0.3 s."""
SILENT_PERIODS = 3
"""How many times SELDOM a pod may go without a report until its request counts as unanswered."""
LEAST_PAUSE, LONGEST_PAUSE = 30.0, 1800.0
"""Seconds until a training is asked again after failed saves: the first number, doubled for each, up to the second."""

AGAIN, NOT_AGAIN = Phrase("asked-again"), Phrase("not-asked-again")

Outcome = Literal["saved", "failed", "unable", "unanswered"]


class Pause(NamedTuple):
    """The time until which a training that failed to save is not asked. The next request has another id."""

    until: float = 0.0
    failures: int = 0


@dataclass(eq=False)
class AskedSaves:
    """Run `run` as a task. `leading`: whether this replica leads, and knows all pods.

    `at_risk` are the pods with work to lose. `node_goes` returns the id of the signal that a node goes and when it was
    first seen; None without one. `evicted` returns the pods that we evict after their save, and when that was decided.
    `count` gets each request, when it is made and when it ends: tier, cause, outcome, and seconds of the save.
    """

    reports: SaveReports
    policy: Callable[[], TierPolicy]
    leading: Callable[[], bool]
    at_risk: Callable[[], Iterable[PodAtRisk]]
    tenant_name: Callable[[str], str | None]
    node_goes: Callable[[str], tuple[str, float] | None]
    evicted: Callable[[], Mapping[str, float]]
    events: EventWriter
    count: Callable[[str, str, str, float | None], None]
    clock: Callable[[], float] = time.time
    unsaved_since: Mapping[str, float] = field(default_factory=dict, init=False)
    """The time of the last save of each pod that saves when it is asked, or of its start, in seconds since 1970."""
    _asked: dict[str, Due] = field(default_factory=dict)
    _pauses: dict[str, Pause] = field(default_factory=dict)
    _over: Counter[str] = field(default_factory=Counter)

    async def run(self) -> None:
        while True:
            began = time.thread_time()
            try:
                self.round()
            except Exception:
                log.exception("trainings not asked to save")
            await asyncio.sleep(max(ROUND, LEAST_REST * (time.thread_time() - began)))

    def samples(self) -> Iterator[tuple[tuple[str], float]]:
        """Yield the number of pods with more unsaved work than their bound allows, by tier, as samples of a metric."""
        yield from (((tier,), float(count)) for tier, count in self._over.items())

    @property
    def under_way(self) -> int:
        """The number of runs that were asked and have not finished."""
        return len({each.training.run for each in self._asked.values()})

    def round(self) -> None:
        """Note how earlier requests ended, and make the new ones that are due."""
        self.reports.leading = self.leading()
        if not self.reports.leading:
            self._asked, self._pauses, self._over, self.reports.asked = {}, {}, Counter(), {}
            self.unsaved_since = {}
            return
        # 1. The trainings that report. If there are none, the pods are not looked through: there may be 50,000.
        now, policy, period = self.clock(), self.policy(), self.reports.period
        at_risk = self.at_risk() if len(self.reports) else ()
        pods = {pod.uid: (pod, report) for pod in at_risk if (report := self.reports.of(pod.uid)) is not None}
        trainings = {uid: self._training(*found, policy, now) for uid, found in pods.items()}
        self._over = Counter(dict.fromkeys(policy.saves.max_at_risk, 0))
        for uid, each in trainings.items():
            if each.max_at_risk is not None and now - each.since > each.max_at_risk + SELDOM + each.save_seconds:
                self._over[pods[uid][0].tier] += 1

        # 2. The outcomes of earlier requests.
        for uid, asked in [*self._asked.items()]:
            found = pods.get(uid)
            outcome = self._outcome(asked, found[1], now) if found else "unanswered"
            if outcome is not None:
                del self._asked[uid]
                if found:
                    self._finished(asked, outcome, *found)
        self._pauses = {uid: pause for uid, pause in self._pauses.items() if uid in pods}
        # A pod that has saved for its eviction is not waited for, even if its clock dates that save earlier.
        self.unsaved_since = {
            uid: each.since
            for uid, each in trainings.items()
            if uid not in self._pauses and not each.has_saved_for_eviction
        }

        # 3. The pods that are asked now. A pod reads the request when it reports, so it is asked a report ahead.
        rested = {uid for uid in trainings if self._pauses.get(uid, Pause()).until <= now}
        free = (each for uid, each in trainings.items() if uid in rested and uid not in self._asked)
        for due in chosen(free, [*self._asked.values()], policy.saves.at_once, now, 2 * period):
            self._asked[due.training.uid] = due
            self.count(pods[due.training.uid][0].tier, due.request.cause, "asked", None)
        self.reports.asked = {uid: each.request for uid, each in self._asked.items()}

    def _training(self, pod: PodAtRisk, report: Report, policy: TierPolicy, now: float) -> Training:
        holding, work = pod.holding, pod.work
        shares = {("volumeClaim", f"{holding.namespace}/{each}") for each in work.volume_claims}
        shares.add(("tenant", self.tenant_name(holding.namespace) or ""))
        finished = report.finished
        return Training(
            pod.uid,
            holding.draws_on if report.shared else (holding.namespace, pod.uid),
            pod.gpus,
            pod.since,
            report.step,
            report.save.step if report.save else None,
            finished.seconds or 0.0 if finished else 0.0,
            frozenset(shares),
            report.again,
            finished.id if finished else "",
            work.max_at_risk or policy.saves.max_at_risk.get(pod.tier),
            work.save_requested if work.save_requested and work.save_requested <= now + SKEW else None,
            self.evicted().get(pod.uid),
            *(self.node_goes(pod.node) or ("", 0.0)),
            retry=self._pauses.get(pod.uid, Pause()).failures,
        )

    def _outcome(self, asked: Due, report: Report, now: float) -> Outcome | None:
        """Return the outcome of a request; None while it has not ended."""
        if report.finished is not None and report.finished.id == asked.request.id:
            return report.finished.outcome
        if report.save is not None and report.save.step is not None and report.save.step >= asked.request.step:
            return "saved"
        longest = self.policy().checkpoint.max_grace_period
        if now - report.heard > SILENT_PERIODS * SELDOM or now > asked.request.at + longest:
            return "unanswered"
        return None

    def _finished(self, asked: Due, outcome: Outcome, pod: PodAtRisk, report: Report) -> None:
        """Count the outcome of a request, add its event, and note until when its training is not asked again."""
        finished = report.finished if report.finished and report.finished.id == asked.request.id else None
        self.count(pod.tier, asked.request.cause, outcome, finished.seconds if finished else None)
        if outcome == "saved":
            self._pauses.pop(pod.uid, None)
            if asked.request.cause in URGENT:
                seconds = finished.seconds if finished and finished.seconds else 0.0
                step = Phrase("saved-step", step=report.save.step) if report.save and report.save.step else ""
                said = sentence(Phrase("saved-and-trains-on", step=step, seconds=round(seconds)))
                self.events.add(Regarding.pod(pod.uid, pod.holding), SAVED, said)
            return
        failures = self._pauses.get(pod.uid, Pause()).failures + 1
        pause = inf if outcome == "unable" else min(LEAST_PAUSE * 2**failures, LONGEST_PAUSE)
        self._pauses[pod.uid] = Pause(self.clock() + pause, failures)
        if finished is not None:  # a pod that does not answer has ended, or reports again
            again = NOT_AGAIN if outcome == "unable" else AGAIN
            why = Phrase("not-saved-on-request", why=shown(finished.why), again=again)
            self.events.add(Regarding.pod(pod.uid, pod.holding), NOT_SAVED, sentence(why))


LOOK = 5.0
"""Seconds between two looks whether nodes have to be followed, and by which table."""
REMEMBERED = 3600.0
"""Seconds for which a signal that comes and goes is the same one: autoscalers mark candidates and change their mind.
One that comes back later is a new one."""


@dataclass(eq=False)
class EndingNodes:
    """Remembers which nodes have a signal that they will end. Run `run` as a task.

    `wanted`: whether this replica leads, and trainings can be asked.
    """

    client: Client
    policy: Callable[[], TierPolicy]
    wanted: Callable[[], bool]
    clock: Callable[[], float] = time.time
    _now: dict[str, str] = field(default_factory=dict)
    _since: dict[tuple[str, str], float] = field(default_factory=dict)

    def signal(self, node: str) -> tuple[str, float] | None:
        """Return the id of the signal on a node, and when it was seen first (see REMEMBERED); None without one."""
        found = self._now.get(node)
        return (found, self._since[node, found]) if found else None

    async def run(self) -> None:
        while True:
            table = self.policy().node_signals
            if self.wanted() and table:
                reflector = Reflector(self.client, Source(path("v1", "nodes")), self._read, self._seen, self._listed)
                async with Reflectors(reflector):
                    while self.wanted() and table is self.policy().node_signals:  # noqa: ASYNC110 - cheap, and nobody calls
                        await asyncio.sleep(LOOK)
                self._now.clear()
            await asyncio.sleep(LOOK)

    async def _read(self, raw: msgspec.Raw) -> str | None:
        found = signal_of(read(raw, SchedulableNode), self.policy().node_signals)
        return found.id if found else None

    def _seen(self, node: str, signal: str | None) -> None:
        if signal is None:
            self._now.pop(node, None)
            return
        if self._now.get(node) == signal:
            return
        log.info("node ends", {"node": node, "signal": signal})
        self._now[node] = signal
        since = self._since.get((node, signal))
        if since is None or self.clock() - since > REMEMBERED:
            self._since[node, signal] = self.clock()

    def _listed(self, found: Mapping[str, str]) -> None:
        self._now = {node: signal for node, signal in self._now.items() if node in found}
        for node, signal in found.items():
            self._seen(node, signal)
        gone = self.clock() - 2 * REMEMBERED
        self._since = {key: since for key, since in self._since.items() if since > gone or key[0] in self._now}
