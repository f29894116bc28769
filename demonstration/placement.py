"""The command `python -m demonstration.placement FILE`: on which nodes gangs run, without placement and with Pack.

Fake nodes in racks, Kubernetes' own scheduler and Job controller, and the webhook of this checkout beside them. Each
arrangement gets the same gangs in the same order some times over, since the scheduler chooses among equal nodes at
random. The last gang needs four whole nodes.
"""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from demonstration.placement_figures import Layouts, Place
from installation.local_webhook import install_chart, start_webhook
from installation.readiness import wait_for_webhook
from localcluster import ControlPlane
from localcluster.waiting import wait_until

RACK = "topology.kubernetes.io/rack"
RACKS = {f"rack-{rack}": [f"gpu-{rack}-{node}" for node in range(4)] for rack in "abcd"}
GPUS = 8
CPUS, MEMORY = 10, 100
"""What goes with a GPU, memory in Gi: by these two Kubernetes prefers the emptier node. A node has a little more."""
SMALL, MIDDLE, LARGE = 2, 4, 8
GANGS = {**{f"gang-{number}": MIDDLE if number in (3, 6) else SMALL for number in range(1, 11)}, "large": LARGE}
"""GPUs of each pod; every gang has four."""
PODS = 4
RUNS = 3
SECONDS = 60
ARRANGEMENTS: dict[str, dict[str, Any]] = {
    "without": {},
    "Pack": {"gpu-training": {"strategy": "Pack", "topologyKey": RACK}},
}
Tree = dict[str, Any]


def job(name: str, gpus: int) -> Tree:
    """A gang as a Job of four pods."""
    asked = {"cpu": f"{CPUS * gpus}", "memory": f"{MEMORY * gpus}Gi"}
    resources = {"requests": asked, "limits": {"nvidia.com/gpu": gpus}}
    pod = {"containers": [{"name": "train", "image": "example.com/train:1", "resources": resources}]}
    template = {
        "metadata": {"labels": {"gpu-tiers.dev/tier": "gpu-training"}},
        "spec": {**pod, "restartPolicy": "Never"},
    }
    spec = {"parallelism": PODS, "completions": PODS, "completionMode": "Indexed", "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def run(cluster: ControlPlane, namespace: str) -> list[Place]:
    """Create the gangs one after another, each once the one before has nodes or is unschedulable; return the places.

    The namespace with all pods is deleted afterwards.
    """
    cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    for number, (name, gpus) in enumerate(GANGS.items(), start=1):
        cluster.api.create(job(name, gpus), namespace)
        wait_until(partial(settled, cluster, namespace, number * PODS), SECONDS, f"the pods of {name}")
    found = [place(pod) for pod in pods(cluster, namespace)]
    cluster.kubectl("delete", "namespace", namespace, f"--timeout={SECONDS}s")
    return sorted(found, key=lambda each: (list(GANGS).index(each.gang), each.node or ""))


def settled(cluster: ControlPlane, namespace: str, number: int) -> bool:
    """Return True once so many pods have a node or are unschedulable."""
    return number == sum(bool(pod["spec"].get("nodeName")) or is_unschedulable(pod) for pod in pods(cluster, namespace))


def is_unschedulable(pod: Tree) -> bool:
    """Return True if the scheduler has found no node for it."""
    conditions = pod["status"].get("conditions", ())
    return any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)


def place(pod: Tree) -> Place:
    """Return the gang, the GPUs and the node of a pod."""
    gpus = pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
    gang = pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]
    return Place(gang, int(gpus), pod["spec"].get("nodeName"))


def pods(cluster: ControlPlane, namespace: str) -> list[Tree]:
    """Return all pods of the namespace."""
    found: list[Tree] = cluster.api.get("pods", namespace)["items"]
    return found


def arranged(cluster: ControlPlane, name: str) -> list[list[Place]]:
    """Return the places in each of RUNS runs under one arrangement, in Enforce."""
    address = install_chart(cluster, policy={"placement": ARRANGEMENTS[name]})
    process = start_webhook(cluster, address)
    wait_for_webhook(cluster)
    runs = [run(cluster, f"{name.lower()}-{number}") for number in range(RUNS)]
    cluster.processes.end(process)
    return runs


def measured() -> Layouts:
    """Return the layouts of every arrangement."""
    with ControlPlane() as cluster:
        for rack, nodes in RACKS.items():
            for node in nodes:
                add_node(cluster, node, rack)
        return Layouts(cluster.version, GPUS, RACKS, {name: arranged(cluster, name) for name in ARRANGEMENTS})


def add_node(cluster: ControlPlane, name: str, rack: str) -> None:
    """A node of a rack, of a usual size."""
    cluster.add_node(name, gpus=GPUS, labels={RACK: rack})
    room = {"cpu": f"{(CPUS + 2) * GPUS}", "memory": f"{(MEMORY + 20) * GPUS}Gi"}
    sized = json.dumps({"status": {"capacity": room, "allocatable": room}})
    cluster.kubectl("patch", "node", name, "--subresource=status", "--type=merge", f"--patch={sized}")


def table(layouts: Layouts) -> str:
    """A row for each run."""
    lines = [
        "| placement | run | nodes of small pods | gangs that cross racks | GPUs stranded | gangs that wait |",
        f"|{'---|' * 6}",
    ]
    for name, runs in layouts.runs.items():
        for number, places in enumerate(runs, start=1):
            found = layouts.numbers(places)
            lines.append(
                f"| {name} | {number} | {found.nodes} | {found.crossing} | {found.stranded} | {found.waiting} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    found = measured()
    print(table(found))
    found.write(Path(sys.argv[1]))
