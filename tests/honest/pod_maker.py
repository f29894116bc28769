"""Makes pods for controllers, with the slow start and the back-off of the real ones."""

import asyncio
import hashlib
from datetime import UTC

from tests.honest.api import Api
from tests.honest.clocks import VirtualDatetime
from tests.honest.life import Life, Observer
from tests.honest.objects import EVENTS, Tree, copy, is_deleting, is_ready, key_of, reference_to, uid_of, with_defaults
from tests.honest.requests import Reply
from webhook.kube.client import RFC_3339

DENIED = (403, 422, 429, 503)
"""Codes with which a webhook of ours refuses."""


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
    """The common part of all controllers; `refused` are workloads whose controllers wait after a refusal."""

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
        reply = await self._observer.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        if not reply.allowed:
            self._tell(made_by, reply)
        return reply

    def _tell(self, made_by: Tree, reply: Reply) -> None:
        """Write an Event FailedCreate, or count it once more."""
        denied = f'admission webhook "pods.validate.gpu-tiers.dev" denied the request: {reply.sentence}'
        message = f"Error creating: {denied if reply.code in DENIED and not reply.lost else reply.sentence}"
        (namespace, owner), digest = key_of(made_by), hashlib.sha256(message.encode()).hexdigest()[:8]
        key, now = (namespace, f"{owner}.{digest}.{uid_of(made_by)}"), VirtualDatetime.now(UTC).strftime(RFC_3339)
        before = self._api.find(EVENTS, key)
        if before is not None:
            self._api.change(EVENTS, key, count=before["count"] + 1, lastTimestamp=now)
            return
        about = {each: made_by[each] for each in ("apiVersion", "kind")}
        about |= {"namespace": namespace, "name": owner, "uid": uid_of(made_by)}
        metadata = {"namespace": namespace, "name": key[1]}
        times = {"count": 1, "firstTimestamp": now, "lastTimestamp": now}
        event = {"reason": "FailedCreate", "message": message, "involvedObject": about, **times}
        self._api.make(EVENTS, {"apiVersion": "v1", "kind": "Event", "metadata": metadata, **event})

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
