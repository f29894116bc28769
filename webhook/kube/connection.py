"""The one place that touches the Kubernetes client library: credentials, TLS and HTTP, as bytes.

Its configuration and its aiohttp layer are used; its models are not, for they drop the fields they don't know.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from urllib.request import getproxies

import aiohttp
import yaml
import yarl
from kubernetes.aio import client, config
from kubernetes.aio.client.rest import RESTClientObject
from multidict import CIMultiDict

from webhook.kube.errors import Unreachable, failure
from webhook.kube.wire import warnings_in

_config: Any = config
_rest_client: Any = RESTClientObject
"""The library has no types worth the name; nothing of it leaves this file."""

_NO_KUBECONFIG = (ValueError, TypeError, LookupError, AttributeError)
"""What the library raises for YAML that is no kubeconfig."""

_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

JSON = "application/json"


class Connection:
    """Authenticated HTTP to one API server. Made by `connect`; close it with `close`."""

    def __init__(self, configuration: Any, loader: Any = None, act_as: Sequence[tuple[str, str]] = ()) -> None:
        # aiohttp looks for a proxy before each request, in a thread of its own: 0.5 ms where there is none.
        configuration.client_session_kwargs = {"trust_env": bool(getproxies())}
        self._configuration = configuration
        self._act_as = act_as
        self._rest = _rest_client(configuration)
        self._refresh = asyncio.create_task(_config.refresh_token(loader, configuration)) if loader else None

    async def close(self) -> None:
        """Close all connections, watches included."""
        if self._refresh is not None:
            self._refresh.cancel()
            await asyncio.gather(self._refresh, return_exceptions=True)
        await self._rest.close()

    async def send(
        self,
        method: str,
        path: str,
        params: Mapping[str, str],
        timeout: float,  # noqa: ASYNC109 - handed on to aiohttp
        body: object = None,
        content_type: str = JSON,
        accept: str = JSON,
        heard: list[str] | None = None,
    ) -> bytes:
        """One request and its whole answer. Raises ApiError; `timeout` in seconds bounds all of it.

        Its warnings are added to `heard`, those of an error too.
        """
        limit = aiohttp.ClientTimeout(total=timeout, ceil_threshold=float("inf"))
        async with self._response(method, path, params, limit, body, content_type, accept, heard) as response:
            return await response.read()

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], idle: float, accept: str = JSON
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """A GET whose body never ends, in pieces. Raises Unreachable where nothing comes for `idle` seconds."""
        limit = aiohttp.ClientTimeout(sock_connect=10, sock_read=idle)
        async with self._response("GET", path, params, limit, accept=accept) as response:
            try:
                yield response.content.iter_any()
            finally:
                _break_off(response)

    @asynccontextmanager
    async def _response(
        self,
        method: str,
        path: str,
        params: Mapping[str, str],
        limit: aiohttp.ClientTimeout,
        body: object = None,
        content_type: str = JSON,
        accept: str = JSON,
        heard: list[str] | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        url = yarl.URL(f"{self._configuration.host}{path}?{urlencode(params)}", encoded=True)
        try:
            headers = CIMultiDict({"Content-Type": content_type, "Accept": accept, **await self._headers()})
            headers.extend(self._act_as)
            answer = await self._rest.request(method, url, headers, body=body, _request_timeout=limit)
            async with answer.response as response:
                if heard is not None:
                    heard.extend(warnings_in(response.headers.getall("Warning", [])))
                if not response.ok:
                    raise failure(method, path, response.status, await response.read())
                yield response
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError is an OSError
            raise Unreachable(f"{method} {path}: {_why(error)}") from error

    async def _headers(self) -> dict[str, str]:
        """Headers with the token of now: a ServiceAccount's changes every hour."""
        token = (await self._configuration.auth_settings()).get("BearerToken", {}).get("value")
        return {"User-Agent": "gpu-tiers"} | ({"Authorization": token} if token else {})


def _why(error: aiohttp.ClientError | OSError) -> str:
    """Such as: `Cannot connect to 127.0.0.1:6443: Connection refused`."""
    if not isinstance(error, aiohttp.ClientConnectorError):
        return str(error) or "no answer in time"
    cause = error.os_error
    said = os.strerror(cause.errno or 0) if isinstance(cause, ConnectionError) else cause.strerror or cause
    return f"Cannot connect to {error.host}:{error.port}: {said}"


