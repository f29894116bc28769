"""The serving certificate: the objects that store it, and the TLS contexts that serve it.

It sets the versions and ciphers of TLS. A running listener takes a new certificate.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from certs.source import Bundle, CertificateError, CertificateSource, Json, JsonPatch, Outdated, apply
from webhook.kube.client import Client, metadata_of
from webhook.kube.errors import ApiError, Conflict, Gone, Invalid, NotFound

log = logging.getLogger(__name__)

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Ciphers of TLS 1.2: forward secrecy with authenticated encryption. TLS 1.3 has no weaker ones."""


Port = Literal["reviews", "pages"]


class LiveCertificate:
    """The certificate of new connections. Existing connections keep their certificate.

    `load_cert_chain` on a listening context would work for a key of the same type only. OpenSSL has one certificate for
    each key type, so after a change from ECDSA to RSA the old one would be served until it expires.
    """

    def __init__(self, bundle: Bundle, client_ca: str | None = None) -> None:
        """Serve a bundle. With `client_ca`, a PEM, reviews need a client certificate from that CA."""
        self._cas: dict[Port, str | None] = {"reviews": client_ca, "pages": None}
        self.replace(bundle)
        self.reviews, self.pages = self._listening("reviews"), self._listening("pages")
        """The contexts of the listening sockets."""

    def replace(self, bundle: Bundle) -> None:
        """Serve another bundle from the next connection on. Raises OSError and leaves the old one active."""
        self._current = {port: _context(bundle, ca) for port, ca in self._cas.items()}
        self.bundle = bundle

    def _listening(self, port: Port) -> ssl.SSLContext:
        """Return a context that serves the current certificate in every handshake, with and without SNI."""

        def serve_current(connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
            connection.context = self._current[port]

        listening = _context(self.bundle, self._cas[port])
        listening.sni_callback = serve_current
        return listening

    async def follow(self, source: CertificateSource, taken: Callable[[Bundle], None]) -> None:
        """Serve each new bundle of a source, forever. If OpenSSL refuses a bundle, the old one stays active.

        `taken` is called with each new bundle that is served.
        """
        async for bundle in source.changes():
            try:
                self.replace(bundle)
                taken(bundle)
            except OSError as error:  # such as ssl.SSLError for a key that is too small, or a full /tmp
                log.error("certificate not taken, the last good one stays", {"reason": str(error)})  # noqa: TRY400 - the reason says it all


def _context(bundle: Bundle, client_ca: str | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    context.set_ciphers(CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=client_ca)
    apply(context, bundle)
    return context


FIELD_MANAGER = "gpu-tiers-certs"
REQUEST_SECONDS = 15.0
BROKEN_WATCH_SECONDS = 1.0
ANY_VERSION = ""
"""The version from which a watch shows an existing object first."""


class CertificateObjects:
    """The Protocol `certs.source.Objects` on a real API server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, collection: str, name: str) -> Json | None:
        """Return the object; None if it does not exist. Raises CertificateError."""
        with _errors_of_certs():
            try:
                return await self._client.get(f"{collection}/{name}", seconds=REQUEST_SECONDS)
            except NotFound:
                return None

    async def patch(self, collection: str, name: str, body: Json | JsonPatch) -> Json:
        """Apply a merge patch or a JSON patch, and return the object.

        Raises Outdated if the object has changed since, or if the API server finds the JSON patch invalid, such as for
        a `test` that fails. Raises CertificateError for any other failure.
        """
        outdated = (Conflict, Invalid) if isinstance(body, list) else Conflict
        with _errors_of_certs():
            try:
                return await self._client.patch(
                    f"{collection}/{name}", body, manager=FIELD_MANAGER, seconds=REQUEST_SECONDS
                )
            except outdated as error:
                raise Outdated(str(error)) from error

    async def changed(self, collection: str, name: str, *, since: str | None, within: float) -> None:
        """Return when the object differs from version `since`, after `within` seconds, or soon after the watch ends.

        A version may be too old to watch from, after a restart of the API server or many changes of other objects. Then
        the watch begins with the object as it is. Raises CertificateError.
        """
        try:
            async with asyncio.timeout(within):
                with _errors_of_certs():
                    try:
                        await self._change(collection, name, since, start=since or ANY_VERSION)
                    except Gone:
                        await self._change(collection, name, since, start=ANY_VERSION)
        except TimeoutError:
            return

    async def _change(self, collection: str, name: str, since: str | None, start: str) -> None:
        """Wait for a change. RBAC's resourceNames allow a watch only with this fieldSelector."""
        selector = {"fieldSelector": f"metadata.name={name}"}
        async with self._client.watch(collection, start, selector) as events:
            async for event in events:
                if event.type != "BOOKMARK" and metadata_of(event.object).resource_version != since:
                    return
        # A watch that ends at once (the API server stops) must not become a busy loop.
        await asyncio.sleep(BROKEN_WATCH_SECONDS)


@contextmanager
def _errors_of_certs() -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        raise CertificateError(str(error)) from error
