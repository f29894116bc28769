"""Makes room for pods that wait for devices of DRA: reserves nodes, evicts pods there, and ends reservations.

The package webhook/policy/preemption decides, and this module acts. A reservation is stored on its nodes, so the next
leader can go on with it.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from math import inf
from typing import NamedTuple

from webhook.cluster.scheduling_view import SchedulingView
from webhook.cluster.watched import Watched
from webhook.controllers.event_writer import EventWriter, Regarding
from webhook.controllers.reserved_nodes import ReservedNodes
from webhook.controllers.work_at_risk import PodAtRisk
from webhook.kube.client import Client, path
from webhook.kube.errors import ApiError, Conflict, Failed, NotFound
from webhook.objects.refusal import Phrase, Refused
from webhook.objects.times import rfc3339
from webhook.policy.preemption.cluster_state import ClusterState, Rules
from webhook.policy.preemption.decide_preemption import Known, decide_preemption
from webhook.policy.preemption.failures import failures, failures_after, next_try, paused_until
from webhook.policy.preemption.pod_state import PREEMPTED, PodState
from webhook.policy.preemption.preemptor import SETTLED, EvictionPlan, Preemptor
from webhook.policy.preemption.reservation import (
    End,
    Reservation,
    ReservationEnd,
    asking,
    may_reserve,
    next_step,
    reservation_on,
    reservations,
    reservations_on,
    reserve,
    shared_with,
    waiting_gangs,
    with_victims,
)
from webhook.policy.values.tier_policy import TierPolicy
from webhook.sentences.sentence import problem_text, sentence

log = logging.getLogger(__name__)

ROUND = 0.5
"""Seconds between two rounds."""
AFTER_FAILURE = 5.0
"""Seconds until the next try after a failure, and between two checks whether preemption is wanted here."""
MOST_PER_MINUTE = 30
"""Most reservations that are begun or shared in a minute."""

AGAIN, LATEST = 5.0, 60.0
"""Seconds until a gang is judged again if no pod is evicted for it: at first, and at most. They double while the reason
stays the same."""
LONGEST_SPELL = 1.0
"""Seconds after the first judgement until the other gangs must wait, because reservations go on in between."""
REST = 4
"""How many times as long as a spell the rest after it is, in which no gang is judged."""


class _LastJudged(NamedTuple):
    """When a gang was judged last, for how long it is not judged again, and why nobody was evicted."""

    at: float = 0.0
    pause: float = 0.0
    reason: str = ""


@dataclass(eq=False)
class JudgingOrder:
    """The order in which the leader judges whether pods are evicted for gangs that wait for devices.

    A judgement takes a part of a second in a large cluster, and any user may have many pods wait. So the gangs of a
    namespace alternate with those of others, a gang for which no pod is evicted is judged less often, and judging has
    a share of the time. Call `due` for the gangs to judge, `judged` after each of them, and `rest` after each spell.
    `clock` returns seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _judged: dict[str, _LastJudged] = field(default_factory=dict)
    _rests_until: float = 0.0

    def due(self, waiting: Sequence[PodState], now: float) -> list[str]:
        """Return the gangs to judge, none during a rest. `now` is in seconds since 1970.

        These wait longer than SETTLED, and their pause after the last judgement is over. In each namespace the highest
        tier comes first, then the gang that was judged longest ago. The first gangs of all namespaces come before the
        second gang of any.
        """
        gangs = {each.gang for each in waiting}
        self._judged = {gang: judged for gang, judged in self._judged.items() if gang in gangs}
        if self.clock() < self._rests_until:
            return []
        last = {gang: self._judged.get(gang, _LastJudged()) for gang in gangs}
        due = [
            each
            for each in waiting
            if last[each.gang].at + last[each.gang].pause < self.clock() and (each.waits_since or 0.0) < now - SETTLED
        ]
        due.sort(key=lambda each: (-each.priority, last[each.gang].at, each.waits_since or 0.0))
        turns, places = Counter[str](), dict[str, int]()
        for each in due:
            if each.gang not in places:
                places[each.gang] = turns[each.namespace]
                turns[each.namespace] += 1
        return sorted(places, key=lambda gang: places[gang])

    def judged(self, gang: str, reason: str, *, again: float = AGAIN) -> None:
        """Note why no pod is evicted for a gang, or "". `again` is the first pause until it is judged again."""
        before = self._judged.get(gang, _LastJudged())
        pause = min(2 * before.pause, LATEST) if before.reason == reason and before.pause else again
        self._judged[gang] = _LastJudged(self.clock(), pause, reason)

    def forget(self, gang: str) -> None:
        self._judged.pop(gang, None)

    def rest(self, spell: float) -> None:
        """Judge no gang for REST times the seconds of the spell that ends now."""
        self._rests_until = self.clock() + REST * spell


