"""Reads, watches and patches single API objects as plain dicts. Never lists, never creates, keeps nothing."""

import asyncio
import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from kubernetes.aio.client import ApiClient

Json = dict[str, Any]
JsonPatch = list[Json]

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
FIELD_MANAGER = "gpu-tiers-certs"
REQUEST_SECONDS = 15.0
BROKEN_WATCH_SECONDS = 1.0


class ApiError(Exception):
    """The API server refused (`status` is its HTTP code) or was not reached (`status` 0)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{message} (HTTP {status})" if status else message)
        self.status = status


class Objects:
    """The API server, one named object at a time, so that RBAC by resourceNames is enough."""

    def __init__(self, client: Any) -> None:
        self._client: ApiClient = client

    async def get(self, collection: str, name: str) -> Json | None:
        """The object, or None where there is none. `collection` is a path: /api/v1/namespaces/x/secrets."""
        async with self._call("GET", f"{collection}/{name}") as response:
            if response.status == 404:  # noqa: PLR2004 - HTTP Not Found
                return None
            return await _decoded(response)

    async def patch(self, collection: str, name: str, body: Json | JsonPatch) -> Json:
        """Apply a JSON merge patch (a dict) or a JSON patch (a list); the object as it is now."""
        content_type = JSON_PATCH if isinstance(body, list) else MERGE_PATCH
        path, query = f"{collection}/{name}", {"fieldManager": FIELD_MANAGER}
        async with self._call("PATCH", path, query, body=body, content_type=content_type) as response:
            return await _decoded(response)

    async def changed(self, collection: str, name: str, *, since: str | None, within: float) -> None:
        """Return when the object differs from resourceVersion `since` (None: was absent), or `within` seconds.

        The fieldSelector is what lets RBAC's resourceNames allow a watch.
        """
        query = {
            "watch": "true",
            "fieldSelector": f"metadata.name={name}",
            "timeoutSeconds": str(math.ceil(within) + 1),
            "resourceVersion": since or "",
        }
        try:
            async with asyncio.timeout(within), self._call("GET", collection, query, seconds=None) as response:
                await _raise_for_status(response)
                if not await response.content.readany():
                    # A watch that ends at once (the API server stops) must not become a busy loop.
                    await asyncio.sleep(BROKEN_WATCH_SECONDS)
        except TimeoutError:
            return

    @asynccontextmanager
    async def _call(
        self,
        method: str,
        path: str,
        query: dict[str, str] | None = None,
        *,
        body: Json | JsonPatch | None = None,
        content_type: str = "application/json",
        seconds: float | None = REQUEST_SECONDS,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request with the client's credentials; connection errors become ApiError(0)."""
        call = await self._client.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params={"Accept": "application/json", "Content-Type": content_type},
            body=body,
            auth_settings=["BearerToken"],
        )
        timeout = aiohttp.ClientTimeout(total=seconds)
        try:
            answer = await self._client.call_api(*call, _request_timeout=timeout)
            async with answer.response as response:
                yield response
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ApiError(0, f"{method} {path}: {error or 'no answer in time'}") from error


async def _raise_for_status(response: aiohttp.ClientResponse) -> None:
    if response.ok:
        return
    text = await response.text()
    try:
        message = json.loads(text)["message"]
    except (ValueError, KeyError, TypeError):
        message = text[:200] or response.reason or "no message"
    raise ApiError(response.status, str(message))


async def _decoded(response: aiohttp.ClientResponse) -> Json:
    await _raise_for_status(response)
    found: Json = await response.json()
    return found
