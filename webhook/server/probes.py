"""Probes and metrics, in a thread with a loop of its own: /healthz answers while the loop of the reviews is busy."""

import asyncio
import logging
import socket
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TypeVar

from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from webhook.server.drain import Drain
from webhook.server.listener import Listener
from webhook.server.metrics import Metrics

log = logging.getLogger(__name__)

Check = Callable[[], str | None]
"""What keeps the process from being ready, in a few words; None where nothing does."""

SILENT_SECONDS = 30.0
"""A loop that did not run for so long hangs: a busy second is none of the kubelet's business."""

T = TypeVar("T")


class Pulse:
    """The loop of the reviews, as another thread sees it. Make it in that loop, and `beat` there."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last = monotonic()

    async def beat(self) -> None:
        """Show every second that the loop runs."""
        while True:
            self._last = monotonic()
            await asyncio.sleep(1)

    def trouble(self) -> str | None:
        """How long the loop has hung, if it does."""
        silent = monotonic() - self._last
        return f"no review has been worked on for {silent:.0f} s" if silent > SILENT_SECONDS else None

    async def there(self, ask: Callable[[], T]) -> T:
        """What a function says in that loop: most of the process may be looked at only there."""

        async def asking() -> T:
            return ask()

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asking(), self._loop))


async def serve_apart(listener: Listener, listening: socket.socket) -> None:
    """Serve in a thread until the listener is stopped."""
    serving = asyncio.get_running_loop().run_in_executor(None, asyncio.run, listener.serve(listening))
    try:
        await asyncio.shield(serving)
    finally:
        listener.stop()
        await serving


def observability_app(checks: Mapping[str, Check], metrics: Metrics, drain: Drain, pulse: Pulse) -> Starlette:
    async def healthz(_: Request) -> Response:
        trouble = pulse.trouble()
        return PlainTextResponse(f"{trouble or 'ok'}\n", status_code=503 if trouble else 200)

    async def readyz(_: Request) -> Response:
        troubles = await pulse.there(lambda: troubles_of(checks, drain))
        return PlainTextResponse(_report(checks, troubles), status_code=503 if troubles else 200)

    async def exposition(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        text = await pulse.there(lambda: encode(metrics.registry))
        return Response(text, headers={"content-type": content_type})

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
        log.exception("readiness check failed", {"check": name})
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
