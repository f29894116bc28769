"""Requests to the API server: get, list, watch, create, replace, patch. Every one has a timeout."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from webhook.kube import connection
from webhook.kube.connection import Connection
from webhook.kube.errors import Unreachable, failure

Tree = dict[str, Any]
JsonPatch = list[Tree]

MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"

FIELD_MANAGER = "gpu-tiers"
"""Who wrote a field, as managedFields says it."""

LOOKUP_SECONDS = 2.0
"""For one look-up on a review's way: the webhook has 5 s in all."""
PAGE_SECONDS = 30.0
PAGE_SIZE = 500
WATCH_SECONDS = 300
"""After this the API server ends a watch."""
SILENCE_SECONDS = 150.0
"""A watch that says nothing for so long is dead: bookmarks come about once a minute."""


class ListMeta(msgspec.Struct, rename="camel"):
    """A list's metadata; `continue_` is empty on the last page."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct):
    """A page of a list, its objects still bytes."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] = []


class Event(msgspec.Struct):
    """One line of a watch: ADDED, MODIFIED, DELETED or BOOKMARK, and the object still bytes."""

    type: str
    object: msgspec.Raw


class ObjectMeta(msgspec.Struct, rename="camel"):
    """What tells one object, and one state of it, from another."""

    name: str = ""
    uid: str = ""
    resource_version: str = ""


class _Object(msgspec.Struct):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class _Error(msgspec.Struct):
    code: int = 500


class Client:
    """One API server. Paths are those of `kube.paths`; every method raises ApiError and nothing else."""

    def __init__(self, way: Connection) -> None:
        self._way = way

    @classmethod
    async def connect(cls, kubeconfig: Path | None = None) -> Self:
        """Connect as `connection.connect` does."""
        return cls(await connection.connect(kubeconfig))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._way.close()

    async def get(self, path: str, *, seconds: float = LOOKUP_SECONDS) -> Tree:
        """One object."""
        return _tree(await self._way.send("GET", path, {}, seconds), path)

    async def list_pages(self, path: str, params: Mapping[str, str] | None = None) -> AsyncIterator[Page]:
        """All pages of a list. Raises Gone where it changed for too long while it was read."""
        query = {**(params or {}), "limit": str(PAGE_SIZE)}
        while True:
            page = _decoded(await self._way.send("GET", path, query, PAGE_SECONDS), path, Page)
            yield page
            if not page.metadata.continue_:
                return
            query["continue"] = page.metadata.continue_

    @asynccontextmanager
    async def watch(
        self, path: str, resource_version: str, params: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[Event]]:
        """Events after a resourceVersion, until the API server ends the watch. Raises Gone where that is too old."""
        query = {
            **(params or {}),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        async with self._way.stream(path, query, SILENCE_SECONDS) as pieces:
            yield _events(pieces, path)

    async def create(
        self, path: str, body: Tree, *, manager: str = FIELD_MANAGER, seconds: float = LOOKUP_SECONDS
    ) -> Tree:
        """Create an object in the list at `path`; the object as it was stored. Conflict where its name is taken."""
        return _tree(await self._way.send("POST", path, {"fieldManager": manager}, seconds, body), path)

    async def replace(
        self, path: str, body: Tree, *, manager: str = FIELD_MANAGER, seconds: float = LOOKUP_SECONDS
    ) -> Tree:
        """Put an object in the place of the one at `path`; the object as it was stored.

        Conflict where the stored one is no longer at the resourceVersion that `body` bears.
        """
        return _tree(await self._way.send("PUT", path, {"fieldManager": manager}, seconds, body), path)

    async def patch(
        self, path: str, body: Tree | JsonPatch, *, manager: str = FIELD_MANAGER, seconds: float = LOOKUP_SECONDS
    ) -> Tree:
        """Apply a merge patch (RFC 7386, a dict) or a JSON patch (RFC 6902, a list); the object as it is now.

        Conflict where a merge patch bears another resourceVersion than the object, Invalid where a `test` of a JSON
        patch does not hold.
        """
        content_type = JSON_PATCH if isinstance(body, list) else MERGE_PATCH
        return _tree(await self._way.send("PATCH", path, {"fieldManager": manager}, seconds, body, content_type), path)


async def _events(pieces: AsyncIterator[bytes], path: str) -> AsyncIterator[Event]:
    async for line in _lines(pieces):
        event = _decoded(line, path, Event)
        if event.type == "ERROR":
            raise failure("WATCH", path, _decoded(event.object, path, _Error).code, bytes(event.object))
        yield event


def metadata_of(raw: msgspec.Raw) -> ObjectMeta:
    """The metadata of an object that a list or a watch brought. Raises Unreachable where it is no object."""
    found: _Object = _decoded(raw, "metadata", _Object)
    return found.metadata


def _tree(body: bytes, path: str) -> Tree:
    tree = _decoded(body, path, Any)
    return tree if isinstance(tree, dict) else {}


def _decoded(body: bytes | msgspec.Raw, path: str, shape: Any) -> Any:
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreachable(f"{path}: the answer is not what a Kubernetes API sends: {error}") from None


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines of any length. A last line without an end was cut off, and is no line."""
    parts: list[bytes] = []
    async for piece in pieces:
        *ended, rest = piece.split(b"\n")
        for line in ended:
            yield b"".join([*parts, line])
            parts = []
        if rest:
            parts.append(rest)
