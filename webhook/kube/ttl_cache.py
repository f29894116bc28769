"""Keeps the answers of look-ups for a short while, and asks only once at a time."""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TTLCache(Generic[K, V]):
    """Answers by key, each for `seconds`, at most `size` of them (the longest unused goes first).

    Callers that ask for the same key at once share one look-up, and one that gives up does not end it for the
    others. Errors are not kept.
    """

    def __init__(self, seconds: float, size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._size = size
        self._clock = clock
        self._kept: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._asked: dict[K, tuple[float, asyncio.Task[V]]] = {}

    async def get(self, key: K, look_up: Callable[[], Awaitable[V]], since: float = -math.inf) -> V:
        """The answer that is kept, else that of `look_up`; none of a look-up that began before `since`, by the clock.

        Who can't take the answer that is under way waits for its end, and shares the next with all who wait like him.
        """
        kept = self._kept.get(key)
        if kept is not None and since <= kept[0] and self._clock() < kept[0] + self._seconds:
            self._kept.move_to_end(key)
            return kept[1]
        began, under_way = self._asked.get(key) or (since, None)
        if under_way is not None and began < since:
            await asyncio.wait([under_way])
        if key not in self._asked:
            began = self._clock()
            task = asyncio.ensure_future(self._answer(key, look_up, began))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # it was told to whoever waited
            self._asked[key] = began, task
        return await asyncio.shield(self._asked[key][1])

    async def close(self) -> None:
        tasks = [task for _, task in self._asked.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, key: K, look_up: Callable[[], Awaitable[V]], began: float) -> V:
        try:
            answer = await look_up()
        finally:
            del self._asked[key]
        self._kept[key] = began, answer
        self._kept.move_to_end(key)
        # Forget those that are too many, or that nobody may take any more: an answer may be large.
        over = self._clock() - self._seconds
        while len(self._kept) > self._size or (self._kept and next(iter(self._kept.values()))[0] <= over):
            self._kept.popitem(last=False)
        return answer
