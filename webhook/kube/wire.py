"""Decodes the answers of an API server as far as a list or a watch needs: the objects themselves stay bytes."""

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec

from webhook.kube.errors import Failed, Unreachable, failure
from webhook.objects.view import Tree

JSON = "application/json"
RFC_3339 = "%Y-%m-%dT%H:%M:%SZ"
"""A time in an object, for strftime of one in UTC."""


class ApiRequest(msgspec.Struct, frozen=True):
    """A request to a server: `body` is sent as JSON of that `content_type`."""

    method: str
    path: str
    params: Mapping[str, str] = {}
    body: object = None
    content_type: str = JSON
    accept: str = JSON


class ListMeta(msgspec.Struct, rename="camel"):
    """A list's metadata; `continue_` is empty on the last page."""

    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class Page(msgspec.Struct):
    """A page of a list, its objects still bytes. An empty list of metadata alone has null items."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


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


def warning_text(header: str) -> str:
    """The text of a Warning header, such as `299 - "be \\"careful\\""`."""
    return re.sub(r"\\(.)", r"\1", header.partition('"')[2].removesuffix('"'))


def tree_of(body: bytes, path: str) -> Tree:
    tree = _decoded(body, path, Any)
    return tree if isinstance(tree, dict) else {}


def page_of(body: bytes, path: str) -> Page:
    page: Page = _decoded(body, path, Page)
    return page


async def listed_objects(pages: AsyncIterator[Page]) -> AsyncIterator[msgspec.Raw]:
    async for page in pages:
        for raw in page.items or ():
            yield raw


async def events_of(pieces: AsyncIterator[bytes], path: str) -> AsyncIterator[Event]:
    """The events of a watch. Raises the error that the API server ends it with."""
    async for line in lines(pieces):
        event = _decoded(line, path, Event)
        if event.type == "ERROR":
            raise failure("WATCH", path, _decoded(event.object, path, _Error).code, bytes(event.object))
        yield event


def metadata_of(raw: msgspec.Raw) -> ObjectMeta:
    """The metadata of an object that a list or a watch brought. Raises Failed where it is no object.

    To watch on from the same version would bring it again.
    """
    try:
        return msgspec.json.decode(raw, type=_Object).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Failed(f"metadata of an object can't be read: {error}", 0) from None


async def lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Whole lines of any length. A last line without an end was cut off, and is no line."""
    parts: list[bytes] = []
    async for piece in pieces:
        *ended, rest = piece.split(b"\n")
        for line in ended:
            yield b"".join([*parts, line])
            parts = []
        if rest:
            parts.append(rest)


def _decoded(body: bytes | msgspec.Raw, path: str, shape: Any) -> Any:
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreachable(f"{path}: the answer is not what a Kubernetes API sends: {error}") from None
