"""The waits of controllers before their next try: after an outage in Enforce, and after a full quota has room.

`python bench/retries.py`, for some eight minutes; `--operators` measures workloads of JobSet, Trainer, the training
operator, KubeRay and LeaderWorkerSet instead. Each case has workloads of its own, three of each kind and of one pod
each. The time runs from when the webhook is ready again, or the room is there, to when a pod is created, which the API
server notes in whole seconds.
"""

import json
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from installation.local_webhook import Address, install_chart, start_webhook
from installation.readiness import wait_for_webhook
from localcluster import ControlPlane
from localcluster.operators import RunningOperator, rows
from localcluster.operators.manifests import module_folder
from localcluster.waiting import wait_until

IN_TREE = ("Job", "Deployment", "StatefulSet", "DaemonSet")
OPERATORS = {
    "JobSet": rows.JOBSET,
    "TrainJob": rows.TRAINER,
    "PyTorchJob": rows.TRAINING_OPERATOR,
    "RayCluster": rows.KUBERAY,
    "LeaderWorkerSet": rows.LWS,
}
KINDS = tuple(OPERATORS) if "--operators" in sys.argv else IN_TREE
EACH, OUTAGE, SHORT, LONG = 3, 30.0, 60.0, 300.0
AWAY, ANNOTATED, BRIEFLY, LONGER = "outage", "outage-then-annotated", "full-a-minute", "full-five-minutes"
CASES = (AWAY, ANNOTATED, BRIEFLY, LONGER)
LONGEST_WAIT = 1200
Tree = dict[str, Any]


def pod(gpus: int, labels: dict[str, str]) -> Tree:
    """A pod of gpu-batch on the fake node."""
    limits = {"limits": {"nvidia.com/gpu": gpus}}
    spec = {"containers": [{"name": "main", "image": "example.com/work:1", "resources": limits}]}
    return {"metadata": {"labels": {"gpu-tiers.dev/tier": "gpu-batch", **labels}}, "spec": spec}


def workload(kind: str, number: int) -> Tree:
    """A workload of one pod."""
    name = f"{kind.lower()}-{number}"
    return operators_workload(kind, name) if kind in OPERATORS else in_tree_workload(kind, name)


def operators_workload(kind: str, name: str) -> Tree:
    """A workload of an operator, with one pod that asks for a GPU."""
    template = pod(1, {})
    template["spec"]["containers"][0]["name"] = "pytorch"
    job = {"backoffLimit": 0, "template": {"spec": {**template["spec"], "restartPolicy": "Never"}}}
    limits = template["spec"]["containers"][0]["resources"]
    version, spec = {
        "JobSet": ("jobset.x-k8s.io/v1alpha2", {"replicatedJobs": [{"name": "node", "template": {"spec": job}}]}),
        "TrainJob": (
            "trainer.kubeflow.org/v1alpha1",
            {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"resourcesPerNode": limits}},
        ),
        "PyTorchJob": ("kubeflow.org/v1", {"pytorchReplicaSpecs": {"Master": {"replicas": 1, "template": template}}}),
        "RayCluster": ("ray.io/v1", {"headGroupSpec": {"rayStartParams": {}, "template": template}}),
        "LeaderWorkerSet": (
            "leaderworkerset.x-k8s.io/v1",
            {"replicas": 1, "leaderWorkerTemplate": {"size": 1, "workerTemplate": template}},
        ),
    }[kind]
    labels = {"gpu-tiers.dev/tier": "gpu-batch"}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels}, "spec": spec}


def in_tree_workload(kind: str, name: str) -> Tree:
    """A workload of Kubernetes itself."""
    labels = {"app": name}
    spec: Tree = {"template": pod(1, labels)}
    if kind == "Job":
        spec["template"]["spec"]["restartPolicy"] = "Never"
    else:
        spec["selector"] = {"matchLabels": labels}
    if kind == "StatefulSet":
        spec["serviceName"] = "none"
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def create(cluster: ControlPlane, namespace: str, *trees: Tree) -> None:
    """Create objects in a namespace."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(trees)})
    cluster.kubectl("create", f"--namespace={namespace}", "-f", "-", input=text)


def workloads() -> list[Tree]:
    """Return EACH workloads of each kind."""
    return [workload(kind, number) for kind in KINDS for number in range(EACH)]


def fill(cluster: ControlPlane, namespace: str) -> None:
    """Create a tenant, and one pod that uses its whole quota."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    spec = {"namespaceSelector": selector, "quotas": [{"gpus": len(KINDS) * EACH}]}
    quota = {"apiVersion": "gpu-tiers.dev/v1alpha1", "kind": "TenantQuota", "metadata": {"name": namespace}}
    cluster.apply(json.dumps({**quota, "spec": spec}))
    cluster.kubectl("wait", "--for=condition=Exact", f"tenantquota/{namespace}", "--timeout=120s")
    holder = pod(len(KINDS) * EACH, {})
    holder["metadata"]["name"] = "holder"
    create(cluster, namespace, {"apiVersion": "v1", "kind": "Pod", **holder})


