"""What certificates need of the API server: to read, patch and watch single named objects, as plain dicts."""

from typing import Any, Protocol

from certs.source import CertificateError

Json = dict[str, Any]
JsonPatch = list[Json]


class Outdated(CertificateError):  # noqa: N818 - reads as what happened
    """The object is no longer as it was read: somebody else wrote first."""


class Objects(Protocol):
    """The API server, one named object at a time, so that RBAC by resourceNames is enough.

    `collection` is a path: /api/v1/namespaces/x/secrets. What fails raises CertificateError.
    """

    async def get(self, collection: str, name: str) -> Json | None:
        """The object, or None where there is none."""
        ...

    async def patch(self, collection: str, name: str, body: Json | JsonPatch) -> Json:
        """Apply a JSON merge patch (a dict) or a JSON patch (a list); the object as it is now.

        Raises Outdated where the resourceVersion in a merge patch, or a `test` in a JSON patch, doesn't hold.
        """
        ...

    async def changed(self, collection: str, name: str, *, since: str | None, within: float) -> None:
        """Return when the object differs from resourceVersion `since` (None: was absent), or after `within` seconds."""
        ...
