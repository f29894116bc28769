"""Makes pods for controllers, with the slow start and the back-off of the real ones."""

import asyncio

from tests.honest.api import Api
from tests.honest.life import Life, Observer
from tests.honest.objects import Tree, copy, is_deleting, is_ready, reference_to, uid_of, with_defaults
from tests.honest.requests import Reply


class Backoff:
    """A rate limiter by key: nothing before its time."""

    def __init__(self, first: int, longest: int) -> None:
        self._first = first
        self._longest = longest
        self._times: dict[str, int] = {}
        self.due: dict[str, int] = {}

    def waits(self, key: str, now: int) -> bool:
        return now < self.due.get(key, 0)

    def fail(self, key: str, now: int) -> None:
        self._times[key] = self._times.get(key, 0) + 1
        self.due[key] = now + min(self._first * 2 ** (self._times[key] - 1), self._longest)

    def forget(self, key: str) -> None:
        self._times.pop(key, None)
        self.due.pop(key, None)


class PodMaker:
    """It has what all controllers share; `refused` are workloads whose controllers wait after a refusal."""

    def __init__(self, api: Api, life: Life, observer: Observer) -> None:
        self.refused = Backoff(1, 60)
        self._api = api
        self._life = life
        self._observer = observer

    def now(self, path: str, tree: Tree) -> Tree | None:
        """Return an object as it is now, None where it is gone or being deleted."""
        now = self._api.still_there(path, tree)
        return None if now is None or is_deleting(now) else now

    async def make(self, made_by: Tree, template: Tree, name: str = "", **labels: str) -> Reply:
        metadata = copy(template.get("metadata", {}))
        metadata.setdefault("labels", {}).update(labels)
        metadata |= {"namespace": made_by["metadata"]["namespace"], "ownerReferences": [reference_to(made_by)]}
        metadata |= {"name": name} if name else {"generateName": f"{made_by['metadata']['name']}-"}
        spec = with_defaults(template["spec"])
        return await self._observer.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    async def make_all(self, path: str, tree: Tree, templates: list[Tree], **labels: str) -> None:
        """Make a pod of each template in growing batches, as ReplicaSets and Jobs do, until one is refused."""
        uid, batch = uid_of(tree), 1
        if self.refused.waits(uid, self._life.second):
            return
        while templates and self.now(path, tree):
            some, templates = templates[:batch], templates[batch:]
            replies = await asyncio.gather(*(self.make(tree, each, **labels) for each in some))
            if not all(each.allowed for each in replies):
                self.refused.fail(uid, self._life.second)
                return
            batch *= 2
        self.refused.forget(uid)

    def first_to_go(self, pods: list[Tree], count: int) -> list[Tree]:
        """Return the pods that a ReplicaSet or a Job deletes first: those on no node, then the younger ones."""
        begun = self._life.begun
        order = sorted(
            pods, key=lambda p: (bool(p["spec"].get("nodeName")), is_ready(p), -begun.get(uid_of(p), 10**9), uid_of(p))
        )
        return order[:count]
