"""What a certificate source is, and how its bundle gets into a live TLS context."""

import ssl
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key


class CertificateError(Exception):
    """No certificate can be had, or none can be trusted, and why."""


@dataclass(frozen=True)
class Bundle:
    """A serving certificate (leaf first), its key, and the CAs a client should trust: all PEM.

    Made by `bundle_of`, so the key always fits the certificate. `ca` may be empty: the source knows no CA.
    """

    certificate: bytes
    key: bytes
    ca: bytes
    not_after: datetime


class CertificateSource(Protocol):
    """Where the serving certificate comes from."""

    async def load(self) -> Bundle:
        """The bundle to start with. Raises CertificateError where there is none."""
        ...

    def changes(self) -> AsyncIterator[Bundle]:
        """Each bundle that differs from the one before, for ever; troubles are logged and outlasted."""
        ...


def bundle_of(certificate: bytes, key: bytes, ca: bytes) -> Bundle:
    """Check that the three PEM texts can be read and fit together. Raises CertificateError saying which not."""
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

    OpenSSL reads files only: one of mode 0600 in the temporary folder, gone when this returns.
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
