"""Books gated pods in their turn, and opens the gates of those that have room: what a leader does for `onExceed: Hold`.

A gate is opened only while the account that promises its pod the GPUs is ours, and at the resourceVersion that was
looked at: the API server refuses it where the pod has changed since. Whoever leads next finds the same promise.
"""

import asyncio
import logging
from collections.abc import Collection, Iterator
from itertools import chain

import msgspec

from webhook.kube.errors import ApiError
from webhook.ledger.leader.gated_pods import GatedPod
from webhook.ledger.leader.queue import Queued, let_in_by
from webhook.ledger.leader.queue_booking import book_queue
from webhook.ledger.leader.terms import for_each
from webhook.ledger.leader.world import Leading
from webhook.ledger.protocol import TryAgain
from webhook.ledger.versions import Version, WorkingCopy

log = logging.getLogger(__name__)

AT_ONCE = 8
"""Gates that are opened side by side, all of one tier: of two tiers at once the lower one would be preempted."""


LONGEST_PAUSE = 30.0
"""Seconds between two tries to open a gate that can't be opened."""


class Failing(msgspec.Struct, frozen=True):
    """A gate that could not be opened so often; not `due` again before that time of our own clock."""

    times: int
    due: float


class Opening:
    """The queues of one term. `run` opens what `round` has found to be let in."""

    def __init__(self, leading: Leading) -> None:
        self._leading = leading
        self._queues: Collection[str] = ()
        self._let_in: dict[str, GatedPod] = {}
        self._asked: set[str] = set()
        """Those of them whose gate was opened, or could not be, since the last round."""
        self._failing: dict[str, Failing] = {}
        self._woken = asyncio.Event()

    async def round(self) -> None:
        """Book what has room. Raises Superseded."""
        gated, versions = self._leading.view.gated, self._leading.store.versions
        here = gated.namespaces()
        if not here:
            self._failing.clear()
            self._tell_of_no_queue(())
            return
        free = [namespace for namespace in here if self._leading.world.lets_go(namespace)]
        held = set(here).difference(free)
        queues = [name for name in versions.names() if _has_any(versions.newest(name), held)]
        self._let_in = {}
        self._tell_of_no_queue(queues)
        await for_each(queues, self._book)
        accounts = [version.account for name in queues if (version := versions.newest(name)) and version.sealed]
        promised = chain.from_iterable(let_in_by(each, self._leading.view) for each in accounts)
        self._let_in, self._asked = {each.uid: each for each in (*gated.of(free), *promised)}, set()
        self._failing = {uid: each for uid, each in self._failing.items() if uid in self._let_in}
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
        """Of all but those that have one now, the tenants that are gone too."""
        for name in {*self._leading.store.versions.names(), *self._queues}.difference(queues):
            self._leading.world.tell_queue(name, ())
        self._queues = queues

    def until_due(self) -> float:
        """Seconds until a gate may be tried again; none are due at once, for a round has just tried those."""
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
        """Some of the highest tier that are still gated, and still ask for what was booked.

        Those that can't be opened wait longer each time: the queue of nobody else stops at them.
        """
        gated, waits = self._leading.view.gated, self._asked | self._resting()
        left = [
            now
            for uid, then in self._let_in.items()
            if uid not in waits and (now := gated.get(uid)) and now.holding.charge == then.holding.charge
        ]
        highest = max((each.priority for each in left), default=0)
        yield from [each for each in left if each.priority == highest][:AT_ONCE]

    def _resting(self) -> set[str]:
        now = self._leading.clock()
        return {uid for uid, each in self._failing.items() if each.due > now}

    def _note_failed(self, uid: str) -> None:
        """The first time it may have changed a moment ago, and is tried again when that is seen."""
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


def _has_any(version: Version | None, namespaces: set[str]) -> bool:
    return version is not None and version.sealed and not namespaces.isdisjoint(version.account.namespaces)
