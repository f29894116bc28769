"""One listening port as a uvicorn server inside our own loop; which app it serves and when it stops is told to it."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from webhook.server.drain import Drain
from webhook.server.limits import Limits
from webhook.server.metrics import Metrics
from webhook.server.protocol import GuardedProtocol

BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; clients may connect from now on. Port 0 takes a free one. Raises OSError naming both."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        raise OSError(error.errno, f"cannot listen on {host} port {port}: {error.strerror}") from error


def port_of(listening: socket.socket) -> int:
    """The port that a listening socket has."""
    port: int = listening.getsockname()[1]
    return port


class Listener(uvicorn.Server):
    """Serves one app until `stop`. Signals are Drain's, never uvicorn's."""

    def __init__(
        self, app: ASGIApp, *, limits: Limits, drain: Drain, metrics: Metrics, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(_config(app, limits))
        self._tls = tls
        self._limits = limits
        self._drain = drain
        self._metrics = metrics

    def stop(self) -> None:
        """Take no more connections, answer what is under way, and let `serve` return."""
        self.should_exit = True

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone: uvicorn's handlers would stop at once, without the last stretch."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's, with the guarded protocol and a clock on the TLS handshake, for which it has no setting."""
        handshake = self._limits.handshake_seconds if self._tls else None
        loop = asyncio.get_running_loop()
        self.servers = [
            await loop.create_server(
                self._connection, sock=each, ssl=self._tls, backlog=BACKLOG, ssl_handshake_timeout=handshake
            )
            for each in sockets or ()
        ]
        self.started = True

    def _connection(self) -> GuardedProtocol:
        return GuardedProtocol(
            self.config, self.server_state, limits=self._limits, drain=self._drain, metrics=self._metrics
        )


def _config(app: ASGIApp, limits: Limits) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=GuardedProtocol,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=limits.connections,
        timeout_keep_alive=limits.keep_alive_seconds,
        timeout_graceful_shutdown=limits.stop_seconds,
    )
