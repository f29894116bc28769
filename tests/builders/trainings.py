"""Trainings that report to two replicas, save when they are asked, and now and then lose an answer."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

from msgspec.structs import replace

from tests.builders import a_policy
from webhook.controllers.asked_saves import SELDOM, AskedSaves, Progress, SaveOutcome, SaveReports
from webhook.controllers.pods_on_nodes import PodWork, WorkingPod
from webhook.controllers.work_at_risk import WorkAtRisk
from webhook.ledger.protocol import Holding
from webhook.policy.quota.charges import Charge
from webhook.policy.values.tier_policy import Saves


@dataclass
class SimulatedTraining:
    """One pod that makes a step each second, unless it saves, for `save_seconds`. The first `fails` saves fail."""

    uid: str
    namespace: str = "team-alpha"
    node: str = "node-1"
    volume: str = ""
    tier: str = "gpu-training"
    gpus: int = 8
    save_seconds: float = 10.0
    fails: int = 0
    unable: bool = False
    answers_lost: float = 0.0
    began: float = 0.0
    work: PodWork | None = None
    saves: list[tuple[str, float]] = field(default_factory=list)
    worst: float = 0.0
    _step: int = 0
    _saved: tuple[int, float] | None = None
    _wish: tuple[str, int, float] | None = None
    _saving: tuple[str, float] | None = None
    _finished: SaveOutcome | None = None
    _report_at: float = 0.0

    @property
    def pod(self) -> WorkingPod:
        claims = (self.volume,) if self.volume else ()
        work = self.work or PodWork(self.began, volume_claims=claims)
        return WorkingPod(self.uid, Holding(self.namespace, Charge(Decimal(self.gpus), self.tier)), self.node, work)

    @property
    def saving(self) -> bool:
        return self._saving is not None

    def second(self, now: float, replicas: "Replicas", random: Random) -> None:
        """Live one second: report if it is time, and train or save."""
        if now >= self._report_at:
            self._report(now, replicas, random)
        if self._saving is not None:
            if now >= self._saving[1] + self.save_seconds:
                self._ended(self._saving[0], now)
        else:
            self._step += 1
            if self._wish is not None and now >= self._wish[2]:
                (wish, step, _), self._wish = self._wish, None
                if self._saved is not None and self._saved[0] >= step:
                    self._finished = SaveOutcome(wish, "saved", self._saved[0])
                else:
                    self._saving = wish, now
                    self.saves.append((wish, now))
        self.worst = max(self.worst, now - (self._saved[1] if self._saved else self.began))

    def _report(self, now: float, replicas: "Replicas", random: Random) -> None:
        """Report to each replica, and hear the answers that are not lost."""
        self._report_at = now + SELDOM
        saved = self._saved or (None, None)
        for replica in replicas.reports:
            progress = Progress(self._step, 1, *saved, self._finished)
            answer = replica.answer(self.uid) if replica.report(self.uid, progress) == "heard" else None
            if answer is None or random.random() < self.answers_lost:
                continue
            if answer.report_in is not None:
                self._report_at = now + answer.report_in
            wish = answer.save
            known = {wish_id for wish_id, _ in self.saves} | ({self._finished.id} if self._finished else set())
            if wish is not None and wish.id not in known:
                self._wish = wish.id, wish.step, now + wish.in_seconds

    def _ended(self, wish: str, now: float) -> None:
        self._saving = None
        if self.unable:
            self._finished = SaveOutcome(wish, "unable", why="its folder is gone with the pod")
        elif self.fails:
            self.fails -= 1
            self._finished = SaveOutcome(wish, "failed", why="No space left on device")
        else:
            self._saved = self._step, now
            self._finished = SaveOutcome(wish, "saved", self._step, self.save_seconds)


class Replicas:
    """Two replicas, one of which leads, and trainings that report to both. `told` are events as (pod, reason)."""

    def __init__(self, *trainings: SimulatedTraining, saves: Saves, seed: int = 1) -> None:
        self.now = 1_800_000_000.0
        self.trainings = trainings
        self.leader = 0
        self.told: list[tuple[str, str]] = []
        self.counted: list[tuple[str, str]] = []
        self.going: dict[str, tuple[str, float]] = {}
        self.evicted: dict[str, float] = {}
        self.most_at_once: dict[str, int] = {}
        self._random = Random(seed)  # noqa: S311 - a simulation
        self._policy = replace(a_policy(), saves=saves)
        self.reports = [SaveReports(lambda: self.now) for _ in range(2)]
        self._asked = [self._replica(number) for number in range(2)]
        for each in trainings:
            each.began = self.now - self._random.uniform(0, 20)

    def _replica(self, number: int) -> AskedSaves:
        reports = self.reports[number]
        risk = WorkAtRisk(self._pods, lambda name: name, reports.last_save, lambda: self.now)
        return AskedSaves(
            reports,
            lambda: self._policy,
            lambda: self.leader == number,
            risk.pods,
            lambda name: name,
            self.going.get,
            lambda: self.evicted,
            self,  # type: ignore[arg-type]  # it hears the events
            lambda _tier, cause, outcome, _: self.counted.append((cause, outcome)),
            lambda: self.now,
        )

    @property
    def unsaved_since(self) -> Mapping[str, float]:
        """The times of the last save, or of the start, by pod, which the leader passes to those who evict."""
        return self._asked[self.leader].unsaved_since

    def add(self, regarding: Any, reason: str, _: str) -> None:
        self.told.append((regarding.uid, reason))

    def _pods(self) -> Iterator[WorkingPod]:
        return (each.pod for each in self.trainings)

    def live(self, seconds: int, *, leader_changes_each: int = 0) -> None:
        for second in range(seconds):
            self.now += 1
            if leader_changes_each and second % leader_changes_each == leader_changes_each - 1:
                self.leader = 1 - self.leader
            for each in self._asked if second % 2 else ():
                each.round()
            for training in self.trainings:
                training.second(self.now, self, self._random)
            saving: dict[str, int] = {}
            for training in self.trainings:
                if training.saving:
                    for share in ("cluster", training.namespace, training.volume):
                        saving[share] = saving.get(share, 0) + 1
            for share, count in saving.items():
                self.most_at_once[share] = max(count, self.most_at_once.get(share, 0))
