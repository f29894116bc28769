"""Follows kinds of objects, each by a paged list and then a watch, and reduces each object as soon as it is read.

No deletion is lost: a watch resumes after the last event, and if that is no longer possible, a new list replaces all.
Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes

A `Store` has the objects of one reflector, and `Reflectors` begin and end together.
"""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Self, TypeVar

import msgspec

from webhook.kube.client import Client, ObjectMeta, metadata_of
from webhook.kube.errors import ApiError, Failed, Gone

log = logging.getLogger(__name__)

T = TypeVar("T")

FIRST_DELAY = 0.2
LONGEST_DELAY = 5.0
"""Seconds between attempts, doubled from the first to the longest, each half to one and a half times as long. They are
short, because until an attempt succeeds reviews are decided by old objects."""
TOO_MANY = 429
BREATH = 50
"""Objects between two pauses for other work, so that reviews go on while a long list is read."""


class Source(msgspec.Struct, frozen=True):
    """A list to follow. `key` identifies the objects, by uid, by name if names are unique, or by namespace/name.

    `metadata_only`: only the metadata of objects are sent.
    """

    path: str
    params: Mapping[str, str] = msgspec.field(default_factory=dict)
    key: Literal["name", "uid", "path"] = "name"
    metadata_only: bool = False


class Listing:
    """A lock between a list of all objects and lists of some, so that the older one never overwrites the newer one.

    Lists of some may run at the same time.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._entry = asyncio.Lock()
        self._parts = 0

    @asynccontextmanager
    async def of_all(self) -> AsyncIterator[None]:
        """Lock from the request of a list of all objects until it is passed on."""
        async with self._entry, self._lock:
            yield

    @asynccontextmanager
    async def of_a_part(self) -> AsyncIterator[None]:
        """Lock for a list of some objects."""
        async with self._entry:
            if not self._parts:
                await self._lock.acquire()
            self._parts += 1
        try:
            yield
        finally:
            self._parts -= 1
            if not self._parts:
                self._lock.release()


@dataclass(eq=False)
class Reflector(Generic[T]):
    """Lists and watches a source until it is cancelled, for a store or a ledger.

    `project` reduces an object's bytes to a value; None is as if the object did not exist. `listing` is locked from the
    request of a list until it is passed on, so that no older list follows meanwhile. `on_change` gets a key and its new
    value, None once it is gone; `on_relist` gets all that exist.
    """

    client: Client
    source: Source
    project: Callable[[msgspec.Raw], Awaitable[T | None]]
    on_change: Callable[[str, T | None], None]
    on_relist: Callable[[Mapping[str, T]], None]
    _version: str = ""
    _failures: int = 0
    _relist_wanted: bool = False
    _watching: asyncio.Timeout | None = None
    listing: Listing = field(default_factory=Listing)
    synced: asyncio.Event = field(default_factory=asyncio.Event)
    problem: str | None = None
    heard: float = 0.0
    """The monotonic time of the last event or list. A bookmark comes about once a minute."""

    def relist(self) -> None:
        """Read everything again at once, because `project` has changed."""
        if self._watching is not None and not self._relist_wanted:
            self._watching.reschedule(0)  # only once, because a time-out that is over can't be moved
        self._relist_wanted = True

    async def run(self) -> None:
        while True:
            try:
                if not self._version:
                    async with self.listing.of_all():
                        await self.read_once()
                await self._watch()
                await asyncio.sleep(random.uniform(0, 1))  # noqa: S311 - spreads load, hides nothing
            except ApiError as error:
                await self._failed(error)
            except Exception as error:
                log.exception("watch broken", {"path": self.source.path})
                await self._failed(Failed(f"{self.source.path}: {error!r}", 0))

    async def _failed(self, error: ApiError) -> None:
        if isinstance(error, Failed) and error.code != TOO_MANY:
            self._version = ""  # the API server may refuse this version
        if self.problem is None and not isinstance(error, Gone):
            log.warning("watch failed", {"path": self.source.path, "error": str(error)})
        self.problem = str(error)
        delay = min(FIRST_DELAY * 2 ** min(self._failures, 16), LONGEST_DELAY)
        self._failures += 1
        await asyncio.sleep(delay * random.uniform(0.5, 1.5))  # noqa: S311

    async def read_once(self) -> None:
        """Read everything that is there now. Raises ApiError."""
        self._relist_wanted = False
        found: dict[str, T] = {}
        version = ""
        source = self.source
        pages = self.client.list_pages(source.path, source.params, metadata_only=source.metadata_only)
        async for page in pages:
            version = page.metadata.resource_version
            for index, raw in enumerate(page.items or ()):
                value = await self.project(raw)
                if value is not None:
                    found[self._key(metadata_of(raw))] = value
                if index % BREATH == 0:
                    await asyncio.sleep(0)
        self.on_relist(found)
        self._version, self.heard = version, time.monotonic()
        self.synced.set()

    async def _watch(self) -> None:
        """Take events until the API server ends the watch, or until a relist is wanted."""
        source = self.source
        watch = self.client.watch(source.path, self._version, source.params, metadata_only=source.metadata_only)
        try:
            async with asyncio.timeout(0 if self._relist_wanted else None) as self._watching, watch as events:
                self.problem, self._failures = None, 0
                async for event in events:
                    metadata = metadata_of(event.object)
                    if event.type == "DELETED":
                        self.on_change(self._key(metadata), None)
                    elif event.type in ("ADDED", "MODIFIED"):
                        self.on_change(self._key(metadata), await self.project(event.object))
                    self._version, self.heard = metadata.resource_version, time.monotonic()
        except TimeoutError:
            self._version = ""
        finally:
            self._watching = None

    def _key(self, metadata: ObjectMeta) -> str:
        return str(getattr(metadata, self.source.key))


PATIENCE = 10.0
"""Seconds between two log entries about one wait."""


class Reflectors:
    """Runs reflectors in the background. Use it as `async with`, or start and stop."""

    def __init__(self, *reflectors: Reflector[Any]) -> None:
        self._reflectors = reflectors
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def start(self) -> None:
        self._tasks = [asyncio.create_task(reflector.run()) for reflector in self._reflectors]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def read_once(self) -> None:
        """Read everything, and follow nothing. Raises ApiError."""
        for reflector in self._reflectors:
            await reflector.read_once()

    @property
    def started(self) -> bool:
        return bool(self._tasks)

    @property
    def synced(self) -> bool:
        """True once everything that is watched has been read."""
        return all(reflector.synced.is_set() for reflector in self._reflectors)

    async def wait_synced(self) -> None:
        for reflector in self._reflectors:
            await reflector.synced.wait()

    def problems(self) -> list[str]:
        """Return a sentence for each watch that fails now."""
        return [reflector.problem for reflector in self._reflectors if reflector.problem is not None]

    @property
    def silent_seconds(self) -> float:
        """The seconds since the last event of the watch that was silent longest; 0 until the first list."""
        now = time.monotonic()
        return max((now - reflector.heard for reflector in self._reflectors if reflector.heard), default=0.0)


async def patiently(what: str, done: Awaitable[None], problems: Callable[[], list[str]]) -> None:
    """Wait until `done`, and log every PATIENCE seconds that `what` is still waited for."""
    waiting = asyncio.ensure_future(done)
    while not (await asyncio.wait([waiting], timeout=PATIENCE))[0]:
        log.warning("still waiting", {"what": what, "problems": problems()})
    waiting.result()


class Store(Generic[T]):
    """Objects by the key of their source, as they were seen last. `changed` is called after each change."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self.objects: dict[str, T] = {}
        self._changed = changed

    def get(self, name: str) -> T | None:
        return self.objects.get(name)

    def update(self, name: str, found: T | None) -> None:
        """Note an object as found; None if it is gone."""
        if found is None:
            self.objects.pop(name, None)
        else:
            self.objects[name] = self.stored(name, found)
        self._changed()

    def replace(self, found: Mapping[str, T]) -> None:
        """Note that these objects exist and no others."""
        self.objects = {name: self.stored(name, value) for name, value in found.items()}
        self._changed()

    def stored(self, name: str, found: T) -> T:  # noqa: ARG002 - for stores that need it
        """Return the value to store. A store may combine it with the one that it has."""
        return found


def storing(
    client: Client, source: Source, project: Callable[[msgspec.Raw], T | None], store: Store[T]
) -> Reflector[T]:
    """Return a reflector that updates a store. `project` reduces an object's bytes to the stored value."""

    async def projected(raw: msgspec.Raw) -> T | None:
        return project(raw)

    return Reflector(client, source, projected, store.update, store.replace)
