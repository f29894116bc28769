"""What stands over reflectors: a store that one fills, and several that begin and end together.

A store has all objects of one kind by name, reduced to what is needed of them. A wait for reflectors says what it waits
for.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import msgspec

from webhook.kube.client import Client
from webhook.kube.reflector import Reflector, Source

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds after which a wait says what it waits for."""


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
        self._tasks = [asyncio.create_task(reflector.run()) for reflector in self._reflectors]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def started(self) -> bool:
        return bool(self._tasks)

    @property
    def synced(self) -> bool:
        """Tells whether everything that is watched has been read once."""
        return all(reflector.synced.is_set() for reflector in self._reflectors)

    async def wait_synced(self) -> None:
        for reflector in self._reflectors:
            await reflector.synced.wait()

    def problems(self) -> list[str]:
        """A sentence for each watch that fails now."""
        return [reflector.problem for reflector in self._reflectors if reflector.problem is not None]

    @property
    def silent_seconds(self) -> float:
        """How long the watch that was silent longest has said nothing."""
        now = time.monotonic()
        return max((now - reflector.heard for reflector in self._reflectors), default=0.0)


async def patiently(what: str, done: Awaitable[None], problems: Callable[[], list[str]]) -> None:
    """Wait, and say now and then what for."""
    waiting = asyncio.ensure_future(done)
    while not (await asyncio.wait([waiting], timeout=PATIENCE))[0]:
        log.warning("still waiting", {"what": what, "problems": problems()})
    waiting.result()


T = TypeVar("T")


class Store(Generic[T]):
    """Objects by name, as they were seen last. `changed` is called after each change."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.objects: dict[str, T] = {}
        self._changed = changed

    def get(self, name: str) -> T | None:
        return self.objects.get(name)

    def update(self, name: str, found: T | None) -> None:
        """An object is as found; None: it is gone."""
        if found is None:
            self.objects.pop(name, None)
        else:
            self.objects[name] = self.kept(name, found)
        self._changed()

    def replace(self, found: Mapping[str, T]) -> None:
        """These objects exist and no others."""
        self.objects = {name: self.kept(name, value) for name, value in found.items()}
        self._changed()

    def kept(self, name: str, found: T) -> T:  # noqa: ARG002 - for stores that need it
        """The part of an object that is kept; a store may combine it with what it kept before."""
        return found


class Informer(Generic[T]):
    """Keeps a store as a source is: `project` makes of an object's bytes what the store gets."""

    def __init__(self, client: Client, source: Source, project: Callable[[msgspec.Raw], T], store: Store[T]) -> None:
        async def projected(raw: msgspec.Raw) -> T:
            return project(raw)

        self.store = store
        self.reflector = Reflector(client, source, projected, store.update, store.replace)
