"""An API server whose objects can be read at once, and whose watches bring them when the test says so."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from webhook.kube.client import Event, Page
from webhook.kube.errors import NotFound

Tree = dict[str, Any]
NAMESPACES = "/api/v1/namespaces"


class LaggingApi:
    """A fake of `webhook.kube.client.Client`; what stands in `listed` is there from the start."""

    def __init__(self, listed: Mapping[str, list[Tree]]) -> None:
        self._listed = listed
        self._there: dict[str, Tree] = {}
        self._coming: dict[str, asyncio.Queue[Event]] = {}
        self.reads: list[str] = []

    def make(self, namespace: Tree) -> None:
        """Create it; no watch has brought it yet."""
        self._there[f"{NAMESPACES}/{namespace['metadata']['name']}"] = namespace

    def delete(self, namespace: Tree) -> None:
        del self._there[f"{NAMESPACES}/{namespace['metadata']['name']}"]

    async def bring(self, kind: str, found: Tree, path: str = NAMESPACES) -> None:
        """The watch tells of it: ADDED, MODIFIED or DELETED."""
        self._coming[path].put_nowait(Event(kind, _raw(found)))
        for _ in range(10):
            await asyncio.sleep(0)

    async def get(self, path: str, **_: object) -> Tree:
        self.reads.append(path)
        await asyncio.sleep(0)
        if path not in self._there:
            raise NotFound(f"GET {path}: HTTP 404", 404)
        return self._there[path]

    async def list_pages(self, path: str, *_: object, **__: object) -> AsyncIterator[Page]:
        yield Page(items=[_raw(each) for each in self._listed.get(path, [])])

    @asynccontextmanager
    async def watch(self, path: str, *_: object, **__: object) -> AsyncIterator[AsyncIterator[Event]]:
        coming = self._coming.setdefault(path, asyncio.Queue())

        async def events() -> AsyncIterator[Event]:
            while True:
                yield await coming.get()

        yield events()


def _raw(tree: Tree) -> msgspec.Raw:
    return msgspec.Raw(json.dumps(tree).encode())
