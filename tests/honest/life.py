"""Events of the cluster itself, a second at a time: kubelets, garbage collector, controllers, scheduler."""

from collections.abc import Iterable
from datetime import UTC, timedelta
from typing import Protocol

from tests.honest.api import Api
from tests.honest.claims import Allocations, gpus_on, has_claims, has_its_claims
from tests.honest.clocks import VirtualDatetime
from tests.honest.objects import (
    DELETED_AT,
    FOREGROUND,
    KINDS,
    LINGER,
    NODES,
    PODGROUPS,
    PODS,
    PROTECTED,
    RUN,
    Key,
    Tree,
    controller_of,
    gpus_of,
    group_named,
    has_any_gate,
    is_active,
    is_deleting,
    is_made_by,
    is_terminal,
    key_of,
    node_named,
    uid_of,
)
from tests.honest.requests import Reply
from webhook.kube.client import RFC_3339


class Observer(Protocol):
    """Creates what controllers want, and is notified of what happens."""

    async def create(self, tree: Tree) -> Reply: ...

    def deleted(self, pod: Tree, condition: str) -> None:
        """A pod with a node is being deleted."""

    def gone(self, pod: Tree) -> None:
        """A pod is gone, or has succeeded or failed."""

    def runs(self, pod: Tree) -> None: ...

    def workload_deleted(self, tree: Tree, how: str) -> None: ...

    def finished(self, tree: Tree) -> None: ...


