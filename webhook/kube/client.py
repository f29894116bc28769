"""Requests to the API server: get, list, watch, create, replace, patch, delete. Every one has a timeout.

Answers are decoded as far as a list or a watch needs, and the objects themselves stay bytes. Names in a path come from
tenants, so they are checked, or they could lead to other objects. Source:
https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-uris
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec

from webhook.kube.errors import Failed, TooLong, Unreachable, failure
from webhook.objects.refusal import Unreadable
from webhook.objects.view import Tree

JSON = "application/json"
RFC_3339 = "%Y-%m-%dT%H:%M:%SZ"
"""The format of a time in an object, for strftime of a time in UTC."""


class ApiRequest(msgspec.Struct, frozen=True):
    """A request to a server. `body` is sent as JSON of that `content_type`."""

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
    """A page of a list, its objects still bytes. An empty list of PartialObjectMetadata has null items."""

    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[msgspec.Raw] | None = None


class Event(msgspec.Struct):
    """One line of a watch: ADDED, MODIFIED, DELETED, BOOKMARK or ERROR, and the object still bytes."""

    type: str
    object: msgspec.Raw


class ObjectMeta(msgspec.Struct, rename="camel"):
    """The metadata that identify an object and its state."""

    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def path(self) -> str:
        return f"{self.namespace}/{self.name}"


class _Object(msgspec.Struct):
    metadata: ObjectMeta = msgspec.field(default_factory=ObjectMeta)


class _Error(msgspec.Struct):
    code: int = 500


def warning_text(header: str) -> str:
    """Return the text of a Warning header, such as `299 - "be \\"careful\\""`."""
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
    """Yield the events of a watch. Raises the error with which the API server ends it."""
    async for line in lines(pieces):
        event = _decoded(line, path, Event)
        if event.type == "ERROR":
            raise failure("WATCH", path, _decoded(event.object, path, _Error).code, bytes(event.object))
        yield event


def metadata_of(raw: msgspec.Raw) -> ObjectMeta:
    """Return the metadata of an object from a list or a watch. Raises Failed if it is not an object.

    Failed makes a reflector list again, because a watch from the same version would bring the same object.
    """
    try:
        return msgspec.json.decode(raw, type=_Object).metadata
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Failed(f"metadata of an object can't be read: {error}", 0) from None


async def lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield whole lines of any length. A last line without an end was cut off, and is dropped."""
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


_SEGMENT = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?")


def path(api_version: str, plural: str, namespace: str | None = None, name: str | None = None) -> str:
    """Return the path of an object, or of a list if `name` is None. `api_version` is such as "v1" or "apps/v1".

    Raises Unreadable if a part is not a valid name, because an owner reference may be "../secrets/x".
    """
    group, _, version = api_version.rpartition("/")
    parts = ["apis", _checked(group), _checked(version)] if group else ["api", _checked(version)]
    parts += ["namespaces", _checked(namespace)] if namespace is not None else []
    parts += [plural]
    parts += [_checked(name)] if name is not None else []
    return "/" + "/".join(parts)


def _checked(part: str) -> str:
    if _SEGMENT.fullmatch(part) is None:
        raise Unreadable(f'"{part[:60]}" is not a valid name in the Kubernetes API')
    return part


if TYPE_CHECKING:  # its libraries take as long as all other imports of a command
    from webhook.kube.connection import Connection

JsonPatch = list[Tree]

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
"""Accept headers for metadata: https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations"""

FIELD_MANAGER = "gpu-tiers"
"""The manager of the fields that we write, in managedFields."""

LOOKUP_SECONDS = 2.0
"""Seconds for one look-up of a review, because the webhook has 5 s in all."""
PAGE_SECONDS = 30.0
PAGE_SIZE = 500
SMALLER = 25
"""The divisor of the page size if a page is too long: 20 of the largest objects are 30 MiB."""
WATCH_SECONDS = 300
"""Seconds after which the API server ends a watch."""
SILENCE_SECONDS = 150.0
"""Seconds after which a silent watch counts as dead, because bookmarks come about once a minute."""


