"""A listening port that serves one app with uvicorn's protocol until it is stopped.

uvicorn has a time limit only for keep-alive. Half-sent headers and bodies would stay open forever, and all requests of
a client that reads no answers would be queued. So the protocol here has limits of its own.

The process stops in two steps. While it drains, it is not ready, and closes the connection with each answer. Then it
ends. A plain stop under load broke 47 of 120,000 requests, and with the drain none broke (docs/performance.md): API
servers keep connections open, and the removal of the endpoint takes a moment to reach them.
"""

import asyncio
import contextlib
import logging
import signal
import socket
import ssl
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Literal

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from webhook.server.endpoint import Callers, Limits
from webhook.server.metrics import Metrics


class Drain:
    """The state of the drain, for probes and connections. It lasts `seconds`, or until the second `begin`."""

    def __init__(self, seconds: float = 3.0) -> None:
        self.seconds = seconds
        self._begun = asyncio.Event()
        self._hurried = asyncio.Event()

    @property
    def begun(self) -> bool:
        """True once the process stops: it is not ready, and every answer closes its connection."""
        return self._begun.is_set()

    def begin(self) -> None:
        if self.begun:
            self._hurried.set()
            return
        log.info("draining", {"seconds": self.seconds})
        self._begun.set()

    async def over(self) -> None:
        """Wait until the drain has begun and is over."""
        await self._begun.wait()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.seconds):
                await self._hurried.wait()

    def on_signals(self) -> None:
        """Begin at SIGTERM and SIGINT; a second signal ends the drain. Call it in the main thread's running loop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.begin)


Cause = Literal["headers", "body", "answer", "size", "pipelined", "name", "crowd"]


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's httptools protocol with limits of time (headers, body, unread answers), bytes, and queued requests.

    A connection beyond a limit is aborted and counted. No timer is set for a request that arrives in one piece.
    """

    def __init__(self, listener: "Listener") -> None:
        super().__init__(config=listener.config, server_state=listener.state, app_state={})
        self._listener = listener
        limits = self._limits = listener.limits
        self._seconds = {"headers": limits.headers_seconds, "body": limits.body_seconds + limits.linger_seconds}
        self._part: Literal["headers", "body"] | None = None
        """The part of a request that is arriving now."""
        self._timed: str | None = None
        self._arrival: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Give a connection the keep-alive time for its first request, because Go clients open connections in advance.

        Cut one whose client certificate has none of the names, and the oldest without a review if there are too many.
        """
        super().connection_made(transport)  # type: ignore[arg-type]
        self._wait_for_request()
        if not self._listener.callers.admits(transport.get_extra_info("peercert")):
            self._cut("name")
            return
        self._listener.strangers[self] = None
        if len(self._listener.strangers) > self._limits.strangers:
            oldest = next(iter(self._listener.strangers))
            del self._listener.strangers[oldest]
            oldest._cut("crowd")  # noqa: SLF001 - another connection of this class

    def data_received(self, data: bytes) -> None:
        self._bytes += len(data)
        super().data_received(data)
        if not self.transport.is_closing():
            most = self._limits.headers_bytes if self._part == "headers" else self._limits.message_bytes
            if self._bytes > most:
                self._cut("size")
            if self._part != self._timed:
                self._stop_timing()
                if self._part is not None:
                    self._timed = self._part
                    self._arrival = self.loop.call_later(self._seconds[self._part], self._cut, self._part)
            self._wait_for_request()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._part = "headers"
        self._stop_timing()
        self._bytes = 0

    def on_headers_complete(self) -> None:
        """Begin the body of a request (httptools). While draining, its answer has `Connection: close`.

        A request to the path of a review ends the connection's state as a stranger. Too many pipelined requests cut the
        connection.
        """
        self._part = "body"
        super().on_headers_complete()
        if self in self._listener.strangers and self._listener.callers.webhook_at(self.scope["raw_path"]):
            del self._listener.strangers[self]
        if self._listener.drain.begun:
            self.cycle.keep_alive = False
        if len(self.pipeline) > self._limits.pipelined:
            self._cut("pipelined")

    def on_message_complete(self) -> None:
        self._part = None
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Start the timer that cuts off a client that does not read its answers."""
        super().pause_writing()
        self._unread = self.loop.call_later(self._limits.unread_seconds, self._cut, "answer")

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_unread()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timing()
        self._stop_unread()
        self._listener.strangers.pop(self, None)
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def shutdown(self) -> None:
        """Close the connection if it is idle. A request is still answered, even if only its headers are arriving."""
        if self._part != "headers":
            super().shutdown()

    def _wait_for_request(self) -> None:
        """Start the keep-alive timer if uvicorn does not: before the first request, or after bytes between requests."""
        answered = self.cycle is None or self.cycle.response_complete
        if self._part is None and answered and self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _stop_timing(self) -> None:
        self._timed = None
        if self._arrival is not None:
            self._arrival.cancel()
            self._arrival = None

    def _stop_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _cut(self, cause: Cause) -> None:
        if not self.transport.is_closing():
            self._listener.metrics.count("gpu_tiers_cut_connections_total", cause)
        self.transport.abort()


