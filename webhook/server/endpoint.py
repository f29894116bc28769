"""The two admission paths: their callers, how much is read of a request, and the answer to each failure.

Starlette's routing is not used, because it costs 12-15 us of some 40 (docs/performance.md). A fault of gpu-tiers is an
HTTP 5xx. An AdmissionReview with a refusal would refuse even if failurePolicy is Ignore. Callers need a proof, because
every pod of the cluster reaches the port, and a made-up review would book a tenant's quota and be reported.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import lru_cache
from hmac import compare_digest
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import msgspec
from cryptography.x509 import load_pem_x509_certificates
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from webhook.admission.review import HEAD_BYTES, BadReview, Request, Truncated, decode, truncated
from webhook.config.errors import ConfigError, unreadable
from webhook.server.metrics import Metrics

MIB = 1024 * 1024


class Limits(msgspec.Struct, frozen=True):
    """The limits of a port: sizes in bytes, times in seconds, the others are numbers."""

    body_bytes: int = 20 * MIB
    """The API server takes requests of 3 MiB and stores objects of 1.5 MiB. In a review a byte may take six (`<` is
    \\u003c): 18 MiB for the one object of a CREATE, or the two of an UPDATE. A larger object can't be stored."""
    small_body_bytes: int = 64 * 1024
    """Bodies with a Content-Length up to this size never wait. About this much is buffered of any request."""
    bodies_bytes: int = 64 * MIB
    """All larger bodies together that are being read or judged. Others wait until these have their answers."""
    bodies_waiting: int = 32
    """The number of larger bodies that may wait, each with some 300 KiB buffered."""
    message_bytes: int = 32 * MIB
    """All bytes read of one request, discarded ones too. Beyond it the connection is cut."""
    headers_bytes: int = 64 * 1024
    pipelined: int = 8
    """Requests that may wait behind one that is being answered. Go clients never pipeline; uvicorn has no bound."""
    headers_seconds: float = 10.0
    """The longest time from the first byte of a request to the end of its headers."""
    body_seconds: float = 5.0
    review_seconds: float = 5.0
    """The longest a review may take, with the margin, however long the API server says it would wait."""
    margin_seconds: float = 0.25
    """Answer this much before the API server gives up, so that it reads a reason and not a broken connection."""
    linger_seconds: float = 1.0
    """How long a refused body is still read and discarded, because closing at once would destroy the refusal's text."""
    unread_seconds: float = 30.0
    """How long a client may leave our answer unread."""
    handshake_seconds: float = 10.0
    keep_alive_seconds: float = 120.0
    """Above the 90 s for which Go clients, the API server among them, keep an idle connection."""
    stop_seconds: float = 10.0
    """How long requests under way may take once the server stops."""
    connections: int = 2000
    """From this number on, requests are answered 503. An API server keeps 25 idle connections, and uses one for each
    request under way."""
    strangers: int = 1000
    """Connections that have sent no review yet. Beyond this number the oldest is cut, because an API server sends a
    review at once."""


log = logging.getLogger(__name__)

WEBHOOKS = ("/mutate", "/validate")


