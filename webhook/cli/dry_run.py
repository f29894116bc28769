"""Asks an API server for objects by dry run, as `kubectl create --dry-run=server` does, and reads its answers."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webhook.kube.client import Client
from webhook.kube.errors import Conflict, Failed, Forbidden, NotFound
from webhook.kube.paths import path
from webhook.objects.refusal import Unreadable

Tree = dict[str, Any]

EXISTS = (
    "exists already, so it was asked about as a new object; what kubectl apply changes on it is reviewed as an update"
)

_OURS = re.compile(r'^admission webhook "[^"]*gpu-tiers\.dev" denied the request: ')
_NO_RIGHT = re.compile(r"cannot create resource|Unauthorized")
_NO_NAMESPACE = re.compile(r'^namespaces "[^"]*" not found')
_UNAVAILABLE = 503


class Unasked(Exception):  # noqa: N818 - an outcome of its own: neither let in nor refused
    """The API server could not be asked about an object; the text says why."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: the object as it would be stored, or who refuses it and why; warnings and notes with it."""

    answer: Tree | None
    warnings: tuple[str, ...]
    refusal: str | None = None
    for_now: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as an API server serves it."""

    plural: str
    namespaced: bool


@dataclass(frozen=True, slots=True)
class DryRuns:
    """One API server; the kinds that it serves are asked for once."""

    client: Client
    _served: dict[str, Mapping[str, Resource]] = field(default_factory=dict)

    async def create(self, tree: Tree, namespace: str) -> Reply:
        """The answer to a create of this object. Raises Unasked, and ApiError where no other will be answered."""
        place = await self._place(tree, namespace)
        try:
            return await self._asked(place, tree)
        except Conflict:
            return await self._asked(place, _unnamed(tree), notes=(EXISTS,))

    async def _asked(self, place: str, tree: Tree, notes: tuple[str, ...] = ()) -> Reply:
        heard: list[str] = []
        try:
            answer = await self.client.dry_run(place, tree, heard)
        except Conflict as error:
            if not notes:
                raise
            return _refused(error, heard, notes)
        except Failed as error:
            return _refused(error, heard, notes)
        answer["metadata"]["name"] = (tree.get("metadata") or {}).get("name", "")
        return Reply(answer, tuple(heard), notes=notes)

    async def _place(self, tree: Tree, namespace: str) -> str:
        version, kind = str(tree["apiVersion"]), str(tree["kind"])
        try:
            resource = (await self._kinds(version)).get(kind)
            if resource is None:
                raise Unasked(f"the API server has no kind {kind} in {version}; its CRD is missing, or another version")
            return path(version, resource.plural, namespace if resource.namespaced else None)
        except Unreadable as error:
            raise Unasked(str(error)) from None

    async def _kinds(self, version: str) -> Mapping[str, Resource]:
        if version not in self._served:
            self._served[version] = await self._discovered(path(version, "").rstrip("/"))
        return self._served[version]

    async def _discovered(self, place: str) -> Mapping[str, Resource]:
        try:
            found = (await self.client.get(place)).get("resources") or []
        except NotFound:
            return {}
        return {each["kind"]: Resource(each["name"], each["namespaced"]) for each in found if "/" not in each["name"]}


def _unnamed(tree: Tree) -> Tree:
    """The same object under a name that the API server makes, for the dry run of a taken name ends there."""
    metadata = {**tree["metadata"], "generateName": f"{str(tree['metadata']['name'])[:50]}-"}
    del metadata["name"]
    return {**tree, "metadata": metadata}


def _refused(error: Failed, heard: list[str], notes: tuple[str, ...]) -> Reply:
    """Raises Unasked where it is the question that is refused, and not the object."""
    said = error.said or str(error)
    if isinstance(error, Forbidden) and _NO_RIGHT.search(said):
        raise Unasked(f"you may not ask: {said}") from error
    if isinstance(error, NotFound) and _NO_NAMESPACE.match(said):
        raise Unasked(f"{said}; make it first, for a dry run makes none") from error
    ours = _OURS.match(said)
    sentence = said[ours.end() :] if ours else f"by the API server: {said}"
    return Reply(None, tuple(heard), sentence, bool(ours) and error.code == _UNAVAILABLE, notes)
