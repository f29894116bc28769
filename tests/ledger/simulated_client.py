"""One process's way to the simulated API server, in the place of `webhook.kube.client.Client`.

A test decides what becomes of each request, may have each wait until it says so (a process that is paused between a
read and a write), and decides how far each watch has come.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto

from tests.ledger.answers import merged, raw, selection, unversioned
from tests.ledger.history import Change, Tree, copied
from tests.ledger.simulated_api import Place, SimulatedApi, place_of
from tests.ledger.view import View
from tests.ledger.virtual_time import settle
from webhook.kube.client import LOOKUP_SECONDS, Event, ListMeta, Page
from webhook.kube.errors import Conflict, Gone, Unreachable

PATIENCE = 30.0
"""Seconds for which a process that is called off waits for its answers."""


class Fate(Enum):
    """The outcome of a request."""

    ANSWERED = auto()
    CONFLICT = auto()
    """A write fails with 409, and nothing was stored."""
    LOST = auto()
    """It is done, and the answer never comes."""
    LATE = auto()
    """No answer comes, and it is done when the test says `commit_late`."""
    AWAY = auto()
    """Nobody listens."""


@dataclass
class Request:
    """A request on its way. `go` it with a fate; until then it waits."""

    method: str
    path: str
    body: Tree | None = None
    seconds: float = LOOKUP_SECONDS
    fate: asyncio.Future[Fate] = field(default_factory=asyncio.Future)

    @property
    def place(self) -> Place:
        return place_of(self.path)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class SimulatedClient:
    """The client of a ledger and a leader. `fates` decides the outcome of each request."""

    def __init__(self, api: SimulatedApi) -> None:
        self.api = api
        self.fates: Callable[[Request], Fate] = lambda _: Fate.ANSWERED
        self.waiting: list[Request] = []
        self.late: list[Request] = []
        self._paused: tuple[str, ...] = ()
        self._lists: list[asyncio.Future[None]] = []
        self._lists_paused = False
        self._views: dict[str, View] = {}

    def view(self, kind: str) -> View:
        """Return how far this process has seen a kind."""
        history = self.api.history(kind)
        return self._views.setdefault(kind, View(history, history.version))

    def now(self) -> float:
        """Return the time of the API server's clock."""
        return time.time()

    def hold(self, *requests: str) -> None:
        """Let requests wait whose method and path begin so; "" are all."""
        self._paused = requests

    def release(self) -> None:
        """Let all through that wait, and all that come."""
        self._paused = ()
        for request in [each for each in self.waiting if not each.fate.done()]:
            request.fate.set_result(self.fates(request))

    def hold_lists(self) -> None:
        """Keep the answers to lists from now on, as old as they get meanwhile."""
        self._lists_paused = True

    def answer_lists_at_once(self) -> None:
        """Keep no more of them than there are."""
        self._lists_paused = False

    def release_lists(self) -> None:
        """Bring the answers that were kept."""
        for answer in self._lists:
            answer.set_result(None)
        self._lists = []

    async def let(self, method: str, path: str = "", fate: Fate = Fate.ANSWERED) -> Request:
        """Let the one request through that waits and matches; what follows of it happens."""
        found = [each for each in self.waiting if each.method == method and path in each.path]
        assert found, f"no {method} {path} waits, only {[*map(str, self.waiting)]}"
        found[0].fate.set_result(fate)
        await settle()
        return found[0]

    def commit_late(self) -> None:
        """Do the writes whose answers are long given up; one that no longer fits comes to nothing."""
        for request in self.late:
            try:
                self._serve(request)
            except Conflict:
                continue
        self.late.clear()

    # --- the methods of webhook.kube.client.Client

    async def __aenter__(self) -> "SimulatedClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def close(self) -> None:
        return None

    async def get(self, path: str, *, seconds: float = LOOKUP_SECONDS) -> Tree:
        return await self._answer(Request("GET", path, seconds=seconds))

    async def create(self, path: str, body: Tree, *, seconds: float = LOOKUP_SECONDS, **_: object) -> Tree:
        return await self._answer(Request("POST", path, copied(body), seconds))

    async def replace(self, path: str, body: Tree, *, seconds: float = LOOKUP_SECONDS, **_: object) -> Tree:
        return await self._answer(Request("PUT", path, copied(body), seconds))

    async def patch(self, path: str, body: Tree, *, seconds: float = LOOKUP_SECONDS, **_: object) -> Tree:
        return await self._answer(Request("PATCH", path, copied(body), seconds))

    async def list_pages(
        self, path: str, params: Mapping[str, str] | None = None, *, metadata_only: bool = False
    ) -> AsyncIterator[Page]:
        """A list is the newest state; with a resourceVersion, of a cache, what this process's watches have shown."""
        await self._passed(Request("LIST", path, seconds=PATIENCE))
        place, query = place_of(path), params or {}
        view = self.view(place.kind)
        quorum = "resourceVersion" not in query
        version = view.history.version if quorum else view.position
        selects = selection(place.namespace, query)
        items = [raw(each, metadata_only) for each in view.history.at(version).values() if selects(each)]
        if self._lists_paused:
            self._lists.append(asyncio.get_running_loop().create_future())
            await self._lists[-1]
        yield Page(ListMeta(resource_version=str(version)), items)

    @asynccontextmanager
    async def watch(
        self, path: str, resource_version: str, params: Mapping[str, str] | None = None, *, metadata_only: bool = False
    ) -> AsyncIterator[AsyncIterator[Event]]:
        await self._passed(Request("WATCH", path, seconds=PATIENCE))
        place = place_of(path)
        view, selects = self.view(place.kind), selection(place.namespace, params or {})
        yield self._events(view, int(resource_version), selects, metadata_only=metadata_only)

    async def _events(
        self, view: View, since: int, selects: Callable[[Tree], bool], *, metadata_only: bool
    ) -> AsyncIterator[Event]:
        epoch, marks = view.epoch, view.bookmarks
        view.position = max(view.position, since)
        while True:
            if since < view.oldest or epoch <= view.expired:
                raise Gone("WATCH: HTTP 410, too old resource version", 410)
            if self.api.away or epoch != view.epoch:
                raise Unreachable("WATCH: broken off")
            change = self._next(view, since)
            if change is None and marks == view.bookmarks:
                await view.history.news()
                continue
            if change is None:
                marks = view.bookmarks
                yield Event("BOOKMARK", raw({"metadata": {"resourceVersion": str(since)}}, metadata_only=False))
                continue
            since, view.position = change.version, max(view.position, change.version)
            if (event := change.seen_by(selects)) is not None:
                yield Event(event[0], raw(event[1], metadata_only))

    def _next(self, view: View, since: int) -> Change | None:
        change = next(view.history.after(since), None)
        late = change is not None and view.limit is not None and change.version > max(view.limit, view.position)
        return None if late else change

    async def _answer(self, request: Request) -> Tree:
        fate = await self._passed(request)
        answer = self._serve(request)
        if fate is Fate.LOST:
            await asyncio.sleep(request.seconds)
            raise Unreachable(f"{request}: no answer in time")
        return answer

    async def _passed(self, request: Request) -> Fate:
        """Wait until the request is let through, and raise what it meets on its way."""
        is_paused = str(request).startswith(self._paused) if self._paused else False
        fate = await self._waited(request) if is_paused else self.fates(request)
        if fate is Fate.AWAY or self.api.away:
            raise Unreachable(f"{request}: connection refused")
        if fate is Fate.CONFLICT:
            raise Conflict(f"{request}: HTTP 409, the object has been modified", 409)
        if fate is Fate.LATE:
            self.late.append(request)
            await asyncio.sleep(request.seconds)
            raise Unreachable(f"{request}: no answer in time")
        return fate

    async def _waited(self, request: Request) -> Fate:
        self.waiting.append(request)
        try:
            return await request.fate
        finally:
            self.waiting.remove(request)

    def _serve(self, request: Request) -> Tree:
        place, body = request.place, request.body or {}
        match request.method:
            case "GET":
                return self.api.read(place)
            case "POST":
                return self.api.create(place, body)
            case "PATCH":
                return self.api.replace(place, merged(unversioned(self.api.read(place), body), body))
        return self.api.replace(place, body)
