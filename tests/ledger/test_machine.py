"""Whatever happens in whatever order: no ledger ever counts less than was reserved, and in the end it has the truth.

The steps are those of the model (LEDGER.md names them in words), and they drive the real ledger of two processes, of
which one or the other leads, or both think so.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.ledger.cluster import NO, YES, Cluster
from tests.ledger.process import H, Process
from tests.ledger.simulated_api import NAMESPACES, PODS, TENANT_QUOTAS, WORKLOADS
from tests.ledger.simulated_client import Fate
from tests.ledger.truth import Create, State
from tests.ledger.view import View
from tests.ledger.virtual_time import VirtualLoop, loop

TENANTS, SPACES = ("alpha", "beta"), ("n", "m")
A_MOMENT = 0.01
ONE_REVIEW = 6.0
"""Seconds that a review may take, with a lost answer."""

processes = st.integers(0, 1)
tenants = st.sampled_from(TENANTS)
creates = st.lists(
    st.builds(
        lambda namespace, gpus, kind: Create("", namespace, gpus, **kind),
        namespace=st.sampled_from(SPACES),
        gpus=st.sampled_from([1, 1, 2]),
        kind=st.sampled_from([{}, {"place": "web-0"}, {"controller": "rs"}, {"controller": "rs"}, {"workload": True}]),
    ),
    min_size=1,
    max_size=3,
)
watched = st.sampled_from([PODS, PODS, WORKLOADS, TENANT_QUOTAS, NAMESPACES])


class LedgerMachine(RuleBasedStateMachine):
    """Two tenants, two namespaces, two processes."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.cluster: Cluster = self.run(self.made())
        self.quotas: dict[str, int] = {}
        self.asked_at: dict[str, float] = {}
        self.processes: list[Process] = []
        self.replaced = False

    def run(self, story: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(story)

    async def made(self) -> Cluster:
        return Cluster()

    @initialize(alpha=st.integers(1, 5), beta=st.integers(1, 3))
    def begin(self, alpha: int, beta: int) -> None:
        self.quotas = {"alpha": alpha, "beta": beta}
        self.run(self._begin())

    async def _begin(self) -> None:
        for tenant, quota in self.quotas.items():
            self.cluster.tenant(tenant, quota)
        for namespace, tenant in zip(SPACES, TENANTS, strict=True):
            self.cluster.namespace(namespace, tenant)
        self.processes = [await self.cluster.process(name, ahead) for name, ahead in (("one", 0.0), ("two", 600.0))]
        for process, other in zip(self.processes, reversed(self.processes), strict=True):
            process.hands_to = other
        self.processes[0].lead(first=True)
        await self.cluster.time(1)

    # --- creates

    @rule(at=processes, creates=creates, tenant=st.sampled_from(["", "", "", *TENANTS]))
    def ask(self, at: int, creates: list[Create], tenant: str) -> None:
        """A process may still take the namespace for the other tenant's after a move."""
        for create in creates:
            self.run(self._ask(self.processes[at], create, tenant))

    @rule(at=processes, data=st.data(), gpus=st.sampled_from([1, 1, 2]), controller=st.sampled_from(["", "rs"]))
    @precondition(lambda self: self.gangs())
    def ask_for_a_member(self, at: int, data: st.DataObject, gpus: int, controller: str) -> None:
        """An operator makes a pod of a workload that exists."""
        gang = data.draw(st.sampled_from(self.gangs()))
        create = Create("", gang.namespace, gpus, controller=controller, gang=gang.name)
        self.run(self._ask(self.processes[at], create, ""))

    @rule(at=processes, data=st.data(), gpus=st.integers(1, 3), stored=st.booleans())
    @precondition(lambda self: self.gangs())
    def scaled(self, at: int, data: st.DataObject, gpus: int, stored: bool) -> None:
        gang = data.draw(st.sampled_from(self.gangs()))
        self.run(self._scaled(self.processes[at], gang, gpus, stored=stored))

    async def _scaled(self, at: Process, gang: Create, gpus: int, *, stored: bool) -> None:
        """A change that comes to nothing may still be stored until H is over."""
        await self._meet_deadlines(ONE_REVIEW)
        answer = YES if gpus <= gang.gpus else await self.cluster.ask_to_scale(gang.name, gpus, at)
        if answer == YES and stored:
            await self.cluster.scale(gang.name, gpus)
        elif answer == YES and gpus > gang.gpus:
            await self._time(H - ONE_REVIEW)
            await self.cluster.never_scaled(gang.name)

    async def _ask(self, at: Process, create: Create, tenant: str) -> None:
        await self._meet_deadlines(ONE_REVIEW)
        owner, name = tenant or self.cluster.owner(create.namespace), f"pod-{len(self.asked_at)}"
        self.asked_at[name] = loop().time()
        self.cluster.most.clear()
        self.cluster.check()
        answer = await self.cluster.ask(replace(create, name=name), at, tenant=owner)
        if answer == NO and self.cluster.account(owner):
            most = self.cluster.most[owner]
            assert most + create.gpus > self.quotas[owner], f"refused, though the ledger had {most}"

    @rule(data=st.data(), stored=st.sampled_from([True, True, True, False]))
    @precondition(lambda self: self.names(State.RESERVED))
    def ends_its_create(self, data: st.DataObject, stored: bool) -> None:
        name = data.draw(st.sampled_from(self.names(State.RESERVED)))
        self.run(self._stored(name) if stored else self.cluster.never(name))

    async def _stored(self, name: str) -> None:
        """Or AlreadyExists."""
        create = self.cluster.truth.creates[name]
        others = self.cluster.truth.named(State.STORED, State.PREEMPTED)
        if create.place and any((each.namespace, each.place) == (create.namespace, create.place) for each in others):
            await self.cluster.never(name)
        else:
            await self.cluster.store(name)

    @rule(data=st.data())
    @precondition(lambda self: self.names(State.STORED, State.PREEMPTED))
    def gone(self, data: st.DataObject) -> None:
        self.run(self.cluster.gone(data.draw(st.sampled_from(self.names(State.STORED, State.PREEMPTED)))))

    @rule(data=st.data())
    @precondition(lambda self: self.replaceable())
    def preempted(self, data: st.DataObject) -> None:
        self.run(self.cluster.preempt(data.draw(st.sampled_from(self.replaceable()))))

    # --- watches, time, processes

    @rule(at=processes, kind=watched, how=st.sampled_from([View.hold, View.step, View.step, View.flow, View.expire]))
    def watch(self, at: int, kind: str, how: Callable[[View], object]) -> None:
        """The watch stands still, brings one event, brings all, or begins again."""
        how(self.processes[at].client.view(kind))
        self.run(self.cluster.balance())

    @rule(seconds=st.sampled_from([0.05, 0.2, 1, 6, 30, H + 5]))
    def time_passes(self, seconds: float) -> None:
        self.run(self._time(seconds))

    @rule(at=processes, how=st.sampled_from(["leads", "leads", "stops leading", "stands still", "goes on", "goes on"]))
    def process(self, at: int, how: str) -> None:
        """One process may lead while the other does not know that it has lost the Lease."""
        self.run(self._process(self.processes[at], how))

    async def _process(self, process: Process, how: str) -> None:
        match how:
            case "leads" if not process.leads:
                process.lead()
            case "stops leading":
                await process.stop_leading()
            case "stands still":
                process.pause()
            case "goes on":
                process.resume()
        await self.cluster.balance()

    @rule(at=processes, takes=st.booleans())
    def bookings(self, at: int, takes: bool) -> None:
        """The process takes bookings of the other one, or is of another version."""
        self.processes[at].takes = takes

    @rule(at=processes, fate=st.sampled_from([Fate.CONFLICT, Fate.LOST, Fate.LATE, Fate.AWAY, Fate.ANSWERED]))
    def its_next_write(self, at: int, fate: Fate) -> None:
        """And what was given up before is stored now."""
        client = self.processes[at].client
        client.commit_late()
        fates = iter([fate])
        client.fates = lambda asked: next(fates, Fate.ANSWERED) if asked.method == "PUT" else Fate.ANSWERED
        self.run(self.cluster.balance())

    # --- the administrator

    @rule(how=st.sampled_from(["empties the status", "replaces it", "lowers the quota"]), tenant=tenants)
    def somebody(self, how: str, tenant: str) -> None:
        self.run(self._somebody(how, tenant))

    async def _somebody(self, how: str, tenant: str) -> None:
        match how:
            case "empties the status":
                await self.cluster.empty(tenant)
            case "replaces it" if self.at_rest():
                await self.cluster.delete(tenant)
                self.cluster.tenant(tenant, self.quotas[tenant])
                self.replaced = True
            case "lowers the quota":
                self.quotas[tenant] = max(self.quotas[tenant] - 1, 1)
                self.cluster.lower(tenant, self.quotas[tenant])
        await self.cluster.balance()

    @rule(namespace=st.sampled_from(SPACES), tenant=tenants)
    def a_namespace_gets_a_tenant(self, namespace: str, tenant: str) -> None:
        """Reservations of a deleted TenantQuota move nowhere, so no namespace moves while one is replaced."""
        self.replaced = self.replaced and not self.at_rest()
        if not self.replaced:
            self.cluster.namespace(namespace, tenant)
        self.run(self.cluster.balance())

    def at_rest(self) -> bool:
        """Return whether each namespace is in its tenant's ledger alone."""
        wanted = {space: [self.cluster.owner(space)] for space in SPACES}
        return wanted == {space: [each for each in TENANTS if self.cluster.state(space, each)] for space in SPACES}

    # --- the end

    def teardown(self) -> None:
        try:
            if self.processes:
                self.run(self._settle())
        finally:
            self.run(self.cluster.end())
            self.runner.close()

    async def _settle(self) -> None:
        """Everything stops, one leads, H passes: the ledgers hold what exists."""
        for name in self.names(State.RESERVED):
            await self._stored(name)
        for name in self.names(State.PREEMPTED):
            await self.cluster.gone(name)
        for process in self.processes:
            process.resume()
            process.client.fates = lambda _: Fate.ANSWERED
            await process.stop_leading()
        self.processes[0].lead()
        await self.cluster.time(3 * H)
        for tenant in TENANTS:
            spaces = [each for each in SPACES if self.cluster.owner(each) == tenant]
            assert self.cluster.charge(tenant) == self.cluster.truth.stored(spaces)
            assert all(self.cluster.state(each, tenant) == "open" for each in spaces)

    async def _time(self, seconds: float) -> None:
        """Creates are stored, or fail, H less a moment after they were asked for."""
        end = loop().time() + seconds
        while due := self._next_deadline(end):
            await self.cluster.time(max(due - loop().time(), 0.0))
            await self._meet_deadlines(2 * A_MOMENT)
        await self.cluster.time(max(end - loop().time(), 0.0))

    def _next_deadline(self, end: float) -> float | None:
        due = [self.asked_at[name] + H - A_MOMENT for name in self.names(State.RESERVED)]
        return min((each for each in due if each <= end), default=None)

    async def _meet_deadlines(self, seconds: float) -> None:
        for name in self.names(State.RESERVED):
            if self.asked_at[name] + H <= loop().time() + seconds:
                await self._stored(name)

    def gangs(self) -> list[Create]:
        """The workloads that are stored."""
        return [each for each in self.cluster.truth.named(State.STORED) if each.workload]

    def names(self, *states: State) -> list[str]:
        return [each.name for each in self.cluster.truth.named(*states)]

    def replaceable(self) -> list[str]:
        return [each.name for each in self.cluster.truth.named(State.STORED) if each.controller]


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(stateful_step_count=30)
