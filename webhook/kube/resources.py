"""Finds a resource by the word that a person gives kubectl: `job`, `jobs`, `deploy`, `pytorchjob.kubeflow.org`."""

import asyncio
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from webhook.kube.client import Client
from webhook.kube.errors import Failed

SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ServedResource:
    """A resource as the API server serves it."""

    api_version: str
    kind: str
    plural: str
    names: frozenset[str]

    @property
    def group(self) -> str:
        """The API group: "" for core kinds."""
        return self.api_version.rpartition("/")[0]

    def is_called(self, word: str) -> bool:
        """Whether a person may mean it: by plural, singular, short name or kind, perhaps with version and group."""
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
    return list(_resources(version, found))


def _resources(version: str, found: dict[str, Any]) -> Iterator[ServedResource]:
    for each in found.get("resources") or ():
        if "/" not in each["name"] and each.get("namespaced"):
            short = each.get("shortNames") or ()
            names = frozenset((each["name"], each.get("singularName") or "", each["kind"].lower(), *short))
            yield ServedResource(version, each["kind"], each["name"], names)
