"""Which version of an API that is still changing this API server serves."""

from collections.abc import Iterator
from typing import Any

from webhook.kube.client import Client
from webhook.kube.errors import NotFound
from webhook.kube.ttl_cache import TTLCache
from webhook.objects.refusal import Unreadable

KEPT_SECONDS = 300.0


class Discovery:
    """Answers for group and plural, kept for five minutes: an API server is rarely upgraded more often."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._found: TTLCache[tuple[str, str], str] = TTLCache(KEPT_SECONDS, size=16)

    async def api_version(self, group: str, plural: str) -> str:
        """The API version, such as "resource.k8s.io/v1", by the API server's own preference.

        Raises Unreadable where no version is served, ApiError where that can't be told.
        """
        return await self._found.get((group, plural), lambda: self._discover(group, plural))

    async def close(self) -> None:
        """End the look-ups under way."""
        await self._found.close()

    async def _discover(self, group: str, plural: str) -> str:
        for version in await self._versions(group):
            resources = (await self._client.get(f"/apis/{version}")).get("resources") or []
            if any(resource.get("name") == plural for resource in resources):
                return version
        raise Unreadable(f"this cluster serves no {plural} of {group}: that API is switched off or too new for it")

    async def _versions(self, group: str) -> list[str]:
        try:
            return list(_versions(await self._client.get(f"/apis/{group}")))
        except NotFound:
            return []


def _versions(api_group: dict[str, Any]) -> Iterator[str]:
    """APIGroup lists its versions the preferred one first."""
    for version in api_group.get("versions") or []:
        yield version["groupVersion"]
