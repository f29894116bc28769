"""Reads a request's body within its limits and refuses the rest unread."""

import asyncio

from starlette.types import Receive, Scope

from webhook.server.problem import Disconnected, Problem
from webhook.server.request_limits import MIB, Limits

JSON = b"application/json"


def check_head(scope: Scope, limits: Limits) -> None:
    """Refuse by method and headers alone. Raises Problem (405, 413, 415)."""
    if scope["method"] != "POST":
        raise Problem(405, "only POST is accepted here", closes=True)
    headers = dict(scope["headers"])
    content_type = headers.get(b"content-type", b"")
    if content_type.partition(b";")[0].strip().lower() != JSON:
        raise Problem(415, "content-type must be application/json", closes=True)
    # httptools has made sure that a content-length is a number, and the only one.
    if int(headers.get(b"content-length", b"0")) > limits.body_bytes:
        raise _too_large(limits)


async def read_body(receive: Receive, limits: Limits) -> bytes:
    """The whole body. Raises Problem (408, 413), or Disconnected."""
    try:
        async with asyncio.timeout(limits.body_seconds):
            return await _read(receive, limits)
    except TimeoutError:
        raise Problem(408, f"the body did not arrive within {limits.body_seconds:g} s", closes=True) from None


async def discard(receive: Receive, limits: Limits) -> None:
    """Read a refused body for a moment and keep nothing of it, so that the client gets to read the refusal."""
    try:
        async with asyncio.timeout(limits.linger_seconds):
            while (await receive()).get("more_body"):
                pass
    except TimeoutError:
        return


async def _read(receive: Receive, limits: Limits) -> bytes:
    chunks: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunk = message.get("body", b"")
        more = message.get("more_body", False)
        chunks.append(chunk)
        size += len(chunk)
        if size > limits.body_bytes:
            raise _too_large(limits)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _too_large(limits: Limits) -> Problem:
    return Problem(413, f"the body is larger than {limits.body_bytes / MIB:g} MiB", closes=True)