@dataclass(eq=False)
class DevicePreemption:
    """Run `run` as a task. `leading`: whether this replica leads. `at_risk` are the pods with work to lose.

    `unsaved_since` returns the time of the last save, or of the start, of the pods that save when they are asked.
    `exempt` are the namespaces that are exempt. `ended` gets the tier and the outcome of each reservation that ends.
    """

    client: Client
    known: Watched
    policy: Callable[[], TierPolicy]
    leading: Callable[[], bool]
    at_risk: Callable[[], Iterable[PodAtRisk]]
    unsaved_since: Callable[[], Mapping[str, float]]
    events: EventWriter
    exempt: frozenset[str]
    ended: Callable[[str, str], None]
    saving: Mapping[str, float] = field(default_factory=dict, init=False)
    """The pods that save before they are evicted, by uid, and when that was decided, in seconds since 1970."""
    _order: JudgingOrder = field(default_factory=JudgingOrder)
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
            self.saving = {}
            await asyncio.sleep(AFTER_FAILURE)

    async def _try_round(self, view: SchedulingView) -> None:
        """Run a round, and log errors of the API server so that the next round runs."""
        try:
            problems = view.problems()
            if not problems:
                await self._round(view)
                return
            # With stale objects only end reservations that are over, so that no node stays closed by a broken watch.
            self._failed(problems[0])
            nodes = ReservedNodes(self.client, view.node_written)
            for each in view.reserved():
                there = reservation_on(each)
                if there is None or time.time() >= there.until:
                    await nodes.clear(each)
        except (ApiError, Refused) as error:
            self._failed(problem_text(error))

    def _failed(self, problem: str) -> None:
        """Log a problem once, because a missing right stays missing."""
        if problem != self._problem:
            log.warning("devices not preempted", {"error": problem})
        self._problem = problem

    def samples(self) -> Iterator[tuple[tuple[str], float]]:
        """Yield the number of reserved nodes by tier, as samples of a metric."""
        yield from (((tier,), float(count)) for tier, count in self._reserved.items())

    def _is_wanted(self) -> bool:
        return self.leading() and self.policy().device_preemption != "Off"

    async def _round(self, view: SchedulingView) -> None:
        """Take the next step of each reservation, and begin one at most."""
        # 1. Mostly no pod waits, and nothing is reserved.
        began, policy = time.monotonic(), self.policy()
        due = self._order.due([each for each in view.waiting() if _may_preempt(each, policy)], time.time())
        reserved = view.reserved()
        self._reserved = Counter(each.reserved_for for each in reserved if each.reserved_for)
        self.saving = {
            uid: each.asked_at for each in reservations_on(reserved) if each.asked_at is not None for uid in each.saving
        }
        if not due and not reserved:
            return
        now, nodes = time.time(), ReservedNodes(self.client, view.node_written)
        at_risk = {each.uid: each.gpus * max(0.0, now - each.since) for each in self.at_risk()}
        state = await asyncio.to_thread(view.state(policy.classes, now, at_risk, self.unsaved_since()))
        there = reservations(state)
        for node in reserved:
            if not any(each.is_same(reservation_on(node)) for each in there):
                await nodes.clear(node)
        if policy.device_preemption == "Remove" or self.known.eviction().devices:
            for each in there:
                await nodes.end(each)
            return

        # 2. Reservations go on.
        tenants = ((each.name, self.known.tenant(each)) for each in self.known.namespaces())
        queued_elsewhere = frozenset(name for name, tenant in tenants if tenant and tenant.charged_elsewhere)
        rules, changed = Rules(policy, self.exempt, queued_elsewhere), False
        for each in there:
            try:
                changed |= await self._step(each, state, rules, nodes)
            except ApiError as error:  # the others go on
                self._failed(str(error))

        # 3. Begin one more. The next gang is judged when the victims of this one have ended, because they may leave it
        #    room, or because it shares their node.
        if due and not changed and all(each.victims and not each.saving for each in there):
            await self._begin_one(due, state, rules, nodes)
            self._order.rest(time.monotonic() - began)

    async def _begin_one(self, due: list[str], state: ClusterState, rules: Rules, nodes: ReservedNodes) -> None:
        """Judge the gangs that are due, until a reservation is begun for one, or LONGEST_SPELL is over."""
        there, failed, known, ends = reservations(state), failures(state), Known(), inf
        if sum(each > time.monotonic() - 60 for each in self._begun) >= MOST_PER_MINUTE:
            return
        members = {gang for each in there for gang in waiting_gangs(each, state)}
        for gang in (each for each in due if each not in members):
            if time.monotonic() > ends:
                return
            if state.now < next_try(gang, failed):
                self._order.judged(gang, "failed", again=LATEST)
                continue
            plan = await asyncio.to_thread(decide_preemption, gang, state, rules, None, known)
            self._order.judged(gang, plan.id if isinstance(plan, Phrase) else "")
            # The first judgement takes long in a large cluster. Gangs that need the same follow at once.
            ends = min(ends, time.monotonic() + LONGEST_SPELL)
            if isinstance(plan, Phrase):
                continue
            if plan.victims and state.now < paused_until(state.gangs[gang][0].namespace, failed):
                continue
            if await self._begin(plan, there, state, rules, nodes):
                return

    async def _begin(
        self, plan: EvictionPlan, there: Sequence[Reservation], state: ClusterState, rules: Rules, nodes: ReservedNodes
    ) -> bool:
        """Reserve the nodes of a plan, or share the reservation that has them; False if too many are reserved."""
        now, shared = time.time(), next((each for each in there if each.nodes == plan.nodes), None)
        if shared is not None:
            reservation = shared_with(shared, plan, now, rules.longest_grace)
            reservation = asking(reservation, plan.victims, state, rules.longest_grace)
            if reservation.saving:
                begun = await nodes.write(shared, reservation)
            else:
                begun = await self._evict_all(plan, shared, reservation, state, nodes)
        elif may_reserve(len(plan.nodes), there):
            reservation = reserve(plan, now, rules.longest_grace)
            begun = await nodes.reserve(reservation)
        else:
            return False
        if not begun:
            return True
        self._begun.append(time.monotonic())
        self._order.forget(plan.preemptor.gang)
        victims = tuple(each.shown for each in plan.victims)
        phrase = "nodes-reserved" if victims else "nodes-shared"
        said = sentence(Phrase(phrase, nodes=reservation.nodes, until=rfc3339(reservation.until), pods=victims))
        log.info("nodes reserved", {"pod": plan.preemptor.shown, "nodes": reservation.nodes, "victims": victims})
        for need in plan.preemptor.needs:
            self.events.add(Regarding.pod(need.pod.uid, need.pod), "NodesReserved", said)
        return True

    async def _step(self, reservation: Reservation, state: ClusterState, rules: Rules, nodes: ReservedNodes) -> bool:
        """Take the next step of a reservation; return whether there was one."""

        def decide(gang: str, within: frozenset[str]) -> EvictionPlan | Phrase:
            return decide_preemption(gang, state, rules, within)

        step = await asyncio.to_thread(next_step, reservation, state, rules.longest_grace, decide)
        match step:
            case EvictionPlan():
                await self._evict_all(step, reservation, reservation, state, nodes)
            case Reservation():
                await nodes.write(reservation, step)
            case End():
                await self._end(reservation, step, state, nodes)
        return step is not None

    async def _evict_all(
        self, plan: EvictionPlan, before: Reservation, after: Reservation, state: ClusterState, nodes: ReservedNodes
    ) -> bool:
        """Write the victims into the reservation, then evict them; False if it is no longer as it was `before`."""
        after = with_victims(after, plan.victims, state)
        if not await nodes.write(before, after):
            return False
        for victim in plan.victims:
            if not self.leading():
                break  # the next leader goes on
            try:
                await self._evict(victim, plan.preemptor)
            except Failed as error:
                if not _is_refusal(error):
                    raise
                log.warning("pod not evicted", {"pod": victim.shown, "error": str(error)})
                why = Phrase("eviction-refused", pod=victim.shown, said=error.said)
                await self._end(after, End(ReservationEnd.FAILED, why, lost=True), state, nodes)
                break
        return True

    async def _end(self, reservation: Reservation, end: End, state: ClusterState, nodes: ReservedNodes) -> None:
        if not await nodes.end(reservation, failures_after(reservation, end, state), end.passed_on):
            return
        self.ended(reservation.tier, end.outcome)
        why = sentence(end.why) if end.why else ""
        log.info("reservation ended", {"pod": reservation.name, "outcome": end.outcome, "why": why})
        if end.outcome in _PHRASES:
            said = sentence(Phrase(_PHRASES[end.outcome], nodes=reservation.nodes))
            waiting = waiting_gangs(reservation, state)
            for pod in (state.pods[uid] for uid in reservation.pods if uid in state.pods):
                if pod.gang in waiting:
                    self.events.add(Regarding.pod(pod.uid, pod), "NodesReleased", f"{said}. {why}" if why else said)

    async def _evict(self, victim: PodState, preemptor: Preemptor) -> None:
        """Write the condition and delete the pod, as kube-scheduler does, but only the pod that was judged.

        A grace period of 0 becomes 1 s, because with 0 the pod would be gone at once, and its devices given away while
        its containers still run.
        """
        where = path("v1", "pods", victim.namespace, victim.name)
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": PREEMPTED,
            "message": f"gpu-tiers: preempting to accommodate a pod of {preemptor.tier.name}: {preemptor.shown}",
            "lastTransitionTime": rfc3339(time.time()),
        }
        at = {"uid": victim.uid, "resourceVersion": victim.version}
        try:
            patch = {"metadata": at, "status": {"conditions": [condition]}}
            patched = await self.client.patch(f"{where}/status", patch, strategic=True)
            version = patched["metadata"]["resourceVersion"]
            await self.client.delete(where, version=version, uid=victim.uid, grace=None if victim.grace else 1)
        except (Conflict, NotFound):
            return  # it has changed or is gone, and is judged again
        # In the words of the scheduler, so that programs that follow its preemptions follow ours.
        said = f"Preempted by pod {preemptor.needs[0].pod.uid} on node {victim.node}"
        self.events.add(Regarding.pod(victim.uid, victim), "Preempted", said)


_PHRASES: Mapping[ReservationEnd, str] = {
    ReservationEnd.FAILED: "preemption-failed",
    ReservationEnd.EXPIRED: "preemption-failed",
    ReservationEnd.STUCK: "victim-never-ends",
    ReservationEnd.TAKEN: "devices-taken",
}


def _may_preempt(pod: PodState, policy: TierPolicy) -> bool:
    """Tell by a pod's own fields whether it could be a preemptor. Most pods that wait could not."""
    tier = policy.tiers.of_class(pod.class_name)
    asks = bool(pod.claims) or any(policy.weights.has_class(name) for name in pod.requests)
    return tier is not None and tier.preemption_policy != "Never" and asks


def _is_refusal(error: Failed) -> bool:
    """Tell whether a request will be refused again: by RBAC, or by somebody's webhook or policy."""
    passing = HTTPStatus.UNAUTHORIZED, HTTPStatus.TOO_MANY_REQUESTS
    return HTTPStatus.BAD_REQUEST <= error.code < HTTPStatus.INTERNAL_SERVER_ERROR and error.code not in passing
