"""Keeps lists of all objects of a kind and lists of some of them apart: the older of two must not be the last word."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Listing:
    """A list of all and lists of parts exclude each other; parts are listed side by side."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._turn = asyncio.Lock()
        self._parts = 0

    @asynccontextmanager
    async def of_all(self) -> AsyncIterator[None]:
        """From the request of a list of all until it is handed on."""
        async with self._turn, self._lock:
            yield

    @asynccontextmanager
    async def of_a_part(self) -> AsyncIterator[None]:
        """The same for a list of some."""
        async with self._turn:
            if not self._parts:
                await self._lock.acquire()
            self._parts += 1
        try:
            yield
        finally:
            self._parts -= 1
            if not self._parts:
                self._lock.release()
