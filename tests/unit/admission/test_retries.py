"""The next try of a controller whose create was refused after us takes the slot of a try that came to nothing.

A ReplicaSet and a Job as they create pods: in batches of 1, 2, 4 and so on, each after the answers to the one before,
until a create of a batch fails.
"""

import asyncio
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from tests.builders import Tree, a_pod, a_tenant, a_workload
from tests.builders.world import FakeApi
from webhook.admission.reviewer import LookupBudget
from webhook.ledger.protocol import Holding
from webhook.objects.pods import Metadata, OwnerReference
from webhook.objects.refusal import Unreadable
from webhook.policy.quota.charges import Charge

KUBERNETES = {"username": "system:serviceaccount:kube-system:replicaset-controller", "groups": []}
POD = a_pod().asking(1).of_tier("gpu-batch").labelled({"app": "chat"})
SELECTS = {"matchLabels": {"app": "chat"}}
KINDS = ["ReplicaSet", "Job"]
DELETED = "2026-11-28T12:00:00Z"


async def at_once() -> None:
    """Whatever a create waits for takes no time."""


class Store:
    """The pods of one workload in etcd, as quorum reads show them, and how often they were read."""

    def __init__(self, pause: Callable[[], object] = at_once) -> None:
        self.pods: dict[str, Metadata] = {}
        self.gets, self.lists, self.is_readable = 0, 0, True
        self._pause = pause

    async def is_name_taken(self, _api_version: str, _plural: str, _namespace: str, name: str) -> bool:
        await self._pause()  # type: ignore[misc]
        self.gets += 1
        return name in self.pods

    async def pods_in(self, _namespace: str) -> list[Metadata]:
        await self._pause()  # type: ignore[misc]
        self.lists += 1
        if not self.is_readable:
            raise Unreadable("the pods can't be read")
        return [*self.pods.values()]


class Controller:
    """A workload of so many pods of one GPU, in a tenant of 400 GPUs, and its controller."""

    def __init__(self, kind: str, wanted: int, store: Store, clock: Callable[[], float] = lambda: 0.0) -> None:
        counts = {"parallelism": wanted, "completions": wanted} if kind == "Job" else {"replicas": wanted}
        version = "batch/v1" if kind == "Job" else "apps/v1"
        self.owner = a_workload(version, kind, "chat", selector=SELECTS, template=POD.template(), **counts)
        self.uid, self.wanted, self.store = f"uid-of-{self.owner.tree['metadata']['name']}", wanted, store
        self.world = FakeApi(a_tenant().allowing("400"), self.owner)
        lookups: Any = self.world.cluster.lookups
        lookups.is_name_taken, lookups.pods_in = store.is_name_taken, store.pods_in
        self.world.webhooks = replace(self.world.webhooks, budget=LookupBudget(clock))
        self.number = 0

    @property
    def used(self) -> Decimal:
        (tenant,) = self.world.known.tenants()
        return max(self.world.ledger.usage(tenant).values())

    @property
    def missing(self) -> int:
        return self.wanted - sum(not each.deletion_timestamp for each in self.store.pods.values())

    async def reviewed(self) -> Metadata:
        """Return the next pod after our yes."""
        if not self.number:
            self._pod: Tree = (await self.world.mutate(POD.owned_by(self.owner))).patched
        self.number += 1
        name, uid = f"chat-{self.number}", f"uid-{self.number}"
        metadata = {**self._pod["metadata"], "name": name, "uid": uid}
        answer = await self.world.validate({**self._pod, "metadata": metadata}, userInfo=KUBERNETES)
        assert answer.allowed, answer.sentence
        owner = OwnerReference(kind="ReplicaSet", name="chat", uid=self.uid, controller=True)
        return Metadata(name=name, uid=uid, owner_references=(owner,))

    async def create(self, *, is_refused: bool = False) -> None:
        pod = await self.reviewed()
        if not is_refused:
            self.store.pods[pod.name] = pod

    def see(self, name: str) -> None:
        """Let the leader see a pod."""
        pod = self.store.pods[name]
        holding = Holding("team-alpha", Charge(Decimal(1), "gpu-batch"), None, self.uid, name=name)
        self.world.ledger.observe(pod.uid, holding)

    async def run(self) -> None:
        """Create all pods, which the leader then sees."""
        for _ in range(self.wanted):
            await self.create()
            self.see(f"chat-{self.number}")
        self.store.gets = self.store.lists = 0


@pytest.mark.parametrize("kind", KINDS)
async def test_one_pod_that_is_missing_of_twenty_holds_one_slot_however_often_it_is_tried(kind: str) -> None:
    chat = Controller(kind, 20, Store())
    await chat.run()
    del chat.store.pods["chat-7"]
    chat.world.ledger.release("uid-7")
    for _ in range(10):
        await chat.create(is_refused=True)
    assert chat.used == 20
    await chat.create()
    assert chat.used == 20
    chat.see(f"chat-{chat.number}")
    assert chat.used == 20


@pytest.mark.parametrize("kind", KINDS)
async def test_what_is_missing_beside_pods_under_way_holds_one_slot_each(kind: str) -> None:
    chat = Controller(kind, 20, Store())
    await chat.run()
    for number in (3, 4, 5):
        del chat.store.pods[f"chat-{number}"]
        chat.world.ledger.release(f"uid-{number}")
    for _ in range(9):
        await chat.create(is_refused=True)
    assert chat.used == 20
    under_way = [await chat.reviewed() for _ in range(3)]
    chat.store.pods |= {each.name: each for each in under_way}
    for each in under_way:
        chat.see(each.name)
        assert chat.used >= 20, "the others of the batch count"


