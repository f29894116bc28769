"""One admission path as a bare ASGI endpoint: bytes in, bytes out, every failure told apart.

No Starlette routing here: it costs 12-15 us of some 40 (docs/performance.md). A fault of gpu-tiers is an HTTP 5xx, not
an AdmissionReview that says no, which would refuse even where failurePolicy is Ignore.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from functools import lru_cache
from time import perf_counter

import structlog
from starlette.types import Receive, Scope, Send

from webhook.admission.review import BadReview, Request, decode
from webhook.server.body import check_head, discard, read_body
from webhook.server.metric_table import ANSWERS, REVIEW_SECONDS
from webhook.server.metrics import Metrics
from webhook.server.problem import Disconnected, Problem
from webhook.server.request_limits import Limits

log = structlog.get_logger(__name__)

Handler = Callable[[Request], Awaitable[bytes]]
"""Answers a decoded review with the bytes of an AdmissionReview.

It raises BadReview (HTTP 400) for a review that nobody asked it for; whatever else it raises is our fault (HTTP 500).
"""

CLIENT_GONE = 499
LOGGED_CHARACTERS = 253
"""Of a field that the caller wrote: the longest name that Kubernetes allows."""

_timeout = re.compile(rb"(?:^|&)timeout=(\d{1,4})s(?:&|$)")


class Endpoint:
    """/mutate or /validate."""

    def __init__(self, path: str, handler: Handler, metrics: Metrics, limits: Limits) -> None:
        self._path = path
        self._handler = handler
        self._metrics = metrics
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (ASGI)."""
        began = perf_counter()
        status = 200
        try:
            await _send(send, 200, b"application/json", await self._review(scope, receive, began))
        except Problem as problem:
            status = problem.status
            await self._refuse(problem, receive, send)
        except Disconnected:
            status = CLIENT_GONE
        self._metrics.count(ANSWERS, self._path, str(status))
        self._metrics.observe(REVIEW_SECONDS, perf_counter() - began, self._path)

    async def _review(self, scope: Scope, receive: Receive, began: float) -> bytes:
        request = await self._request(scope, receive)
        patience = seconds_left(scope["query_string"], self._limits) - (perf_counter() - began)
        return await self._answer(request, patience)

    async def _request(self, scope: Scope, receive: Receive) -> Request:
        """The decoded review. Raises Problem (4xx), counted as bad."""
        try:
            check_head(scope, self._limits)
            return decode(await read_body(receive, self._limits))
        except BadReview as error:
            problem = Problem(400, str(error))
        except Problem as error:
            problem = error
        self._metrics.review(self._path, "", "bad")
        log.warning("not a review", path=self._path, code=problem.status, reason=_short(str(problem)))
        raise problem

    async def _answer(self, request: Request, patience: float) -> bytes:
        """The handler's answer. Raises Problem: 400 for a bad review, 500 or 504 for a fault of gpu-tiers."""
        clock = asyncio.timeout(patience)
        try:
            async with clock:
                return await self._handler(request)
        except BadReview as error:
            raise self._bad(request, str(error)) from None
        except RecursionError:
            # Python's own bound on nesting, met while an object's insides were read.
            raise self._bad(request, "the object is nested too deep") from None
        except Exception as error:  # noqa: BLE001 - all of it is logged, counted and answered
            raise self._fault(request, error, patience, late=clock.expired()) from None

    def _bad(self, request: Request, reason: str) -> Problem:
        self._metrics.review(self._path, request.operation, "bad")
        log.warning("not a review", reason=_short(reason), **_named(request, self._path))
        return Problem(400, reason)

    def _fault(self, request: Request, error: Exception, patience: float, *, late: bool) -> Problem:
        """The third state, neither allowed nor denied."""
        self._metrics.review(self._path, request.operation, "error")
        if late:
            log.error("review out of time", patience_seconds=round(patience, 3), **_named(request, self._path))
            return Problem(504, f"gpu-tiers did not decide within {patience:.2f} s")
        log.error("review failed", exc_info=error, **_named(request, self._path))
        return Problem(500, f"gpu-tiers failed on review {_short(request.uid)}; its log says why")

    async def _refuse(self, problem: Problem, receive: Receive, send: Send) -> None:
        await _send(send, problem.status, b"text/plain; charset=utf-8", f"{problem}\n".encode(), closes=problem.closes)
        if problem.closes:
            if problem.status != 408:  # noqa: PLR2004 - HTTP Request Timeout: it had its time
                await discard(receive, self._limits)
            await send({"type": "http.response.body", "body": b"", "more_body": False})


@lru_cache(maxsize=64)
def seconds_left(query: bytes, limits: Limits) -> float:
    """How long a review may take by the `?timeout=Ns` that the API server appends, and by our own limit."""
    found = _timeout.search(query)
    asked = float(found[1]) if found else limits.review_seconds
    return max(min(asked, limits.review_seconds) - limits.margin_seconds, 0.0)


async def _send(send: Send, status: int, content_type: bytes, body: bytes, *, closes: bool = False) -> None:
    headers = [(b"content-type", content_type), (b"content-length", str(len(body)).encode())]
    if closes:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": closes})


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
