"""One listening port that serves one app with uvicorn's protocol until it is stopped."""

import asyncio
import contextlib
import logging
import socket
import ssl
from email.utils import formatdate
from functools import partial

import uvicorn
from starlette.types import ASGIApp
from uvicorn.server import ServerState

from webhook.server.drain import Drain
from webhook.server.endpoint import Callers
from webhook.server.http_protocol import GuardedProtocol, Strangers
from webhook.server.metrics import Metrics
from webhook.server.request_limits import Limits

log = logging.getLogger(__name__)

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
    port: int = listening.getsockname()[1]
    return port


class Listener:
    """Serves one app on one socket until `stop`.

    uvicorn's own Server takes over the signals, can't bound the TLS handshake, and wakes up ten times a second; its
    protocol, which does the work, is kept.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: Limits,
        drain: Drain,
        metrics: Metrics,
        tls: ssl.SSLContext | None = None,
        callers: Callers | None = None,
    ) -> None:
        self._state = ServerState()
        self._stopping = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tls = tls
        self._limits = limits
        self._connection = partial(
            GuardedProtocol,
            _config(app, limits),
            self._state,
            limits=limits,
            drain=drain,
            metrics=metrics,
            callers=callers or Callers(),
            strangers=Strangers[GuardedProtocol](limits.strangers),
        )

    def stop(self) -> None:
        if self._loop is None:
            self._stopping.set()
        else:
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def serve(self, listening: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        server = await self._loop.create_server(
            self._connection,
            sock=listening,
            ssl=self._tls,
            ssl_handshake_timeout=self._limits.handshake_seconds if self._tls else None,
            backlog=BACKLOG,
        )
        try:
            await self._until_stopped()
        finally:
            self._loop.remove_reader(listening)
            for _ in range(2):  # asyncio's server never closes a connection that it has accepted as it is closed itself
                await asyncio.sleep(0)
            server.close()
            await self._finish()
            self._loop = None

    async def _until_stopped(self) -> None:
        while not self._stopping.is_set():
            self._state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await self._stopping.wait()

    async def _finish(self) -> None:
        """Close idle connections, wait for the others, and cut off what does not end in time."""
        connections, tasks = self._state.connections, self._state.tasks
        for connection in tuple(connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(self._limits.stop_seconds):
                while connections or tasks:  # noqa: ASYNC110 - uvicorn's protocol tells nobody
                    await asyncio.sleep(0.01)
        except TimeoutError:
            log.warning("stopped with connections open", {"connections": len(connections), "requests": len(tasks)})
            for connection in tuple(connections):
                connection.transport.abort()
            for task in tuple(tasks):
                task.cancel()
            await asyncio.sleep(0)  # what was aborted is closed at the loop's next turn


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
        timeout_keep_alive=limits.keep_alive_seconds,  # type: ignore[arg-type]  # goes to loop.call_later as it is
    )
