"""The Secret that all replicas share: reads it, and writes it only if nobody else did."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

from certs.objects import Json, Objects, Outdated
from certs.rotation import CA, CERTIFICATE, KEY
from certs.source import Bundle, CertificateError, bundle_of


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
        """The content now. Raises CertificateError where there is no such Secret."""
        found = await self._objects.get(self._collection, self._name)
        if found is None:
            raise CertificateError(f"{self.title} does not exist: install or upgrade the chart, which makes it empty")
        return _content(found)

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
        """The CAs that clients should trust now. Raises CertificateError where the content is broken."""
        return (await self.read()).bundle().ca


def _content(found: Json) -> Content:
    data = found.get("data") or {}
    return Content(found["metadata"]["resourceVersion"], {key: _decoded(value) for key, value in data.items()})


def _decoded(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return b""
