"""The time that `gpu-tiers audit`, `lint` and `policy diff` take in a large cluster, and their memory.

`python bench/audit.py`. Jobs of 8 pods, Deployments of 10, pods that nobody makes, and web servers without GPUs are
written straight into etcd of a real control plane, on fake nodes; the commands are then run as a person runs them.
"""

import asyncio
import os
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, Popen

from growth import Tree, create, pod, tenant, write_objects
from load import ApiServer

from installation.local_webhook import install_chart
from localcluster import ControlPlane
from localcluster.fake_nodes import node
from localcluster.waiting import wait_until

JOBS, PODS_PER_JOB = 2_000, 8
DEPLOYMENTS, REPLICAS = 200, 10
ALONE = 2_000
WEB = 500
NODES, TENANTS = 2_500, 100
MOST_SECONDS, MOST_MIB = 60, 400
GROUPS = {"jobs": "batch/v1", "deployments": "apps/v1", "replicasets": "apps/v1"}
POLICY = str(Path(__file__).resolve().parents[1] / "examples" / "policies" / "four-tier.yaml")
COMMANDS = (
    ("gpu-tiers audit", ("audit", "--fail-on=error")),
    ("gpu-tiers audit -o json", ("audit", "--output=json")),
    ("gpu-tiers policy diff three-tier", ("policy", "diff", "three-tier")),
    ("gpu-tiers lint", ("lint",)),
)


@dataclass(frozen=True)
class Object:
    """A workload in etcd, with the fields by which the objects that it makes name it."""

    kind: str
    plural: str
    namespace: str
    name: str
    uid: str

    def stored(self, **fields: object) -> tuple[str, Tree]:
        """Return its key in etcd, and the object with these further fields, such as `spec`."""
        metadata = {"name": self.name, "namespace": self.namespace, "uid": self.uid}
        metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
        return f"{self.plural}/{self.namespace}/{self.name}", {
            "apiVersion": GROUPS[self.plural],
            "kind": self.kind,
            "metadata": metadata,
            **fields,
        }

    @property
    def owner(self) -> list[Tree]:
        """The ownerReferences of the objects that it makes."""
        about = {"apiVersion": GROUPS[self.plural], "kind": self.kind, "name": self.name, "uid": self.uid}
        return [{**about, "controller": True}]


def main() -> None:
    """Fill a control plane, run the commands, and print the table and the goals."""
    with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as cluster:
        install_chart(cluster)
        cluster.kubectl("delete", "validatingwebhookconfiguration,mutatingwebhookconfiguration", "zz-gpu-tiers")
        asyncio.run(create(ApiServer(cluster.kubeconfig), map(tenant, range(TENANTS))))
        write_objects(cluster, ((f"minions/node-{each}", node(f"node-{each}", 8, {})) for each in range(NODES)))
        write_objects(cluster, objects())
        wait_until(lambda: _is_seen(cluster), 120, "the API server to have seen all that was written")
        there = JOBS * PODS_PER_JOB + DEPLOYMENTS * REPLICAS + ALONE
        print(f"{there:,} pods with GPUs of {JOBS:,} Jobs, {DEPLOYMENTS} Deployments and nobody, on {NODES:,} nodes\n")
        print("| | s | CPU s | at most MiB |")
        print("|---|---|---|---|")
        for name, arguments in COMMANDS:
            print(row(name, (*arguments, f"--kubeconfig={cluster.kubeconfig}")), flush=True)
    print(f"\nthe goals of audit: {MOST_SECONDS} s, {MOST_MIB} MiB")


def _is_seen(cluster: ControlPlane) -> bool:
    paths = ("/api/v1/pods", "/api/v1/nodes", "/apis/batch/v1/jobs", "/apis/apps/v1/replicasets")
    return all(cluster.kubectl("get", f"--raw={each}?limit=1", check=False).code == 0 for each in paths)


def row(name: str, arguments: tuple[str, ...]) -> str:
    """Run a command; return its line of the table: seconds, CPU seconds, most MiB (Linux: getrusage(2), KiB).

    SystemExit if the command ends with neither 0 nor 1.
    """
    began = time.monotonic()
    program = Path(sys.executable).parent / "gpu-tiers"
    process = Popen([program, *arguments], stdout=DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise SystemExit(f"{name}: {status}")
    seconds, cpu = time.monotonic() - began, used.ru_utime + used.ru_stime
    return f"| {name} | {seconds:.1f} | {cpu:.1f} | {used.ru_maxrss / 1024:.0f} |"


def objects() -> Iterator[tuple[str, Tree]]:
    """Yield workloads, most with their pods, by their keys in etcd; every fourth Job is from before gpu-tiers."""
    for number in range(JOBS):
        job = _object("Job", "jobs", number, f"train-{number}")
        yield job.stored(spec={"parallelism": PODS_PER_JOB, "completions": PODS_PER_JOB, "template": _template(job)})
        for index in range(PODS_PER_JOB):
            yield _pod(job, f"{job.name}-{index}", marked=bool(number % 4))
    for number in range(DEPLOYMENTS):
        web = _object("Deployment", "deployments", number, f"vllm-{number}")
        made = _object("ReplicaSet", "replicasets", number, f"vllm-{number}-abc")
        spec = {"replicas": REPLICAS, "selector": {"matchLabels": {"app": "train"}}, "template": _template(web)}
        yield web.stored(spec=spec)
        key, tree = made.stored(spec=spec)
        tree["metadata"]["ownerReferences"] = web.owner
        yield key, tree
        for index in range(REPLICAS):
            yield _pod(made, f"{made.name}-{index}")
    for number in range(ALONE):
        yield _pod(None, f"alone-{number}", namespace=f"team-{number % TENANTS}")
    for number in range(WEB):
        template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
        selector = {"matchLabels": {"app": "web"}}
        yield _object("Deployment", "deployments", number, f"web-{number}").stored(
            spec={"replicas": 2, "selector": selector, "template": template}
        )


def _object(kind: str, plural: str, number: int, name: str) -> Object:
    return Object(kind, plural, f"team-{number % TENANTS}", name, str(uuid.uuid4()))


def _template(of: Object) -> Tree:
    spec = pod(of.namespace, of.name)["spec"]
    bare = {key: spec[key] for key in ("containers", "restartPolicy", "terminationGracePeriodSeconds")}
    return {"metadata": {"labels": {"app": "train", "gpu-tiers.dev/tier": "gpu-batch"}}, "spec": bare}


def _pod(owner: Object | None, name: str, *, namespace: str = "", marked: bool = True) -> tuple[str, Tree]:
    home = owner.namespace if owner else namespace
    tree = pod(home, name)
    tree["metadata"]["annotations"] = {"gpu-tiers.dev/assigned-by": "label: on the pod"} if marked else {}
    tree["metadata"]["ownerReferences"] = owner.owner if owner else []
    return f"pods/{home}/{name}", tree


if __name__ == "__main__":
    main()
