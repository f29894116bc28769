"""One HTTP/1.1 connection that a client can't hold open by sending little.

uvicorn times nothing but keep-alive: half-sent headers and bodies would stay for ever, and a client that sends requests
without reading answers would have them all queued.
"""

import asyncio
from typing import Generic, Literal, TypeVar

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from webhook.server.drain import Drain
from webhook.server.endpoint import Callers
from webhook.server.metric_table import CUT_CONNECTIONS
from webhook.server.metrics import Metrics
from webhook.server.request_limits import Limits

T = TypeVar("T")


class Strangers(Generic[T]):
    """Connections that have asked for no review yet: so many at most, in the order in which they came.

    Whoever reaches the port can open them, so none keeps others out.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: dict[T, None] = {}

    def __contains__(self, connection: T) -> bool:
        return connection in self._waiting

    def add(self, connection: T) -> T | None:
        """One more has come; the one that has to go for it, which has said nothing for longest."""
        self._waiting[connection] = None
        if len(self._waiting) <= self._most:
            return None
        oldest = next(iter(self._waiting))
        del self._waiting[oldest]
        return oldest

    def discard(self, connection: T) -> None:
        """It has asked for a review, or is gone."""
        self._waiting.pop(connection, None)


Cause = Literal["headers", "body", "answer", "size", "pipelined", "name", "crowd"]


class GuardedProtocol(HttpToolsProtocol):
    """uvicorn's httptools protocol with clocks on headers, body and unread answers, and caps on bytes and queue.

    No timer is set for a request that arrives in one piece.
    """

    def __init__(
        self,
        config: Config,
        state: ServerState,
        *,
        limits: Limits,
        drain: Drain,
        metrics: Metrics,
        callers: Callers,
        strangers: Strangers["GuardedProtocol"],
    ) -> None:
        super().__init__(config=config, server_state=state, app_state={})
        self._limits = limits
        self._drain = drain
        self._metrics = metrics
        self._callers = callers
        self._strangers = strangers
        self._seconds = {"headers": limits.headers_seconds, "body": limits.body_seconds + limits.linger_seconds}
        self._part: Literal["headers", "body"] | None = None
        """The part of a request that is arriving now."""
        self._timed: str | None = None
        self._arrival: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._bytes = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A connection without a request has the keep-alive's time: Go clients dial ahead and park the connection."""
        super().connection_made(transport)  # type: ignore[arg-type]
        self._wait_for_request()
        if not self._callers.admits(transport.get_extra_info("peercert")):
            self._cut("name")
        if (gone := self._strangers.add(self)) is not None:
            gone._cut("crowd")  # noqa: SLF001 - another connection of this class

    def data_received(self, data: bytes) -> None:
        self._bytes += len(data)
        super().data_received(data)
        if not self.transport.is_closing():
            most = self._limits.headers_bytes if self._part == "headers" else self._limits.message_bytes
            if self._bytes > most:
                self._cut("size")
            self._time_arrival()
            self._wait_for_request()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._part = "headers"
        self._stop_timing()
        self._bytes = 0

    def on_headers_complete(self) -> None:
        """A request's headers are complete (httptools); while draining its answer says `Connection: close`."""
        self._part = "body"
        super().on_headers_complete()
        if self in self._strangers and self._callers.webhook_at(self.scope["raw_path"]):
            self._strangers.discard(self)
        if self._drain.begun:
            self.cycle.keep_alive = False
        if len(self.pipeline) > self._limits.pipelined:
            self._cut("pipelined")

    def on_message_complete(self) -> None:
        self._part = None
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The client does not read; once it is too late for that, it is cut off."""
        super().pause_writing()
        self._unread = self.loop.call_later(self._limits.unread_seconds, self._cut, "answer")

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_unread()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timing()
        self._stop_unread()
        self._strangers.discard(self)
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def shutdown(self) -> None:
        """The server stops. A request whose headers are arriving is still answered."""
        if self._part != "headers":
            super().shutdown()

    def _wait_for_request(self) -> None:
        """Arm the keep-alive where uvicorn does not: before the first request, and after bytes between requests."""
        answered = self.cycle is None or self.cycle.response_complete
        if self._part is None and answered and self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _time_arrival(self) -> None:
        if self._part == self._timed:
            return
        self._stop_timing()
        if self._part is not None:
            self._timed = self._part
            self._arrival = self.loop.call_later(self._seconds[self._part], self._cut, self._part)

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
            self._metrics.count(CUT_CONNECTIONS, cause)
        self.transport.abort()
