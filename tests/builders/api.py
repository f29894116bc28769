"""An API server that serves given objects, for commands that only read."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from tests.builders.built import Tree
from webhook.policy.values.tier_policy import TierPolicy

_API, _NAMESPACE = "(?P<api>/api/v1|/apis/[^/]+/[^/]+)", "(?:/namespaces/(?P<namespace>[^/]+))?"
_PATH = re.compile(rf"{_API}{_NAMESPACE}/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?")
KINDS = {
    "/api/v1/pods": "Pod",
    "/apis/batch/v1/jobs": "Job",
    "/apis/batch/v1/cronjobs": "CronJob",
    "/apis/scheduling.k8s.io/v1/podgroups": "PodGroup",
    "/apis/apps/v1/deployments": "Deployment",
    "/apis/apps/v1/replicasets": "ReplicaSet",
    "/apis/apps/v1/statefulsets": "StatefulSet",
}
"""The kinds that a command may be asked about."""


class ApiOfObjects:
    """Answers GETs from lists by their path in the whole cluster: lists, single objects, discovery and /version.

    A path in `refused` gets a 403, an object that is in no list a 404.
    """

    def __init__(self, lists: Mapping[str, Sequence[Tree]], refused: Iterable[str] = ()) -> None:
        self._lists = lists
        self._refused = frozenset(refused)

    def __call__(self, path: str) -> tuple[int, str]:
        if path in self._refused:
            return 403, json.dumps({"kind": "Status", "message": f"{path} is forbidden"})
        if path == "/version":
            return 200, json.dumps({"major": "1", "minor": "37"})
        found = _PATH.fullmatch(path)
        if not found:
            return 200, json.dumps(self._discovery(path))
        namespace, name = found["namespace"], found["name"]
        every = self._lists.get(f"{found['api']}/{found['plural']}", ())
        items = [each for each in every if namespace in (None, each["metadata"].get("namespace"))]
        if name is None:
            return 200, json.dumps({"metadata": {"resourceVersion": "9"}, "items": items})
        one = next((each for each in items if each["metadata"]["name"] == name), None)
        return (404, json.dumps({"kind": "Status", "message": "not found"})) if one is None else (200, json.dumps(one))

    def _discovery(self, path: str) -> Tree:
        apis = dict.fromkeys(each.rpartition("/")[0] for each in self._lists)
        versions = [each.removeprefix("/apis/") for each in apis if each.startswith("/apis/")]
        served = {each: {"groupVersion": each} for each in versions}
        groups = [
            {"name": version.partition("/")[0], "preferredVersion": each, "versions": [each]}
            for version, each in served.items()
        ]
        if path == "/apis":
            return {"groups": groups}
        resources = [
            {"name": each.rpartition("/")[2], "kind": KINDS.get(each, each), "namespaced": True}
            for each in self._lists
            if each.rpartition("/")[0] == path
        ]
        of_a_group = next((each for each in groups if f"/apis/{each['name']}" == path), {})
        return {"resources": resources, **of_a_group}


def classes_of(policy: TierPolicy) -> list[Tree]:
    """Return a PriorityClass for each tier of a policy."""
    return [
        {"metadata": {"name": each.name}, "value": each.value, "preemptionPolicy": each.preemption_policy}
        for each in policy.tiers
    ]
