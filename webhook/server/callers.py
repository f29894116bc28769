"""Who may ask for reviews: who knows the secret in their path and, where a CA is named, has a certificate from it.

An API server proves nothing by itself, and every pod of the cluster reaches the port. A review that somebody else made
up would book a tenant's quota, and be told as a verdict.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hmac import compare_digest
from pathlib import Path
from typing import Any, Self

from cryptography.x509 import load_pem_x509_certificates

from webhook.config.errors import ConfigError, unreadable

_SECRET = re.compile(r"[a-z0-9][a-z0-9-]{24,61}[a-z0-9]")
"""The API server takes nothing else for part of a webhook's path. 26 random characters of these are 128 bits."""
WEBHOOKS = ("/mutate", "/validate")


@dataclass(frozen=True)
class Callers:
    """What a caller must know or show. With nothing set anybody may ask, at paths that everybody knows."""

    secret: str = ""
    """What the paths begin with, such as /SECRET/mutate."""
    ca: str | None = None
    """PEM of the CA of their client certificates."""
    names: frozenset[str] = frozenset()
    """Names of which such a certificate must bear one; without any it may bear what it likes."""

    @cached_property
    def _paths(self) -> Mapping[str, bytes]:
        """The path at which each webhook is asked."""
        return {webhook: (f"/{self.secret}{webhook}" if self.secret else webhook).encode() for webhook in WEBHOOKS}

    @classmethod
    def told_by(cls, secret: Path | None, ca: Path | None, names: tuple[str, ...]) -> Self:
        """By these files. Raises ConfigError."""
        if names and ca is None:
            raise ConfigError("--client-name", ["needs --client-ca, the CA of the certificates that bear the name"])
        return cls(_secret_in(secret) if secret else "", _certificates_in(ca) if ca else None, frozenset(names))

    def webhook_at(self, path: bytes) -> str | None:
        """The webhook that is asked at this path; None for whoever does not know where reviews are asked for."""
        # compare_digest, and for both: a guess takes the same time however much of it is right.
        found = [webhook for webhook, here in self._paths.items() if compare_digest(here, path)]
        return found[0] if found else None

    def admits(self, certificate: dict[str, Any] | None) -> bool:
        """Whether a client may ask who has shown this certificate, as ssl.SSLObject.getpeercert has it.

        Its CA has been verified in the handshake.
        """
        if not self.names:
            return True
        found = certificate or {}
        common = {value for part in found.get("subject", ()) for kind, value in part if kind == "commonName"}
        return not self.names.isdisjoint(common | {value for _, value in found.get("subjectAltName", ())})


def _secret_in(file: Path) -> str:
    secret = _text_of(file).strip()
    if not _SECRET.fullmatch(secret):
        raise ConfigError(str(file), ["must hold 26 to 63 small letters, digits or -, and nothing else"])
    return secret


def _certificates_in(file: Path) -> str:
    text = _text_of(file)
    try:
        load_pem_x509_certificates(text.encode())
    except ValueError:
        raise ConfigError(str(file), ["must hold certificates in PEM"]) from None
    return text


def _text_of(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(file), [unreadable(error)]) from None
