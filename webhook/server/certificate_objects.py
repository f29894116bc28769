"""The objects that certificates are kept in, read and written with the process's one Kubernetes client."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

from certs.source import CertificateError, Json, JsonPatch, Outdated
from webhook.kube.client import Client
from webhook.kube.errors import ApiError, Conflict, Gone, Invalid, NotFound
from webhook.kube.wire import Event, metadata_of

FIELD_MANAGER = "gpu-tiers-certs"
REQUEST_SECONDS = 15.0
BROKEN_WATCH_SECONDS = 1.0
ANY_VERSION = ""
"""Watched from here, an object that exists is told first as it is now."""


class CertificateObjects:
    """The Protocol `certs.source.Objects` on a real API server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, collection: str, name: str) -> Json | None:
        """The object, or None where there is none."""
        with _errors_of_certs():
            try:
                return await self._client.get(f"{collection}/{name}", seconds=REQUEST_SECONDS)
            except NotFound:
                return None

    async def patch(self, collection: str, name: str, body: Json | JsonPatch) -> Json:
        """Apply a merge patch or a JSON patch; the object as it is now. Raises Outdated."""
        outdated = (Conflict, Invalid) if isinstance(body, list) else Conflict
        with _errors_of_certs():
            try:
                return await self._client.patch(
                    f"{collection}/{name}", body, manager=FIELD_MANAGER, seconds=REQUEST_SECONDS
                )
            except outdated as error:
                raise Outdated(str(error)) from error

    async def changed(self, collection: str, name: str, *, since: str | None, within: float) -> None:
        """Return when the object differs from version `since`, after `within` seconds, or soon after the watch ends.

        A version may be too old to watch from, after a restart of the API server or many changes of other objects.
        """
        try:
            async with asyncio.timeout(within):
                with _errors_of_certs():
                    try:
                        await self._change(collection, name, since, start=since or ANY_VERSION)
                    except Gone:
                        await self._change(collection, name, since, start=ANY_VERSION)
        except TimeoutError:
            return

    async def _change(self, collection: str, name: str, since: str | None, start: str) -> None:
        """The fieldSelector is what lets RBAC's resourceNames allow a watch."""
        selector = {"fieldSelector": f"metadata.name={name}"}
        async with self._client.watch(collection, start, selector) as events:
            if await _differs(events, since):
                return
        # A watch that ends at once (the API server stops) must not become a busy loop.
        await asyncio.sleep(BROKEN_WATCH_SECONDS)


async def _differs(events: AsyncIterator[Event], since: str | None) -> bool:
    """Wait for an event of another version than `since`; False where the watch ends before."""
    async for event in events:
        if event.type != "BOOKMARK" and metadata_of(event.object).resource_version != since:
            return True
    return False


@contextmanager
def _errors_of_certs() -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        raise CertificateError(str(error)) from error
