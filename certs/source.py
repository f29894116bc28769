"""Defines the sources of a serving certificate, the API server as they need it, and the bundle that they return.

A bundle is loaded into a live TLS context, and described in lines. Objects of the API server are plain dicts.
"""

import asyncio
import logging
import ssl
import tempfile
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from certs.make import Lifetimes, key_pem, make_ca, make_leaf, names_of, pem, utc_now


class CertificateError(Exception):
    """The reason why no certificate is available or trusted."""


@dataclass(frozen=True)
class Bundle:
    """A serving certificate (leaf first), its key, and the CAs that clients should trust, all in PEM.

    `bundle_of` makes it, so the key always fits the certificate. `ca` may be empty, if the source knows no CA.
    """

    certificate: bytes
    key: bytes
    ca: bytes
    not_after: datetime


class CertificateSource(Protocol):
    """A source of the serving certificate."""

    async def load(self) -> Bundle:
        """Return the bundle to start with. Raises CertificateError if there is none."""

    def changes(self) -> AsyncIterator[Bundle]:
        """Yield each bundle that differs from the previous one, forever; problems are logged and retried."""


def bundle_of(certificate: bytes, key: bytes, ca: bytes) -> Bundle:
    """Check that the three PEM texts can be read and fit together. Raises CertificateError with the mistake."""
    chain = _certificates(certificate, "certificate")
    try:
        private = load_pem_private_key(key, password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError(f"the key cannot be read: {error}") from error
    if private.public_key() != chain[0].public_key():
        raise CertificateError("the key does not belong to the certificate")
    if ca.strip():
        _certificates(ca, "CA bundle")
    return Bundle(certificate, key, ca, chain[0].not_valid_after_utc)


def apply(context: ssl.SSLContext, bundle: Bundle) -> None:
    """Serve the bundle on new connections of a context that may be live already.

    OpenSSL only reads files, so key and certificate are in a file of mode 0600 in the temporary folder until this
    returns.
    """
    with tempfile.NamedTemporaryFile(prefix="gpu-tiers-", suffix=".pem") as file:
        file.write(bundle.key + b"\n" + bundle.certificate)
        file.flush()
        context.load_cert_chain(file.name)


def _certificates(pem: bytes, what: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise CertificateError(f"the {what} cannot be read: {error}") from error


def describe(bundle: Bundle, now: datetime) -> list[str]:
    """Return subject, issuer, names, dates (UTC) and days left, of the served certificate and of each trusted CA."""
    lines: list[str] = []
    for certificate in x509.load_pem_x509_certificates(bundle.certificate):
        lines += ["certificate", *_details(certificate, now)]
    for certificate in x509.load_pem_x509_certificates(bundle.ca) if bundle.ca.strip() else ():
        lines += ["trusted CA", *_details(certificate, now)]
    return lines


def _details(certificate: x509.Certificate, now: datetime) -> list[str]:
    rows = {
        "subject": certificate.subject.rfc4514_string(),
        "issuer": certificate.issuer.rfc4514_string(),
        "names": ", ".join(sorted(names_of(certificate))),
        "not before": _moment(certificate.not_valid_before_utc),
        "not after": _moment(certificate.not_valid_after_utc),
        "days left": (
            "expired" if certificate.not_valid_after_utc <= now else str((certificate.not_valid_after_utc - now).days)
        ),
    }
    return [f"  {label + ':':<12}{value}" for label, value in rows.items() if value]


def _moment(when: datetime) -> str:
    return when.strftime("%Y-%m-%d %H:%M:%S UTC")


Json = dict[str, Any]
JsonPatch = list[Json]


class Outdated(CertificateError):  # noqa: N818 - reads as what happened
    """The object has changed since it was read, because somebody else wrote first."""


class Objects(Protocol):
    """The API server, one named object at a time, so that RBAC by resourceNames is enough.

    `collection` is a path: /api/v1/namespaces/x/secrets. Failures raise CertificateError.
    """

    async def get(self, collection: str, name: str) -> Json | None:
        """Return the object, or None if it does not exist."""

    async def patch(self, collection: str, name: str, body: Json | JsonPatch) -> Json:
        """Apply a JSON merge patch (a dict) or a JSON patch (a list), and return the object.

        Raises Outdated if the resourceVersion in a merge patch, or a `test` in a JSON patch, doesn't hold.
        """

    async def changed(self, collection: str, name: str, *, since: str | None, within: float) -> None:
        """Return when the object differs from resourceVersion `since` (None: was absent), or after `within` seconds."""


log = logging.getLogger(__name__)

CERTIFICATE, KEY, CA = "tls.crt", "tls.key", "ca.crt"


class CertificateFiles:
    """Reads tls.crt, tls.key and ca.crt of a folder again every few seconds.

    Content is compared, not time stamps or inotify events, because a Secret's mount changes by a swap of its `..data`
    link. ca.crt may be absent: cert-manager leaves it out for issuers without one.
    """

    def __init__(self, folder: Path, *, every: float = 5.0) -> None:
        self._folder = folder
        self._every = every
        self._served: Bundle | None = None
        self._trouble = ""

    async def load(self) -> Bundle:
        """Return the bundle in the folder. Raises CertificateError naming the file that is missing or wrong."""
        self._served = await asyncio.to_thread(read_folder, self._folder)
        return self._served

    async def changes(self) -> AsyncIterator[Bundle]:
        """Yield each new good pair; the last good one stays active while a pair is half written or does not fit."""
        while True:
            await asyncio.sleep(self._every)
            try:
                bundle = await asyncio.to_thread(read_folder, self._folder)
            except CertificateError as error:
                if str(error) != self._trouble:
                    log.warning("certificate not taken, the last good one stays", {"reason": str(error)})
                self._trouble = str(error)
                continue
            self._trouble = ""
            if bundle != self._served:
                self._served = bundle
                about = {"folder": str(self._folder), "not_after": bundle.not_after.isoformat()}
                log.info("certificate changed", about)
                yield bundle


def read_folder(folder: Path) -> Bundle:
    certificate, key = _content(folder / CERTIFICATE), _content(folder / KEY)
    ca = _content(folder / CA) if (folder / CA).exists() else b""
    try:
        return bundle_of(certificate, key, ca)
    except CertificateError as error:
        raise CertificateError(f"{folder}: {error}") from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CertificateError(
            f"{path} does not exist: mount the Secret of the certificate there, or use self-managed certificates"
        ) from None
    except OSError as error:
        raise CertificateError(f"{path} cannot be read: {error.strerror}") from error


def make_files(folder: Path, names: Collection[str], *, now: datetime | None = None) -> Bundle:
    """Write tls.crt, tls.key (mode 0600) and ca.crt, as `CertificateFiles` reads them; the folder is created.

    The CA's key is discarded, so nobody can issue another certificate that clients of this CA would trust.
    """
    moment, lives = now or utc_now(), Lifetimes()
    ca = make_ca(moment, lives)
    leaf = make_leaf(ca, names, moment, lives)
    bundle = bundle_of(pem(leaf.certificate), key_pem(leaf.key), pem(ca.certificate))
    folder.mkdir(parents=True, exist_ok=True)
    private = folder / KEY
    private.unlink(missing_ok=True)
    private.touch(mode=0o600)
    private.write_bytes(bundle.key)
    (folder / CERTIFICATE).write_bytes(bundle.certificate)
    (folder / CA).write_bytes(bundle.ca)
    return bundle
