"""The memory of a replica, and the time until it is ready and has counted, as pods and tenants become more.

`python bench/growth.py`. The pods are written straight into etcd of a control plane without controllers: what is
measured is what a replica makes of them, and not their creation.
"""

import asyncio
import base64
import http.client
import json
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from load import ApiServer, answer

from installation.local_webhook import Address, install_chart, serve
from installation.readiness import wait_for_webhook
from localcluster import ControlPlane
from localcluster.ports import free_ports
from localcluster.processes import Process
from localcluster.waiting import answers_ready, wait_until
from webhook.policy.quota.tenant_quotas import API_VERSION

SIZES = (100, 10_000, 50_000)
TENANTS = 500
A_TRANSACTION = 100
"""Keys that one transaction of etcd writes; it takes 128."""
CONNECTIONS = 8
MOST_MIB, MOST_SECONDS = 200, 5
Tree = dict[str, Any]
EMPTY_LEASE: Tree = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "gpu-tiers", "namespace": "gpu-tiers"},
}
"""The Lease as the chart makes it: the replica that finds it leads as after an installation."""


def main() -> None:
    """Print the table."""
    began = time.monotonic()
    with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as cluster:
        cluster.kubectl("create", "serviceaccount", "default", "--namespace=default")
        address = install_chart(cluster)
        asyncio.run(create(ApiServer(cluster.kubeconfig), map(tenant, range(TENANTS))))
        print(f"a replica beside {TENANTS} tenants and as many namespaces\n")
        print("| pods | replica | ready after s | all pods counted after s | RSS MiB | at most MiB |")
        print("|---|---|---|---|---|---|")
        for before, size in zip((0, *SIZES), SIZES, strict=False):
            write_pods(cluster, range(before, size))
            measure(cluster, address, size)
    print(f"\nthe goals: at most {MOST_MIB} MiB, ready within {MOST_SECONDS} s; in {time.monotonic() - began:.0f} s")


@dataclass
class Replica:
    """A process, the time at which it was started, and the seconds until it was ready."""

    process: Process
    began: float
    ready: float

    def mib(self, field: str) -> float:
        """Return the MiB that the process has (`field` VmRSS), or had at most (VmHWM); Linux: proc(5)."""
        status = Path(f"/proc/{self.process.popen.pid}/status").read_text()
        return int(status.split(f"{field}:")[1].split()[0]) / 1024

    def row(self, size: int, name: str, counted: float | None) -> str:
        """Return its line of the table."""
        after = "" if counted is None else f"{counted:.1f}"
        return f"| {size:,} | {name} | {self.ready:.1f} | {after} | {self.mib('VmRSS'):.0f} | {self.mib('VmHWM'):.0f} |"


def measure(cluster: ControlPlane, address: Address, size: int) -> None:
    """Start a leader as after an installation, and a follower; print their lines of the table, and end both."""
    leader = start(cluster, "leader", address)
    wait_until(lambda: counted(cluster) == size, 300, "the count of all pods", pause=0.5)
    after = time.monotonic() - leader.began
    follower = start(cluster, "follower", Address(*free_ports(3)))
    wait_for_webhook(cluster)
    time.sleep(3)
    print(leader.row(size, "leader", after))
    print(follower.row(size, "follower", None), flush=True)
    for replica in (follower, leader):
        cluster.processes.end(replica.process)
    cluster.kubectl("replace", "--force", "-f", "-", input=json.dumps(EMPTY_LEASE))


def start(cluster: ControlPlane, name: str, address: Address) -> Replica:
    """Start a replica, and wait until it is ready; TimeoutError after two minutes."""
    command = serve(cluster, address, f"--identity={name}", "--log-level=warning")
    began = time.monotonic()
    process = cluster.processes.start(name, command)
    wait_until(lambda: answers_ready(address.metrics_port), 120, name, pause=0.05)
    return Replica(process, began, time.monotonic() - began)


def counted(cluster: ControlPlane) -> int:
    """Return the GPUs that the totals of all TenantQuotas say are used."""
    found = cluster.kubectl("get", "tenantquota", "-o=jsonpath={.items[*].status.usage[0].used}").stdout
    return sum(map(int, found.split()))


def tenant(number: int) -> Iterator[tuple[str, Tree]]:
    """A namespace and its TenantQuota."""
    name = f"team-{number}"
    yield "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    spec = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
        "quotas": [{"gpus": 1000}, {"tier": "gpu-batch", "gpus": 500}],
    }
    quota = {"apiVersion": API_VERSION, "kind": "TenantQuota", "metadata": {"name": name}, "spec": spec}
    yield f"/apis/{API_VERSION}/tenantquotas", quota


async def create(server: ApiServer, groups: Iterator[Iterator[tuple[str, Tree]]]) -> None:
    """Create objects over some connections at once, those of a group one after another."""

    async def one_connection() -> None:
        reader, writer = await server.connect()
        for group in groups:
            for path, tree in group:
                writer.write(server.request("POST", path, json.dumps(tree).encode()))
                status, text = await answer(reader)
                if status != http.client.CREATED:
                    raise SystemExit(f"{path}: {status} {text.decode()}")
        writer.close()

    await asyncio.gather(*(one_connection() for _ in range(CONNECTIONS)))


def write_pods(cluster: ControlPlane, numbers: range) -> None:
    """Put pods into etcd."""
    names = ((f"team-{number % TENANTS}", f"train-{number}") for number in numbers)
    write_objects(cluster, ((f"pods/{namespace}/{name}", pod(namespace, name)) for namespace, name in names))


def write_objects(cluster: ControlPlane, objects: Iterable[tuple[str, Tree]]) -> None:
    """Put objects into etcd at these keys, by its gateway for JSON over HTTP."""
    command = cluster.processes.named("etcd").command
    url = next(each for each in command if each.startswith("--listen-client-urls=")).partition("http://")[2]
    etcd = http.client.HTTPConnection(url)
    puts = map(put, objects)
    while some := list(islice(puts, A_TRANSACTION)):
        etcd.request("POST", "/v3/kv/txn", json.dumps({"success": some}))
        response = etcd.getresponse()
        text = response.read()
        if response.status != http.client.OK:
            raise SystemExit(f"etcd: {text.decode()}")


def put(written: tuple[str, Tree]) -> Tree:
    """Return the request by which etcd writes one object."""
    key, tree = written
    pair = {"key": f"/registry/{key}", "value": json.dumps(tree)}
    return {"requestPut": {field: base64.b64encode(text.encode()).decode() for field, text in pair.items()}}


def pod(namespace: str, name: str) -> Tree:
    """Return a running pod of some 3 KB, as small as a training pod usually is."""
    limits = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}
    container = {
        "name": "train",
        "image": "registry.example/train@sha256:" + "0" * 64,
        "command": ["python", "-m", "train", "--config=/etc/train/config.yaml"],
        "env": [{"name": f"NCCL_SETTING_{number}", "value": "some-value-" * 3} for number in range(20)],
        "resources": {"limits": limits, "requests": limits},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": str(uuid.uuid4()),
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "train", "gpu-tiers.dev/tier": "gpu-batch"},
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": str(uuid.uuid4()), "controller": True}
            ],
        },
        "spec": {
            "containers": [container],
            "nodeName": f"node-{hash(name) % 1000}",
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "priorityClassName": "gpu-batch",
            "priority": 400,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "podIP": "10.0.0.1"},
    }


if __name__ == "__main__":
    main()
