"""A cache for the answers of look-ups, with one look-up for each key at a time."""

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
    others. Errors are not cached.
    """

    def __init__(self, seconds: float, size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._size = size
        self._clock = clock
        self._answers: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._asked: dict[K, tuple[float, asyncio.Task[V]]] = {}

    async def get(self, key: K, look_up: Callable[[], Awaitable[V]], since: float = -math.inf) -> V:
        """Return the cached answer, or that of `look_up`, but none of a look-up that began before `since`.

        If the look-up under way is too old, the caller waits for its end, and shares the next one with other callers.
        """
        found = self._answers.get(key)
        if found is not None and since <= found[0] and self._clock() < found[0] + self._seconds:
            self._answers.move_to_end(key)
            return found[1]
        began, under_way = self._asked.get(key) or (since, None)
        if under_way is not None and began < since:
            await asyncio.wait([under_way])
        if key not in self._asked:
            began = self._clock()
            task = asyncio.ensure_future(self._answer(key, look_up, began))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # callers got the exception
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
        self._answers[key] = began, answer
        self._answers.move_to_end(key)
        # Forget answers beyond the size and expired ones, because an answer may be large.
        over = self._clock() - self._seconds
        while len(self._answers) > self._size or (self._answers and next(iter(self._answers.values()))[0] <= over):
            self._answers.popitem(last=False)
        return answer
