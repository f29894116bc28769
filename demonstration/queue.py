"""`python -m demonstration.queue FILE`: ten gangs of four wait for eight GPUs, and one is evicted meanwhile.

A real control plane with scheduler and Job controller, two fake nodes of four GPUs, and the webhook of this checkout
beside them. All Jobs are created at once. Each runs for some seconds once all of its pods run; a pod of a higher tier
takes the GPUs of one of them for a while.
"""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from demonstration.queue_figures import QueueRun, Span, State
from installation.local_webhook import install_chart, start_webhook
from installation.readiness import wait_for_webhook
from localcluster import ControlPlane

GANGS, PODS, GPUS = 10, 4, 8
RUN_SECONDS, EVICTED_AT, EVICTOR_SECONDS = 4.0, 6.0, 5.0
EVICTOR = "urgent"
GATE = "gpu-tiers.dev/quota"
COMPLETES = "localcluster.gpu-tiers.dev/completes"
TENANT = {
    "apiVersion": "gpu-tiers.dev/v1alpha1",
    "kind": "TenantQuota",
    "metadata": {"name": "research"},
    "spec": {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "research"}},
        "quotas": [{"gpus": GPUS}],
        "onExceed": "Hold",
    },
}
Tree = dict[str, Any]


def pod_spec(gpus: int) -> Tree:
    return {
        "containers": [
            {"name": "main", "image": "example.com/work:1", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
        ]
    }


def job(name: str) -> Tree:
    """A gang of four pods."""
    labels = {"gpu-tiers.dev/tier": "gpu-batch"}
    template = {"metadata": {"labels": labels}, "spec": {**pod_spec(1), "restartPolicy": "Never"}}
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    spec = {"parallelism": PODS, "completions": PODS, "completionMode": "Indexed", "template": template}
    spec |= {"podFailurePolicy": {"rules": [rule]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def urgent() -> Tree:
    """A pod of a higher tier, of another team."""
    labels = {"gpu-tiers.dev/tier": "gpu-training"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": EVICTOR, "labels": labels}, "spec": pod_spec(1)}


class Watch:
    """Looks at all pods again and again, and notes how long each workload is in a state."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._cluster = cluster
        self._began = time.monotonic()
        self.now = 0.0
        self.states: dict[str, tuple[State, float]] = {}
        self.spans: list[Span] = []
        self.pods: dict[str, list[Tree]] = {}

    def look(self) -> None:
        """Note which workloads wait and which run now."""
        items = self._cluster.kubectl("get", "pods", "--all-namespaces", "--output=json").json()["items"]
        self.now = round(time.monotonic() - self._began, 2)
        self.pods = {}
        for pod in items:
            name = pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name", pod["metadata"]["name"])
            if pod["status"]["phase"] in ("Pending", "Running") and "deletionTimestamp" not in pod["metadata"]:
                self.pods.setdefault(name, []).append(pod)
        for name in {*self.states, *self.pods}:
            self._note(name, _state(self.pods.get(name, []), 1 if name == EVICTOR else PODS))

    def _note(self, name: str, state: State | None) -> None:
        before = self.states.get(name)
        if before is not None and before[0] != state:
            self.spans.append(Span(name, before[0], before[1], self.now))
            del self.states[name]
        if state is not None and name not in self.states:
            self.states[name] = state, self.now

    def since(self, name: str, state: State) -> float:
        """Return for how many seconds a workload has been in a state; 0 if it is not."""
        found = self.states.get(name)
        return self.now - found[1] if found and found[0] == state else 0.0


def _state(pods: list[Tree], wanted: int) -> State | None:
    if not pods:
        return None
    if all({"name": GATE} in pod["spec"].get("schedulingGates", ()) for pod in pods):
        return "waits"
    running = sum(pod["status"]["phase"] == "Running" for pod in pods)
    return "runs" if running == wanted else "starts"


def played(cluster: ControlPlane) -> list[Span]:
    """Create the gangs, end each in its time, and evict one; return the states of all by their begin."""
    gangs = [f"gang-{number}" for number in range(1, GANGS + 1)]
    for name in gangs:
        cluster.api.create(job(name), "research")
    watch, evicting = Watch(cluster), False
    watch.look()
    while watch.states or not evicting:
        watch.look()
        for name in ended(watch, gangs):
            cluster.kubectl(
                "annotate", "pods", "--namespace=research", f"--selector=job-name={name}", f"{COMPLETES}=true"
            )
        if not evicting and watch.now > EVICTED_AT:
            cluster.api.create(urgent(), "others")
            evicting = True
        if watch.since(EVICTOR, "runs") > EVICTOR_SECONDS:
            cluster.api.delete(f"pod/{EVICTOR}", namespace="others", wait=False)
    return sorted(watch.spans, key=lambda each: each.begins)


def ended(watch: Watch, gangs: list[str]) -> Iterator[str]:
    """Yield the gangs that have run for RUN_SECONDS and whose pods are not yet annotated to complete."""
    for name in gangs:
        annotated = [COMPLETES in pod["metadata"].get("annotations", {}) for pod in watch.pods.get(name, ())]
        if watch.since(name, "runs") > RUN_SECONDS and not any(annotated):
            yield name


def main(file: Path) -> None:
    """Run the gangs on a new cluster, print the spans, and write them to a file."""
    with ControlPlane() as cluster:
        for name in ("research", "others"):
            cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for number in range(GPUS // PODS):
            cluster.add_node(f"gpu-{number}", gpus=PODS)
        address = install_chart(cluster)
        start_webhook(cluster, address)
        wait_for_webhook(cluster)
        cluster.apply(json.dumps(TENANT))
        cluster.api.wait_for("Ready", "tenantquota/research")
        spans = played(cluster)
        gangs = list(
            dict.fromkeys(each.workload for each in spans if each.state == "runs" and each.workload != EVICTOR)
        )
        run = QueueRun(cluster.version, GPUS, PODS, gangs, EVICTOR, spans)
    for each in run.spans:
        print(f"{each.begins:6.1f} {each.ends:6.1f} {each.workload} {each.state}")
    run.write(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
