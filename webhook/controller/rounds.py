"""Does something again whenever it is woken, not too often, and now and then unasked."""

import asyncio
from collections.abc import Awaitable, Callable


class Rounds:
    """`interval`: seconds between two rounds at least. `recheck`: after so many one comes unasked."""

    def __init__(self, interval: float, recheck: float) -> None:
        self._interval = interval
        self._recheck = recheck
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Something has changed."""
        self._woken.set()

    async def run(self, do: Callable[[], Awaitable[None]]) -> None:
        """For ever."""
        while True:
            self._woken.clear()
            await do()
            await asyncio.sleep(self._interval)
            await self._until_woken()

    async def _until_woken(self) -> None:
        try:
            await asyncio.wait_for(self._woken.wait(), self._recheck)
        except TimeoutError:
            return
