"""Ended pods whose slots stay reserved for their replacements, as this leader saw them end."""

import time
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator

from msgspec.structs import replace

from webhook.ledger.account import Entry, PodCount
from webhook.ledger.protocol import Holding

DELETED_SECONDS = 5
"""Seconds for which a deleted pod's slot stays reserved, because some controllers make the next pod only afterwards."""

PREEMPTED_SECONDS = 120
"""Seconds for which a preempted pod's slot stays reserved. The Job controller makes the next pod after 10 s, then after
20 and 40 s, and meanwhile another pod uses the GPUs anyway."""

MOST = 1000


class VacantSlots:
    """Vacant entries for accounts. `wall` returns seconds since 1970, because the next leader reads the times too."""

    def __init__(self, wall: Callable[[], float] = time.time) -> None:
        self.now = wall
        self._left: OrderedDict[str, Entry] = OrderedDict()

    def put(self, uid: str, holding: Holding) -> None:
        """Note the end of a pod. A pod that ended by itself or has no controller leaves no vacant slot."""
        if not holding.controller or not (holding.preempted or holding.ends_in is not None):
            return
        where, (maker, of) = holding.namespace, (holding.made_by[1], holding.draws_on[1])
        vacant = Entry(uid=uid, namespace=where, maker=maker, of=of, wants=(holding.charge,))
        self._leave(vacant, PREEMPTED_SECONDS if holding.preempted else DELETED_SECONDS)

    def put_missed(self, preempted: Iterable[Entry], missing: Iterable[PodCount]) -> None:
        """Note pods that ended while nobody led. Those that ended by themselves look like deleted pods."""
        for each in preempted:
            self._leave(replace(each, name="", preempted=False), PREEMPTED_SECONDS)
        for some in missing:
            for number in range(some.pods):
                uid = f"{some.maker} {some.each.tier} {some.each.flavor} {some.each.gpus} {number}"
                vacant = Entry(uid=uid, namespace=some.namespace, maker=some.maker, wants=(some.each,))
                self._leave(vacant, DELETED_SECONDS)

    def _leave(self, vacant: Entry, seconds: int) -> None:
        self._left[vacant.uid] = replace(vacant, state="Vacant", until=int(self.now()) + seconds)
        if len(self._left) > MOST:
            self._left.popitem(last=False)

    def of(self, namespaces: Container[str]) -> Iterator[Entry]:
        """Yield the vacant entries of these namespaces until their time is over."""
        now = self.now()
        for uid in [uid for uid, each in self._left.items() if each.until <= now]:
            del self._left[uid]
        yield from (each for each in self._left.values() if each.namespace in namespaces)

    def forget_all(self, namespaces: Container[str]) -> None:
        """Forget the pods of these namespaces: their tenant has no queue, so its next pods need no vacant slot."""
        for uid in [uid for uid, each in self._left.items() if each.namespace in namespaces]:
            del self._left[uid]

    def forget(self, uid: str) -> None:
        """Forget a pod whose slot was filled."""
        self._left.pop(uid, None)
