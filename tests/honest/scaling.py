"""The controllers of workloads that run until they are deleted."""

from tests.honest.api import Api
from tests.honest.life import Life, Observer
from tests.honest.objects import (
    DAEMONSETS,
    GROUP_INDEX,
    NODES,
    REPLICASETS,
    STATEFULSETS,
    Tree,
    bound_to,
    controller_of,
    copy,
    is_active,
    is_deleting,
    is_made_by,
    is_ready,
    is_terminal,
    key_of,
    node_named,
    ordinal_of,
    reference_to,
    revision_of,
    selected,
    uid_of,
    workload,
)
from tests.honest.pod_maker import PodMaker


class Scaling:
    def __init__(self, api: Api, life: Life, observer: Observer, pods: PodMaker) -> None:
        self._api = api
        self._life = life
        self._observer = observer
        self._pods = pods

    async def replicaset(self, tree: Tree) -> None:
        active = [pod for pod in self._life.pods_of(uid_of(tree)) if is_active(pod)]
        more = tree["spec"]["replicas"] - len(active)
        if more > 0:
            await self._pods.make_all(REPLICASETS, tree, [tree["spec"]["template"]] * more)
        for pod in self._pods.first_to_go(active, -more) if more < 0 else ():
            self._life.delete_pod(pod)

    async def deployment(self, tree: Tree) -> None:
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
            made = {
                "replicas": first,
                **selected(spec["template"], {"pod-template-hash": revision_of(spec["template"])}),
            }
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

    async def statefulset(self, tree: Tree) -> None:
        spec, name, uid = tree["spec"], tree["metadata"]["name"], uid_of(tree)
        revision, parallel = revision_of(spec["template"]), spec["podManagementPolicy"] == "Parallel"
        there = {ordinal_of(pod): pod for pod in self._life.pods_of(uid)}
        first = spec.get("ordinals", {}).get("start", 0)
        wanted = range(first, first + spec["replicas"])
        for each in there.values():
            if is_terminal(each):
                self._life.delete_pod(each)

        # 1. Make what is missing, in order.
        for number in wanted:
            pod: Tree | None = there.get(number)
            if pod is None:
                if self._pods.refused.waits(uid, self._life.second):
                    return
                of_group = (controller_of(tree) or {}).get("kind") == "LeaderWorkerSet"
                more = {GROUP_INDEX: str(number)} if of_group else {}
                reply = await self._pods.make(tree, spec["template"], f"{name}-{number}", revision=revision, **more)
                if not reply.allowed:
                    self._pods.refused.fail(uid, self._life.second)
                    return
                self._pods.refused.forget(uid)
                if not parallel:
                    return
            elif not is_ready(pod) and not parallel:
                return

        # 2. Delete what is too much, the last one first.
        beyond = [there[number] for number in sorted(there, reverse=True) if number not in wanted]
        if beyond:
            if parallel or not any(map(is_deleting, beyond)):
                self._life.delete_pod(beyond[0])
            return

        # 3. Roll out, from the last one.
        for number in reversed(wanted):
            newest = there.get(number)
            if newest is None or not is_ready(newest):
                return
            if newest["metadata"]["labels"].get("revision") != revision:
                self._life.delete_pod(newest)
                return

    async def daemonset(self, tree: Tree) -> None:
        spec, uid = tree["spec"], uid_of(tree)
        template, revision = spec["template"], revision_of(spec["template"])
        selector = template["spec"].get("nodeSelector", {}).items()
        nodes = [each["metadata"] for each in self._api.all(NODES)]
        wanted = [each["name"] for each in nodes if selector <= each.get("labels", {}).items()]
        pods = self._life.pods_of(uid)
        for pod in pods:
            if is_terminal(pod):
                self._life.delete_pod(pod)

        # 1. Make the pods that are missing, each for its node; one that ends is awaited.
        there = {node_named(pod) for pod in pods}
        missing = [bound_to(template, node) for node in wanted if node not in there]
        if missing:
            await self._pods.make_all(DAEMONSETS, tree, missing, revision=revision)
            return

        # 2. Roll out: old pods that don't run go at once, those that run one by one.
        old = [pod for pod in pods if is_active(pod) and pod["metadata"]["labels"]["revision"] != revision]
        idle = [pod for pod in old if not is_ready(pod)]
        for pod in idle or (old[:1] if all(map(is_ready, pods)) else ()):
            self._life.delete_pod(pod)

    async def leaderworkerset(self, tree: Tree) -> None:
        """Make a StatefulSet of leaders, and one of workers for each leader; a group is made again as a whole."""
        spec, metadata, uid = tree["spec"], tree["metadata"], uid_of(tree)
        name, of_group = metadata["name"], spec["leaderWorkerTemplate"]

        # 1. The leaders.
        stored = self._api.find(STATEFULSETS, key_of(tree))
        if stored is None:
            await self._make_statefulset(tree, name, of_group.get("leaderTemplate") or of_group["workerTemplate"], spec)
            return
        if not is_made_by(stored, uid) or is_deleting(stored):
            return
        if stored["spec"]["replicas"] != spec["replicas"]:
            changed = {**stored["spec"], "replicas": spec["replicas"]}
            self._api.change(STATEFULSETS, key_of(stored), spec=changed)

        # 2. The workers of each leader that is there; the leader of a worker that is being deleted goes with them all.
        for leader in self._life.pods_of(uid_of(stored)):
            workers = self._api.find(STATEFULSETS, key_of(leader))
            if is_deleting(leader):
                continue
            if workers is None and of_group["size"] > 1:
                only = {"replicas": of_group["size"] - 1, "ordinals": {"start": 1}}
                template = copy(of_group["workerTemplate"])
                template["metadata"].setdefault("labels", {})[GROUP_INDEX] = leader["metadata"]["labels"][GROUP_INDEX]
                await self._make_statefulset(leader, leader["metadata"]["name"], template, only)
            elif workers is not None and any(map(is_deleting, self._life.pods_of(uid_of(workers)))):
                self._life.delete_in_foreground(leader)

    async def _make_statefulset(self, owner: Tree, name: str, template: Tree, sized: Tree) -> None:
        spec: Tree = {key: sized[key] for key in ("replicas", "ordinals") if key in sized}
        spec |= {"template": copy(template), "podManagementPolicy": "Parallel"}
        namespace, reference = owner["metadata"]["namespace"], [reference_to(owner)]
        await self._observer.create(workload("StatefulSet", namespace, name, spec, ownerReferences=reference))
