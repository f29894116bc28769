"""The two admission paths: who may ask there, how much is read of a request, and how each failure is answered.

No Starlette routing here: it costs 12-15 us of some 40 (docs/performance.md). A fault of gpu-tiers is an HTTP 5xx, not
an AdmissionReview that says no, which would refuse even where failurePolicy is Ignore. An API server proves nothing by
itself, and every pod of the cluster reaches the port: a review that somebody else made up would book a tenant's quota,
and be told as a verdict.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hmac import compare_digest
from pathlib import Path
from time import perf_counter
from typing import Any, Self

from cryptography.x509 import load_pem_x509_certificates
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from webhook.admission.review import HEAD_BYTES, BadReview, Request, Truncated, decode, truncated
from webhook.config.errors import ConfigError, unreadable
from webhook.server.metric_table import ANSWERS, REVIEW_SECONDS
from webhook.server.metrics import Metrics
from webhook.server.request_limits import MIB, Limits

log = logging.getLogger(__name__)

_SECRET = re.compile(r"[a-z0-9][a-z0-9-]{24,61}[a-z0-9]")
"""The API server takes nothing else for part of a webhook's path. 26 random characters of these are 128 bits."""
WEBHOOKS = ("/mutate", "/validate")


@dataclass(frozen=True)
class Callers:
    """The proof that a caller needs. With nothing set anybody may ask, at paths that everybody knows."""

    secret: str = ""
    """What the paths begin with, such as /SECRET/mutate."""
    ca: str | None = None
    """PEM of the CA of their client certificates."""
    names: frozenset[str] = frozenset()
    """Names of which such a certificate must bear one; without any it may bear what it likes."""

    @cached_property
    def _paths(self) -> Mapping[str, bytes]:
        """The path at which each webhook is asked."""
        return {webhook: (f"/{self.secret}{webhook}" if self.secret else webhook).encode() for webhook in WEBHOOKS}

    @classmethod
    def told_by(cls, secret: Path | None, ca: Path | None, names: tuple[str, ...]) -> Self:
        """Read these files. Raises ConfigError."""
        if names and ca is None:
            raise ConfigError("--client-name", ["needs --client-ca, the CA of the certificates that bear the name"])
        return cls(_secret_in(secret) if secret else "", _certificates_in(ca) if ca else None, frozenset(names))

    def webhook_at(self, path: bytes) -> str | None:
        """Return the webhook at this path; None for a caller who does not know where reviews are asked for."""
        # compare_digest, and for both: a guess takes the same time however much of it is right.
        found = [webhook for webhook, here in self._paths.items() if compare_digest(here, path)]
        return found[0] if found else None

    def admits(self, certificate: dict[str, Any] | None) -> bool:
        """Tell whether a client with this certificate may ask, as ssl.SSLObject.getpeercert has it.

        Its CA has been verified in the handshake.
        """
        if not self.names:
            return True
        found = certificate or {}
        common = {value for part in found.get("subject", ()) for kind, value in part if kind == "commonName"}
        return not self.names.isdisjoint(common | {value for _, value in found.get("subjectAltName", ())})


def _secret_in(file: Path) -> str:
    secret = _text_of(file).strip()
    if not _SECRET.fullmatch(secret):
        raise ConfigError(str(file), ["must hold 26 to 63 small letters, digits or -, and nothing else"])
    return secret


def _certificates_in(file: Path) -> str:
    text = _text_of(file)
    try:
        load_pem_x509_certificates(text.encode())
    except ValueError:
        raise ConfigError(str(file), ["must hold certificates in PEM"]) from None
    return text


def _text_of(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(file), [unreadable(error)]) from None


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
    """Return the whole body; its room is kept as long as `held`. Raises Cut (408, 413), or Disconnected."""
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


Handler = Callable[[Request, float], Awaitable[bytes]]
"""Answers a decoded review with the bytes of an AdmissionReview, within so many seconds.

It raises BadReview (HTTP 400) for a review that nobody asked it for; whatever else it raises is our fault (HTTP 500).
"""

CLIENT_GONE = 499
LOGGED_CHARACTERS = 253
"""Of a field that the caller wrote: the longest name that Kubernetes allows."""

_timeout = re.compile(rb"(?:^|&)timeout=(\d{1,4})s(?:&|$)")


class AdmissionApp:
    """/mutate and /validate behind the secret that callers know; all else is not found, and its body not read."""

    def __init__(self, callers: Callers, endpoints: Mapping[str, ASGIApp], metrics: Metrics) -> None:
        self._callers = callers
        self._endpoints = endpoints
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        webhook = self._callers.webhook_at(scope["raw_path"])
        if webhook is None:
            self._metrics.count(ANSWERS, "other", "404")
            await _lost_and_left(scope, receive, send)
        else:
            await self._endpoints[webhook](scope, receive, send)


