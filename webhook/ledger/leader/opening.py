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
"""Gates that are opened at once, all of one tier, because of two tiers the lower one would be preempted."""


LONGEST_PAUSE = 30.0
"""Seconds between two tries to open a gate that can't be opened."""


class Failing(msgspec.Struct, frozen=True):
    """A gate that could not be opened, so many `times`. It is `due` again at that time of our own clock."""

    times: int
    due: float


class Opening:
    """The queues of one term. `run` opens the gates of pods that `round` has admitted."""

    def __init__(self, leading: Leading) -> None:
        self._leading = leading
        self._queues: Collection[str] = ()
        self._admitted: dict[str, GatedPod] = {}
        self._asked: set[str] = set()
        """Admitted pods whose gate was opened, or could not be opened, since the last round."""
        self._failing: dict[str, Failing] = {}
        self._woken = asyncio.Event()

    async def round(self) -> None:
        """Book the queued pods that have room. Raises Superseded."""
        gated, versions = self._leading.view.gated, self._leading.store.versions
        here = gated.namespaces()
        if not here:
            self._failing.clear()
            self._tell_of_no_queue(())
            return
        free = [namespace for namespace in here if self._leading.world.is_without_queue(namespace)]
        queued_in = set(here).difference(free)
        found = map(versions.newest, versions.names())
        sealed = [each for each in found if each is not None and each.sealed]
        queues = [each.name for each in sealed if not queued_in.isdisjoint(each.account.namespaces)]
        self._admitted = {}
        self._tell_of_no_queue(queues)
        await for_each(queues, self._book)
        accounts = [version.account for name in queues if (version := versions.newest(name)) and version.sealed]
        booked = chain.from_iterable(admitted_pods(each, self._leading.view) for each in accounts)
        self._admitted, self._asked = {each.uid: each for each in (*gated.of(free), *booked)}, set()
        self._failing = {uid: each for uid, each in self._failing.items() if uid in self._admitted}
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
        return min((each.due - now for each in self._failing.values() if each.due > now), default=LONGEST_PAUSE)

    async def run(self) -> None:
        """Open gates until cancelled."""
        while True:
            await self._woken.wait()
            self._woken.clear()
            while some := list(self._next()):
                await asyncio.gather(*map(self._open, some))

    def _next(self) -> Iterator[GatedPod]:
        """Yield some pods of the highest tier that are still gated, and still ask for what was booked.

        A gate that can't be opened waits longer each time, so that it stops no other one.
        """
        gated, clock = self._leading.view.gated, self._leading.clock()
        waits = self._asked | {uid for uid, each in self._failing.items() if each.due > clock}
        left = [
            now
            for uid, then in self._admitted.items()
            if uid not in waits and (now := gated.get(uid)) and now.holding.charge == then.holding.charge
        ]
        highest = max((each.priority for each in left), default=0)
        yield from [each for each in left if each.priority == highest][:AT_ONCE]

    def _note_failed(self, uid: str) -> None:
        """Note a failure. After the first one the pod may just have changed, and is tried again when that is seen."""
        times = self._failing[uid].times + 1 if uid in self._failing else 1
        pause = min(0.25 * 2**times, LONGEST_PAUSE) if times > 1 else 0.0
        self._failing[uid] = Failing(times, self._leading.clock() + pause)

    async def _open(self, pod: GatedPod) -> None:
        self._asked.add(pod.uid)
        try:
            await self._leading.world.open_gate(pod.uid, pod.holding)
        except ApiError as error:
            where = {"namespace": pod.holding.namespace, "pod": pod.holding.name}
            log.warning("gate not opened", {**where, "reason": str(error)})
            self._note_failed(pod.uid)
            return
        self._failing.pop(pod.uid, None)
