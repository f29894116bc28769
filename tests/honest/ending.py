"""The controllers of workloads that end."""

from typing import Any

from tests.honest.api import Api
from tests.honest.life import Life, Observer
from tests.honest.objects import (
    JOBS,
    JOBSETS,
    PYTORCHJOBS,
    Tree,
    copy,
    is_active,
    is_finished,
    is_made_by,
    is_suspended,
    is_terminal,
    key_of,
    ordinal_of,
    reference_to,
    uid_of,
    workload,
)
from tests.honest.pod_maker import PodMaker


class Ending:
    def __init__(self, api: Api, life: Life, observer: Observer, pods: PodMaker) -> None:
        self._api = api
        self._life = life
        self._observer = observer
        self._pods = pods
        self._succeeded: dict[str, set[str]] = {}
        self._attempts: dict[str, int] = {}
        self.cron: dict[str, tuple[int, int]] = {}
        """Of each CronJob: when it made its last Job, and how many it has made."""

    def _finish(self, path: str, tree: Tree, condition: str) -> None:
        now = self._api.find(path, key_of(tree)) or tree
        conditions = [{"type": condition, "status": "True"}]
        self._api.change(path, key_of(tree), status={**now.get("status", {}), "conditions": conditions})
        self._observer.finished(now)

    async def job(self, tree: Tree) -> None:
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
            self._delete_own(self._pods.first_to_go(active, len(active) - wanted))
        elif len(active) < wanted and not (failed and self._life.second < last + min(10 * 2 ** (failed - 1), 600)):
            await self._pods.make_all(JOBS, tree, [spec["template"]] * (wanted - len(active)))

    def _delete_own(self, pods: list[Tree]) -> None:
        for pod in pods:
            self._life.deleted_by_job.add(uid_of(pod))
            self._life.delete_pod(pod)

    async def jobset(self, tree: Tree) -> None:
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

    async def pytorchjob(self, tree: Tree) -> None:
        spec, name, uid = tree["spec"], tree["metadata"]["name"], uid_of(tree)
        pods = self._life.pods_of(uid)
        if is_finished(tree) or is_suspended(tree):
            for each in pods:
                if not is_terminal(each) or is_suspended(tree):
                    self._life.delete_pod(each)
            return
        there = {pod["metadata"]["name"]: pod for pod in pods}
        for role, replica in spec["pytorchReplicaSpecs"].items():
            prefix = f"{name}-{role.lower()}"
            for number in range(replica["replicas"]):
                pod: Tree | None = there.get(f"{prefix}-{number}")
                if pod is not None and pod.get("status", {}).get("phase") == "Failed":
                    self._life.delete_pod(pod)
                elif pod is None and not self._pods.refused.waits(uid, self._life.second):
                    labels = {"training.kubeflow.org/job-name": name}
                    reply = await self._pods.make(tree, replica["template"], f"{prefix}-{number}", **labels)
                    if not self._pods.now(PYTORCHJOBS, tree):
                        return
                    if not reply.allowed:
                        self._pods.refused.fail(uid, self._life.second)
                        return
                    self._pods.refused.forget(uid)
            for each in pods:
                if each["metadata"]["name"].startswith(f"{prefix}-") and ordinal_of(each) >= replica["replicas"]:
                    self._life.delete_pod(each)
        first = f"{name}-{next(iter(spec['pytorchReplicaSpecs'])).lower()}-0"
        if first in there and there[first].get("status", {}).get("phase") == "Succeeded":
            self._finish(PYTORCHJOBS, tree, "Succeeded")

    async def cronjob(self, tree: Tree) -> None:
        spec, metadata, uid, now = tree["spec"], tree["metadata"], uid_of(tree), self._life.second
        last, number = self.cron.setdefault(uid, (now - spec["every"], 0))
        if now < last + spec["every"] or is_suspended(tree):
            return
        self.cron[uid] = (now, number + 1)
        active = [each for each in self._api.all(JOBS) if is_made_by(each, uid) and not is_finished(each)]
        if active and spec["concurrencyPolicy"] == "Forbid":
            return
        if spec["concurrencyPolicy"] == "Replace":
            for each in active:
                self._life.delete("Job", key_of(each))
        name, reference = f"{metadata['name']}-{number}", [reference_to(tree)]
        job = copy(spec["jobTemplate"]["spec"])
        await self._observer.create(workload("Job", metadata["namespace"], name, job, ownerReferences=reference))


def _has(job: Tree, condition: str) -> bool:
    return any(each["type"] == condition for each in job.get("status", {}).get("conditions", ()))


def _attempt_of(job: Tree) -> int:
    return int(job["metadata"]["labels"]["attempt"])