@dataclass(frozen=True)
class Callers:
    """The proof that a caller needs: a secret path, a client certificate, or both. By default it needs neither."""

    paths: Callable[[], Collection[str]] = lambda: WEBHOOKS
    """Returns the current paths of reviews. A path ends with the webhook that answers, such as /SECRET/mutate."""
    ca: str | None = None
    """PEM of the CA of the callers' client certificates; None if callers need none."""
    names: frozenset[str] = frozenset()
    """Names (CN or SAN), one of which the client certificate must have. Without any, every name is accepted."""

    @classmethod
    def read_from(cls, ca: Path | None, names: tuple[str, ...]) -> Self:
        """Read the CA file, if there is one. Raises ConfigError, also for names without a CA."""
        if names and ca is None:
            raise ConfigError("--client-name", ["needs --client-ca, the CA of the certificates that bear the name"])
        certificates = None
        try:
            if ca is not None:
                certificates = ca.read_text()
                load_pem_x509_certificates(certificates.encode())
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(str(ca), [unreadable(error)]) from None
        except ValueError:
            raise ConfigError(str(ca), ["must hold certificates in PEM"]) from None
        return cls(ca=certificates, names=frozenset(names))

    def webhook_at(self, path: bytes) -> str | None:
        """Return the webhook at this path, such as /mutate for /SECRET/mutate; None for any other path."""
        # compare_digest, and for all paths, so that a guess takes the same time however much of it is right.
        found = [named for named in self.paths() if compare_digest(named.encode(), path)]
        return f"/{found[0].rpartition('/')[2]}" if found else None

    def admits(self, certificate: dict[str, Any] | None) -> bool:
        """Tell whether a client with this certificate may ask. The handshake has verified its CA."""
        if not self.names:
            return True
        found = certificate or {}
        common = {value for part in found.get("subject", ()) for kind, value in part if kind == "commonName"}
        return not self.names.isdisjoint(common | {value for _, value in found.get("subjectAltName", ())})


class Problem(Exception):  # noqa: N818 - an answer, not a malfunction
    """Ends a request without a review. `closes`: its body is unread, so the connection can't be used again."""

    def __init__(self, status: int, text: str, *, closes: bool = False) -> None:
        super().__init__(text)
        self.status = status
        self.closes = closes


class Disconnected(Exception):  # noqa: N818 - nobody is left to tell
    """The client closed the connection before its request was read."""


class Cut(Problem):
    """The rest of a body is not read; `head` is its beginning. `for_now`: it came too slowly, and a retry may pass."""

    def __init__(self, status: int, text: str, chunks: Sequence[bytes]) -> None:
        super().__init__(status, text, closes=True)
        self.head = b"".join(chunks)[:HEAD_BYTES]
        self.for_now = status == 408  # noqa: PLR2004 - HTTP Request Timeout


class BytesInFlight:
    """The bytes that all large bodies together may use, each from when its size is known until the review is judged."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._free = limits.bodies_bytes
        self._waiting = 0
        self._freed = asyncio.Event()

    async def take(self, size: int) -> None:
        """Wait until `size` bytes are free, and take them. Raises TimeoutError at once if too many others wait."""
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


async def read_body(
    scope: Scope, receive: Receive, limits: Limits, room: BytesInFlight, cleanup: ExitStack, seconds: float
) -> bytes:
    """Return the whole body. `cleanup` gives back the bytes of `room` that a large body takes.

    Raises Problem (405, 415) for the method or the content type, Cut (408, 413), or Disconnected.
    """
    headers = dict(scope["headers"])
    if scope["method"] != "POST":
        raise Problem(405, "only POST is accepted here", closes=True)
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        raise Problem(415, "content-type must be application/json", closes=True)
    chunks: list[bytes] = []
    size, whole = 0, False
    try:
        async with asyncio.timeout(seconds):
            for wanted in (HEAD_BYTES, limits.body_bytes + 1):
                while size < wanted and not whole:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise Disconnected
                    chunks.append(message.get("body", b""))
                    size += len(chunks[-1])
                    whole = not message.get("more_body", False)
                if wanted == HEAD_BYTES:
                    # httptools makes sure that the header is one number. A chunked body counts as the largest.
                    in_all = size if whole else int(headers.get(b"content-length", limits.body_bytes))
                    if in_all > limits.body_bytes:
                        break
                    if in_all > limits.small_body_bytes:
                        await room.take(in_all)
                        cleanup.callback(room.give_back, in_all)
    except TimeoutError:
        raise Cut(408, f"the review could not be read within {seconds:.2f} s", chunks) from None
    if size > limits.body_bytes or not whole:
        text = f"the object is too large: gpu-tiers reads {limits.body_bytes / MIB:g} MiB of a review at most"
        raise Cut(413, text, chunks)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


Handler = Callable[[Request, float], Awaitable[bytes]]
"""Answers a decoded review with the bytes of an AdmissionReview, within the given seconds.

