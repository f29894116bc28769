"""The webhook's own CA and certificate, without cert-manager; all replicas share them through one Secret.

A replica writes the Secret only if no other has written it since it was read.

A rotation of the CA has three steps, in an order that keeps every call working:

1. The new CA joins the bundle, and the old CA's certificate is still served. A certificate of the new CA would break
   each API server that has not read the new bundle yet.
2. The bundle with both is written to the webhook configurations, and the API servers get time to read it.
3. Only then (`trusted`) the new CA issues. Replicas take the new certificate at different moments, so the old CA stays
   trusted until it expires.
"""

import asyncio
import base64
import binascii
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from certs.configurations import WebhookConfigurations
from certs.make import Lifetimes, Pair, canonical, key_pem, make_ca, make_leaf, names_of, pem, utc_now
from certs.source import Bundle, CertificateError, Objects, Outdated, bundle_of

CA, CA_KEY, CERTIFICATE, KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"

CA_SHARE = 4 / 5
"""The share of its life in which a CA is current; the rest is for clients that don't know the next one yet."""
LEAF_SHARE = 2 / 3
"""The share of its life in which a certificate is served before the next is issued: cert-manager's default too."""


@dataclass(frozen=True)
class StoredPairs:
    """A Secret's content as far as it can be read. The first authority is the current one, if `signer` is set."""

    authorities: tuple[x509.Certificate, ...] = ()
    signer: Pair | None = None
    leaf: Pair | None = None


@dataclass(frozen=True)
class Step:
    """The content that the Secret should have, and the reasons for the change, if any."""

    stored: StoredPairs
    reasons: tuple[str, ...] = ()


def certificates_in(data: Mapping[str, bytes]) -> StoredPairs:
    """Return the usable parts of a Secret's data; a broken part counts as absent."""
    authorities = _certificates(data.get(CA, b""))
    return StoredPairs(
        authorities,
        _pair(authorities, data.get(CA_KEY, b"")),
        _pair(_certificates(data.get(CERTIFICATE, b"")), data.get(KEY, b"")),
    )


def data_of(stored: StoredPairs) -> dict[str, bytes]:
    """Return the Secret's data. `stored` comes from `advance`, so it has both pairs."""
    if stored.signer is None or stored.leaf is None:
        raise ValueError("nothing to write: a CA or a certificate is missing")
    return {
        CA: pem(*stored.authorities),
        CA_KEY: key_pem(stored.signer.key),
        CERTIFICATE: pem(stored.leaf.certificate),
        KEY: key_pem(stored.leaf.key),
    }


def advance(stored: StoredPairs, *, now: datetime, names: Collection[str], lifetimes: Lifetimes, trusted: bool) -> Step:
    """Return the next content. `trusted`: every API server had the time to read a bundle with the current CA."""
    reasons: list[str] = []

    # 1. The current CA. No bundle has a CA that is made in this step.
    alive = tuple(ca for ca in stored.authorities if ca.not_valid_after_utc > now)
    ca = stored.signer
    if ca is None or now >= _at(ca.certificate, CA_SHARE):
        reasons.append("the CA is at 4/5 of its life" if ca else "no usable CA")
        ca = make_ca(now, lifetimes)
        stored, trusted = replace(stored, signer=ca, authorities=(ca.certificate, *alive)), False
    elif alive != stored.authorities:
        reasons.append("an old CA expired")
        stored, trusted = replace(stored, authorities=alive), False

    # 2. The certificate: replaced at once if none is usable, otherwise once the CA that issues it is trusted.
    leaf = stored.leaf.certificate if stored.leaf else None
    if leaf is None:
        reason = "no usable certificate"
    elif leaf.not_valid_after_utc <= now:
        reason = "the certificate expired"
    elif not any(_issued_by(leaf, each) for each in stored.authorities):
        reason = "the certificate is of no CA in the bundle"
    elif not _issued_by(leaf, ca.certificate):
        reason = "the certificate is of an older CA" if trusted else ""
    elif names_of(leaf) != canonical(names):
        reason = "the certificate is for other names"
    else:
        reason = "the certificate is at 2/3 of its life" if now >= _at(leaf, LEAF_SHARE) else ""
    if reason:
        reasons.append(reason)
        stored = replace(stored, leaf=make_leaf(ca, names, now, lifetimes))
    return Step(stored, tuple(reasons))


