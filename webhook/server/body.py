"""Reads a request's body within its limits, and no more than its beginning where it goes beyond them."""

import asyncio
from contextlib import ExitStack

from starlette.types import Receive, Scope

from webhook.admission.review import HEAD_BYTES
from webhook.server.request_limits import MIB, Limits


class Problem(Exception):  # noqa: N818 - an answer, not a malfunction
    """Ends a request without a review. `closes`: its body is unread, so the connection can't be used again."""

    def __init__(self, status: int, text: str, *, closes: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.closes = closes


class Disconnected(Exception):  # noqa: N818 - nobody is left to tell
    """The client closed the connection before its request was read."""


JSON = b"application/json"


class Cut(Problem):
    """The rest of a body is not read; `head` is its beginning. `for_now`: it could be another time."""

    def __init__(self, status: int, text: str, head: bytes) -> None:
        super().__init__(status, text, closes=True)
        self.head = head
        self.for_now = status == 408  # noqa: PLR2004 - HTTP Request Timeout


class BytesInFlight:
    """The bytes that all large bodies may hold together, from before they are read until they are answered."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._free = limits.bodies_bytes
        self._waiting = 0
        self._freed = asyncio.Event()

    async def take(self, size: int) -> None:
        """Wait until there is room. Raises TimeoutError at once where too many others wait."""
        if self._waiting >= self._limits.bodies_waiting:
            raise TimeoutError
        self._waiting += 1
        try:
            while size > self._free:
                self._freed.clear()
                await self._freed.wait()
        finally:
            self._waiting -= 1
        self._free -= size

    def give_back(self, size: int) -> None:
        self._free += size
        self._freed.set()


def check_head(scope: Scope) -> None:
    """Refuse by method and headers alone. Raises Problem (405, 415)."""
    if scope["method"] != "POST":
        raise Problem(405, "only POST is accepted here", closes=True)
    content_type = dict(scope["headers"]).get(b"content-type", b"")
    if content_type.partition(b";")[0].strip().lower() != JSON:
        raise Problem(415, "content-type must be application/json", closes=True)


async def read_body(
    scope: Scope, receive: Receive, limits: Limits, room: BytesInFlight, held: ExitStack, seconds: float
) -> bytes:
    """The whole body; its room is `held` as long as that is. Raises Cut (408, 413), or Disconnected."""
    body = _Arriving(receive)
    try:
        async with asyncio.timeout(seconds):
            await body.read(HEAD_BYTES)
            # By its header, which httptools has made sure is one number; one that comes in chunks may have the most.
            size = len(body) if body.whole else int(dict(scope["headers"]).get(b"content-length", limits.body_bytes))
            if limits.small_body_bytes < size <= limits.body_bytes:
                await room.take(size)
                held.callback(room.give_back, size)
            if size <= limits.body_bytes:
                await body.read(limits.body_bytes + 1)
    except TimeoutError:
        raise Cut(408, f"the review could not be read within {seconds:.2f} s", body.head()) from None
    if len(body) > limits.body_bytes or not body.whole:
        text = f"the object is too large: gpu-tiers reads {limits.body_bytes / MIB:g} MiB of a review at most"
        raise Cut(413, text, body.head())
    return body.joined()


async def discard(receive: Receive, limits: Limits) -> None:
    """Read a refused body for a moment and keep nothing of it, so that the client gets to read the refusal."""
    try:
        async with asyncio.timeout(limits.linger_seconds):
            while (await receive()).get("more_body"):
                pass
    except TimeoutError:
        return


class _Arriving:
    """A body as far as it has arrived."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._chunks: list[bytes] = []
        self._size = 0
        self.whole = False

    def __len__(self) -> int:
        return self._size

    async def read(self, least: int) -> None:
        """Read on until there is so much of it, or all. Raises Disconnected."""
        while self._size < least and not self.whole:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            self._chunks.append(message.get("body", b""))
            self._size += len(self._chunks[-1])
            self.whole = not message.get("more_body", False)

    def head(self) -> bytes:
        return b"".join(self._chunks)[:HEAD_BYTES]

    def joined(self) -> bytes:
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
