"""The pods whose end this process saw, and whose slots are kept for the next ones of their makers."""

import time
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator

from webhook.ledger.account import Entry
from webhook.ledger.protocol import Holding

DELETED_SECONDS = 5
"""So long the slot of a pod that was deleted is kept: some controllers make the next one only afterwards."""

PREEMPTED_SECONDS = 120
"""So long that of a pod which another one has evicted: the Job controller waits 10 s before it makes the next one, then
20 and 40, and meanwhile the evictor has the GPUs anyway."""

MOST = 1000


class EndedPods:
    """As entries of an account. `wall` tells seconds since 1970: the next leader reads them too."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._left: OrderedDict[str, Entry] = OrderedDict()

    def now(self) -> float:
        return self._wall()

    def put(self, uid: str, holding: Holding) -> None:
        """A pod has ended that held GPUs. Of one that ended by itself nobody waits for the slot."""
        if not holding.controller or not (holding.preempted or holding.ends_in is not None):
            return
        self._left[uid] = Entry(
            uid=uid,
            namespace=holding.namespace,
            maker=holding.made_by[1],
            of=holding.draws_on[1],
            state="Left",
            wants=(holding.charge,),
            until=int(self._wall()) + (PREEMPTED_SECONDS if holding.preempted else DELETED_SECONDS),
        )
        if len(self._left) > MOST:
            self._left.popitem(last=False)

    def of(self, namespaces: Container[str]) -> Iterator[Entry]:
        """Those of these namespaces whose time is not over."""
        now = self._wall()
        for uid in [uid for uid, each in self._left.items() if each.until <= now]:
            del self._left[uid]
        yield from (each for each in self._left.values() if each.namespace in namespaces)

    def forget(self, uid: str) -> None:
        """Its slot was filled."""
        self._left.pop(uid, None)
