"""A small cluster for a story: tenants, namespaces, creates, processes. After each step the books must balance."""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

from msgspec import structs

from tests.ledger.process import KIND, TENANT, Process
from tests.ledger.simulated_api import NAMESPACES, PODS, TENANT_QUOTAS, WORKLOADS, SimulatedApi
from tests.ledger.truth import Create, State, Truth
from tests.ledger.virtual_time import pass_time, settle
from webhook.ledger.account import Account, read_account
from webhook.ledger.protocol import Booked, Booking, GangBooking, TryAgain
from webhook.ledger.slot_sums import booked_of
from webhook.objects.pods import QUOTA_GATE
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.tenant_quotas import read_tenant
from webhook.policy.values.tenants import Tenant

YES, NO, AGAIN = "yes", "no", "try again"


class Overdrawn(AssertionError):  # noqa: N818 - what has happened
    """A ledger counts less than was reserved, or more is stored than the quota allows."""


class Cluster:
    """Steps are the model's, and named as in its traces."""

    def __init__(self) -> None:
        self.api = SimulatedApi()
        self.truth = Truth()
        self.processes: list[Process] = []
        self.most: dict[str, Decimal] = {}
        """The most GPUs in each ledger since somebody last forgot it."""
        self._before: dict[str, tuple[Account, Decimal]] = {}
        self._sealed: dict[str, Account] = {}
        self._tenants: set[str] = set()
        self._wrong: list[str] = []
        self._emptied: set[str] = set()
        self.api.history(TENANT_QUOTAS).on_write = self._written
        self.api.history(PODS).on_write = self._note_gates

    # --- tenants and namespaces

    def tenant(self, name: str, quota: int) -> None:
        """Apply a TenantQuota of one row, the total."""
        self._tenants.add(name)
        spec = {"namespaceSelector": {"matchLabels": {TENANT: name}}, "quotas": [{"gpus": quota}]}
        self.api.make(TENANT_QUOTAS, {"metadata": {"name": name}, "spec": spec})

    def namespace(self, name: str, tenant: str) -> None:
        """Make a namespace, or give it to another tenant."""
        labels = {TENANT: tenant}
        if ("", name) in self.api.history(NAMESPACES).objects:
            before = self.api.history(NAMESPACES).objects["", name]["metadata"]
            self.api.change(NAMESPACES, ("", name), metadata={**before, "labels": labels})
        else:
            self.api.make(NAMESPACES, {"metadata": {"name": name, "labels": labels}})

    def lower(self, tenant: str, quota: int) -> None:
        """Lower a quota."""
        stored = self.api.history(TENANT_QUOTAS).objects["", tenant]
        self.api.change(TENANT_QUOTAS, ("", tenant), spec={**stored["spec"], "quotas": [{"gpus": quota}]})

    def exceeding(self, tenant: str, what: str, **more: Any) -> None:
        """Set what happens above a quota."""
        stored = self.api.history(TENANT_QUOTAS).objects["", tenant]
        self.api.change(TENANT_QUOTAS, ("", tenant), spec={**stored["spec"], "onExceed": what, **more})

    async def empty(self, tenant: str) -> None:
        """Empty the status."""
        self._emptied.add(tenant)
        self.api.change(TENANT_QUOTAS, ("", tenant), status=None)
        await self.balance()

    async def delete(self, tenant: str) -> None:
        """Delete the TenantQuota."""
        self.api.remove(TENANT_QUOTAS, ("", tenant))
        await self.balance()

    # --- processes

    async def process(self, name: str, ahead: float = 0.0) -> Process:
        """Another replica starts."""
        process = Process(self.api, name, ahead)
        self.processes.append(process)
        await process.start()
        return process

    async def end(self) -> None:
        """End all processes."""
        for process in self.processes:
            await process.kill()

    async def time(self, seconds: float) -> None:
        """Time passes."""
        await pass_time(seconds)
        await self.balance()

    # --- creates of pods

    async def ask(self, create: Create | str, at: Process, tenant: str = "", **more: Any) -> str:
        """The review of a create, and its answer. `tenant`: whose the process takes the namespace for."""
        answer = await self.decide(create, at, tenant, **more)
        await self.balance()
        return answer

    async def decide(self, create: Create | str, at: Process, tenant: str = "", **more: Any) -> str:
        """The same, while the test does something else."""
        if isinstance(create, str):
            create = self.truth.creates.get(create) or Create(create, **{"namespace": "n", **more})
        create = self.truth.creates.setdefault(create.name, create)
        name, of = create.name, self._tenant(tenant or self.owner(create.namespace))
        answer = await at.book(_booking(create, of))
        if isinstance(answer, Booked) and create.state is State.ASKED:
            self.truth.become(name, State.RESERVED, self._slot_of(name))
        return YES if isinstance(answer, Booked) else AGAIN if isinstance(answer, TryAgain) else NO

    async def store(self, *names: str) -> None:
        """Store the creates with a reservation; the others fail, because they were refused."""
        for name in names:
            if self.truth.creates[name].state is State.RESERVED:
                kind = WORKLOADS if self.truth.creates[name].workload else PODS
                self.api.make(kind, self._tree(name))
                self.truth.become(name, State.STORED)
                await self.balance()

    async def gated(self, name: str, **more: Any) -> None:
        """A pod is stored that waits behind our gate; its gang makes it, unless another controller is named."""
        usual = {"namespace": "n", "state": State.GATED, "controller": more.get("gang", "")}
        self.truth.add(Create(name, **{**usual, **more}))
        self.api.make(PODS, self._tree(name))
        await self.balance()

    async def declared(self, name: str, gpus: int) -> None:
        """A workload is stored that nobody has booked."""
        self.truth.add(Create(name, "n", gpus, workload=True, state=State.ASKED))
        self.api.make(WORKLOADS, self._tree(name))
        await self.balance()

    def open(self) -> list[str]:
        """The pods that exist and wait behind no gate."""
        return [each.name for each in self.truth.named(State.STORED) if not each.workload]

    def _note_gates(self) -> None:
        for create in self.truth.named(State.GATED):
            tree = self.api.history(PODS).objects.get(self._key(create.name))
            if tree is not None and not tree["spec"].get("schedulingGates"):
                self.truth.become(create.name, State.STORED)

    async def ask_to_scale(self, name: str, gpus: int, at: Process) -> str:
        """The review of a change of a workload."""
        create = self.truth.creates[name]
        generation = self.api.history(WORKLOADS).objects[self._key(name)]["metadata"]["generation"] + 1
        booking = _booking(replace(create, gpus=gpus), self.tenant_of(create.namespace))
        answer = await at.book(structs.replace(booking, generation=generation))
        if isinstance(answer, Booked):
            self.truth.creates[name] = replace(create, growing=gpus)
        await self.balance()
        return YES if isinstance(answer, Booked) else AGAIN if isinstance(answer, TryAgain) else NO

    async def scale(self, name: str, gpus: int) -> None:
        """A change of a workload is stored."""
        self.api.change(WORKLOADS, self._key(name), spec={"gpus": gpus})
        self.truth.creates[name] = replace(self.truth.creates[name], gpus=gpus, growing=0)
        await self.balance()

    async def never_scaled(self, name: str) -> None:
        """Let a change of an admitted workload fail after us."""
        self.truth.creates[name] = replace(self.truth.creates[name], growing=0)
        await self.balance()

    async def never(self, name: str) -> None:
        """Let a create with a reservation fail after us."""
        self.truth.become(name, State.NEVER)
        await self.balance()

    async def preempt(self, name: str) -> None:
        """The scheduler evicts a pod: it ends within its grace."""
        condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        self._end(name, condition)
        self.truth.become(name, State.PREEMPTED)
        await self.balance()

    async def deleted(self, name: str) -> None:
        """Delete a pod, and let it end."""
        self._end(name)
        await self.balance()
        await self.gone(name)

    def _end(self, name: str, *conditions: dict[str, str]) -> None:
        pod = self.api.history(PODS).objects[self._key(name)]
        ending = {"deletionTimestamp": "2026-11-01T08:00:30Z", "deletionGracePeriodSeconds": 600}
        status = {"phase": "Running", "conditions": [*conditions]}
        self.api.change(PODS, self._key(name), metadata={**pod["metadata"], **ending}, status=status)

    async def gone(self, name: str) -> None:
        """A pod is gone, or a workload."""
        self.api.remove(WORKLOADS if self.truth.creates[name].workload else PODS, self._key(name))
        self.truth.become(name, State.ENDED)
        await self.balance()

    # --- what must hold

    async def balance(self) -> None:
        """Let everything happen that can happen now. Every ledger agreed with the truth whenever it was written."""
        await settle()
        self._written()
        if self._wrong:
            raise Overdrawn(self._wrong[0])
        for process in self.processes:
            process.raise_what_ended_it()

    def _written(self) -> None:
        try:
            self.check()
        except Overdrawn as wrong:
            self._wrong.append(str(wrong))

    def check(self) -> None:
        """No sealed ledger counts less than is stored and reserved, and no more is stored than the quota allows."""
        accounts = {tree["metadata"]["name"]: (tree, self.account(tree["metadata"]["name"])) for tree in self._quotas()}
        self._sealed |= {name: account for name, (_, account) in accounts.items() if account}
        unsealed = [name for name, (_, account) in accounts.items() if not account]
        rebuilt = [self._sealed[name] for name in unsealed if name in self._sealed]
        opened = [each for _, account in accounts.values() if account for each in _in(account, "open")]
        if len(set(opened)) < len(opened):
            raise Overdrawn(f"a namespace is open in two ledgers: {opened}")
        for name, (tree, account) in accounts.items():
            if account is None:
                self._before.pop(name, None)  # a rebuild from nothing forgets replacements
            else:
                elsewhere = [*opened, *(each for other in rebuilt for each in _in(other, "open"))]
                self._check_account(name, account, read_tenant(tree), elsewhere)
        if accounts.keys() == self._tenants and all(account is not None for _, account in accounts.values()):
            self._check_none_is_lost([account for _, account in accounts.values() if account])

    def _check_account(self, name: str, account: Account, tenant: Tenant, opened: list[str]) -> None:
        here = [*_in(account, "open"), *(each for each in _in(account, "closed") if each not in opened)]
        if name not in self._before:
            self.truth.forgotten |= {each.name for each in self.truth.workloads(here)}
        self.truth.forgotten -= {uid for _, uid in account.gangs}
        [row], charged = tenant.rows, self.charge(name)
        self.most[name] = max(charged, self.most.get(name, charged))
        if charged < self.truth.potential(here):
            raise Overdrawn(f"the ledger of {name} holds {charged}, and {self.truth.potential(here)} was reserved")
        before, self._before[name] = self._before.get(name), (account, charged)
        if _in(account, "closed"):
            return  # what its next ledger has admitted there is counted here too, until it is dropped
        if before and before[0].namespaces == account.namespaces and charged > max(row.hard, before[1]):
            raise Overdrawn(f"the ledger of {name} goes from {before[1]} to {charged}, and the quota is {row.hard}")

    def _check_none_is_lost(self, accounts: Iterable[Account]) -> None:
        known = {namespace for account in accounts for namespace in account.namespaces}
        lost = [
            each.name
            for each in self.truth.named(State.RESERVED, State.STORED, State.PREEMPTED)
            if each.namespace not in known
        ]
        # An account that was emptied while a namespace moved out of it is rebuilt without the namespace. The pods there
        # are in no account until the other one takes the namespace in. Until then no create is admitted there.
        if not lost:
            self._emptied.clear()
        if any(not self._emptied or self.owner(self.truth.creates[name].namespace) in self._emptied for name in lost):
            raise Overdrawn(f"{lost} were reserved, and are in no ledger")

    def account(self, tenant: str = "alpha") -> Account | None:
        """The account as it is stored; None where it isn't sealed."""
        tree = self.api.history(TENANT_QUOTAS).objects.get(("", tenant))
        account = read_account(tree.get("status") or {}) if tree else Account()
        return account if tree and account.is_sealed(tree["metadata"]["uid"]) else None

    def state(self, namespace: str, tenant: str) -> str:
        """Return the state of a namespace in an account, "" where the account doesn't know it."""
        account = self.account(tenant)
        return account.namespaces.get(namespace, "") if account else "unsealed"

    async def let(self, process: Process, *states: str) -> None:
        """Let its writes through, one by one, until one says the first of these of namespace n, and so on."""
        for state in states:
            while not any(self.state("n", each["metadata"]["name"]) == state for each in self._quotas()):
                await self.time(0.05)
                await process.client.let("PUT")

    def charge(self, tenant: str = "alpha") -> Decimal:
        """Return the total of a sealed ledger."""
        account, tree = self.account(tenant), self.api.history(TENANT_QUOTAS).objects["", tenant]
        assert account is not None, f"the ledger of {tenant} is not sealed"
        [charged] = booked_of(account, read_tenant(tree)).values()
        told = [Decimal(row["used"]) + Decimal(row["reserved"]) for row in tree.get("status", {}).get("usage", ())]
        assert told in ([], [charged]), "the status says what the account adds up to"
        return charged

    def _quotas(self) -> list[dict[str, Any]]:
        return self.api.objects(TENANT_QUOTAS)

    def owner(self, namespace: str) -> str:
        """Return the tenant that a namespace's label names."""
        labels: dict[str, str] = self.api.history(NAMESPACES).objects["", namespace]["metadata"]["labels"]
        return labels[TENANT]

    def tenant_of(self, namespace: str) -> Tenant:
        """The tenant whose a namespace is by its label."""
        return self._tenant(self.owner(namespace))

    def _tenant(self, name: str) -> Tenant:
        return read_tenant(self.api.history(TENANT_QUOTAS).objects["", name])

    def _slot_of(self, name: str) -> str:
        accounts = [self.account(tree["metadata"]["name"]) for tree in self._quotas()]
        pods = [each for account in accounts if account for each in account.entries if each.is_pod]
        return next((each.slot for each in pods if each.uid == name), "")

    def _key(self, name: str) -> tuple[str, str]:
        create = self.truth.creates[name]
        return create.namespace, create.place or name

    def _tree(self, name: str) -> dict[str, Any]:
        create = self.truth.creates[name]
        metadata: dict[str, Any] = {
            "name": create.place or name,
            "namespace": create.namespace,
            "uid": name,
            "labels": {"gpus": str(create.gpus)},
            "annotations": {"gang": create.gang},
        }
        if create.workload:
            return {"metadata": metadata, "spec": {"gpus": create.gpus}}
        if create.controller:
            owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": create.controller}
            metadata["ownerReferences"] = [{**owner, "controller": True}]
        spec: dict[str, Any] = {"containers": [], "priority": create.priority}
        if create.state is State.GATED:
            spec["schedulingGates"] = [{"name": QUOTA_GATE}]
        return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


async def opened(cluster: Cluster, quota: int) -> tuple[Process, Process]:
    """A tenant with one namespace, a leader and another replica. The leader's watches bring what they are told."""
    cluster.tenant("alpha", quota)
    cluster.namespace("n", "alpha")
    leader, replica = await cluster.process("leader"), await cluster.process("replica")
    leader.lead(first=True)
    await cluster.time(1)
    leader.client.view(PODS).hold()
    leader.client.view(WORKLOADS).hold()
    return leader, replica


def _booking(create: Create, tenant: Tenant) -> Any:
    name, charges = create.place or create.name, (Charge(Decimal(create.gpus), None),)
    if create.workload:
        return GangBooking(create.name, KIND, create.namespace, name, tenant, charges)
    return Booking(create.name, create.namespace, tenant, charges, create.controller, name, gang=create.gang)


def _in(account: Account, state: str) -> list[str]:
    return [namespace for namespace, each in account.namespaces.items() if each == state]