It is `Webhooks.mutate` or `Webhooks.validate`. It raises BadReview (HTTP 400) for a review of an object that it does
not handle. Any other error is ours (HTTP 500).
"""

CLIENT_GONE = 499
LOGGED_CHARACTERS = 253
"""Characters of a caller's field that are logged: the longest name that Kubernetes allows."""

_timeout = re.compile(rb"(?:^|&)timeout=(\d{1,4})s(?:&|$)")


def admission_app(mutate: Handler, validate: Handler, metrics: Metrics, limits: Limits, callers: Callers) -> ASGIApp:
    """Return the app of the HTTPS port: /mutate and /validate behind the secret that callers know.

    Any other path is answered 404 and its body is not read. Metrics and logs name the plain path.
    """
    room = BytesInFlight(limits)
    handlers = {"/mutate": mutate, "/validate": validate}
    endpoints = {path: Endpoint(path, handler, metrics, limits, room) for path, handler in handlers.items()}

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        webhook = callers.webhook_at(scope["raw_path"])
        if webhook is None:
            metrics.count("gpu_tiers_http_answers_total", "other", "404")
            await _lost_and_left(scope, receive, send)
        else:
            await endpoints[webhook](scope, receive, send)

    return app


class Endpoint:
    """Answers the requests to /mutate or /validate, and counts and times them."""

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
            with ExitStack() as cleanup:
                seconds = seconds_left(scope["query_string"], self._limits)
                request = await self._request(scope, receive, cleanup, min(seconds, self._limits.body_seconds))
                answer = await self._answer(request, seconds - (perf_counter() - began))
            await self._send(receive, send, 200, b"application/json", answer, closes=isinstance(request, Truncated))
        except Problem as problem:
            status = problem.status
            text = f"{problem}\n".encode()
            await self._send(receive, send, status, b"text/plain; charset=utf-8", text, closes=problem.closes)
        except Disconnected:
            status = CLIENT_GONE
        self._metrics.count("gpu_tiers_http_answers_total", self._path, str(status))
        self._metrics.observe("gpu_tiers_review_seconds", perf_counter() - began, self._path)

    async def _request(self, scope: Scope, receive: Receive, cleanup: ExitStack, seconds: float) -> Request:
        """Return the decoded review, or a Truncated one if only its beginning can be read.

        A Truncated review is refused with an AdmissionReview, because with a 4xx and failurePolicy Ignore a user who
        breaks the review on purpose would be admitted. For a wrong method or content type, or if even the names can't
        be read, raise Problem (4xx), counted as bad.
        """
        try:
            body = await read_body(scope, receive, self._limits, self._room, cleanup, seconds)
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
        except Exception:  # each is logged, counted and answered
            self._metrics.review(self._path, request.operation, "error")
            log.exception("review failed", _named(request, self._path))
            raise Problem(500, f"gpu-tiers failed on review {_short(request.uid)}; its log says why") from None

    async def _send(
        self, receive: Receive, send: Send, status: int, content_type: bytes, body: bytes, *, closes: bool
    ) -> None:
        """Send an answer. If it `closes` the connection, discard the unread part of the request."""
        headers = [(b"content-type", content_type), (b"content-length", str(len(body)).encode())]
        if closes:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": closes})
        if closes:
            # read for a moment and discarded, so that the client gets to read the refusal
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.linger_seconds):
                    while (await receive()).get("more_body"):
                        pass
            await send({"type": "http.response.body", "body": b"", "more_body": False})


@lru_cache(maxsize=64)
def seconds_left(query: bytes, limits: Limits) -> float:
    """Return the seconds that a review may take, by the API server's `?timeout=Ns` and our own limit, less a margin."""
    found = _timeout.search(query)
    asked = float(found[1]) if found else limits.review_seconds
    return max(min(asked, limits.review_seconds) - limits.margin_seconds, 0.0)


def _named(request: Request, path: str) -> dict[str, str]:
    """Return the fields that identify a review in our log and in the API server's, without the object's content."""
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
