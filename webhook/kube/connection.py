"""Connects to servers with credentials, TLS and HTTP, by the Kubernetes client library; bodies stay bytes.

It uses the library's configuration and its aiohttp layer, but not its models, because they drop unknown fields. Only
`leader_election` uses the library too. HTTPS between replicas trusts only the certificate that both serve.
"""

import ast
import asyncio
import logging
import os
import re
import socket
import ssl
import sys
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlencode
from urllib.request import getproxies

import yarl
from multidict import CIMultiDict

from webhook.kube.client import ApiRequest
from webhook.kube.errors import Failed, TooLong, Unreachable, failure
from webhook.kube.kubeconfig import Kubeconfig, in_cluster, read_kubeconfig, unusable

_PARTS = ("dynamic", "informer", "leaderelection", "stream", "utils", "watch")
_UNUSED = {"kubernetes.config", *(f"kubernetes.{aio}{part}" for aio in ("", "aio.") for part in _PARTS)}
"""Parts of the library that are loaded at their first use only, as `leader_election` uses one of them."""

_CAS = "SSL_CERT_FILE"
"""The variable with the file of the CAs that OpenSSL trusts by default."""


class _Unused:
    """Finds the modules in _UNUSED like any other module, and loads them at their first use."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        found = PathFinder.find_spec(name, path, target) if name in _UNUSED else None
        if found is not None and isinstance(found.loader, Loader):
            found.loader = LazyLoader(found.loader)
        return found


@contextmanager
def unused_parts_left() -> Iterator[None]:
    """Speed up the first import of the Kubernetes library and of aiohttp.

    The library imports all of its parts. aiohttp reads all CAs of this machine, twice, for connections without a TLS
    context of their own, which ours have.
    """
    sys.meta_path.insert(0, _Unused)
    named = os.environ.get(_CAS)
    os.environ[_CAS] = os.devnull
    try:
        yield
    finally:
        sys.meta_path.remove(_Unused)
        os.environ.pop(_CAS)
        if named is not None:
            os.environ[_CAS] = named


with unused_parts_left():
    import aiohttp
    from kubernetes.aio import client, config
    from kubernetes.aio.client.rest import RESTClientObject
    from kubernetes.aio.config import kube_config

_config: Any = config
"""The library has hardly any types, so none of its objects leaves this file."""

_WRONG_IN_KUBECONFIG = (ValueError, TypeError, LookupError, AttributeError)
"""The errors of the library for values of a wrong type."""

_NOT_THERE = ("File does not exists", "the kubeconfig names a file that is not there")

_LOOPBACK = {"localhost", "127.0.0.1", "::1"}

GOODBYE_SECONDS = 2.0

MOST_BYTES = 32 << 20
"""Bytes of one answer that is read whole. An object has 1.5 MiB at most, but hundreds of them would fill our memory."""


class _Rest(RESTClientObject):
    """An HTTP client whose `close` waits until its connections have ended, for GOODBYE_SECONDS at most.

    aiohttp waits only for the connections in its pool. The connection of a cancelled request is still shutting down
    TLS, and an event loop that ends before that complains of an open socket.
    """

    def __init__(self, configuration: Any) -> None:
        super().__init__(configuration)
        self._sockets = weakref.WeakSet[socket.socket]()

    async def close(self) -> None:
        """Close all connections. Give up on unanswered ones after a while."""
        await super().close()
        with suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                while any(each.fileno() != -1 for each in self._sockets):  # noqa: ASYNC110 - there is no signal
                    await asyncio.sleep(0.001)

    def _create_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(limit=self.maxsize, ssl=self.ssl_context, socket_factory=self._socket)

    def _socket(self, address: Any) -> socket.socket:
        made = socket.socket(*address[:3])
        self._sockets.add(made)
        return made


SAMPLE_SECONDS = 1.0


class ServerClock:
    """Seconds since 1970 as the API server counts them; by this machine's clock until the first answer.

    By this clock replicas agree although their nodes' clocks differ, and a step of a node's clock has no effect.

    A Date has whole seconds: at some moment of the request the server's clock was between it and a second later. Each
    answer, one a second at most, narrows the difference to our monotonic clock, or replaces it if they contradict.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time) -> None:
        self._monotonic = monotonic
        self._wall = wall
        self._ahead: tuple[float, float] | None = None
        self._sampled = float("-inf")

    def note(self, date: str | None, sent: float) -> None:
        """Note the Date header of an answer to a request that was sent at this monotonic time."""
        received = self._monotonic()
        if date is None or received < self._sampled + SAMPLE_SECONDS:
            return
        try:
            shown = parsedate_to_datetime(date).timestamp()
        except ValueError:
            return
        self._sampled = received
        least, most = shown - received, shown + 1 - sent
        if self._ahead is not None and max(least, self._ahead[0]) <= min(most, self._ahead[1]):
            least, most = max(least, self._ahead[0]), min(most, self._ahead[1])
        self._ahead = least, most

    def now(self) -> float:
        return self._wall() if self._ahead is None else self._monotonic() + sum(self._ahead) / 2


