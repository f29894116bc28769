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


class AdmissionPort(msgspec.Struct, frozen=True):
    """Where reviews are asked for, by whom, and who answers them."""

    mutate: Handler
    validate: Handler
    certificate: LiveCertificate
    listening: socket.socket
    limits: Limits = Limits()
    callers: Callers = Callers()


class ObservabilityPort(msgspec.Struct, frozen=True):
    """Where probes and metrics are asked for. `checks` decide whether the process is ready."""

    checks: Mapping[str, Check]
    listening: socket.socket


async def serve(
    port: AdmissionPort,
    observability: ObservabilityPort,
    metrics: Metrics,
    drain: Drain,
    beside: Sequence[AppPort] = (),
) -> None:
    """Serve until the drain is over; probes, metrics and what is `beside` go last. Run it with uvloop.run."""
    certificate, limits, callers = port.certificate, port.limits, port.callers
    metrics.sample(CERTIFICATE_EXPIRY, lambda: [((), certificate.bundle.not_after.timestamp())])
    reviews = Listener(
        admission_app(port.mutate, port.validate, metrics, limits, callers),
        limits=limits,
        drain=drain,
        metrics=metrics,
        tls=certificate.reviews,
        callers=callers,
    )
    pulse = Pulse()
    app = observability_app(observability.checks, metrics, drain, pulse)
    probes = Listener(app, limits=limits, drain=drain, metrics=metrics)
    others = [
        (Listener(each.app, limits=limits, drain=drain, metrics=metrics, tls=each.tls), each.listening)
        for each in beside
    ]
    with contextlib.ExitStack() as sockets:
        for listening in (port.listening, observability.listening, *(each for _, each in others)):
            sockets.enter_context(listening)
        async with asyncio.TaskGroup() as tasks:
            beating = tasks.create_task(pulse.beat())
            tasks.create_task(serve_apart(probes, observability.listening))
            reviewing = tasks.create_task(reviews.serve(port.listening))
            for listener, listening in others:
                tasks.create_task(listener.serve(listening))
            ports = {"port": port_of(port.listening), "metrics_port": port_of(observability.listening)}
            log.info("serving", ports)
            await drain.over()
            reviews.stop()
            await reviewing
            for listener in (probes, *(each for each, _ in others)):
                listener.stop()
            beating.cancel()
    log.info("stopped")
