"""Finds what this API server serves: the version of an API, and the resource that a person's word for kubectl means."""

import asyncio
from collections.abc import Collection

import msgspec

from webhook.kube.client import Client
from webhook.kube.errors import Failed, NotFound
from webhook.kube.ttl_cache import TTLCache
from webhook.objects.refusal import Missing

KEPT_SECONDS = 300.0


async def _preferred_version(client: Client, group: str, plural: str) -> str:
    try:
        found = await client.get(f"/apis/{group}")
    except NotFound:
        found = {}
    for version in found.get("versions") or ():
        served = await client.get(f"/apis/{version['groupVersion']}")
        if any(resource.get("name") == plural for resource in served.get("resources") or ()):
            return str(version["groupVersion"])
    raise Missing(f"this cluster serves no {plural} of {group}: that API is switched off or too new for it")


class Discovery:
    """Answers for group and plural, kept for five minutes: an API server is rarely upgraded more often."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._found: TTLCache[tuple[str, str], str] = TTLCache(KEPT_SECONDS, size=16)

    async def api_version(self, group: str, plural: str) -> str:
        """The API version, such as "resource.k8s.io/v1", by the API server's own preference.

        Raises Missing where no version is served, ApiError where that can't be told.
        """
        return await self._found.get((group, plural), lambda: _preferred_version(self._client, group, plural))

    async def close(self) -> None:
        await self._found.close()


async def served_version(client: Client, group: str, plural: str) -> str | None:
    """The version of an API that this cluster serves, None where it serves none. Raises ApiError."""
    try:
        return await _preferred_version(client, group, plural)
    except Missing:
        return None


SECONDS = 10.0


class ServedResource(msgspec.Struct, frozen=True):
    """A resource as the API server serves it."""

    api_version: str
    kind: str
    plural: str
    names: frozenset[str]

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]

    def is_called(self, word: str) -> bool:
        """Tells whether a person may mean it: by plural, singular, short name or kind, with or without its group."""
        name, _, rest = word.lower().partition(".")
        version = self.api_version.rpartition("/")[2]
        return name in self.names and rest in ("", self.group, f"{version}.{self.group}")


async def resources_of(client: Client, groups: Collection[str]) -> list[ServedResource]:
    """The resources of these groups that the API server serves, in its own order, which is kubectl's too.

    A group that does not answer is left out. Raises ApiError where the API server can't be asked at all.
    """
    found = await client.get("/apis", seconds=SECONDS)
    served = [each["preferredVersion"]["groupVersion"] for each in found.get("groups") or ()]
    wanted = [each for each in served if each.rpartition("/")[0] in groups]
    lists = await asyncio.gather(_served(client, "v1"), *(_served(client, each) for each in wanted))
    return [each for resources in lists for each in resources]


async def _served(client: Client, version: str) -> list[ServedResource]:
    try:
        found = await client.get(f"/apis/{version}" if "/" in version else f"/api/{version}", seconds=SECONDS)
    except Failed:
        return []
    resources: list[ServedResource] = []
    for each in found.get("resources") or ():
        if "/" not in each["name"] and each.get("namespaced"):
            short = each.get("shortNames") or ()
            names = frozenset((each["name"], each.get("singularName") or "", each["kind"].lower(), *short))
            resources.append(ServedResource(version, each["kind"], each["name"], names))
    return resources


async def server_version(client: Client) -> tuple[int, int]:
    """Return the major and minor version of the API server. Raises ApiError."""
    found = await client.get("/version")
    major, minor = (int("".join(filter(str.isdigit, str(found.get(key))))[:4] or 0) for key in ("major", "minor"))
    return major, minor
