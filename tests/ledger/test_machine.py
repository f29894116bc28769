"""Whatever happens in whatever order: no ledger ever holds less than was promised, and in the end it holds the truth.

The steps are those of the model (LEDGER.md names them in words), and they drive the real ledger of two processes, of
which one or the other leads, or both think so.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.ledger.cluster import NO, Cluster
from tests.ledger.process import H, Process
from tests.ledger.simulated_api import NAMESPACES, PODS, TENANT_QUOTAS
from tests.ledger.simulated_client import Fate, Request
from tests.ledger.truth import Create, State
from tests.ledger.virtual_time import VirtualLoop, loop

TENANTS, SPACES = ("alpha", "beta"), ("n", "m")
A_MOMENT = 0.01
ONE_REVIEW = 6.0
"""Seconds that a review may take, with a lost answer."""

processes = st.integers(0, 1)
tenants = st.sampled_from(TENANTS)
watched = st.sampled_from([PODS, PODS, TENANT_QUOTAS, NAMESPACES])


class LedgerMachine(RuleBasedStateMachine):
    """Two tenants, two namespaces, two processes."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualLoop)
        self.cluster: Cluster = self.run(self.made())
        self.quotas: dict[str, int] = {}
        self.promised_at: dict[str, float] = {}
        self.processes: list[Process] = []

    def run(self, story: Coroutine[Any, Any, Any]) -> Any:
        return self.runner.run(story)

    async def made(self) -> Cluster:
        return Cluster()

    @initialize(alpha=st.integers(1, 3), beta=st.integers(1, 2))
    def begin(self, alpha: int, beta: int) -> None:
        self.quotas = {"alpha": alpha, "beta": beta}
        self.run(self._begin())

    async def _begin(self) -> None:
        for tenant, quota in self.quotas.items():
            self.cluster.tenant(tenant, quota)
        for namespace, tenant in zip(SPACES, TENANTS, strict=True):
            self.cluster.namespace(namespace, tenant)
        self.processes = [await self.cluster.process(name, ahead) for name, ahead in (("one", 0.0), ("two", 600.0))]
        self.processes[0].lead(first=True)
        await self.cluster.time(1)

    # --- creates

    @rule(at=processes, gpus=st.sampled_from([1, 1, 2]), namespace=st.sampled_from(SPACES), data=st.data())
    def ask(self, at: int, gpus: int, namespace: str, data: st.DataObject) -> None:
        controller, place = data.draw(st.sampled_from([("", ""), ("rs", ""), ("", "web-0")]))
        tenant = data.draw(st.sampled_from(["", "", "", *TENANTS]))
        self.run(self._ask(at, Create("", namespace, gpus, place, controller), tenant))

    async def _ask(self, at: int, create: Create, tenant: str) -> None:
        await self._meet_deadlines(ONE_REVIEW)
        name = f"pod-{len(self.cluster.truth.creates)}"
        answer = await self.cluster.ask(
            name,
            self.processes[at],
            gpus=create.gpus,
            namespace=create.namespace,
            place=create.place,
            controller=create.controller,
            tenant_name=tenant,
        )
        self.promised_at[name] = loop().time()
        owner = tenant or self.cluster.owner(create.namespace)
        if answer == NO and self.cluster.account(owner):
            held = self.cluster.charge(owner)
            assert held + create.gpus > self.quotas[owner], f"refused, though the ledger held {held}"

    @rule(data=st.data())
    @precondition(lambda self: self.names(State.PROMISED))
    def stored(self, data: st.DataObject) -> None:
        self.run(self._stored(data.draw(st.sampled_from(self.names(State.PROMISED)))))

    async def _stored(self, name: str) -> None:
        """Or AlreadyExists."""
        create = self.cluster.truth.creates[name]
        others = self.cluster.truth.named(State.STORED, State.PREEMPTED)
        if create.place and any((each.namespace, each.place) == (create.namespace, create.place) for each in others):
            await self.cluster.never(name)
        else:
            await self.cluster.store(name)

    @rule(data=st.data())
    @precondition(lambda self: self.names(State.PROMISED))
    def never_stored(self, data: st.DataObject) -> None:
        self.run(self.cluster.never(data.draw(st.sampled_from(self.names(State.PROMISED)))))

    @rule(data=st.data())
    @precondition(lambda self: self.names(State.STORED, State.PREEMPTED))
    def gone(self, data: st.DataObject) -> None:
        self.run(self.cluster.gone(data.draw(st.sampled_from(self.names(State.STORED, State.PREEMPTED)))))

    @rule(data=st.data())
    @precondition(lambda self: self.replaceable())
    def preempted(self, data: st.DataObject) -> None:
        self.run(self.cluster.preempt(data.draw(st.sampled_from(self.replaceable()))))

    # --- watches, time, processes

    @rule(at=processes, kind=watched)
    def watch_is_held(self, at: int, kind: str) -> None:
        self.processes[at].client.view(kind).hold()

    @rule(at=processes, kind=watched)
    def watch_moves_on(self, at: int, kind: str) -> None:
        view = self.processes[at].client.view(kind)
        if view.limit is not None:
            view.step()
        self.run(self.cluster.balance())

    @rule(at=processes, kind=watched)
    def watch_flows(self, at: int, kind: str) -> None:
        self.processes[at].client.view(kind).flow()
        self.run(self.cluster.balance())

    @rule(at=processes, kind=watched)
    def watch_begins_anew(self, at: int, kind: str) -> None:
        self.processes[at].client.view(kind).expire()
        self.run(self.cluster.balance())

    @rule(seconds=st.sampled_from([0.05, 0.2, 1, 6, 30, H + 5]))
    def time_passes(self, seconds: float) -> None:
        self.run(self._time(seconds))

    @rule(at=processes)
    def leads(self, at: int) -> None:
        """The other one may not know that it has lost the Lease."""
        self.run(self._leads(self.processes[at]))

    async def _leads(self, process: Process) -> None:
        if not process.leads:
            process.lead()
        await self.cluster.balance()

    @rule(at=processes)
    def stops_leading(self, at: int) -> None:
        self.run(self.processes[at].stop_leading())

    @rule(at=processes)
    def pauses(self, at: int) -> None:
        self.processes[at].pause()

    @rule(at=processes)
    def goes_on(self, at: int) -> None:
        self.processes[at].resume()
        self.run(self.cluster.balance())

    @rule(at=processes, fate=st.sampled_from([Fate.CONFLICT, Fate.LOST, Fate.LATE, Fate.AWAY]))
    def its_next_write_fails(self, at: int, fate: Fate) -> None:
        client = self.processes[at].client
        fates = iter([fate])

        def next_one(request: Request) -> Fate:
            return next(fates, Fate.ANSWERED) if request.method == "PUT" else Fate.ANSWERED

        client.fates = next_one

    @rule(at=processes)
    def late_writes_are_stored(self, at: int) -> None:
        self.processes[at].client.commit_late()
        self.run(self.cluster.balance())

    # --- the administrator

    @rule(tenant=tenants)
    def somebody_empties_a_status(self, tenant: str) -> None:
        self.run(self.cluster.empty(tenant))

    @rule(tenant=tenants)
    def somebody_replaces_a_tenant_quota(self, tenant: str) -> None:
        self.run(self._replace(tenant))

    async def _replace(self, tenant: str) -> None:
        await self.cluster.delete(tenant)
        self.cluster.tenant(tenant, self.quotas[tenant])
        await self.cluster.balance()

    @rule(tenant=tenants)
    def somebody_lowers_a_quota(self, tenant: str) -> None:
        self.quotas[tenant] = max(self.quotas[tenant] - 1, 1)
        self.cluster.lower(tenant, self.quotas[tenant])
        self.run(self.cluster.balance())

    @rule(namespace=st.sampled_from(SPACES), tenant=tenants)
    def a_namespace_gets_a_tenant(self, namespace: str, tenant: str) -> None:
        self.cluster.namespace(namespace, tenant)
        self.run(self.cluster.balance())

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
        for name in self.names(State.PROMISED):
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
        """Creates are stored, or fail, H less a moment after they were let in."""
        end = loop().time() + seconds
        while due := self._next_deadline(end):
            await self.cluster.time(max(due - loop().time(), 0.0))
            await self._meet_deadlines(2 * A_MOMENT)
        await self.cluster.time(max(end - loop().time(), 0.0))

    def _next_deadline(self, end: float) -> float | None:
        due = [self.promised_at[name] + H - A_MOMENT for name in self.names(State.PROMISED)]
        return min((each for each in due if each <= end), default=None)

    async def _meet_deadlines(self, seconds: float) -> None:
        for name in self.names(State.PROMISED):
            if self.promised_at[name] + H <= loop().time() + seconds:
                await self._stored(name)

    def names(self, *states: State) -> list[str]:
        return [each.name for each in self.cluster.truth.named(*states)]

    def replaceable(self) -> list[str]:
        return [each.name for each in self.cluster.truth.named(State.STORED) if each.controller]


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(stateful_step_count=30)