def admission_app(
    mutate: Handler, validate: Handler, metrics: Metrics, limits: Limits, callers: Callers
) -> AdmissionApp:
    """Return what the HTTPS port serves. Metrics and logs name the plain path."""
    handlers = {"/mutate": mutate, "/validate": validate}
    room = BytesInFlight(limits)
    endpoints = {path: Endpoint(path, handler, metrics, limits, room) for path, handler in handlers.items()}
    return AdmissionApp(callers, endpoints, metrics)


class Endpoint:
    """/mutate or /validate."""

    def __init__(self, path: str, handler: Handler, metrics: Metrics, limits: Limits, room: BytesInFlight) -> None:
        self._path = path
        self._handler = handler
        self._metrics = metrics
        self._limits = limits
        self._room = room

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = perf_counter()
        status = 200
        try:
            with ExitStack() as held:
                seconds = seconds_left(scope["query_string"], self._limits)
                request = await self._request(scope, receive, held, min(seconds, self._limits.body_seconds))
                answer = await self._answer(request, seconds - (perf_counter() - began))
            await self._send(receive, send, 200, b"application/json", answer, closes=isinstance(request, Truncated))
        except Problem as problem:
            status = problem.status
            text = f"{problem}\n".encode()
            await self._send(receive, send, status, b"text/plain; charset=utf-8", text, closes=problem.closes)
        except Disconnected:
            status = CLIENT_GONE
        self._metrics.count(ANSWERS, self._path, str(status))
        self._metrics.observe(REVIEW_SECONDS, perf_counter() - began, self._path)

    async def _request(self, scope: Scope, receive: Receive, held: ExitStack, seconds: float) -> Request:
        """Return the decoded review, or its beginning. Raises Problem (4xx) where it is none, counted as bad.

        A review that can't be read is answered all the same, for who made it so would be let in by a failurePolicy that
        ignores a 4xx.
        """
        try:
            check_head(scope)
            body = await read_body(scope, receive, self._limits, self._room, held, seconds)
            return decode(body)
        except BadReview as error:
            problem, named = Problem(400, str(error)), truncated(body, f"object: can't be read: {error}")
        except Cut as cut:
            problem, named = cut, truncated(cut.head, str(cut), for_now=cut.for_now)
        except Problem as error:
            problem, named = error, None
        if named is not None:
            return named
        self._metrics.review(self._path, "", "bad")
        log.warning("not a review", {"path": self._path, "code": problem.status, "reason": _short(str(problem))})
        raise problem

    async def _answer(self, request: Request, seconds: float) -> bytes:
        """Return the handler's answer. Raises Problem: 400 for a bad review, 500 for a fault of gpu-tiers."""
        try:
            return await self._handler(request, seconds)
        except BadReview as error:
            self._metrics.review(self._path, request.operation, "bad")
            log.warning("not a review", {"reason": _short(str(error)), **_named(request, self._path)})
            raise Problem(400, str(error)) from None
        except Exception:  # all of it is logged, counted and answered: the third state
            self._metrics.review(self._path, request.operation, "error")
            log.exception("review failed", _named(request, self._path))
            raise Problem(500, f"gpu-tiers failed on review {_short(request.uid)}; its log says why") from None

    async def _send(
        self, receive: Receive, send: Send, status: int, content_type: bytes, body: bytes, *, closes: bool
    ) -> None:
        """Answer. What `closes` the connection leaves something of the request unread, which is thrown away."""
        headers = [(b"content-type", content_type), (b"content-length", str(len(body)).encode())]
        if closes:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": closes})
        if closes:
            await discard(receive, self._limits)
            await send({"type": "http.response.body", "body": b"", "more_body": False})


@lru_cache(maxsize=64)
def seconds_left(query: bytes, limits: Limits) -> float:
    """Return how long a review may take by the `?timeout=Ns` that the API server appends, and by our own limit."""
    found = _timeout.search(query)
    asked = float(found[1]) if found else limits.review_seconds
    return max(min(asked, limits.review_seconds) - limits.margin_seconds, 0.0)


def _named(request: Request, path: str) -> dict[str, str]:
    """Return what finds a review again in our log and in the API server's, without the object's content."""
    return {
        "path": path,
        "uid": _short(request.uid),
        "operation": _short(request.operation),
        "kind": _short(request.kind.kind),
        "namespace": _short(request.namespace),
        "name": _short(request.name),
    }


def _short(text: str) -> str:
    return text[:LOGGED_CHARACTERS]


_lost_and_left = PlainTextResponse("not found\n", status_code=404, headers={"connection": "close"})
