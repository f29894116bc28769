"""Helpers of tests that serve connections in their own loop."""

import asyncio
from collections.abc import Collection
from typing import Protocol


class Socket(Protocol):
    """One that says so when it is closed."""

    def fileno(self) -> int:
        """-1 where it is closed."""


async def all_closed(sockets: Collection[Socket]) -> None:
    """Wait until the loop has closed them."""
    async with asyncio.timeout(10):
        while any(each.fileno() != -1 for each in sockets):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)


async def end_of_connections() -> None:
    """Wait until what serves them has ended: a polite end of TLS takes a few turns of the loop.

    What is open when the loop ends is complained of in whichever test runs when the garbage is collected.
    """
    serving = asyncio.all_tasks() - {asyncio.current_task()}
    if serving:
        await asyncio.wait(serving, timeout=10)
    await asyncio.sleep(0)  # what they closed is closed at the loop's next turn
