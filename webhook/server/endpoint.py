"""The two admission paths, and nothing else on their port: bytes in, bytes out, every failure told apart.

No Starlette routing here: it costs 12-15 us of some 40 (docs/performance.md). A fault of gpu-tiers is an HTTP 5xx, not
an AdmissionReview that says no, which would refuse even where failurePolicy is Ignore.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from functools import lru_cache
from time import perf_counter

import structlog
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from webhook.admission.review import BadReview, Request, Unread, decode, unread
from webhook.server.body import BytesInFlight, Cut, Disconnected, Problem, check_head, discard, read_body
from webhook.server.callers import Callers
from webhook.server.metric_table import ANSWERS, REVIEW_SECONDS
from webhook.server.metrics import Metrics
from webhook.server.request_limits import Limits
from webhook.server.tracing import Tracing

log = structlog.get_logger(__name__)

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
    mutate: Handler, validate: Handler, metrics: Metrics, limits: Limits, tracing: Tracing, callers: Callers
) -> AdmissionApp:
    """What the HTTPS port serves. Metrics, logs and traces name the plain path."""
    handlers = {"/mutate": mutate, "/validate": validate}
    room = BytesInFlight(limits)
    endpoints = {
        path: tracing.app(path, Endpoint(path, handler, metrics, limits, room)) for path, handler in handlers.items()
    }
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
                request, answer = await self._review(scope, receive, held, began)
            await self._send(receive, send, 200, b"application/json", answer, closes=isinstance(request, Unread))
        except Problem as problem:
            status = problem.status
            text = f"{problem}\n".encode()
            await self._send(receive, send, status, b"text/plain; charset=utf-8", text, closes=problem.closes)
        except Disconnected:
            status = CLIENT_GONE
        self._metrics.count(ANSWERS, self._path, str(status))
        self._metrics.observe(REVIEW_SECONDS, perf_counter() - began, self._path)

    async def _review(self, scope: Scope, receive: Receive, held: ExitStack, began: float) -> tuple[Request, bytes]:
        patience = seconds_left(scope["query_string"], self._limits)
        request = await self._request(scope, receive, held, min(patience, self._limits.body_seconds))
        return request, await self._answer(request, patience - (perf_counter() - began))

    async def _request(self, scope: Scope, receive: Receive, held: ExitStack, patience: float) -> Request:
        """The decoded review, or its beginning. Raises Problem (4xx) where it is none, counted as bad.

        A review that can't be read is answered all the same, for who made it so would be let in by a failurePolicy that
        ignores a 4xx.
        """
        try:
            check_head(scope)
            body = await read_body(scope, receive, self._limits, self._room, held, patience)
            return decode(body)
        except BadReview as error:
            problem, named = Problem(400, str(error)), unread(body, f"object: can't be read: {error}")
        except Cut as cut:
            problem, named = cut, unread(cut.head, str(cut), for_now=cut.for_now)
        except Problem as error:
            problem, named = error, None
        if named is not None:
            return named
        self._metrics.review(self._path, "", "bad")
        log.warning("not a review", path=self._path, code=problem.status, reason=_short(str(problem)))
        raise problem

    async def _answer(self, request: Request, patience: float) -> bytes:
        """The handler's answer. Raises Problem: 400 for a bad review, 500 for a fault of gpu-tiers."""
        try:
            return await self._handler(request, patience)
        except BadReview as error:
            self._metrics.review(self._path, request.operation, "bad")
            log.warning("not a review", reason=_short(str(error)), **_named(request, self._path))
            raise Problem(400, str(error)) from None
        except Exception as error:  # all of it is logged, counted and answered: the third state
            self._metrics.review(self._path, request.operation, "error")
            log.exception("review failed", exc_info=error, **_named(request, self._path))
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
    """How long a review may take by the `?timeout=Ns` that the API server appends, and by our own limit."""
    found = _timeout.search(query)
    asked = float(found[1]) if found else limits.review_seconds
    return max(min(asked, limits.review_seconds) - limits.margin_seconds, 0.0)


def _named(request: Request, path: str) -> dict[str, str]:
    """What finds a review again in our log and in the API server's, without the object's content."""
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
