"""The API server of these tests: what is stored, and what a write does to it. Each client has a view of its own.

Written after https://kubernetes.io/docs/reference/using-api/api-concepts/: a PUT of the status leaves the spec alone, a
PUT with an old resourceVersion or another uid is a conflict, one that changes nothing makes no version.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.ledger.history import History, Key, Tree, copied, key_of
from tests.ledger.virtual_time import loop
from webhook.kube.errors import Conflict, Failed, Invalid, NotFound

PODS = "/api/v1/pods"
NAMESPACES = "/api/v1/namespaces"
WORKLOADS = "/apis/batch/v1/jobs"
TENANT_QUOTAS = "/apis/gpu-tiers.dev/v1alpha1/tenantquotas"
FIRST_VERSIONS: Mapping[str, int] = {PODS: 99_000, WORKLOADS: 5_000, NAMESPACES: 400, TENANT_QUOTAS: 8_000}
WITH_STATUS = (PODS, TENANT_QUOTAS, WORKLOADS)
"""Kinds whose status is a subresource."""


@dataclass(frozen=True)
class Place:
    """The target of a path: a kind by the path of all its objects, a namespace, a name, "status"."""

    kind: str
    namespace: str = ""
    name: str = ""
    part: str = ""

    @property
    def key(self) -> Key:
        return self.namespace, self.name


def place_of(path: str) -> Place:
    """Take a path of the Kubernetes API apart."""
    parts = path.strip("/").split("/")
    head, rest = parts[: 2 if parts[0] == "api" else 3], parts[2 if parts[0] == "api" else 3 :]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] != "status":
        namespace, rest = rest[1], rest[2:]
    plural, name, part, *_ = [*rest, "", ""]
    return Place("/" + "/".join([*head, plural]), namespace, name, part)


class SimulatedApi:
    """Stores objects as JSON. The methods that people, controllers and the kubelet would use act at once."""

    def __init__(self) -> None:
        self.away = False
        self._histories: dict[str, History] = {}
        self._uids = itertools.count(1)

    def history(self, kind: str) -> History:
        """Return all that ever was of a kind."""
        if kind not in self._histories:
            self._histories[kind] = History(FIRST_VERSIONS.get(kind, 1))
        return self._histories[kind]

    # --- what clients ask for

    def read(self, place: Place) -> Tree:
        """The newest state."""
        found = self.history(place.kind).objects.get(place.key)
        if found is None:
            raise _failed(NotFound, f"{place.name!r} not found", 404)
        return copied(found)

    def create(self, place: Place, body: Tree) -> Tree:
        """Store a new object; its name is in it."""
        history, tree = self.history(place.kind), copied(body)
        tree["metadata"] |= {"namespace": place.namespace} if place.namespace else {}
        if key_of(tree) in history.objects:
            raise _failed(Conflict, f"{tree['metadata']['name']!r} already exists", 409)
        tree["metadata"] = {"uid": f"uid-{next(self._uids)}", "creationTimestamp": self._now(), **tree["metadata"]}
        tree["metadata"]["generation"] = 1
        if place.kind in WITH_STATUS and place.kind != PODS:
            tree.pop("status", None)
        return copied(history.write(key_of(tree), tree))

    def replace(self, place: Place, body: Tree) -> Tree:
        """Put a body in the place of what is there, or its status alone."""
        history, body, stored = self.history(place.kind), copied(body), self.read(place)
        given = body.get("metadata", {})
        if given.get("resourceVersion", stored["metadata"]["resourceVersion"]) != stored["metadata"]["resourceVersion"]:
            raise _failed(Conflict, "the object has been modified; please apply your changes to the latest", 409)
        if given.get("uid", stored["metadata"]["uid"]) != stored["metadata"]["uid"]:
            raise _failed(Conflict, "Precondition failed: UID in precondition and in object meta differ", 409)
        if given.get("name", place.name) != place.name:
            raise _failed(Invalid, "the name of the object does not match the name on the URL", 422)
        now = self._put_together(place, stored, body)
        return copied(now) if now == stored else copied(history.write(place.key, now))

    def _put_together(self, place: Place, stored: Tree, body: Tree) -> Tree:
        if place.part == "status":
            return {**_without(stored, "status"), **({"status": body["status"]} if body.get("status") else {})}
        fixed = ("uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp")
        fixed_fields = {name: stored["metadata"][name] for name in fixed if name in stored["metadata"]}
        now = {**body, "metadata": {**body["metadata"], **fixed_fields}}
        if place.kind in WITH_STATUS:
            now = {**_without(now, "status"), **({"status": stored["status"]} if "status" in stored else {})}
        if now.get("spec") != stored.get("spec"):
            now["metadata"]["generation"] = stored["metadata"]["generation"] + 1
        return now

    # --- what happens in the cluster

    def make(self, kind: str, tree: Tree) -> Tree:
        """Create an object."""
        namespace = tree["metadata"].get("namespace", "")
        return self.create(Place(kind, namespace), tree)

    def change(self, kind: str, key: Key, **fields: Any) -> Tree:
        """Change fields of an object, its status among them; None takes one away."""
        stored = self.history(kind).objects[key]
        now = {name: value for name, value in {**stored, **copied(fields)}.items() if value is not None}
        if now.get("spec") != stored.get("spec"):
            now["metadata"] = {**now["metadata"], "generation": stored["metadata"]["generation"] + 1}
        return copied(self.history(kind).write(key, now))

    def remove(self, kind: str, key: Key) -> None:
        """An object is gone."""
        assert key in self.history(kind).objects, f"{key} is not stored"
        self.history(kind).write(key, None)

    def objects(self, kind: str) -> list[Tree]:
        """Return the objects of a kind as they are stored now."""
        return [copied(tree) for tree in self.history(kind).objects.values()]

    def _now(self) -> str:
        minutes, seconds = divmod(int(loop().time()), 60)
        return f"2026-11-01T{8 + minutes // 60:02}:{minutes % 60:02}:{seconds:02}Z"


def _without(tree: Tree, name: str) -> Tree:
    return {key: value for key, value in tree.items() if key != name}


def _failed(kind: type[Failed], sentence: str, code: int) -> Failed:
    return kind(f"HTTP {code}, {sentence}", code)