log = logging.getLogger(__name__)

BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket. Port 0 takes a free one. Raises OSError with address and port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    both = host == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        raise OSError(error.errno, f"cannot listen on {host} port {port}: {error.strerror}") from error


def port_of(listening: socket.socket) -> int:
    port: int = listening.getsockname()[1]
    return port


@dataclass(eq=False)
class Listener:
    """Serves one app on one socket until `stop`.

    It replaces uvicorn's own Server, which takes over the signals, can't limit the TLS handshake, and wakes up ten
    times a second.
    """

    app: ASGIApp
    limits: Limits
    drain: Drain
    metrics: Metrics
    tls: ssl.SSLContext | None = None
    callers: Callers = field(default_factory=Callers)
    strangers: dict[GuardedProtocol, None] = field(default_factory=dict)
    """Connections that have sent no review yet, the oldest first. Any pod that reaches the port can open them."""
    state: ServerState = field(default_factory=ServerState)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _loop: asyncio.AbstractEventLoop | None = None

    def __post_init__(self) -> None:
        self.config = uvicorn.Config(
            self.app,
            http=GuardedProtocol,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=self.limits.connections,
            timeout_keep_alive=self.limits.keep_alive_seconds,  # type: ignore[arg-type]  # goes to loop.call_later
        )

    def stop(self) -> None:
        if self._loop is None:
            self._stopping.set()
        else:
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def serve(self, listening: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        server = await self._loop.create_server(
            lambda: GuardedProtocol(self),
            sock=listening,
            ssl=self.tls,
            ssl_handshake_timeout=self.limits.handshake_seconds if self.tls else None,
            backlog=BACKLOG,
        )
        try:
            while not self._stopping.is_set():
                self.state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        await self._stopping.wait()
        finally:
            self._loop.remove_reader(listening)
            for _ in range(2):  # asyncio's server never closes a connection that it accepts while it is being closed
                await asyncio.sleep(0)
            server.close()
            await self._finish()
            self._loop = None

    async def _finish(self) -> None:
        """Close idle connections, wait for the others, and cut off those that do not end in time."""
        connections, tasks = self.state.connections, self.state.tasks
        for connection in tuple(connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(self.limits.stop_seconds):
                while connections or tasks:  # noqa: ASYNC110 - uvicorn's protocol has no signal for it
                    await asyncio.sleep(0.01)
        except TimeoutError:
            log.warning("stopped with connections open", {"connections": len(connections), "requests": len(tasks)})
            for connection in tuple(connections):
                connection.transport.abort()
            for task in tuple(tasks):
                task.cancel()
            await asyncio.sleep(0)  # aborted connections are closed in the loop's next iteration
