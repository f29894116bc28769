"""The webhook's own CA and certificate, without cert-manager; all replicas share them through one Secret.

A replica writes the Secret only where no other has written it since it was read.
"""

import asyncio
import base64
import binascii
import logging
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from certs.ca_bundle import WebhookConfigurations
from certs.make import Lifetimes, utc_now
from certs.rotation import CA, CERTIFICATE, KEY, advance, data_of, kept_in
from certs.source import Bundle, CertificateError, Objects, Outdated, bundle_of


@dataclass(frozen=True)
class Content:
    """A Secret's data at one resourceVersion; a value that is no base64 reads as empty."""

    version: str
    data: Mapping[str, bytes]

    def bundle(self) -> Bundle:
        """The bundle to serve. Raises CertificateError where the data is empty or broken."""
        return bundle_of(self.data.get(CERTIFICATE, b""), self.data.get(KEY, b""), self.data.get(CA, b""))


class CertificateSecret:
    """One named Secret, which the chart makes empty (RBAC cannot narrow `create` to a name)."""

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
        """Write the data if the Secret is still as seen; False where another replica was first."""
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
"""Lost races in a row before giving up until the next check: each means that another replica wrote."""


class SelfManaged:
    """Fills the Secret, renews what it holds in time, and serves it.

    `configurations` is the same object that the server runs: it says when a new CA is trusted. To force a new CA,
    empty the Secret's data.
    """

    def __init__(
        self,
        secret: CertificateSecret,
        configurations: WebhookConfigurations,
        *,
        names: Collection[str],
        lifetimes: Lifetimes | None = None,
        now: Callable[[], datetime] = utc_now,
        every: float = 60.0,
    ) -> None:
        self._secret = secret
        self._configurations = configurations
        self._names = names
        self._lifetimes = lifetimes or Lifetimes()
        self._now = now
        self._every = every
        self._served: Bundle | None = None

    async def load(self) -> Bundle:
        """The agreed bundle, made now if the Secret is empty. Raises CertificateError."""
        self._served = (await self._agreed()).bundle()
        return self._served

    async def changes(self) -> AsyncIterator[Bundle]:
        """Each new bundle. While the Secret is unreachable or gone, the last good one stays in force."""
        while True:
            try:
                content = await self._agreed()
                bundle = content.bundle()
                if bundle != self._served:
                    self._served = bundle
                    yield bundle
                # Have a new CA written to the configurations at once: their own loop would be up to a check late.
                if self._configurations.trusted_since(bundle.ca) is None:
                    await self._configurations.check()
                await self._secret.changed(content.version, within=self._every)
            except CertificateError as error:
                log.warning("certificate not checked, the last good one stays", {"reason": str(error)})
                await asyncio.sleep(min(self._every, RETRY_SECONDS))

    async def _agreed(self) -> Content:
        """The Secret's content once nothing is to be done about it, by this replica or another."""
        for _ in range(ROUNDS):
            content = await self._secret.read()
            now, since = self._now(), self._configurations.trusted_since(content.data.get(CA, b""))
            trusted = since is not None and now >= since + self._lifetimes.settle
            kept = kept_in(content.data)
            step = advance(kept, now=now, names=self._names, lifetimes=self._lifetimes, trusted=trusted)
            if not step.reasons:
                return content
            if await self._secret.swap(content, data_of(step.kept)):
                log.info("certificate written", {"secret": self._secret.title, "reasons": list(step.reasons)})
        raise CertificateError(f"{self._secret.title} is written by somebody else all the time")
