"""Reflectors that begin and end together."""

import asyncio
from types import TracebackType
from typing import Any, Self

from webhook.kube.reflector import Reflector


class Reflectors:
    """Runs the reflectors of several informers beside other work. Use it as `async with`, or start and stop."""

    def __init__(self, *reflectors: Reflector[Any]) -> None:
        self._reflectors = reflectors
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def start(self) -> None:
        """Begin to watch; `wait_synced` tells when all has been read."""
        self._tasks = [asyncio.create_task(reflector.run()) for reflector in self._reflectors]

    async def stop(self) -> None:
        """End the watches."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def synced(self) -> bool:
        """Whether everything that is watched has been read once."""
        return all(reflector.synced.is_set() for reflector in self._reflectors)

    async def wait_synced(self) -> None:
        """Wait until `synced`."""
        for reflector in self._reflectors:
            await reflector.synced.wait()

    def problems(self) -> list[str]:
        """What can't be watched now, a sentence each."""
        return [reflector.problem for reflector in self._reflectors if reflector.problem is not None]