class Life:
    """Pods, nodes and deletions. The controllers build on it."""

    def __init__(self, api: Api, observer: Observer) -> None:
        self.api = api
        self.observer = observer
        self.second = 0
        self.begun: dict[str, int] = {}
        """When each pod began to run."""
        self.failures: dict[str, tuple[int, int]] = {}
        """Of each Job: how many pods failed, and the second of the last one."""
        self.deleted_by_job: set[str] = set()
        """Pods whose own Job deleted them: no failures."""
        self._ends: dict[str, int] = {}
        self._nominated: dict[str, str] = {}
        self._down: set[str] = set()
        self._failed: set[str] = set()

    def pods_of(self, uid: str) -> list[Tree]:
        return [each for each in self.api.all(PODS) if is_made_by(each, uid)]

    def pods_of_group(self, group: Tree) -> list[Tree]:
        """Return the pods that name a PodGroup."""
        namespace, name = key_of(group)
        here = (each for each in self.api.all(PODS) if each["metadata"]["namespace"] == namespace)
        return [each for each in here if group_named(each) == name]

    # --- pods and kubelets

    def delete_pod(self, pod: Tree, condition: str = "") -> None:
        """Delete it: at once without a node, else when its program has ended. `condition`: why it is disrupted."""
        now = self.api.still_there(PODS, pod)
        if now is None or is_deleting(now):
            return
        if not (now["spec"].get("nodeName") or _awaits_dependents(now)) or is_terminal(now):
            self._remove(now)
            return
        grace = now["spec"].get("terminationGracePeriodSeconds", 30)
        end = (VirtualDatetime.now(UTC) + timedelta(seconds=grace)).strftime(RFC_3339)
        metadata = {**now["metadata"], "deletionTimestamp": end, "deletionGracePeriodSeconds": grace}
        status = dict(now.get("status", {}))
        if condition:
            others = [each for each in status.get("conditions", []) if each["type"] != "DisruptionTarget"]
            disrupted = {"type": "DisruptionTarget", "status": "True", "reason": condition}
            status["conditions"] = [*others, disrupted]
        self.api.change(PODS, key_of(now), metadata=metadata, status=status)
        linger = int(now["metadata"].get("annotations", {}).get(LINGER, 2))
        self._ends[uid_of(now)] = self.second + max(1, min(grace, linger))
        self.observer.deleted(now, condition)

    def delete_in_foreground(self, pod: Tree) -> None:
        """Delete a pod that stays until all that it owns is gone."""
        finalizers = {**pod["metadata"], "finalizers": [FOREGROUND]}
        self.delete_pod(self.api.change(PODS, key_of(pod), metadata=finalizers))

    def fail_pod(self, pod: Tree) -> None:
        """Let its program exit with an error."""
        now, controller = self.api.still_there(PODS, pod), controller_of(pod)
        if now is None or not is_active(now) or now.get("status", {}).get("phase") != "Running":
            return
        if controller is None or controller["kind"] in ("Job", "PyTorchJob"):
            self.api.change(PODS, key_of(now), status={**now["status"], "phase": "Failed"})
            self._note_failure(now)
            self.observer.gone(now)

    def kubelets(self) -> None:
        for pod in self.api.all(PODS):
            node, status, uid = pod["spec"].get("nodeName"), pod.get("status", {}), uid_of(pod)
            if node in self._down:
                continue
            if is_deleting(pod):
                if self.second >= self._ends.get(uid, 0) and not (_awaits_dependents(pod) and self._dependents(pod)):
                    self._remove(pod)
            elif node and not is_terminal(pod) and status.get("phase") != "Running":
                self.api.change(PODS, key_of(pod), status={**status, "phase": "Running"})
                self.begun[uid] = self.second
                self.observer.runs(pod)
            elif node and not is_terminal(pod):
                seconds = int(pod["metadata"].get("annotations", {}).get(RUN, 0))
                if seconds and self.second - self.begun.get(uid, self.second) >= seconds:
                    self.api.change(PODS, key_of(pod), status={**status, "phase": "Succeeded"})
                    self.observer.gone(pod)

    def _remove(self, pod: Tree) -> None:
        self._note_failure(pod)
        self.api.remove(PODS, key_of(pod))
        self.observer.gone(pod)

    def _note_failure(self, pod: Tree) -> None:
        """Count a pod of a Job that went without having succeeded."""
        controller, uid = controller_of(pod), uid_of(pod)
        if controller is None or controller["kind"] != "Job" or pod.get("status", {}).get("phase") == "Succeeded":
            return
        if uid not in self._failed:
            self._failed.add(uid)
            if uid not in self.deleted_by_job:
                count, _ = self.failures.get(controller["uid"], (0, 0))
                self.failures[controller["uid"]] = (count + 1, self.second)

    # --- nodes and the scheduler

    def node_fails(self, name: str) -> None:
        if name in self._down or self.api.find(NODES, ("", name)) is None:
            return
        self._down.add(name)
        for pod in self._evicted_from(name):
            self.delete_pod(pod, condition="DeletionByTaintManager")

    def node_returns(self, name: str) -> None:
        """The node is there again; the pods that were on it are gone."""
        if name in self._down:
            self._down.remove(name)
            for pod in self._evicted_from(name):
                self._remove(pod)

    def _on(self, node: str) -> list[Tree]:
        return [pod for pod in self.api.all(PODS) if pod["spec"].get("nodeName") == node and not is_terminal(pod)]

    def _evicted_from(self, node: str) -> list[Tree]:
        """Return the pods that don't outlast a node's failure: those of DaemonSets do."""
        return [pod for pod in self._on(node) if not node_named(pod)]

    def schedule(self) -> None:
        """Bind pending pods, the highest priority first; preempt where only that makes room."""
        nodes = {each["metadata"]["name"]: each for each in self.api.all(NODES)}
        running = {name: [pod for pod in self._on(name) if gpus_of(pod)] for name in nodes}
        free = {name: int(node["status"]["gpus"]) - gpus_on(running[name]) for name, node in nodes.items()}
        allocated = Allocations(pod for pods in running.values() for pod in pods)
        pending = [pod for pod in self.api.all(PODS) if _is_pending(pod) and self._has_its_group(pod)]
        pending = [pod for pod in pending if has_its_claims(self.api, pod)]
        pending.sort(key=lambda pod: (-_priority(pod), pod["metadata"]["creationTimestamp"], uid_of(pod)))
        uids = {uid_of(pod) for pod in pending}
        self._nominated = {uid: node for uid, node in self._nominated.items() if uid in uids}
        for pod in pending:
            selector = pod["spec"].get("nodeSelector", {}).items()
            fitting = [n for n in nodes if n not in self._down and selector <= _labels(nodes[n]).items()]
            fitting = [n for n in fitting if node_named(pod) in ("", n) and allocated.node(pod) in ("", n)]
            left = {n: free[n] - gpus_on(self._nominated_before(pod, n, pending)) for n in fitting}
            takes = 0 if allocated.node(pod) else gpus_of(pod)
            roomy = [n for n in fitting if left[n] >= takes]
            if roomy:
                node = min(roomy, key=lambda n: (free[n], n))
                self._bind(pod, node)
                free[node] -= takes
                allocated.add(pod, node)
            elif has_claims(pod):
                continue  # for devices of claims the scheduler evicts nobody
            elif uid_of(pod) not in self._nominated and pod["spec"].get("preemptionPolicy") != "Never":
                self._preempt_for(pod, left, running)

    def _has_its_group(self, pod: Tree) -> bool:
        """Tells whether as many pods of a PodGroup may run as it needs. Whether all have room is not looked at."""
        group = self.api.find(PODGROUPS, (pod["metadata"]["namespace"], group_named(pod)))
        if group is None:
            return not group_named(pod)
        ready = [each for each in self.pods_of_group(group) if not has_any_gate(each) and not is_deleting(each)]
        return len(ready) >= int(group["spec"]["schedulingPolicy"]["gang"]["minCount"])

    def _bind(self, pod: Tree, node: str) -> None:
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": self.api._now()}
        status = {**pod.get("status", {}), "conditions": [scheduled]}
        self.api.change(PODS, key_of(pod), spec={**pod["spec"], "nodeName": node}, status=status)
        self._nominated.pop(uid_of(pod), None)

    def _nominated_before(self, pod: Tree, node: str, pending: Iterable[Tree]) -> list[Tree]:
        """Return the other pods of at least this priority for which pods of a node were preempted."""
        there = (each for each in pending if self._nominated.get(uid_of(each)) == node and each is not pod)
        return [each for each in there if _priority(each) >= _priority(pod)]

    def _preempt_for(self, pod: Tree, left: dict[str, int], running: dict[str, list[Tree]]) -> None:
        best: tuple[str, list[Tree]] | None = None
        for node, room in left.items():
            lower = [each for each in running[node] if _priority(each) < _priority(pod) and not has_claims(each)]
            lower.sort(key=lambda each: (_priority(each), -self.begun.get(uid_of(each), 0)))
            taken: list[Tree] = []
            while lower and room + gpus_on(taken) < gpus_of(pod):
                taken.append(lower.pop(0))
            if taken and room + gpus_on(taken) >= gpus_of(pod) and (best is None or len(taken) < len(best[1])):
                best = node, taken
        if best is not None:
            self._nominated[uid_of(pod)] = best[0]
            for each in best[1]:
                self.delete_pod(each, condition="PreemptionByScheduler")

    # --- deletions and the garbage collector

    def delete(self, kind: str, key: Key, how: str = "background") -> None:
        """Delete an object with propagation policy `how`."""
        tree = self.api.find(KINDS[kind], key)
        if tree is None or is_deleting(tree):
            return
        if kind == "Pod":
            self.delete_pod(tree)
            return
        if kind == "PodGroup":
            self._delete_group(tree)
            return
        if how == "orphan":
            for path, each in self._dependents(tree):
                self.api.change(path, key_of(each), metadata={**each["metadata"], "ownerReferences": []})
        if how == "foreground":
            generation = tree["metadata"].get("generation", 0) + 1
            deleted = {"deletionTimestamp": DELETED_AT, "finalizers": [FOREGROUND], "generation": generation}
            metadata = {**tree["metadata"], **deleted}
            self.api.change(KINDS[kind], key, metadata=metadata)
        else:
            self.api.remove(KINDS[kind], key)
        self.observer.workload_deleted(tree, how)

    def _delete_group(self, group: Tree) -> None:
        """Delete the pods of a PodGroup; its finalizer keeps it as long as there are any."""
        self.observer.workload_deleted(group, "with its pods")
        for pod in self.pods_of_group(group):
            self.delete_pod(pod)
        metadata = {**group["metadata"], "deletionTimestamp": DELETED_AT, "finalizers": [PROTECTED]}
        self.api.change(PODGROUPS, key_of(group), metadata=metadata)

    def collect(self) -> None:
        """Delete what has lost its owner, or whose owner waits for that."""
        for group in self.api.all(PODGROUPS):
            if is_deleting(group) and not self.pods_of_group(group):
                self.api.remove(PODGROUPS, key_of(group))
        owners = {uid_of(each): each for path in KINDS.values() for each in self.api.all(path)}
        for kind, path in KINDS.items():
            for each in self.api.all(path):
                controller = controller_of(each)
                if controller is None:
                    continue
                owner = owners.get(controller["uid"])
                if owner is None:
                    self.delete(kind, key_of(each))
                elif _awaits_dependents(owner):
                    self.delete(kind, key_of(each), "foreground")
        for path in KINDS.values():
            for each in self.api.all(path):
                if path != PODS and _awaits_dependents(each) and not self._dependents(each):
                    self.api.remove(path, key_of(each))

    def _dependents(self, tree: Tree) -> list[tuple[str, Tree]]:
        uid = uid_of(tree)
        return [(path, each) for path in KINDS.values() for each in self.api.all(path) if is_made_by(each, uid)]


def _awaits_dependents(tree: Tree) -> bool:
    return FOREGROUND in tree["metadata"].get("finalizers", ())


def _is_pending(pod: Tree) -> bool:
    return not pod["spec"].get("nodeName") and not has_any_gate(pod) and is_active(pod)


def _priority(pod: Tree) -> int:
    return int(pod["spec"].get("priority", 0))


def _labels(node: Tree) -> dict[str, str]:
    labels: dict[str, str] = node["metadata"].get("labels", {})
    return labels