def _break_off(response: aiohttp.ClientResponse) -> None:
    """Close at once: a polite end of TLS outlives the event loop, which then complains of an open socket."""
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()


async def connect(kubeconfig: Path | None = None, context: str | None = None) -> Connection:
    """A connection by the kubeconfig given, else by the pod's ServiceAccount, else by $KUBECONFIG or ~/.kube/config.

    `context` is one of the kubeconfig. Raises Unreachable where none of them can be used.
    """
    configuration = client.Configuration()
    try:
        if _in_cluster(kubeconfig, context):
            _config.load_incluster_config(configuration)
            return Connection(configuration)
        named = _existing(kubeconfig)
        act_as = tuple(_acting_as(_user_of(_served_by(named, context), _places(kubeconfig))))
        loader = await _config.load_kube_config(named, context, client_configuration=configuration)
        return Connection(configuration, loader, act_as)
    except (_config.ConfigException, OSError, yaml.YAMLError, *_NO_KUBECONFIG) as error:
        raise Unreachable(f"can't find the API server: {' '.join(str(error).split())}") from error


def context_namespace(kubeconfig: Path | None = None, context: str | None = None) -> str:
    """The namespace that kubectl would take with this kubeconfig and context. Raises Unreachable as `connect` does."""
    try:
        if _in_cluster(kubeconfig, context):
            return _OWN_NAMESPACE.read_text(encoding="utf-8").strip() if _OWN_NAMESPACE.is_file() else "default"
        found = _served_by(_existing(kubeconfig), context)
        return str((found.get("context") or {}).get("namespace") or "default")
    except (_config.ConfigException, OSError, yaml.YAMLError, *_NO_KUBECONFIG) as error:
        raise Unreachable(f"can't find the API server: {' '.join(str(error).split())}") from error


def _in_cluster(kubeconfig: Path | None, context: str | None) -> bool:
    """Whether the pod's ServiceAccount is to be used."""
    return kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ


def _existing(kubeconfig: Path | None) -> str | None:
    """The file; None where the library finds it. It may be several in $KUBECONFIG, of which one has to be there."""
    places = _places(kubeconfig)
    if not any(each.is_file() for each in places):
        instead = "" if kubeconfig else "; name one with --kubeconfig, or in $KUBECONFIG"
        raise OSError(f"there is no kubeconfig at {', '.join(map(str, places))}{instead}")
    return str(kubeconfig) if kubeconfig else None


def _places(kubeconfig: Path | None) -> list[Path]:
    """Where kubeconfigs may be; an empty $KUBECONFIG is none, as for kubectl."""
    if kubeconfig is not None:
        return [kubeconfig]
    named = os.environ.get("KUBECONFIG") or "~/.kube/config"
    return [Path(each).expanduser() for each in named.split(os.pathsep) if each]


def _served_by(kubeconfig: str | None, context: str | None) -> Mapping[str, Any]:
    """The context asked for, else the current one. Raises LookupError with those that there are."""
    contexts, current = _config.list_kube_config_contexts(kubeconfig)
    if context is None:
        return current or {}
    names = [str(each.get("name")) for each in contexts]
    if context not in names:
        raise LookupError(f'the kubeconfig has no context "{context}"; it has {", ".join(names) or "none"}')
    return next(each for each in contexts if each.get("name") == context)


def _user_of(served: Mapping[str, Any], places: Iterable[Path]) -> Mapping[str, Any]:
    """The user of a context, from the first file that has one of its name."""
    name = (served.get("context") or {}).get("user")
    files = (yaml.safe_load(each.read_text(encoding="utf-8")) for each in places if each.is_file())
    users = (user for file in files for user in (file or {}).get("users") or ())
    return next((user.get("user") or {} for user in users if user.get("name") == name), {})


def _acting_as(user: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The headers by which a user acts as another, which the library leaves out.

    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
    """
    if user.get("as"):
        yield "Impersonate-User", str(user["as"])
    if user.get("as-uid"):
        yield "Impersonate-Uid", str(user["as-uid"])
    yield from (("Impersonate-Group", str(group)) for group in user.get("as-groups") or ())
    for key, values in (user.get("as-user-extra") or {}).items():
        yield from ((f"Impersonate-Extra-{quote(str(key), safe='')}", str(value)) for value in values)
