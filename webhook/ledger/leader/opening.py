"""Books queued pods in order and opens the gates of those that have room, for `onExceed: Hold`.

A gate is opened only while the account with the pod's reservation is ours, and at the resourceVersion that was seen,
so that the API server refuses it if the pod has changed. The next leader finds the same reservation.
"""

import asyncio
import logging
from collections.abc import Collection, Iterator
from itertools import chain

import msgspec

from webhook.kube.errors import ApiError
from webhook.ledger.leader.gated_pods import GatedPod
from webhook.ledger.leader.queue import Queued, admitted_pods, book_queue
from webhook.ledger.leader.terms import Leading, for_each
from webhook.ledger.protocol import TryAgain
from webhook.ledger.versions import WorkingCopy

log = logging.getLogger(__name__)

AT_ONCE = 8
"""Gates that are opened at once, all of one tier, because otherwise the higher tier would preempt the lower one."""


LONGEST_PAUSE = 30.0
"""Most seconds between two tries to open a gate that can't be opened."""


class Tried(msgspec.Struct, frozen=True):
    """The last try to open a pod's gate, at a resourceVersion. `failed`: how many tries in a row have failed.

    The next try is `due` at that time of our own clock, or as soon as another version of the pod is seen. At the same
    version the API server would refuse it again.
    """

    version: str
    failed: int
    due: float


class Opening:
    """The queues of one term. `run` opens the gates of pods that `round` has admitted."""

    def __init__(self, leading: Leading) -> None:
        self._leading = leading
        self._queues: Collection[str] = ()
        self._admitted: dict[str, GatedPod] = {}
        self._tried: dict[str, Tried] = {}
        self._woken = asyncio.Event()

    async def round(self) -> None:
        """Book the queued pods that have room, for `run` to open their gates. Raises Superseded."""
        gated, versions = self._leading.view.gated, self._leading.store.versions
        here = gated.namespaces()
        if not here:
            self._tried.clear()
            self._tell_of_no_queue(())
            return
        free = [namespace for namespace in here if self._leading.world.opens_all_gates(namespace)]
        queued_in = set(here).difference(free)
        found = map(versions.newest, versions.names())
        sealed = [each for each in found if each is not None and each.sealed]
        queues = [each.name for each in sealed if not queued_in.isdisjoint(each.account.namespaces)]
        self._admitted = {}
        self._tell_of_no_queue(queues)
        await for_each(queues, self._book)
        accounts = [version.account for name in queues if (version := versions.newest(name)) and version.sealed]
        booked = chain.from_iterable(admitted_pods(each, self._leading.view) for each in accounts)
        self._admitted = {each.uid: each for each in (*gated.of(free), *booked)}
        self._tried = {uid: each for uid, each in self._tried.items() if uid in self._admitted}
        self._woken.set()

    async def _book(self, name: str) -> None:
        queue = list[Queued]()

        def edit(copy: WorkingCopy) -> None:
            queue[:] = book_queue(copy, self._leading.view) if copy.sealed else ()

        try:
            await self._leading.term.change(name, edit)
        except TryAgain as problem:
            log.warning("queue not booked", {"tenant": name, "error": str(problem)})
            return
        self._leading.world.tell_queue(name, queue)

    def _tell_of_no_queue(self, queues: Collection[str]) -> None:
        """Report an empty queue for all tenants but these, also for tenants that are gone."""
        for name in {*self._leading.store.versions.names(), *self._queues}.difference(queues):
            self._leading.world.tell_queue(name, ())
        self._queues = queues

    def until_due(self) -> float:
        """Return the seconds until a gate may be tried again. A round has just tried those that were due."""
        now = self._leading.clock()
        return min((each.due - now for each in self._tried.values() if each.due > now), default=LONGEST_PAUSE)

    async def run(self) -> None:
        """Open gates until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            while some := list(self._next()):
                await asyncio.gather(*map(self._open, some))

    def _next(self) -> Iterator[GatedPod]:
        """Yield up to AT_ONCE pods of the highest tier that are still gated, and still ask for what was booked.

        A gate that can't be opened waits longer each time, so that it stops no other one.
        """
        gated, clock, left = self._leading.view.gated, self._leading.clock(), list[GatedPod]()
        for uid, then in self._admitted.items():
            now, tried = gated.get(uid), self._tried.get(uid)
            if now is None or now.holding.charge != then.holding.charge:
                continue
            if tried is None or tried.version != now.gated.version or tried.due <= clock:
                left.append(now)
        highest = max((each.priority for each in left), default=0)
        yield from [each for each in left if each.priority == highest][:AT_ONCE]

    async def _open(self, pod: GatedPod) -> None:
        before, failed, pause = self._tried.get(pod.uid), 0, LONGEST_PAUSE
        try:
            await self._leading.world.open_gate(pod.uid, pod.holding)
        except ApiError as error:
            where = {"namespace": pod.holding.namespace, "pod": pod.holding.name}
            log.warning("gate not opened", {**where, "reason": str(error)})
            failed = before.failed + 1 if before else 1
            pause = min(0.25 * 2 ** min(failed, 16), LONGEST_PAUSE)
        self._tried[pod.uid] = Tried(pod.gated.version, failed, self._leading.clock() + pause)
