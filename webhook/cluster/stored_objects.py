"""Bounds a look-up on a review's way: it has a time, and fails with a sentence."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from webhook.kube.client import Client
from webhook.kube.errors import ApiError, NoSuchApi, NotFound
from webhook.kube.paths import path
from webhook.objects.pods import Named
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import view
from webhook.policy.values.facts import Namespace, namespace_of
from webhook.sentences.sentence import told

REVIEW_SECONDS = 3.0
"""For a chain of owners, and for each other object; the API server gives the whole review 5 s."""


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