class Client:
    """One API server. Paths are those of `path`; every method raises ApiError and nothing else."""

    def __init__(self, connection: "Connection") -> None:
        self._api = connection

    @classmethod
    async def connect(cls, kubeconfig: Path | None = None, context: str | None = None) -> Self:
        from webhook.kube import connection  # noqa: PLC0415 - see above

        return cls(await connection.connect(kubeconfig, context))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._api.close()

    def now(self) -> float:
        """Return the time of the API server's clock, in seconds since 1970."""
        return self._api.clock.now()

    async def get(self, path: str, *, seconds: float = LOOKUP_SECONDS, accept: str = JSON) -> Tree:
        return tree_of(await self._api.send(ApiRequest("GET", path, accept=accept), seconds), path)

    async def list_pages(
        self, path: str, params: Mapping[str, str] | None = None, *, metadata_only: bool = False
    ) -> AsyncIterator[Page]:
        """Yield all pages of a list, smaller ones if objects are large, because any user may create hundreds of these.

        Raises Gone if reading takes longer than the API server keeps the list's version.
        """
        accept, size = METADATA_LIST if metadata_only else JSON, PAGE_SIZE
        query = dict(params or {})
        while True:
            query["limit"] = str(size)
            try:
                page = page_of(await self._api.send(ApiRequest("GET", path, query, accept=accept), PAGE_SECONDS), path)
            except TooLong:
                if size == 1:
                    raise
                size = max(size // SMALLER, 1)
                continue
            yield page
            if not page.metadata.continue_:
                return
            query["continue"] = page.metadata.continue_

    @asynccontextmanager
    async def watch(
        self, path: str, resource_version: str, params: Mapping[str, str] | None = None, *, metadata_only: bool = False
    ) -> AsyncIterator[AsyncIterator[Event]]:
        query = {"timeoutSeconds": str(WATCH_SECONDS), **(params or {}), "watch": "true"}
        query |= {"allowWatchBookmarks": "true", "resourceVersion": resource_version}
        request = ApiRequest("GET", path, query, accept=METADATA if metadata_only else JSON)
        async with self._api.stream(request, SILENCE_SECONDS) as pieces:
            yield events_of(pieces, path)

    async def create(self, path: str, body: Tree, *, seconds: float = LOOKUP_SECONDS) -> Tree:
        """Create an object in the list at `path`, and return it as stored. Raises Conflict if its name is taken."""
        request = ApiRequest("POST", path, {"fieldManager": FIELD_MANAGER}, body)
        return tree_of(await self._api.send(request, seconds), path)

    async def try_create(self, path: str, body: Tree, warnings: list[str], *, seconds: float) -> None:
        """Create an object in a dry run, which stores nothing. `warnings` gets warnings, also those of a refusal."""
        headers: list[str] = []
        params = {"fieldManager": FIELD_MANAGER, "dryRun": "All"}
        try:
            await self._api.send(ApiRequest("POST", path, params, body), seconds, headers)
        finally:
            warnings += map(warning_text, headers)

    async def replace(self, path: str, body: Tree, *, seconds: float = LOOKUP_SECONDS) -> Tree:
        """Replace the object at `path`, and return it as stored.

        Raises Conflict if the stored object has another resourceVersion than `body`.
        """
        request = ApiRequest("PUT", path, {"fieldManager": FIELD_MANAGER}, body)
        return tree_of(await self._api.send(request, seconds), path)

    async def patch(
        self,
        path: str,
        body: Tree | JsonPatch,
        *,
        manager: str = FIELD_MANAGER,
        seconds: float = LOOKUP_SECONDS,
        strategic: bool = False,
    ) -> Tree:
        """Apply a merge patch (RFC 7386, a dict) or a JSON patch (RFC 6902, a list), and return the object.

        `strategic`: a dict is a strategic merge patch, which names the items of a list by their keys.

        Raises Conflict if a merge patch has another resourceVersion than the object, and Invalid if a `test` of a JSON
        patch does not hold.
        """
        of_a_dict = STRATEGIC_PATCH if strategic else MERGE_PATCH
        content_type = JSON_PATCH if isinstance(body, list) else of_a_dict
        request = ApiRequest("PATCH", path, {"fieldManager": manager}, body, content_type)
        return tree_of(await self._api.send(request, seconds), path)

    async def delete(self, path: str, *, version: str, uid: str = "", grace: int | None = None) -> None:
        """Delete an object. Raises Conflict if it has another resourceVersion than `version`, or another `uid`.

        `grace` is in seconds; None for the object's own grace period.
        """
        preconditions = {"resourceVersion": version} | ({"uid": uid} if uid else {})
        in_time = {} if grace is None else {"gracePeriodSeconds": grace}
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions, **in_time}
        await self._api.send(ApiRequest("DELETE", path, body=options), LOOKUP_SECONDS)
