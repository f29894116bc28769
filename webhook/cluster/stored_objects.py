"""Reads single objects of an API server on a review's way: each look-up has a time, and fails with a sentence."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Self

import msgspec
from msgspec import structs

from webhook.kube.client import METADATA, Client
from webhook.kube.discovery import Discovery
from webhook.kube.errors import ApiError, NoSuchApi, NotFound
from webhook.kube.paths import path
from webhook.kube.ttl_cache import TTLCache
from webhook.objects.pods import Named
from webhook.objects.refusal import Missing, Refused, Unreadable
from webhook.objects.view import Tree, view
from webhook.policy.values.facts import Namespace, namespace_of
from webhook.sentences.sentence import told

log = logging.getLogger(__name__)

REVIEW_SECONDS = 3.0
"""For a chain of owners, and for each other object; the API server gives the whole review 5 s."""
OBJECT_SECONDS = 5.0
"""How long a group or a claim is kept for who does not ask for a fresh one: a command, which reads many pods of one."""
MOST_OBJECTS = 1024


class StoredObjects:
    """Objects as they are stored now, and `Names`. `shown` is what a sentence calls an object where there is none."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._discovery = Discovery(client)

    async def close(self) -> None:
        await self._discovery.close()

    async def at(self, place: str, shown: str) -> Tree:
        """The object at a path. Raises Missing, NoSuchApi and any other ApiError."""
        try:
            return await self._client.get(place)
        except NoSuchApi:
            raise
        except NotFound:
            raise Missing(f"{shown} does not exist") from None

    async def named(self, group: str, plural: str, namespace: str | None, name: str, shown: str) -> Tree:
        """The object of a kind and a name, in the version that the API server prefers. Raises the same."""
        version = await self._discovery.api_version(group, plural)
        return await self.at(path(version, plural, namespace, name), shown)

    async def is_taken(self, api_version: str, plural: str, namespace: str, name: str) -> bool:
        """Whether an object of that name is stored now. Never Unreadable: the API server looks after us."""
        try:
            async with in_time(f"{plural}/{name[:63]}"):
                await self._client.get(path(api_version, plural, namespace, name), accept=METADATA)
        except Unreadable as problem:
            if not isinstance(problem.__cause__, NotFound):
                log.warning("name not looked up", {"reason": str(problem)})
            return False
        return True


class FreshLookups(msgspec.Struct, frozen=True, kw_only=True):
    """Look-ups whose answers are kept, but nothing counts that was read before `since`."""

    since: float = -math.inf

    def fresh(self) -> Self:
        """The same, but nothing counts that was read before now."""
        return structs.replace(self, since=time.monotonic())


def kept_objects() -> Any:
    """A field for what is kept of the objects of one kind."""
    return msgspec.field(default_factory=lambda: TTLCache(OBJECT_SECONDS, MOST_OBJECTS))


async def stored_namespace(client: Client, name: str) -> Namespace | None:
    """A namespace as it is now, None where there is none. Raises Unreadable."""
    async with in_time(f"namespace {name}"):
        try:
            tree = await client.get(path("v1", "namespaces", name=name))
        except NoSuchApi:
            raise
        except NotFound:
            return None
        return namespace_of(view(tree, Named).metadata)


@asynccontextmanager
async def in_time(what: str, seconds: float = REVIEW_SECONDS) -> AsyncIterator[None]:
    """Ends a look-up after so many seconds, and makes each of its failures an Unreadable with a sentence."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise Unreadable(f"{what}: no answer from the API server within {seconds:g} s") from None
    except (ApiError, Refused) as error:
        raise Unreadable(f"{what} can't be read: {told(error)}") from error
