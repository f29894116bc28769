"""Serves all ports until drained, the reviews in one loop.

Probes and metrics are in a thread with a loop of its own: /healthz answers while the loop of the reviews is busy.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import monotonic
from typing import TypeVar

import msgspec
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from webhook.server.endpoint import Callers, Handler, Limits, admission_app
from webhook.server.listener import Drain, Listener, port_of
from webhook.server.metrics import Metrics
from webhook.server.tls import LiveCertificate

log = logging.getLogger(__name__)

Check = Callable[[], str | None]
"""Returns why the process is not ready, in a few words; None if it is."""

SILENT_SECONDS = 30.0
"""Seconds after which a loop that did not run counts as hanging, because busy seconds must not restart the pod."""

T = TypeVar("T")


class Pulse:
    """Lets another thread see and use the loop of the reviews. Create it in that loop, and run `beat` there."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last = monotonic()

    async def beat(self) -> None:
        """Record once a second that the loop runs."""
        while True:
            self._last = monotonic()
            await asyncio.sleep(1)

    def trouble(self) -> str | None:
        """Return a sentence if the loop hangs, None if it runs."""
        silent = monotonic() - self._last
        return f"no review has been worked on for {silent:.0f} s" if silent > SILENT_SECONDS else None

    async def there(self, ask: Callable[[], T]) -> T:
        """Call a function in the loop of the reviews, because most objects of the process are not thread-safe."""

        async def asking() -> T:
            return ask()

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asking(), self._loop))


async def serve_in_thread(listener: Listener, listening: socket.socket) -> None:
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
        """Answer with a line for each check, in the form of the API server's own /readyz."""
        troubles = await pulse.there(lambda: troubles_of(checks, drain))
        good = (f"[+]{name} ok\n" for name in checks if name not in troubles)
        bad = (f"[-]{name}: {trouble}\n" for name, trouble in troubles.items())
        return PlainTextResponse("".join((*good, *bad)), status_code=503 if troubles else 200)

    async def exposition(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        text = await pulse.there(lambda: encode(metrics.registry))
        return Response(text, headers={"content-type": content_type})

    async def lost(_: Request, error: Exception) -> Response:
        """Answer an unknown address, with the headers of Starlette's own errors."""
        headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
        return PlainTextResponse("not found\n", status_code=404, headers=headers)

    routes = [Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", exposition)]
    return Starlette(routes=routes, exception_handlers={404: lost})


def troubles_of(checks: Mapping[str, Check], drain: Drain) -> dict[str, str]:
    """Return the checks that fail, with their problems, and "draining" once the drain has begun.

    A check that raises has failed.
    """
    troubles = {"draining": "this process is shutting down"} if drain.begun else {}
    for name, check in checks.items():
        try:
            trouble = check()
        except Exception:
            log.exception("readiness check failed", {"check": name})
            trouble = "the check itself failed; the log says why"
        if trouble is not None:
            troubles[name] = trouble
    return troubles


class AppPort(msgspec.Struct, frozen=True):
    """Another app on a listening socket, with TLS if `tls` is set."""

    app: ASGIApp
    listening: socket.socket
    tls: ssl.SSLContext | None = None


class AdmissionPort(msgspec.Struct, frozen=True):
    """The port of the reviews, with its callers and handlers."""

    mutate: Handler
    validate: Handler
    certificate: LiveCertificate
    listening: socket.socket
    limits: Limits = Limits()
    callers: Callers = Callers()


async def serve(
    port: AdmissionPort,
    observing: socket.socket,
    checks: Mapping[str, Check],
    metrics: Metrics,
    drain: Drain,
    more: Sequence[AppPort] = (),
) -> None:
    """Serve until the drain is over. The reviews stop before the probes, the metrics and the `more` apps.

    Probes and metrics are served on `observing`, and `checks` decide whether the process is ready.
    """
    certificate, callers = port.certificate, port.callers
    metrics.sample(
        "gpu_tiers_certificate_not_after_timestamp_seconds", lambda: [((), certificate.bundle.not_after.timestamp())]
    )
    pulse = Pulse()
    listener = partial(Listener, limits=port.limits, drain=drain, metrics=metrics)
    app = admission_app(port.mutate, port.validate, metrics, port.limits, callers)
    reviews = listener(app, tls=certificate.reviews, callers=callers)
    probes = listener(observability_app(checks, metrics, drain, pulse))
    others = [(listener(each.app, tls=each.tls), each.listening) for each in more]
    with contextlib.ExitStack() as sockets:
        for listening in (port.listening, observing, *(each for _, each in others)):
            sockets.enter_context(listening)
        async with asyncio.TaskGroup() as tasks:
            beating = tasks.create_task(pulse.beat())
            tasks.create_task(serve_in_thread(probes, observing))
            reviewing = tasks.create_task(reviews.serve(port.listening))
            for other, listening in others:
                tasks.create_task(other.serve(listening))
            log.info("serving", {"port": port_of(port.listening), "metrics_port": port_of(observing)})
            await drain.over()
            reviews.stop()
            await reviewing
            for stopping in (probes, *(each for each, _ in others)):
                stopping.stop()
            beating.cancel()
    log.info("stopped")
