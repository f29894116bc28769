"""Keeps the answers of look-ups for a short while, and asks only once at a time."""

import asyncio
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
        self._asked: dict[K, asyncio.Task[V]] = {}

    async def get(self, key: K, look_up: Callable[[], Awaitable[V]]) -> V:
        """The answer that is kept, else that of `look_up`."""
        kept = self._kept.get(key)
        if kept is not None and kept[0] > self._clock():
            self._kept.move_to_end(key)
            return kept[1]
        return await asyncio.shield(self._asked.get(key) or self._ask(key, look_up))

    async def close(self) -> None:
        """End the look-ups under way."""
        for task in list(self._asked.values()):
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)

    def _ask(self, key: K, look_up: Callable[[], Awaitable[V]]) -> asyncio.Task[V]:
        task = self._asked[key] = asyncio.ensure_future(self._answer(key, look_up))
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # it was told to whoever waited
        return task

    async def _answer(self, key: K, look_up: Callable[[], Awaitable[V]]) -> V:
        try:
            answer = await look_up()
        finally:
            del self._asked[key]
        self._kept[key] = (self._clock() + self._seconds, answer)
        self._kept.move_to_end(key)
        if len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return answer
