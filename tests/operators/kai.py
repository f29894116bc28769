"""KAI beside our webhook: its queues, its groups of pods, and what becomes of pods that it evicts."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from .samples import a_container, a_template, a_workload
from .team import Team, Tree

SCHEDULER = "kai-scheduler"
QUEUE = "kai.scheduler/queue"
UNLIMITED = -1
WATCHED_SECONDS = 30


def a_queue(name: str, gpus: int, quota: int | None = None, parent: str = "") -> Tree:
    """A queue that may use so many GPUs, of which so many are its own: all, where nothing is said."""
    unlimited = {"quota": UNLIMITED, "limit": UNLIMITED}
    of_gpus = {"quota": gpus if quota is None else quota, "limit": gpus, "overQuotaWeight": 1}
    spec: Tree = {"resources": {"cpu": unlimited, "memory": unlimited, "gpu": of_gpus}}
    return a_workload("scheduling.run.ai/v2", "Queue", name, spec | ({"parentQueue": parent} if parent else {}))


def in_queue(tree: Tree, queue: str, tier: str, **annotations: str) -> Tree:
    """The workload in that queue, of that tier."""
    tree["metadata"] |= {"labels": {QUEUE: queue, "gpu-tiers.dev/tier": tier}, "annotations": annotations}
    return tree


def a_job(name: str, pods: int, **template: object) -> Tree:
    """A training of so many pods, which ends at the first failure that counts."""
    of_pod = a_template(
        a_container("train", 1, "torchrun", "train.py"), restartPolicy="Never", schedulerName=SCHEDULER, **template
    )
    spec = {"parallelism": pods, "completions": pods, "backoffLimit": 0, "template": of_pod}
    return a_workload("batch/v1", "Job", name, spec)


def a_replicaset(name: str, gpus: int, **template: object) -> Tree:
    """One pod, which is made again as soon as it is being deleted."""
    of_pod = a_template(a_container("serve", gpus, "torchrun", "train.py"), **template)
    of_pod["metadata"] = {"labels": {"app": name}}
    selector = {"matchLabels": {"app": name}}
    return a_workload("apps/v1", "ReplicaSet", name, {"replicas": 1, "selector": selector, "template": of_pod})


def for_kai(pytorchjob: Tree) -> Tree:
    """The PyTorchJob with KAI as the scheduler of its pods."""
    for replicas in pytorchjob["spec"]["pytorchReplicaSpecs"].values():
        replicas["template"]["spec"]["schedulerName"] = SCHEDULER
    return pytorchjob


def groups(team: Team) -> list[Tree]:
    """Return the PodGroups that KAI's grouper has made of the team's pods."""
    found: list[Tree] = [each["spec"] for each in team.get("podgroups.scheduling.run.ai")["items"]]
    return found


@contextmanager
def ended(team: Team, seconds: int = WATCHED_SECONDS) -> Iterator[list[Tree]]:
    """The team's pods that go while the block runs, each as it was at its end; they are there after the block."""
    found: list[Tree] = []
    place = f"/api/v1/namespaces/{team.namespace}/pods"
    since = team.kubectl("get", "--raw", place).json()["metadata"]["resourceVersion"]
    asked = f"{place}?watch=1&resourceVersion={since}&timeoutSeconds={seconds}"
    with ThreadPoolExecutor(1) as watcher:
        watching = watcher.submit(team.kubectl, "get", "--raw", asked)
        yield found
        events = [json.loads(line) for line in watching.result().stdout.splitlines()]
    found += [each["object"] for each in events if each["type"] == "DELETED"]


def reasons(pods: list[Tree]) -> set[tuple[str, str]]:
    """Condition and reason by which they say that they were evicted; none of pods that only were deleted."""
    conditions = [each for pod in pods for each in pod["status"].get("conditions", [])]
    return {(each["type"], each["reason"]) for each in conditions if each["type"] == "DisruptionTarget"}


def evict_event(team: Team) -> str:
    """Return KAI's event about an eviction, which is on the victim's PodGroup and not on the pod."""
    events = team.get("events")["items"]
    evicted = [each for each in events if each["reason"] == "Evict"]
    assert {each["involvedObject"]["kind"] for each in evicted} == {"PodGroup"}
    return str(evicted[0]["message"])


def names(team: Team, workload: str) -> list[str]:
    """The pods of that workload that nobody has deleted."""
    found = (each["metadata"]["name"] for each in team.pods())
    return [each for each in found if each.startswith(f"{workload}-")]


def bound(team: Team, workload: str) -> bool:
    """Return whether a pod of that workload is on its node."""
    named = set(names(team, workload))
    return any("nodeName" in each["spec"] for each in team.pods() if each["metadata"]["name"] in named)


def waits(team: Team, workload: str) -> str:
    """Return why KAI has placed none of its pods; empty where it says nothing yet."""
    said = [
        each.get("message", "")
        for pod in team.pods()
        if pod["metadata"]["name"].startswith(f"{workload}-")
        for each in pod["status"].get("conditions", [])
        if each["type"] == "PodScheduled" and each["status"] == "False"
    ]
    return said[0] if said else ""