async def test_twenty_that_are_deleted_share_nothing_with_the_twenty_that_follow() -> None:
    chat = Controller("ReplicaSet", 20, Store())
    await chat.run()
    await chat.create(is_refused=True)
    refused = chat.used - 20
    for name, pod in chat.store.pods.items():
        chat.store.pods[name] = replace(pod, deletion_timestamp=DELETED)
    for _ in range(20):
        await chat.reviewed()
    assert chat.used == 40 + refused


async def test_a_try_in_whose_slot_a_pod_runs_meanwhile_is_not_followed_there() -> None:
    chat = Controller("ReplicaSet", 2, Store())
    await chat.run()
    del chat.store.pods["chat-1"]
    chat.world.ledger.release("uid-1")
    await chat.create(is_refused=True)
    await chat.create()
    chat.see("chat-4")
    chat.store.pods["chat-4"] = replace(chat.store.pods["chat-4"], deletion_timestamp=DELETED)
    assert chat.used == 2
    await chat.create()
    assert chat.used == 3


async def test_a_burst_costs_few_look_ups_and_no_list() -> None:
    now = 0.0
    chat = Controller("ReplicaSet", 300, Store(), lambda: now)
    for _ in range(200):
        await chat.create()
    assert (chat.store.gets, chat.store.lists) == (10, 0)
    now = 2.5
    for _ in range(5):
        await chat.reviewed()
    assert chat.store.gets == 12


async def test_a_try_shares_nothing_where_the_pods_cant_be_read_or_were_scaled_down() -> None:
    chat = Controller("ReplicaSet", 2, Store())
    await chat.create(is_refused=True)
    chat.store.is_readable = False
    await chat.create(is_refused=True)
    assert (chat.used, chat.store.lists) == (2, 1)
    chat.store.is_readable = True
    chat.store.pods = {
        name: Metadata(name=name, owner_references=(OwnerReference(kind="ReplicaSet", uid=chat.uid, controller=True),))
        for name in ("stays", "stays-too")
    }
    await chat.create(is_refused=True)
    assert (chat.used, chat.store.lists) == (3, 2)


class Chance(Controller):
    """Creates pods while a ResourceQuota comes and goes, and so do its pods and the leader's news of them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311
        kind, wanted = self.random.choice(KINDS), self.random.choice((1, 2, 3, 8, 20))
        super().__init__(kind, wanted, Store(self.pause), lambda: 100.0 * self.number)
        self.refused, self.unseen, self.under_way = 0.5, list[str](), dict[str, Metadata]()

    async def pause(self) -> None:
        for _ in range(self.random.choice((0, 1, 3, 30))):
            await asyncio.sleep(0)
        self.see_some(0.3)

    def see_some(self, probability: float) -> None:
        for name in [each for each in self.unseen if self.is_lucky(probability)]:
            self.unseen.remove(name)
            self.see(name)

    def is_lucky(self, probability: float) -> bool:
        return self.random.random() < probability

    def check(self) -> None:
        """Check that each pod that exists, or will once its create is stored, counts in a slot of its own."""
        alive = {each.uid for each in (*self.store.pods.values(), *self.under_way.values())}
        assert self.used >= len(alive)
        entries = self.world.ledger.store.newest("alpha").account.entries
        slots = [each.slot or each.uid for each in entries if each.uid in alive]
        assert len(slots) == len(set(slots))

    async def created(self) -> bool:
        await self.pause()
        is_stored = not self.is_lucky(self.refused)
        pod = await self.reviewed()
        self.under_way |= {pod.name: pod} if is_stored else {}
        self.check()
        await self.pause()
        if is_stored:
            self.store.pods[pod.name] = self.under_way.pop(pod.name)
            self.unseen.append(pod.name)
        return is_stored

    async def sync(self) -> None:
        missing, batch = self.missing, 1
        while missing > 0:
            answers = await asyncio.gather(*(self.created() for _ in range(min(batch, missing))))
            if not all(answers):
                return
            missing, batch = missing - len(answers), 2 * batch

    def pass_time(self) -> None:
        is_long, ends = self.is_lucky(0.3), self.random.choice((0.05, 0.5))
        self.see_some(1.0 if is_long else 0.5)
        self.world.now += 61 if is_long else 0  # tries that came to nothing lapse
        for name, pod in list(self.store.pods.items()):
            if name not in self.unseen and pod.deletion_timestamp and self.is_lucky(0.5):
                del self.store.pods[name]
                self.world.ledger.release(pod.uid)
            elif self.is_lucky(ends):
                self.store.pods[name] = replace(pod, deletion_timestamp=DELETED)
        self.check()


@pytest.mark.parametrize("seed", range(30))
async def test_no_two_pods_count_in_one_slot_whatever_happens(seed: int) -> None:
    chance = Chance(seed)
    for _ in range(30):
        chance.pass_time()
        chance.refused = chance.random.choice((0.0, 0.3, 1.0, chance.refused))
        await chance.sync()


async def test_a_pod_that_was_taken_from_its_controller_before_the_leader_saw_it_keeps_its_slot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever may edit pods could have the next pod run in the slot of one that runs already."""
    chat, offered = Controller("ReplicaSet", 2, Store()), list[tuple[str, ...]]()
    ledger: Any = chat.world.ledger
    book = ledger.book

    async def noted(booking: Any, **more: Any) -> Any:
        offered.append(booking.retries)
        return await book(booking, **more)

    monkeypatch.setattr(ledger, "book", noted)
    for _ in range(2):
        await chat.create(is_refused=True)
    await chat.create()
    assert offered[-1] == ("chat-1", "chat-2")
    chat.store.pods["chat-3"] = Metadata(name="chat-3", uid="uid-3")  # without its owner
    await chat.create()
    assert "chat-3" not in offered[-1]
