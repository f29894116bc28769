"""Actions of people in a history: manifests, and changes of a workload's spec."""

from collections.abc import Callable
from typing import Any

from tests.honest.objects import Tree, pod_template, with_defaults, workload

Action = dict[str, Any]
Change = Callable[[Tree], Tree]


def made(action: Action) -> Tree:
    """Return the manifest that an action applies."""
    kind, name, namespace, count = action["kind"], action["name"], action["ns"], action.get("count", 1)
    template = pod_template(action)
    if kind == "Pod":
        metadata = {**template["metadata"], "name": name, "namespace": namespace}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": with_defaults(template["spec"])}
    if kind not in ("Deployment", "StatefulSet", "DaemonSet", "LeaderWorkerSet"):
        template["spec"]["restartPolicy"] = "Never"
    labels = {"labels": template["metadata"]["labels"]} if kind == "PodGroup" else {}
    return workload(kind, namespace, name, _SPECS[kind](action, template, count), **labels)


def _deployment(action: Action, template: Tree, count: int) -> Tree:
    rolling = {"maxSurge": action.get("surge", 1), "maxUnavailable": action.get("unav", 0)}
    strategy = {"type": "Recreate"} if action.get("recreate") else {"type": "RollingUpdate", "rollingUpdate": rolling}
    template["metadata"]["labels"]["app"] = action["name"]
    selector = {"matchLabels": {"app": action["name"]}}
    return {"replicas": count, "template": template, "strategy": strategy, "selector": selector}


def _statefulset(action: Action, template: Tree, count: int) -> Tree:
    management = "Parallel" if action.get("parallel") else "OrderedReady"
    return {"replicas": count, "template": template, "podManagementPolicy": management}


def _daemonset(_: Action, template: Tree, __: int) -> Tree:
    return {"template": template, "selector": {}}


def _leaderworkerset(action: Action, template: Tree, count: int) -> Tree:
    template["metadata"]["labels"]["leaderworkerset.sigs.k8s.io/name"] = action["name"]
    group: Tree = {"size": action.get("size", 2), "workerTemplate": template}
    if action.get("idle_leader"):
        leader = pod_template({**action, "gpus": 0, "tier": None})
        leader["metadata"]["labels"] = {"leaderworkerset.sigs.k8s.io/name": action["name"]}
        group["leaderTemplate"] = leader
    return {"replicas": count, "leaderWorkerTemplate": group}


def _podgroup(_: Action, __: Tree, count: int) -> Tree:
    return {"schedulingPolicy": {"gang": {"minCount": count}}, "priority": 0, "disruptionMode": {"single": {}}}


def pods_of_group(action: Action) -> list[Tree]:
    """Return the pods that a person applies with a PodGroup."""
    template = pod_template(action)
    template["spec"] |= {"schedulingGroup": {"podGroupName": action["name"]}, "restartPolicy": "Never"}
    spec, metadata = with_defaults(template["spec"]), {**template["metadata"], "namespace": action["ns"]}
    names = (f"{action['name']}-{number}" for number in range(action["count"]))
    return [{"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "name": n}, "spec": spec} for n in names]


def _job(action: Action, template: Tree, count: int) -> Tree:
    spec = {"parallelism": count, "template": template, "backoffLimit": 12}
    spec |= {"completions": action["completions"]} if action.get("completions") else {}
    return spec | ({"suspend": True} if action.get("suspend") else {})


def _jobset(action: Action, template: Tree, count: int) -> Tree:
    pods = action.get("per", 1)
    job = {"parallelism": pods, "completions": pods, "template": template, "backoffLimit": 0}
    replicated = [{"name": "w", "replicas": count, "template": {"spec": job}}]
    spec: Tree = {"replicatedJobs": replicated, "failurePolicy": {"maxRestarts": 5}}
    return spec | ({"suspend": True} if action.get("suspend") else {})


def _pytorchjob(action: Action, template: Tree, count: int) -> Tree:
    workers = {"Worker": {"replicas": count, "template": template}}
    if action.get("elastic"):
        elastic = {"minReplicas": action["elastic"], "maxReplicas": 8}
        spec: Tree = {"elasticPolicy": elastic, "pytorchReplicaSpecs": workers}
    else:
        spec = {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": template}, **workers}}
    return spec | ({"runPolicy": {"suspend": True}} if action.get("suspend") else {})


def _cronjob(action: Action, template: Tree, count: int) -> Tree:
    job = {"spec": {"parallelism": count, "template": template, "backoffLimit": 12}}
    policy = action.get("policy", "Forbid")
    return {"every": action.get("every", 40), "concurrencyPolicy": policy, "jobTemplate": job}


_SPECS: dict[str, Callable[[Action, Tree, int], Tree]] = {
    "Deployment": _deployment,
    "StatefulSet": _statefulset,
    "Job": _job,
    "JobSet": _jobset,
    "PyTorchJob": _pytorchjob,
    "CronJob": _cronjob,
    "DaemonSet": _daemonset,
    "LeaderWorkerSet": _leaderworkerset,
    "PodGroup": _podgroup,
}


def resized(kind: str, action: Action) -> Change | None:
    """Return the change of replicas, None for a kind that can't be resized."""
    to = action["to"]

    def change(spec: Tree) -> Tree:
        if kind == "Job":
            spec["parallelism"] = max(to, 1)
        elif kind == "PyTorchJob":
            spec["pytorchReplicaSpecs"]["Worker"]["replicas"] = max(to, 1)
        else:
            spec["replicas"] = to
        return spec

    return change if kind in ("Deployment", "StatefulSet", "Job", "PyTorchJob", "LeaderWorkerSet") else None


def rolled_out(kind: str, action: Action) -> Change | None:
    """Return the change to another image."""

    def change(spec: Tree) -> Tree:
        spec["template"]["spec"]["containers"][0]["image"] = f"work:{action['to']}"
        return spec

    return change if kind in ("Deployment", "StatefulSet", "DaemonSet") else None


def suspended(kind: str, action: Action) -> Change | None:
    """Return the change that suspends or resumes."""
    value = action["do"] == "suspend"

    def change(spec: Tree) -> Tree:
        if kind == "PyTorchJob":
            spec["runPolicy"] = {"suspend": value}
        else:
            spec["suspend"] = value
        return spec

    return change if kind in ("Job", "JobSet", "PyTorchJob", "CronJob") else None
