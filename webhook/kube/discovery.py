"""Asks the API server what it serves and what a user may do, and creates reviews such as a TokenReview.

Source: https://kubernetes.io/docs/reference/access-authn-authz/authorization/#checking-api-access
"""

import asyncio
from collections.abc import Collection, Mapping
from typing import TypeVar

import msgspec

from webhook.kube.client import Client, path
from webhook.kube.errors import Failed, NotFound
from webhook.kube.ttl_cache import TTLCache
from webhook.objects.refusal import Missing
from webhook.objects.user import User
from webhook.objects.view import View, read

CACHE_SECONDS = 300.0


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
    """The served versions by group and plural, cached for five minutes, because API servers are rarely upgraded."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._found: TTLCache[tuple[str, str], str] = TTLCache(CACHE_SECONDS, size=16)

    async def api_version(self, group: str, plural: str) -> str:
        """Return the API version that the API server prefers, such as "resource.k8s.io/v1".

        Raises Missing if no version is served, and ApiError if the API server can't be asked.
        """
        return await self._found.get((group, plural), lambda: _preferred_version(self._client, group, plural))

    async def close(self) -> None:
        await self._found.close()


async def served_version(client: Client, group: str, plural: str) -> str | None:
    """Return the version of an API that this cluster prefers; None if it serves no version. Raises ApiError."""
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
        """Tell whether a word names it, by plural, singular, short name or kind, with or without its group."""
        name, _, rest = word.lower().partition(".")
        version = self.api_version.rpartition("/")[2]
        return name in self.names and rest in ("", self.group, f"{version}.{self.group}")


async def resources_of(client: Client, groups: Collection[str]) -> list[ServedResource]:
    """Return the namespaced resources of core/v1 and of these groups, in the order of the API server and kubectl.

    A group that does not answer is left out. Raises ApiError if the API server does not answer at all.
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
    """Return the major and minor version of the API server, 0 for an unknown one. Raises ApiError."""
    found = await client.get("/version")
    major, minor = (int("".join(filter(str.isdigit, str(found.get(key))))[:4] or 0) for key in ("major", "minor"))
    return major, minor


_AUTHORIZATION = "authorization.k8s.io/v1"

V = TypeVar("V", bound=View)


class _Access(View, frozen=True):
    allowed: bool = False


async def ask(client: Client, api_version: str, kind: str, spec: Mapping[str, object], shape: type[V]) -> V:
    """Create a review of that kind, which the API server does not store, and return its status. Raises ApiError."""
    body = {"apiVersion": api_version, "kind": kind, "spec": spec}
    answer = await client.create(path(api_version, f"{kind.lower()}s"), body)
    return read(msgspec.json.encode(answer.get("status") or {}), shape)


async def is_allowed(client: Client, user: User | None, attributes: Mapping[str, object]) -> bool:
    """Tell whether a user may do this; None is the client's own user. Raises ApiError.

    `attributes` are the resourceAttributes or nonResourceAttributes of a SubjectAccessReview.
    """
    if user is None:
        return (await ask(client, _AUTHORIZATION, "SelfSubjectAccessReview", attributes, _Access)).allowed
    groups, extra = map(msgspec.json.decode, (user.groups, user.extra))
    who = {"user": user.username, "uid": user.uid, "groups": groups, "extra": extra}
    return (await ask(client, _AUTHORIZATION, "SubjectAccessReview", {**who, **attributes}, _Access)).allowed


def use_of_class(name: str, namespace: str) -> dict[str, object]:
    """Return the attributes of the verb `use` on a PriorityClass.

    With the namespace, RBAC counts RoleBindings in it too, although a PriorityClass has no namespace.
    """
    attributes = {"group": "scheduling.k8s.io", "resource": "priorityclasses", "verb": "use"}
    return {"resourceAttributes": {**attributes, "name": name, "namespace": namespace}}
