"""Decides which CA and certificate a Secret should hold next.

A rotation of the CA is three steps, and the order is what keeps every call working:

1. The new CA joins the bundle; the served certificate stays the old CA's. Serving a certificate of the new CA now
   would break each API server that has not read the new bundle yet.
2. The bundle with both is written to the webhook configurations, and the API servers get time to read it.
3. Only then (`trusted`) the new CA issues. Replicas take the new certificate at different moments, so the old CA
   stays trusted, until it expires.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from certs.make import Lifetimes, Pair, canonical, key_pem, make_ca, make_leaf, names_of, pem

CA, CA_KEY, CERTIFICATE, KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"

CA_SHARE = 4 / 5
"""Of its life a CA is current; the rest is for clients that have yet to learn of the next one."""
LEAF_SHARE = 2 / 3
"""Of its life a certificate is served before the next is issued: cert-manager's default too."""


@dataclass(frozen=True)
class Kept:
    """A Secret's content as far as it can be read. The first authority is the current one, if `signer` is set."""

    authorities: tuple[x509.Certificate, ...] = ()
    signer: Pair | None = None
    leaf: Pair | None = None


@dataclass(frozen=True)
class Step:
    """The content that the Secret should have, and the reasons for which it changes; none where it does not."""

    kept: Kept
    reasons: tuple[str, ...] = ()


def kept_in(data: Mapping[str, bytes]) -> Kept:
    """The usable parts of a Secret's data; a broken part counts as absent."""
    authorities = _certificates(data.get(CA, b""))
    return Kept(
        authorities,
        _pair(authorities, data.get(CA_KEY, b"")),
        _pair(_certificates(data.get(CERTIFICATE, b"")), data.get(KEY, b"")),
    )


def data_of(kept: Kept) -> dict[str, bytes]:
    """The Secret's data. `kept` comes from `advance`, so it has both pairs."""
    if kept.signer is None or kept.leaf is None:
        raise ValueError("nothing to write: a CA or a certificate is missing")
    return {
        CA: pem(*kept.authorities),
        CA_KEY: key_pem(kept.signer.key),
        CERTIFICATE: pem(kept.leaf.certificate),
        KEY: key_pem(kept.leaf.key),
    }


def advance(kept: Kept, *, now: datetime, names: Collection[str], lifetimes: Lifetimes, trusted: bool) -> Step:
    """The next content. `trusted`: every API server had the time to read a bundle with the current CA."""
    first = _with_current_ca(kept, now, lifetimes)
    # A CA made in this very step is in nobody's bundle yet.
    second = _with_leaf(first.kept, now, names, lifetimes, trusted=trusted and not first.reasons)
    return Step(second.kept, first.reasons + second.reasons)


def _with_current_ca(kept: Kept, now: datetime, lifetimes: Lifetimes) -> Step:
    alive = tuple(ca for ca in kept.authorities if ca.not_valid_after_utc > now)
    reason = "" if kept.signer else "no usable CA"
    if kept.signer and now >= _at(kept.signer.certificate, CA_SHARE):
        reason = "the CA is at 4/5 of its life"
    if reason:
        ca = make_ca(now, lifetimes)
        return Step(replace(kept, signer=ca, authorities=(ca.certificate, *alive)), (reason,))
    if alive != kept.authorities:
        return Step(replace(kept, authorities=alive), ("an old CA expired",))
    return Step(kept)


def _with_leaf(kept: Kept, now: datetime, names: Collection[str], lifetimes: Lifetimes, *, trusted: bool) -> Step:
    ca = kept.signer
    if ca is None:
        raise ValueError("a certificate needs a CA first")
    reason = _unusable(kept, now)
    if not reason:
        reason = _due(kept, ca, now, names)
        if not trusted and not _issued_by(kept.leaf, ca.certificate):
            return Step(kept)
    if not reason:
        return Step(kept)
    return Step(replace(kept, leaf=make_leaf(ca, names, now, lifetimes)), (reason,))


def _unusable(kept: Kept, now: datetime) -> str:
    if kept.leaf is None:
        return "no usable certificate"
    if kept.leaf.certificate.not_valid_after_utc <= now:
        return "the certificate expired"
    if not any(_issued_by(kept.leaf, ca) for ca in kept.authorities):
        return "the certificate is of no CA in the bundle"
    return ""


def _due(kept: Kept, ca: Pair, now: datetime, names: Collection[str]) -> str:
    """Why a certificate that still serves should be followed by another."""
    if kept.leaf is None or not _issued_by(kept.leaf, ca.certificate):
        return "the certificate is of an older CA"
    if names_of(kept.leaf.certificate) != canonical(names):
        return "the certificate is for other names"
    return "the certificate is at 2/3 of its life" if now >= _at(kept.leaf.certificate, LEAF_SHARE) else ""


def _issued_by(leaf: Pair | None, ca: x509.Certificate) -> bool:
    if leaf is None:
        return False
    try:
        leaf.certificate.verify_directly_issued_by(ca)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _at(certificate: x509.Certificate, share: float) -> datetime:
    life: timedelta = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_before_utc + life * share


def _certificates(text: bytes) -> tuple[x509.Certificate, ...]:
    try:
        return tuple(x509.load_pem_x509_certificates(text))
    except ValueError:
        return ()


def _pair(certificates: tuple[x509.Certificate, ...], key: bytes) -> Pair | None:
    try:
        private = load_pem_private_key(key, password=None)
    except (ValueError, TypeError):
        return None
    if not certificates or not isinstance(private, ec.EllipticCurvePrivateKey):
        return None
    pair = Pair(certificates[0], private)
    return pair if pair.certificate.public_key() == private.public_key() else None
