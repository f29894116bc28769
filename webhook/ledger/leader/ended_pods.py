"""Ended pods whose slots stay reserved for their replacements, as this leader saw them end."""

import time
from collections import OrderedDict
from collections.abc import Callable, Container, Iterator

from webhook.ledger.account import Entry
from webhook.ledger.protocol import Holding

DELETED_SECONDS = 5
"""The slot of a deleted pod stays reserved so long, because some controllers make the next pod only afterwards."""

PREEMPTED_SECONDS = 120
"""The slot of a preempted pod stays reserved so long. The Job controller waits 10 s before it makes the next pod, then
20 and 40 s, and meanwhile another pod uses the GPUs anyway."""

MOST = 1000


class EndedPods:
    """Vacant entries for accounts. `wall` returns seconds since 1970, because the next leader reads the times too."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self._wall = wall
        self._left: OrderedDict[str, Entry] = OrderedDict()

    def now(self) -> float:
        return self._wall()

    def put(self, uid: str, holding: Holding) -> None:
        """Note the end of a pod with GPUs. A pod that ended by itself leaves no vacant slot."""
        if not holding.controller or not (holding.preempted or holding.ends_in is not None):
            return
        self._left[uid] = Entry(
            uid=uid,
            namespace=holding.namespace,
            maker=holding.made_by[1],
            of=holding.draws_on[1],
            state="Vacant",
            wants=(holding.charge,),
            until=int(self._wall()) + (PREEMPTED_SECONDS if holding.preempted else DELETED_SECONDS),
        )
        if len(self._left) > MOST:
            self._left.popitem(last=False)

    def of(self, namespaces: Container[str]) -> Iterator[Entry]:
        """Yield the entries of these namespaces whose time is not over."""
        now = self._wall()
        for uid in [uid for uid, each in self._left.items() if each.until <= now]:
            del self._left[uid]
        yield from (each for each in self._left.values() if each.namespace in namespaces)

    def forget(self, uid: str) -> None:
        """Forget a pod whose slot was filled."""
        self._left.pop(uid, None)
