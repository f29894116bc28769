"""Makes room for pods that wait for devices of DRA: reserves nodes, evicts pods there, and ends reservations.

The leader decides nothing here: webhook/policy/preemption tells what is to be done, and this does it. All that it knows
of a reservation stands on the nodes, so another leader goes on with it.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from webhook.cluster.scheduling_view import SchedulingView
from webhook.cluster.watched import Watched
from webhook.controllers.event_writer import EventWriter, Regarding
from webhook.controllers.reserved_nodes import ReservedNodes
from webhook.controllers.work_at_risk import PodAtRisk
from webhook.kube.client import RFC_3339, Client, path
from webhook.kube.errors import ApiError, Conflict, NotFound
from webhook.objects.refusal import Phrase, Refused
from webhook.policy.preemption.cluster_state import ClusterState, Rules
from webhook.policy.preemption.decide_preemption import decide_preemption
from webhook.policy.preemption.pod_state import PREEMPTED, PodState
from webhook.policy.preemption.preemptor import SETTLED, EvictionPlan
from webhook.policy.preemption.reservation import (
    End,
    Evict,
    Keep,
    Reservation,
    ReservationEnd,
    failures,
    may_reserve,
    next_step,
    reservations,
    reserve,
    with_victims,
)
from webhook.policy.values.tier_policy import TierPolicy
from webhook.sentences.sentence import problem_text, sentence

log = logging.getLogger(__name__)

ROUND = 0.5
"""Seconds between two rounds."""
AGAIN, LATEST = 5.0, 60.0
"""Seconds until a pod is judged again for which nobody is evicted, and at most: twice as long for the same reason."""
MOST_JUDGED = 10
"""Pods or gangs that are judged in a round: each takes a part of a second in a large cluster."""
MOST_PER_MINUTE = 30
"""Reservations that are begun in a minute."""


class LastJudged(NamedTuple):
    """When a gang was judged last, for how long it is not judged again, and why nobody was evicted."""

    at: float = 0.0
    pause: float = 0.0
    reason: str = ""

    @property
    def until(self) -> float:
        return self.at + self.pause


@dataclass(eq=False)
class DevicePreemption:
    """Run `run` as a task. `leading`: whether this replica leads. `at_risk` are the pods with work to lose.

    `exempt` are the namespaces that are exempt. `ended` hears of each reservation that ends: its tier, and how.
    """

    client: Client
    known: Watched
    policy: Callable[[], TierPolicy]
    leading: Callable[[], bool]
    at_risk: Callable[[], Iterable[PodAtRisk]]
    events: EventWriter
    exempt: frozenset[str]
    ended: Callable[[str, str], None]
    _judged: dict[str, LastJudged] = field(default_factory=dict)
    _begun: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_PER_MINUTE))
    _problem: str = ""
    _reserved: Counter[str] = field(default_factory=Counter)

    async def run(self) -> None:
        while True:
            try:
                if self._is_wanted():
                    async with await SchedulingView.of(self.client, self.policy) as view:
                        await view.wait_synced()
                        while self._is_wanted():
                            await self._try_round(view)
                            await asyncio.sleep(ROUND)
            except ApiError as error:
                self._failed(str(error))
            except Exception:
                log.exception("devices not preempted")
            self._reserved.clear()
            await asyncio.sleep(AGAIN)

    async def _try_round(self, view: SchedulingView) -> None:
        """Do nothing by what is not up to date, and go on where the API server refuses one write."""
        if problems := view.problems():
            self._failed(problems[0])
            return
        try:
            await self._round(view)
        except (ApiError, Refused) as error:
            self._failed(problem_text(error))

    def _failed(self, problem: str) -> None:
        """Say it once: without a right it stays so."""
        if problem != self._problem:
            log.warning("devices not preempted", {"error": problem})
        self._problem = problem

    def samples(self) -> Iterator[tuple[tuple[str], float]]:
        """The nodes that are reserved now, by tier, as a metric has them."""
        for tier, count in self._reserved.items():
            yield (tier,), float(count)

    def _is_wanted(self) -> bool:
        return self.leading() and self.policy().device_preemption != "Off"

    async def _round(self, view: SchedulingView) -> None:
        """Take the next step of each reservation, and begin one at most."""
        # 1. Mostly nobody waits, and nothing is reserved.
        policy = self.policy()
        due = self._due(view, policy)
        reserved = view.reserved()
        self._reserved = Counter(each.reserved_for for each in reserved if each.reserved_for)
        if not due and not reserved:
            return
        now, nodes = time.time(), ReservedNodes(self.client, view.node_written)
        at_risk = {each.uid: each.gpus * max(0.0, now - each.since) for each in self.at_risk()}
        state = await asyncio.to_thread(view.state(policy.classes, now, at_risk))
        there = reservations(state)
        for node in reserved:
            if node.name not in {name for each in there.values() for name in each.nodes}:
                await nodes.clear(node.name)
        if policy.device_preemption == "Remove" or self.known.eviction().devices:
            for each in there.values():
                await nodes.end(each)
            return

        # 2. Reservations go on.
        rules = Rules(policy, self.exempt, self._queued_elsewhere())
        for each in there.values():
            try:
                await self._step(each, state, rules, nodes)
            except ApiError as error:  # the others go on
                self._failed(str(error))

        # 3. The highest of those that wait long enough. The next one is judged when the victims of this one end: they
        #    may leave room for it.
        failed = failures(state)
        minute = [each for each in self._begun if each > time.monotonic() - 60]
        if not all(each.victims for each in there.values()):
            return
        without = [gang for gang in due if gang not in there]
        for gang in without[:MOST_JUDGED] if len(minute) < MOST_PER_MINUTE else ():
            if gang in failed and not failed[gang].allows(now):
                self._judged[gang] = LastJudged(time.monotonic(), LATEST)
                continue
            plan = await asyncio.to_thread(decide_preemption, gang, state, rules)
            reason = plan.id if isinstance(plan, Phrase) else ""
            before = self._judged.get(gang, LastJudged())
            pause = min(2 * before.pause, LATEST) if before.reason == reason and not there else AGAIN
            self._judged[gang] = LastJudged(time.monotonic(), pause, reason)
            if isinstance(plan, EvictionPlan) and may_reserve(len(plan.nodes), there):
                await self._begin(plan, rules, nodes)
                return

    def _due(self, view: SchedulingView, policy: TierPolicy) -> list[str]:
        """Return the gangs that wait and were not judged a moment ago, the highest tier first, then the longest."""
        waiting = view.waiting()
        gangs = {each.gang for each in waiting}
        self._judged = {gang: judged for gang, judged in self._judged.items() if gang in gangs}
        now, settled = time.monotonic(), time.time() - SETTLED
        waiting = [
            each
            for each in waiting
            if self._judged.get(each.gang, LastJudged()).until < now and (each.waits_since or 0.0) < settled
            if _may_preempt(each, policy)
        ]
        waiting.sort(key=lambda each: -each.priority)
        return [*dict.fromkeys(each.gang for each in waiting)]

    def _queued_elsewhere(self) -> frozenset[str]:
        namespaces = ((each.name, self.known.tenant(each)) for each in self.known.namespaces())
        return frozenset(name for name, tenant in namespaces if tenant is not None and tenant.charged_elsewhere)

    async def _begin(self, plan: EvictionPlan, rules: Rules, nodes: ReservedNodes) -> None:
        reservation = reserve(plan, time.time(), rules.longest_grace)
        if not await nodes.reserve(reservation):
            return
        self._begun.append(time.monotonic())
        self._judged.pop(plan.preemptor.gang, None)
        until = datetime.fromtimestamp(reservation.until, UTC).strftime(RFC_3339)
        victims = tuple(each.shown for each in plan.victims)
        said = sentence(Phrase("nodes-reserved", nodes=reservation.nodes, until=until, pods=victims))
        log.info("nodes reserved", {"pod": reservation.name, "nodes": reservation.nodes, "victims": victims})
        for need in plan.preemptor.needs:
            self.events.add(_regarding(need.pod), "NodesReserved", said)

    async def _step(self, reservation: Reservation, state: ClusterState, rules: Rules, nodes: ReservedNodes) -> None:
        def decide(gang: str, within: frozenset[str]) -> EvictionPlan | Phrase:
            return decide_preemption(gang, state, rules, within)

        match await asyncio.to_thread(partial(next_step, reservation, state, decide)):
            case Evict(victims):
                if await nodes.write(with_victims(reservation, victims, state)):
                    for victim in victims:
                        await self._evict(victim, reservation)
            case Keep(changed):
                await nodes.write(changed)
            case End(outcome, why):
                failed = outcome is ReservationEnd.FAILED
                await nodes.end(reservation, failed_at=state.now if failed else None)
                self.ended(reservation.tier, outcome)
                reason = sentence(why) if why else ""
                log.info("reservation ended", {"pod": reservation.name, "outcome": outcome, "why": reason})
                if outcome in _PHRASES:
                    said = sentence(Phrase(_PHRASES[outcome], nodes=reservation.nodes))
                    for pod in (state.pods[uid] for uid in reservation.pods if uid in state.pods):
                        self.events.add(_regarding(pod), "NodesReleased", said)

    async def _evict(self, victim: PodState, reservation: Reservation) -> None:
        """Write the condition and delete the pod, as kube-scheduler does, but only the pod that was judged.

        With a grace of 0 the pod would be gone at once, and its devices given away while its containers still run.
        """
        where = path("v1", "pods", victim.namespace, victim.name)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": PREEMPTED,
            "message": f"gpu-tiers: preempting to accommodate a pod of {reservation.tier}: {reservation.name}",
            "lastTransitionTime": datetime.now(UTC).strftime(RFC_3339),
        }
        at = {"uid": victim.uid, "resourceVersion": victim.version}
        try:
            patched = await self.client.patch(
                f"{where}/status", {"metadata": at, "status": {"conditions": [condition]}}, strategic=True
            )
            version = patched["metadata"]["resourceVersion"]
            grace = None if victim.grace else 1
            await self.client.delete(where, version=version, uid=victim.uid, grace=grace)
        except (Conflict, NotFound):
            return  # it has changed or is gone, and is judged again
        except ApiError as error:
            log.warning("pod not evicted", {"pod": victim.shown, "error": str(error)})
            return
        # As the scheduler tells it: who follows its preemptions follows ours.
        self.events.add(
            _regarding(victim), "Preempted", f"Preempted by pod {reservation.pods[0]} on node {victim.node}"
        )


_PHRASES: Mapping[ReservationEnd, str] = {
    ReservationEnd.FAILED: "preemption-failed",
    ReservationEnd.STUCK: "victim-never-ends",
    ReservationEnd.TAKEN: "devices-taken",
}


def _may_preempt(pod: PodState, policy: TierPolicy) -> bool:
    """Tell whether a pod could be a preemptor, by itself alone: most pods that wait are none."""
    tier = policy.tiers.of_class(pod.class_name)
    asks = bool(pod.claims) or any(policy.weights.has_class(name) for name in pod.requests)
    return tier is not None and tier.preemption_policy != "Never" and asks


def _regarding(pod: PodState) -> Regarding:
    return Regarding("v1", "Pod", pod.name, pod.uid, pod.namespace)