def waited(cluster: ControlPlane, namespace: str, since: float) -> Iterator[tuple[str, float]]:
    """Yield kind and wait of each workload's pod: seconds from `since` to its creation, below 0 if it came before."""
    for each in cluster.kubectl("get", "pods", f"--namespace={namespace}", "--output=json").json()["items"]:
        kind = next((kind for kind in KINDS if each["metadata"]["name"].startswith(f"{kind.lower()}-")), "")
        if kind:
            yield kind, datetime.fromisoformat(each["metadata"]["creationTimestamp"]).timestamp() - since


def measure(cluster: ControlPlane) -> dict[str, dict[str, float]]:
    """Run all cases; return the longest wait in seconds by case and kind."""
    address = install_chart(cluster, mode="Enforce")
    start_webhook(cluster, address)
    wait_for_webhook(cluster)
    cluster.add_node("node", gpus=100)
    start_operators(cluster)
    for case in CASES:
        cluster.kubectl("create", "namespace", case)
    for case in (BRIEFLY, LONGER):
        fill(cluster, case)
    away(cluster, address)
    since = dict.fromkeys((AWAY, ANNOTATED), time.time())
    cluster.kubectl("annotate", ",".join(KINDS), "--all", f"--namespace={ANNOTATED}", "example.com/retry=now")
    for case in (BRIEFLY, LONGER):
        create(cluster, case, *workloads())
    for case, seconds in ((BRIEFLY, SHORT), (LONGER, LONG - SHORT)):
        time.sleep(seconds)
        since[case] = time.time()
        cluster.kubectl("delete", "pod", "holder", f"--namespace={case}", "--grace-period=0", "--force")
    return {case: longest(cluster, case, since[case]) for case in CASES}


def start_operators(cluster: ControlPlane) -> None:
    """Start the operators whose workloads are measured, and with Trainer add the runtime that it ships."""
    for kind in (each for each in KINDS if each in OPERATORS):
        RunningOperator(cluster, OPERATORS[kind])
    if "TrainJob" in KINDS:
        runtimes = module_folder(rows.TRAINER) / "manifests" / "base" / "runtimes"
        cluster.apply((runtimes / "torch_distributed.yaml").read_text())


def away(cluster: ControlPlane, address: Address) -> None:
    """Kill the webhook, create workloads, start it again after OUTAGE seconds, and print how long it was away."""
    process, until = cluster.processes.named("gpu-tiers"), time.monotonic() + OUTAGE
    process.popen.kill()
    cluster.processes.end(process)
    for case in (AWAY, ANNOTATED):
        create(cluster, case, *workloads())
    time.sleep(max(0.0, until - time.monotonic()))
    start_webhook(cluster, address)
    print(f"the outage took {OUTAGE + time.monotonic() - until:.0f} s", flush=True)


def longest(cluster: ControlPlane, case: str, since: float) -> dict[str, float]:
    """Return the longest wait of each kind once all pods are there; TimeoutError after LONGEST_WAIT."""
    all_there = lambda: len(list(waited(cluster, case, since))) == len(KINDS) * EACH  # noqa: E731
    wait_until(all_there, LONGEST_WAIT, f"the pods of {case}", pause=2.0)
    found = list(waited(cluster, case, since))
    return {kind: max(seconds for each, seconds in found if each == kind) for kind in KINDS}


def main() -> None:
    """Measure, and print the table."""
    with ControlPlane() as cluster:
        measured = measure(cluster)
    print(f"| controller | {' | '.join(CASES)} |\n|---|{'---|' * len(CASES)}")
    for kind in KINDS:
        print(f"| {kind} | {' | '.join(f'{max(measured[case][kind], 0):.0f}' for case in CASES)} |")


if __name__ == "__main__":
    main()
