"""Asks trainings to save and to train on, in the answers to their reports.

Only the leader asks, because it sees all pods and so how many save at the same time. It remembers its requests; the
next leader makes the same again, which costs a training nothing (policy/saves/save_requests.py).
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Literal, NamedTuple

from webhook.controllers.event_writer import EventWriter, Regarding
from webhook.controllers.save_reports import SELDOM, SKEW, Report, SaveReports
from webhook.controllers.work_at_risk import PodAtRisk
from webhook.objects.refusal import Phrase, shown
from webhook.policy.saves.save_requests import NOT_SAVED, SAVED, URGENT, Due, Training, chosen
from webhook.policy.values.tier_policy import TierPolicy
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)

ROUND = 1.0
"""Seconds between two rounds, where few pods report."""
LEAST_REST = 20
"""How many times as long as a round computes there is none: where 5,000 pods report, that takes reviews 0.3 s."""
SILENT_PERIODS = 3
"""Reports of a pod that may be missing until it is taken to be silent."""
LEAST_PAUSE, LONGEST_PAUSE = 30.0, 1800.0
"""Seconds after a save that failed until its training is asked again, doubled each time."""

AGAIN, NOT_AGAIN = Phrase("asked-again"), Phrase("not-asked-again")

Outcome = Literal["saved", "failed", "unable", "unanswered"]


class Pause(NamedTuple):
    """A training that failed to save is not asked until a time, and then by another id."""

    until: float
    failures: int


@dataclass(eq=False)
class AskedSaves:
    """Run `run` as a task. `leading`: whether this replica leads, and knows all pods.

    `at_risk` are the pods with work to lose. `node_goes` returns the id of the signal that a node goes and when it was
    first seen; None without one. `evicted` returns the pods that we evict after their save, and when that was decided.
    `count` hears of each request: tier, cause, outcome, and how long the save took.
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
        """Yield the pods with more unsaved work than their bound allows, by tier, as a metric has them."""
        for tier, count in self._over.items():
            yield (tier,), float(count)

    @property
    def under_way(self) -> int:
        """The number of runs that were asked and have not finished."""
        return len({each.training.run for each in self._asked.values()})

    def round(self) -> None:
        """Note what became of earlier requests, and make those that are due."""
        self.reports.leading = self.leading()
        if not self.reports.leading:
            self._asked, self._pauses, self._over, self.reports.asked = {}, {}, Counter(), {}
            self.unsaved_since = {}
            return
        # 1. The trainings that report. Where nobody does, the pods are not looked through: there may be 50,000.
        now, policy, period = self.clock(), self.policy(), self.reports.period
        at_risk = self.at_risk() if len(self.reports) else ()
        pods = {pod.uid: (pod, report) for pod in at_risk if (report := self.reports.of(pod.uid)) is not None}
        trainings = {uid: self._training(*found, policy, now) for uid, found in pods.items()}
        self._over = Counter(dict.fromkeys(policy.saves.max_at_risk, 0))
        for uid, each in trainings.items():
            if each.max_at_risk is not None and now - each.since > each.max_at_risk + SELDOM + each.save_seconds:
                self._over[pods[uid][0].tier] += 1

        # 2. What has become of those that were asked.
        for uid, asked in [*self._asked.items()]:
            found = pods.get(uid)
            outcome = self._outcome(asked, found[1], now) if found else "unanswered"
            if outcome is not None:
                del self._asked[uid]
                if found:
                    self._finished(asked, outcome, *found)
        for uid in [uid for uid in self._pauses if uid not in pods]:
            del self._pauses[uid]
        # One that has saved for its eviction is not waited for, whatever its clock says of the time.
        self.unsaved_since = {
            uid: each.since
            for uid, each in trainings.items()
            if uid not in self._pauses and each.finished != each.eviction_id
        }

        # 3. Who is asked now. A pod hears of it when it reports, so it is asked a report ahead.
        free = (
            each
            for uid, each in trainings.items()
            if uid not in self._asked and (uid not in self._pauses or self._pauses[uid].until <= now)
        )
        for due in chosen(free, [*self._asked.values()], policy.saves.at_once, now, 2 * period):
            self._asked[due.training.uid] = due
            self.count(pods[due.training.uid][0].tier, due.request.cause, "asked", None)
        self.reports.asked = {uid: each.request for uid, each in self._asked.items()}

    def _training(self, pod: PodAtRisk, report: Report, policy: TierPolicy, now: float) -> Training:
        holding, work = pod.holding, pod.pod.work
        goes = self.node_goes(pod.pod.node)
        shares = {("volumeClaim", f"{holding.namespace}/{each}") for each in work.volume_claims}
        shares.add(("tenant", self.tenant_name(holding.namespace) or ""))
        bound = work.max_at_risk or policy.saves.max_at_risk.get(pod.tier)
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
            bound,
            work.save_requested if work.save_requested and work.save_requested <= now + SKEW else None,
            self.evicted().get(pod.uid),
            *(goes or ("", 0.0)),
            retry=self._pauses[pod.uid].failures if pod.uid in self._pauses else 0,
        )

    def _outcome(self, asked: Due, report: Report, now: float) -> Outcome | None:
        """Return how a request ended; None while it has not."""
        if report.finished is not None and report.finished.id == asked.request.id:
            return report.finished.outcome
        if report.save is not None and report.save.step is not None and report.save.step >= asked.request.step:
            return "saved"
        longest = self.policy().checkpoint.max_grace_period
        if now - report.heard > SILENT_PERIODS * SELDOM or now > asked.request.at + longest:
            return "unanswered"
        return None

    def _finished(self, asked: Due, outcome: Outcome, pod: PodAtRisk, report: Report) -> None:
        """Count and tell how a request ended, and when its training may be asked again."""
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
        failures = self._pauses[pod.uid].failures + 1 if pod.uid in self._pauses else 1
        pause = inf if outcome == "unable" else min(LEAST_PAUSE * 2**failures, LONGEST_PAUSE)
        self._pauses[pod.uid] = Pause(self.clock() + pause, failures)
        if finished is not None:  # a pod that does not answer has ended, or reports again
            again = NOT_AGAIN if outcome == "unable" else AGAIN
            why = Phrase("not-saved-on-request", why=shown(finished.why), again=again)
            self.events.add(Regarding.pod(pod.uid, pod.holding), NOT_SAVED, sentence(why))