class Connection:
    """Authenticated HTTP to one server, from `connect` or `elsewhere`. Close it with `close`."""

    def __init__(self, configuration: Any, loader: Any = None, act_as: Sequence[tuple[str, str]] = ()) -> None:
        # aiohttp looks for a proxy before each request, in a thread of its own, which takes 0.5 ms without a proxy.
        by_proxy = bool(getproxies()) and yarl.URL(configuration.host).host not in _LOOPBACK  # as Go's clients do
        configuration.client_session_kwargs = {"trust_env": by_proxy}
        self._configuration = configuration
        self._act_as = act_as
        self.clock = ServerClock()
        self._rest = _Rest(configuration)
        self._watches = _Rest(configuration)
        self._watches.maxsize = 0  # no limit, because long watches would otherwise leave requests no connection
        self._refresh = asyncio.create_task(_config.refresh_token(loader, configuration)) if loader else None

    async def close(self) -> None:
        if self._refresh is not None:
            self._refresh.cancel()
            await asyncio.gather(self._refresh, return_exceptions=True)
        await asyncio.gather(self._rest.close(), self._watches.close())

    async def send(self, request: ApiRequest, seconds: float, warned: list[str] | None = None) -> bytes:
        """Return the whole answer within so many seconds. Raises ApiError; TooLong beyond MOST_BYTES.

        `warned` gets the headers with warnings, also those of a failure.
        """
        limit = aiohttp.ClientTimeout(total=seconds, ceil_threshold=float("inf"))
        async with self._response(self._rest, request, limit, warned) as response:
            pieces, size = list[bytes](), 0
            async for piece in response.content.iter_any():
                pieces.append(piece)
                size += len(piece)
                if size > MOST_BYTES:
                    _break_off(response)
                    what = f"{request.method} {request.path}"
                    raise TooLong(f"{what}: the answer has more than {MOST_BYTES >> 20} MiB")
            return b"".join(pieces)

    @asynccontextmanager
    async def stream(self, request: ApiRequest, idle: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield a body that never ends, in pieces. Raises Unreachable if nothing comes for `idle` seconds."""
        limit = aiohttp.ClientTimeout(sock_connect=10, sock_read=idle)
        async with self._response(self._watches, request, limit) as response:
            try:
                yield response.content.iter_any()
            finally:
                _break_off(response)

    @asynccontextmanager
    async def _response(
        self, rest: Any, request: ApiRequest, limit: aiohttp.ClientTimeout, warned: list[str] | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        method, path = request.method, request.path
        url = yarl.URL(f"{self._configuration.host}{path}?{urlencode(request.params)}", encoded=True)
        try:
            # The current token, because that of a ServiceAccount changes every hour.
            token = (await self._configuration.auth_settings()).get("BearerToken", {}).get("value")
            headers = CIMultiDict({"Content-Type": request.content_type, "Accept": request.accept})
            headers["User-Agent"] = "gpu-tiers"
            headers.extend({"Authorization": token} if token else {})
            headers.extend(self._act_as)
            sent = time.monotonic()
            answer = await rest.request(method, url, headers, body=request.body, _request_timeout=limit)
            async with answer.response as response:
                self.clock.note(response.headers.get("Date"), sent)
                if warned is not None:
                    warned += response.headers.getall("Warning", [])
                if not response.ok:
                    raise failure(method, path, response.status, await response.read())
                yield response
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            raise Unreachable(f"{method} {path}: {_why(error)}") from error


def _why(error: aiohttp.ClientError | OSError) -> str:
    """Return the reason, such as `Cannot connect to 127.0.0.1:6443: Connection refused`."""
    if not isinstance(error, aiohttp.ClientConnectorError):
        return str(error) or "no answer in time"
    cause = error.os_error
    said = os.strerror(cause.errno or 0) if isinstance(cause, ConnectionError) else cause.strerror or cause
    return f"Cannot connect to {error.host}:{error.port}: {said}"


def _break_off(response: aiohttp.ClientResponse) -> None:
    """Close at once, because a TLS shutdown outlives the event loop, which then complains of an open socket."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


async def connect(kubeconfig: Path | None = None, context: str | None = None) -> Connection:
    """Connect by the given kubeconfig, or the pod's ServiceAccount, or $KUBECONFIG or ~/.kube/config, in this order.

    `context` is a context of the kubeconfig; with one, the ServiceAccount is skipped. Raises Unreachable if none can be
    used.
    """
    configuration = client.Configuration()
    try:
        if in_cluster(kubeconfig, context):
            _config.load_incluster_config(configuration)
            return Connection(configuration)
        found = read_kubeconfig(kubeconfig, context)
        loader = await _logged_in(found, configuration)
        return Connection(configuration, loader, tuple(found.acting_as()))
    except (_config.ConfigException, OSError, *_WRONG_IN_KUBECONFIG) as error:
        said = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.filename else str(error)
        raise unusable(" ".join(said.split()).replace(*_NOT_THERE)) from error


def elsewhere(url: str, token_file: Path | None, ca_file: Path | None) -> Connection:
    """Connect to another server, with the current content of the files. Raises OSError or ValueError."""
    ca = ca_file.read_text(encoding="utf-8") if ca_file else None
    configuration = client.Configuration(host=url.rstrip("/"), ca_cert_data=ca)
    if token_file:
        configuration.api_key["BearerToken"] = f"Bearer {token_file.read_text(encoding='utf-8').strip()}"
    return Connection(configuration)


async def _logged_in(found: Kubeconfig, configuration: Any) -> Any:
    """Return the library's loader. Raises Unreachable if a credential plugin fails, which the library only logs."""
    log, failures = logging.getLogger(kube_config.__name__), list[str]()

    def note_failure(record: logging.LogRecord) -> bool:
        """Note the plugin's message from `exec: process returned 1. b'login expired'`, or from an OSError."""
        logged = record.getMessage()
        words = re.fullmatch(r"exec: process returned \d+\. (b.*)", logged)
        said = ast.literal_eval(words[1]).decode(errors="replace") if words else re.sub(r"^\[Errno \d+\] ", "", logged)
        if record.levelno >= logging.ERROR:
            failures.append(" ".join(said.split()))
        return record.levelno < logging.ERROR

    log.addFilter(note_failure)
    try:
        loader = await _config.load_kube_config(found.files, found.context, client_configuration=configuration)
    finally:
        log.removeFilter(note_failure)
    if failures:
        command = (found.user.get("exec") or {}).get("command")
        raise unusable(f'the credential plugin "{command}" gives no login: {failures[0]}')
    return loader


IDLE_SECONDS = 90.0
"""Seconds for which an idle connection to a peer stays open. The server leaves it open for longer."""
END = b"-----END CERTIFICATE-----"


class Peers:
    """Connections to other replicas that stay open. Create it in the loop that uses it, and close it at the end.

    `certificate` returns the PEM of the current serving certificate, the leaf first.
    """

    def __init__(self, certificate: Callable[[], bytes]) -> None:
        self._certificate = certificate
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_SECONDS), timeout=aiohttp.ClientTimeout()
        )

    async def close(self) -> None:
        await self._session.close()

    @asynccontextmanager
    async def post(
        self, address: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> AsyncIterator[Awaitable[bytes]]:
        """Send a request, and yield the answer's body when its head is there. Raises Unreachable or Failed."""
        asked = self._session.post(
            f"https://{address}{path}", headers=headers, data=body, ssl=_trusting(self._certificate())
        )
        try:
            async with asked as response:
                if response.status != HTTPStatus.OK:
                    raise Failed(f"https://{address}{path}: HTTP {response.status}", response.status)
                yield response.read()
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            raise Unreachable(f"https://{address}{path}: {error}") from error


@lru_cache(maxsize=2)
def _trusting(certificate: bytes) -> ssl.SSLContext:
    """Return a TLS context that trusts this certificate only, at any address, because only a replica has its key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    leaf = certificate.partition(END)
    context.load_verify_locations(cadata=b"".join(leaf[:2]).decode())
    return context
