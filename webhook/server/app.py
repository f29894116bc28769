"""Which address answers what: the two admission paths on one port, probes and metrics on another."""

from collections.abc import Callable, Mapping

import structlog
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from webhook.server.drain import Drain
from webhook.server.endpoint import Endpoint, Handler
from webhook.server.metrics import Metrics
from webhook.server.request_limits import Limits

log = structlog.get_logger(__name__)

Check = Callable[[], str | None]
"""What keeps the process from being ready, in a few words; None where nothing does."""


class AdmissionApp:
    """/mutate and /validate go straight to their endpoints, everything else to Starlette."""

    def __init__(self, endpoints: Mapping[str, ASGIApp], rest: ASGIApp) -> None:
        self._endpoints = endpoints
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request (ASGI)."""
        await self._endpoints.get(scope["path"], self._rest)(scope, receive, send)


def admission_app(mutate: Handler, validate: Handler, metrics: Metrics, limits: Limits) -> AdmissionApp:
    """What the HTTPS port serves."""
    handlers = {"/mutate": mutate, "/validate": validate}
    endpoints = {path: Endpoint(path, handler, metrics, limits) for path, handler in handlers.items()}
    return AdmissionApp(endpoints, Starlette(exception_handlers={404: _lost}))


def observability_app(checks: Mapping[str, Check], metrics: Metrics, drain: Drain) -> Starlette:
    """What the metrics port serves: /healthz, /readyz, /metrics."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        troubles = troubles_of(checks, drain)
        return PlainTextResponse(_report(checks, troubles), status_code=503 if troubles else 200)

    async def exposition(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(metrics.registry), headers={"content-type": content_type})

    return Starlette(
        routes=[Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", exposition)],
        exception_handlers={404: _lost},
    )


def troubles_of(checks: Mapping[str, Check], drain: Drain) -> dict[str, str]:
    """The checks that fail, with what they say. A check that raises has failed."""
    troubles = {name: trouble for name, check in checks.items() if (trouble := _ask(name, check)) is not None}
    return {"draining": "this process is shutting down"} | troubles if drain.begun else troubles


def _ask(name: str, check: Check) -> str | None:
    try:
        return check()
    except Exception:
        log.exception("readiness check failed", check=name)
        return "the check itself failed; the log says why"


def _report(checks: Mapping[str, Check], troubles: Mapping[str, str]) -> str:
    """One line a check, in the form of the API server's own /readyz."""
    good = (f"[+]{name} ok\n" for name in checks if name not in troubles)
    bad = (f"[-]{name}: {trouble}\n" for name, trouble in troubles.items())
    return "".join((*good, *bad))


async def _lost(_: Request, error: Exception) -> Response:
    """The answer for an unknown address; the headers of Starlette's own errors are kept."""
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    return PlainTextResponse("not found\n", status_code=404, headers=headers)