def _issued_by(leaf: x509.Certificate, ca: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(ca)
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


@dataclass(frozen=True)
class Content:
    """A Secret's data at one resourceVersion; a value that is not base64 reads as empty."""

    version: str
    data: Mapping[str, bytes]

    def bundle(self) -> Bundle:
        """Return the bundle to serve. Raises CertificateError if the data is empty or broken."""
        return bundle_of(self.data.get(CERTIFICATE, b""), self.data.get(KEY, b""), self.data.get(CA, b""))


class CertificateSecret:
    """One named Secret, which the chart creates empty (RBAC cannot restrict `create` to a name)."""

    def __init__(self, objects: Objects, namespace: str, name: str) -> None:
        self._objects = objects
        self._collection = f"/api/v1/namespaces/{namespace}/secrets"
        self._name = name
        self.title = f"Secret {namespace}/{name}"

    async def read(self) -> Content:
        found = await self._objects.get(self._collection, self._name)
        if found is None:
            raise CertificateError(f"{self.title} does not exist: install or upgrade the chart, which makes it empty")
        data: dict[str, bytes] = {}
        for key, value in (found.get("data") or {}).items():
            try:
                data[key] = base64.b64decode(value, validate=True)
            except (binascii.Error, ValueError):
                data[key] = b""
        return Content(found["metadata"]["resourceVersion"], data)

    async def swap(self, seen: Content, data: Mapping[str, bytes]) -> bool:
        """Write the data if the Secret is still as seen; False if another replica was first."""
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        body = {"metadata": {"resourceVersion": seen.version}, "data": encoded}
        try:
            await self._objects.patch(self._collection, self._name, body)
        except Outdated:
            return False
        return True

    async def changed(self, since: str, *, within: float) -> None:
        """Return when the Secret is no longer at version `since`, or after `within` seconds."""
        await self._objects.changed(self._collection, self._name, since=since, within=within)

    async def ca_bundle(self) -> bytes:
        return (await self.read()).bundle().ca


log = logging.getLogger(__name__)

RETRY_SECONDS = 5.0
ROUNDS = 10
"""Lost races in a row before giving up until the next check. Each means that another replica wrote."""


@dataclass(eq=False)
class SelfManaged:
    """Fills the Secret, renews its content in time, and serves it.

    `configurations` is the server's own object, which says when a new CA is trusted. To force a new CA, empty the
    Secret's data.
    """

    secret: CertificateSecret
    configurations: WebhookConfigurations
    names: Collection[str]
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    now: Callable[[], datetime] = utc_now
    every: float = 60.0
    _served: Bundle | None = None

    async def load(self) -> Bundle:
        """Return the agreed bundle, made now if the Secret is empty. Raises CertificateError."""
        self._served = (await self._agreed()).bundle()
        return self._served

    async def changes(self) -> AsyncIterator[Bundle]:
        """Yield each new bundle. While the Secret is unreachable or gone, the last good one stays active."""
        while True:
            try:
                content = await self._agreed()
                bundle = content.bundle()
                if bundle != self._served:
                    self._served = bundle
                    yield bundle
                # Write a new CA to the configurations at once, because their own loop would be up to a check late.
                if self.configurations.trusted_since(bundle.ca) is None:
                    await self.configurations.check()
                await self.secret.changed(content.version, within=self.every)
            except CertificateError as error:
                log.warning("certificate not checked, the last good one stays", {"reason": str(error)})
                await asyncio.sleep(min(self.every, RETRY_SECONDS))

    async def _agreed(self) -> Content:
        """Return the Secret's content once it needs no change, which this replica or another writes."""
        for _ in range(ROUNDS):
            content = await self.secret.read()
            now, since = self.now(), self.configurations.trusted_since(content.data.get(CA, b""))
            trusted = since is not None and now >= since + self.lifetimes.settle
            stored = certificates_in(content.data)
            step = advance(stored, now=now, names=self.names, lifetimes=self.lifetimes, trusted=trusted)
            if not step.reasons:
                return content
            if await self.secret.swap(content, data_of(step.stored)):
                log.info("certificate written", {"secret": self.secret.title, "reasons": list(step.reasons)})
        raise CertificateError(f"{self.secret.title} is written by somebody else all the time")
