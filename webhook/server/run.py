"""Serves all ports in one loop until drained."""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Mapping, Sequence

import msgspec
from starlette.types import ASGIApp

from webhook.server.drain import Drain
from webhook.server.endpoint import Callers, Handler, admission_app
from webhook.server.listener import Listener, port_of
from webhook.server.metric_table import CERTIFICATE_EXPIRY
from webhook.server.metrics import Metrics
from webhook.server.probes import Check, Pulse, observability_app, serve_apart
from webhook.server.request_limits import Limits
from webhook.server.tls import LiveCertificate

log = logging.getLogger(__name__)


class AppPort(msgspec.Struct, frozen=True):
    """Another app at a listening socket; with `tls`, over that."""

    app: ASGIApp
    listening: socket.socket
    tls: ssl.SSLContext | None = None


async def serve(
    *,
    mutate: Handler,
    validate: Handler,
    checks: Mapping[str, Check],
    certificate: LiveCertificate,
    metrics: Metrics,
    drain: Drain,
    admission: socket.socket,
    observability: socket.socket,
    beside: Sequence[AppPort] = (),
    limits: Limits | None = None,
    callers: Callers | None = None,
) -> None:
    """Serve until the drain is over; probes, metrics and what is `beside` go last. Run it with uvloop.run."""
    limits, callers = limits or Limits(), callers or Callers()
    metrics.sample(CERTIFICATE_EXPIRY, lambda: [((), certificate.bundle.not_after.timestamp())])
    reviews = Listener(
        admission_app(mutate, validate, metrics, limits, callers),
        limits=limits,
        drain=drain,
        metrics=metrics,
        tls=certificate.reviews,
        callers=callers,
    )
    pulse = Pulse()
    probes = Listener(observability_app(checks, metrics, drain, pulse), limits=limits, drain=drain, metrics=metrics)
    others = [
        (Listener(each.app, limits=limits, drain=drain, metrics=metrics, tls=each.tls), each.listening)
        for each in beside
    ]
    with contextlib.ExitStack() as sockets:
        for listening in (admission, observability, *(each for _, each in others)):
            sockets.enter_context(listening)
        async with asyncio.TaskGroup() as tasks:
            beating = tasks.create_task(pulse.beat())
            tasks.create_task(serve_apart(probes, observability))
            reviewing = tasks.create_task(reviews.serve(admission))
            for listener, listening in others:
                tasks.create_task(listener.serve(listening))
            log.info("serving", {"port": port_of(admission), "metrics_port": port_of(observability)})
            await drain.over()
            reviews.stop()
            await reviewing
            for listener in (probes, *(each for each, _ in others)):
                listener.stop()
            beating.cancel()
    log.info("stopped")
