"""The controllers of a history's workloads, as far as pods are concerned.

They do what the real ones do: the order of deletes, slow start and back-off after a refusal, back-off of Jobs after
failures, names that are used again, surges and restarts.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.honest.api import Api
from tests.honest.life import Life, Observer
from tests.honest.objects import (
    CRONJOBS,
    DEPLOYMENTS,
    JOBS,
    JOBSETS,
    PODS,
    PYTORCHJOBS,
    REPLICASETS,
    RUN,
    STATEFULSETS,
    Tree,
    copy,
    is_active,
    is_deleting,
    is_finished,
    is_made_by,
    is_ready,
    is_suspended,
    is_terminal,
    key_of,
    reference_to,
    revision_of,
    uid_of,
    with_defaults,
    workload,
)
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


class Controllers:
    """All controllers of the cluster; `step` is a second of its life."""

    def __init__(self, api: Api, life: Life, observer: Observer) -> None:
        self._api = api
        self._life = life
        self._observer = observer
        self._refused = Backoff(1, 60)
        self._succeeded: dict[str, set[str]] = {}
        self._attempts: dict[str, int] = {}
        self._cron: dict[str, tuple[int, int]] = {}
        self._busy: set[str] = set()
        self._seen: tuple[int, ...] = ()

    async def step(self) -> None:
        """Let a second pass in the cluster; nothing happens where nothing has changed and nothing is due."""
        seen = self._api.versions()
        if seen == self._seen and not self._is_due():
            return
        self._seen = seen
        self._life.kubelets()
        self._life.collect()
        await self._reconcile()
        self._life.schedule()

    def _is_due(self) -> bool:
        now = self._life.second
        if self._busy or self._cron or any(now - 1 <= when for when in self._refused.due.values()):
            return True
        if any(last + 610 >= now for _, last in self._life.failures.values()):
            return True
        pods = self._api.all(PODS)
        return any(is_deleting(each) or (_ends_by_itself(each) and not is_terminal(each)) for each in pods)

    async def _reconcile(self) -> None:
        kinds: tuple[tuple[str, Callable[[Tree], Awaitable[None]]], ...] = (
            (CRONJOBS, self._cronjob),
            (DEPLOYMENTS, self._deployment),
            (JOBSETS, self._jobset),
            (PYTORCHJOBS, self._pytorchjob),
            (REPLICASETS, self._replicaset),
            (STATEFULSETS, self._statefulset),
            (JOBS, self._job),
        )
        work = [
            self._sync(sync, path, tree)
            for path, sync in kinds
            for tree in self._api.all(path)
            if not is_deleting(tree) and uid_of(tree) not in self._busy
        ]
        await asyncio.gather(*work)

    async def _sync(self, sync: Callable[[Tree], Awaitable[None]], path: str, tree: Tree) -> None:
        uid = uid_of(tree)
        self._busy.add(uid)
        try:
            now = self._now(path, tree)
            if now is not None:
                await sync(now)
        finally:
            self._busy.discard(uid)

    def _now(self, path: str, tree: Tree) -> Tree | None:
        """Return an object as it is now, None where it is gone or being deleted."""
        now = self._api.still_there(path, tree)
        return None if now is None or is_deleting(now) else now

    # --- pods

    async def _make_pod(self, made_by: Tree, template: Tree, name: str = "", **labels: str) -> Reply:
        metadata = copy(template.get("metadata", {}))
        metadata.setdefault("labels", {}).update(labels)
        metadata |= {"namespace": made_by["metadata"]["namespace"], "ownerReferences": [reference_to(made_by)]}
        metadata |= {"name": name} if name else {"generateName": f"{made_by['metadata']['name']}-"}
        spec = with_defaults(template["spec"])
        return await self._observer.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    async def _make_pods(self, path: str, tree: Tree, count: int) -> None:
        """Make so many pods in growing batches, as ReplicaSets and Jobs do, until one is refused."""
        uid, batch = uid_of(tree), 1
        if self._refused.waits(uid, self._life.second):
            return
        while count > 0 and self._now(path, tree):
            some = min(batch, count)
            replies = await asyncio.gather(*(self._make_pod(tree, tree["spec"]["template"]) for _ in range(some)))
            count -= some
            if not all(each.allowed for each in replies):
                self._refused.fail(uid, self._life.second)
                return
            batch *= 2
        self._refused.forget(uid)

    def _first_to_go(self, pods: list[Tree], count: int) -> list[Tree]:
        """Return the pods that a ReplicaSet or a Job deletes first: those on no node, then the younger ones."""
        begun = self._life.begun
        order = sorted(
            pods, key=lambda p: (bool(p["spec"].get("nodeName")), is_ready(p), -begun.get(uid_of(p), 10**9), uid_of(p))
        )
        return order[:count]

    # --- what scales

    async def _replicaset(self, tree: Tree) -> None:
        active = [pod for pod in self._life.pods_of(uid_of(tree)) if is_active(pod)]
        more = tree["spec"]["replicas"] - len(active)
        if more > 0:
            await self._make_pods(REPLICASETS, tree, more)
        for pod in self._first_to_go(active, -more) if more < 0 else ():
            self._life.delete_pod(pod)

    async def _deployment(self, tree: Tree) -> None:
        spec, metadata = tree["spec"], tree["metadata"]
        strategy, wanted = spec["strategy"], spec["replicas"]
        recreate = strategy["type"] == "Recreate"
        name = f"{metadata['name']}-{revision_of(spec['template'])}"
        mine = [each for each in self._api.all(REPLICASETS) if is_made_by(each, metadata["uid"])]
        new = next((each for each in mine if each["metadata"]["name"] == name), None)
        old = [each for each in mine if each is not new]

        # 1. Recreate: the old pods go first.
        if recreate:
            for each in old:
                if each["spec"]["replicas"]:
                    self._scale(each, 0)
            if any(not is_terminal(pod) for each in old for pod in self._life.pods_of(uid_of(each))):
                return

        # 2. Make the ReplicaSet of this template.
        if new is None:
            first = 0 if mine and not recreate else wanted
            made = {"replicas": first, "template": spec["template"]}
            reference = [reference_to(tree)]
            reply = await self._observer.create(
                workload("ReplicaSet", metadata["namespace"], name, made, ownerReferences=reference)
            )
            if not reply.allowed or reply.tree is None:
                return
            new = reply.tree

        # 3. Scale: there is no other ReplicaSet, or the new one has too many.
        has = new["spec"]["replicas"]
        if recreate or not any(each["spec"]["replicas"] for each in old) or has > wanted:
            if has != wanted:
                self._scale(new, wanted)
            return

        # 4. Surge, then let old pods go: first those that don't run.
        rolling = strategy["rollingUpdate"]
        total = has + sum(each["spec"]["replicas"] for each in old)
        room = wanted + rolling["maxSurge"] - total
        if room > 0 and has < wanted:
            self._scale(new, min(has + room, wanted))
            return
        ready = {uid_of(each): sum(map(is_ready, self._life.pods_of(uid_of(each)))) for each in (new, *old)}
        least = wanted - rolling["maxUnavailable"]
        may_go = total - least - (has - ready[uid_of(new)])
        old.sort(key=uid_of)
        for each in old:
            fewer = min(may_go, each["spec"]["replicas"] - ready[uid_of(each)])
            if fewer > 0:
                self._scale(each, each["spec"]["replicas"] - fewer)
                return
        may_go = sum(ready.values()) - least
        for each in old:
            fewer = min(may_go, each["spec"]["replicas"])
            if fewer > 0:
                self._scale(each, each["spec"]["replicas"] - fewer)
                may_go -= fewer

    def _scale(self, replicaset: Tree, replicas: int) -> None:
        now = self._api.find(REPLICASETS, key_of(replicaset))
        if now is not None:
            self._api.change(REPLICASETS, key_of(replicaset), spec={**now["spec"], "replicas": replicas})

    async def _statefulset(self, tree: Tree) -> None:
        spec, name, uid = tree["spec"], tree["metadata"]["name"], uid_of(tree)
        revision, parallel = revision_of(spec["template"]), spec["podManagementPolicy"] == "Parallel"
        there = {_ordinal(pod): pod for pod in self._life.pods_of(uid)}
        for pod in there.values():
            if is_terminal(pod):
                self._life.delete_pod(pod)

        # 1. Make what is missing, in order.
        for number in range(spec["replicas"]):
            pod = there.get(number)
            if pod is None:
                if self._refused.waits(uid, self._life.second):
                    return
                reply = await self._make_pod(tree, spec["template"], f"{name}-{number}", revision=revision)
                if not reply.allowed:
                    self._refused.fail(uid, self._life.second)
                    return
                self._refused.forget(uid)
                if not parallel:
                    return
            elif not is_ready(pod) and not parallel:
                return

        # 2. Delete what is too much, the last one first.
        beyond = [there[number] for number in sorted(there, reverse=True) if number >= spec["replicas"]]
        if beyond:
            if parallel or not any(map(is_deleting, beyond)):
                self._life.delete_pod(beyond[0])
            return

        # 3. Roll out, from the last one.
        for number in reversed(range(spec["replicas"])):
            pod = there.get(number)
            if pod is None or not is_ready(pod):
                return
            if pod["metadata"]["labels"].get("revision") != revision:
                self._life.delete_pod(pod)
                return

    # --- what ends

    def _finish(self, path: str, tree: Tree, condition: str) -> None:
        now = self._api.find(path, key_of(tree)) or tree
        conditions = [{"type": condition, "status": "True"}]
        self._api.change(path, key_of(tree), status={**now.get("status", {}), "conditions": conditions})
        self._observer.finished(now)

    async def _job(self, tree: Tree) -> None:
        spec, uid = tree["spec"], uid_of(tree)
        pods = self._life.pods_of(uid)
        active = [pod for pod in pods if is_active(pod)]

        # 1. Count the pods that have succeeded; the status says so.
        found = self._succeeded.setdefault(uid, set())
        before = len(found)
        found |= {uid_of(pod) for pod in pods if pod.get("status", {}).get("phase") == "Succeeded"}
        succeeded = len(found)
        if succeeded != before:
            self._api.change(JOBS, key_of(tree), status={**tree.get("status", {}), "succeeded": succeeded})
        if is_finished(tree) or is_suspended(tree):
            self._delete_own(active)
            return

        # 2. End it.
        failed, last = self._life.failures.get(uid, (0, 0))
        if failed > spec.get("backoffLimit", 12):
            self._finish(JOBS, tree, "Failed")
            return
        parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
        if completions is None:
            done = bool(succeeded) and all(map(is_terminal, pods))
            wanted = min(len(active), parallelism) if succeeded else parallelism
        else:
            done = succeeded >= completions
            wanted = min(parallelism, completions - succeeded)
        if done:
            self._finish(JOBS, tree, "Complete")
            return

        # 3. Make or delete pods; after a failure only once its back-off is over.
        if len(active) > wanted:
            self._delete_own(self._first_to_go(active, len(active) - wanted))
        elif len(active) < wanted and not (failed and self._life.second < last + min(10 * 2 ** (failed - 1), 600)):
            await self._make_pods(JOBS, tree, wanted - len(active))

    def _delete_own(self, pods: list[Tree]) -> None:
        for pod in pods:
            self._life.deleted_by_job.add(uid_of(pod))
            self._life.delete_pod(pod)

    async def _jobset(self, tree: Tree) -> None:
        spec, metadata, uid = tree["spec"], tree["metadata"], uid_of(tree)
        if is_finished(tree):
            return
        mine = {each["metadata"]["name"]: each for each in self._api.all(JOBS) if is_made_by(each, uid)}
        attempt = self._attempts.get(uid, 0)

        # 1. Restart all Jobs after one has failed.
        if any(_has(each, "Failed") and _attempt_of(each) == attempt for each in mine.values()):
            if attempt >= spec.get("failurePolicy", {}).get("maxRestarts", 0):
                self._finish(JOBSETS, tree, "Failed")
                return
            self._attempts[uid] = attempt = attempt + 1
        stale = [each for each in mine.values() if _attempt_of(each) != attempt]
        for each in stale:
            self._life.delete("Job", key_of(each), "foreground")
        if stale:
            return

        # 2. Make the Jobs that are missing, and suspend or resume them with the JobSet.
        suspended = is_suspended(tree)
        wanted = {
            f"{metadata['name']}-{group['name']}-{number}": group
            for group in spec["replicatedJobs"]
            for number in range(group["replicas"])
        }
        if wanted and all(name in mine and _has(mine[name], "Complete") for name in wanted):
            self._finish(JOBSETS, tree, "Completed")
            return
        for name, group in wanted.items():
            if name in mine:
                if is_suspended(mine[name]) != suspended:
                    self._api.change(JOBS, key_of(mine[name]), spec={**mine[name]["spec"], "suspend": suspended})
                continue
            job = {**copy(group["template"]["spec"]), "suspend": suspended}
            job["template"]["metadata"].setdefault("labels", {})["jobset.sigs.k8s.io/jobset-name"] = metadata["name"]
            more: dict[str, Any] = {"ownerReferences": [reference_to(tree)], "labels": {"attempt": str(attempt)}}
            reply = await self._observer.create(workload("Job", metadata["namespace"], name, job, **more))
            if not reply.allowed:
                return

    async def _pytorchjob(self, tree: Tree) -> None:
        spec, name, uid = tree["spec"], tree["metadata"]["name"], uid_of(tree)
        pods = self._life.pods_of(uid)
        if is_finished(tree) or is_suspended(tree):
            for pod in pods:
                if not is_terminal(pod) or is_suspended(tree):
                    self._life.delete_pod(pod)
            return
        there = {pod["metadata"]["name"]: pod for pod in pods}
        for role, replica in spec["pytorchReplicaSpecs"].items():
            prefix = f"{name}-{role.lower()}"
            for number in range(replica["replicas"]):
                pod = there.get(f"{prefix}-{number}")
                if pod is not None and pod.get("status", {}).get("phase") == "Failed":
                    self._life.delete_pod(pod)
                elif pod is None and not self._refused.waits(uid, self._life.second):
                    labels = {"training.kubeflow.org/job-name": name}
                    reply = await self._make_pod(tree, replica["template"], f"{prefix}-{number}", **labels)
                    if not self._now(PYTORCHJOBS, tree):
                        return
                    if not reply.allowed:
                        self._refused.fail(uid, self._life.second)
                        return
                    self._refused.forget(uid)
            for pod in pods:
                if pod["metadata"]["name"].startswith(f"{prefix}-") and _ordinal(pod) >= replica["replicas"]:
                    self._life.delete_pod(pod)
        first = f"{name}-{next(iter(spec['pytorchReplicaSpecs'])).lower()}-0"
        if first in there and there[first].get("status", {}).get("phase") == "Succeeded":
            self._finish(PYTORCHJOBS, tree, "Succeeded")

    async def _cronjob(self, tree: Tree) -> None:
        spec, metadata, uid, now = tree["spec"], tree["metadata"], uid_of(tree), self._life.second
        last, number = self._cron.setdefault(uid, (now - spec["every"], 0))
        if now < last + spec["every"] or is_suspended(tree):
            return
        self._cron[uid] = (now, number + 1)
        active = [each for each in self._api.all(JOBS) if is_made_by(each, uid) and not is_finished(each)]
        if active and spec["concurrencyPolicy"] == "Forbid":
            return
        if spec["concurrencyPolicy"] == "Replace":
            for each in active:
                self._life.delete("Job", key_of(each))
        name, reference = f"{metadata['name']}-{number}", [reference_to(tree)]
        job = copy(spec["jobTemplate"]["spec"])
        await self._observer.create(workload("Job", metadata["namespace"], name, job, ownerReferences=reference))


def _ends_by_itself(pod: Tree) -> bool:
    return bool(pod["metadata"].get("annotations", {}).get(RUN, "0") != "0")


def _ordinal(pod: Tree) -> int:
    return int(pod["metadata"]["name"].rsplit("-", 1)[1])


def _has(job: Tree, condition: str) -> bool:
    return any(each["type"] == condition for each in job.get("status", {}).get("conditions", ()))


def _attempt_of(job: Tree) -> int:
    return int(job["metadata"]["labels"]["attempt"])
