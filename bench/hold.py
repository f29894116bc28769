"""The cost of queued pods: for a pod that need not wait, and for 5,000 that do.

`python bench/hold.py [--pods 5000]`. A real control plane with its scheduler and fake nodes, one replica. In turns pods
of a tenant that refuses and of one that holds, each with room: from create to bound. Then a queue: memory, how long it
takes from a freed GPU to the next bound pod, and how long until the whole queue is bound once there is room for it.
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import uvloop
from load import CREATED, GPU_POD, ApiServer, Samples, Tree, answer, burst
from reports import cost

from installation.local_webhook import install_chart, start_webhook
from installation.readiness import wait_for_webhook
from localcluster import ControlPlane
from localcluster.processes import Process
from webhook.kube.client import Client, listed_objects, path
from webhook.policy.quota.tenant_quotas import API_VERSION
from webhook.policy.values.tenants import OnExceed

POD: Tree = json.loads(json.dumps(GPU_POD).replace('"cpu": "8", "memory": "64Gi", ', ""))
"""A pod so small that thousands of them fit on the fake nodes."""
IDLE, FREED, CROWD, RUNS = 150, 200, 32, 8
"""Creates of each tenant in turns; pods that end while others queue; clients; GPUs of the tenant with the queue."""


class Bound:
    """The times at which pods got their node, as a watch reported it."""

    def __init__(self) -> None:
        self.at: dict[str, float] = {}
        self.last: list[str] = []
        self._news = asyncio.Event()

    async def follow(self, client: Client, namespace: str, version: str) -> None:
        async with client.watch(path("v1", "pods", namespace), version) as events:
            async for event in events:
                pod: Tree = json.loads(bytes(event.object))
                name = pod["metadata"].get("name", "")
                if event.type in ("ADDED", "MODIFIED") and pod.get("spec", {}).get("nodeName") and name not in self.at:
                    self.at[name] = time.perf_counter()
                    self.last.append(name)
                    self._news.set()

    async def count(self, wanted: int, seconds: float = 120) -> None:
        """Wait until `wanted` pods have been bound in all; TimeoutError after `seconds`."""
        async with asyncio.timeout(seconds):
            while len(self.at) < wanted:
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def following(client: Client, namespace: str) -> AsyncIterator[Bound]:
    page = await anext(client.list_pages(path("v1", "pods", namespace)))
    bound = Bound()
    task = asyncio.create_task(bound.follow(client, namespace, page.metadata.resource_version))
    yield bound
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def tenant(namespace: str, gpus: int, on_exceed: OnExceed) -> Tree:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    spec = {"namespaceSelector": selector, "quotas": [{"gpus": str(gpus)}], "onExceed": on_exceed}
    return {"apiVersion": API_VERSION, "kind": "TenantQuota", "metadata": {"name": namespace}, "spec": spec}


async def request(server: ApiServer, method: str, where: str, body: Tree | None = None) -> bytes:
    [(reader, writer)] = await server.clients(1)
    writer.write(server.request(method, where, json.dumps(body).encode() if body else b""))
    status, text = await answer(reader)
    if status not in (200, CREATED, 202):
        raise SystemExit(f"{method} {where}: {status} {text.decode()}")
    return text


async def idle(server: ApiServer, client: Client) -> dict[str, list[float]]:
    """Return milliseconds from a create to bound, by namespace; the two take turns, and their rows have room."""
    taken: dict[str, list[float]] = {"refuses": [], "holds": []}
    async with following(client, "refuses") as one, following(client, "holds") as other:
        for _ in range(IDLE):
            for namespace, bound in (("refuses", one), ("holds", other)):
                began, before = time.perf_counter(), len(bound.at)
                await request(server, "POST", path("v1", "pods", namespace), POD)
                await bound.count(before + 1)
                taken[namespace].append((max(bound.at.values()) - began) * 1000)
                await asyncio.sleep(0.05)
    return taken


async def freed(server: ApiServer, bound: Bound) -> list[float]:
    """Return milliseconds from each delete of a running pod to the next bound pod."""
    taken = []
    for number in range(FREED):
        began, before = time.perf_counter(), len(bound.at)
        await request(server, "DELETE", f"{path('v1', 'pods', 'line', bound.last[number])}?gracePeriodSeconds=0")
        await bound.count(before + 1)
        taken.append((bound.at[bound.last[before]] - began) * 1000)
        await asyncio.sleep(0.02)
    return taken


def percentiles(taken: list[float]) -> str:
    ordered = sorted(taken)
    return f"{statistics.median(ordered):.0f} | {ordered[int(len(ordered) * 0.99)]:.0f}"


async def measure(cluster: ControlPlane, webhook: Process, apiserver: Process, size: int) -> None:
    """Print the tables."""
    server, client = ApiServer(cluster.kubeconfig), await Client.connect(cluster.kubeconfig)
    async with client:
        taken = await idle(server, client)
        print("| from create to bound, ms | p50 | p99 |\n|---|---|---|")
        for name, values in taken.items():
            print(f"| a tenant that {name} | {percentiles(values)} |")
        before = cost(webhook), cost(apiserver)
        async with following(client, "line") as bound:
            samples = Samples()
            await burst(server, [path("v1", "pods", "line")], CROWD, size // CROWD * CROWD, POD, samples)
            await bound.count(RUNS)
            await asyncio.sleep(5)
            after = cost(webhook), cost(apiserver)
            print(f"\n| with {size // CROWD * CROWD:,} pods, {RUNS} of them running | |\n|---|---|")
            print(f"| created a second, {CROWD} clients | {samples.rates[0]:.0f} |")
            print(f"| the leader, MiB more | {after[0].mib - before[0].mib:.0f} |")
            print(f"| the API server, MiB more | {after[1].mib - before[1].mib:.0f} |")
            gaps = await freed(server, bound)
            print(
                f"| from a freed GPU to the next bound pod, p50 and p99 ms | {percentiles(gaps).replace('|', 'and')} |"
            )
            began, done = time.perf_counter(), len(bound.at)
            cluster.kubectl("patch", "tenantquota", "line", "--type=merge", f"--patch={wide(size)}")
            await bound.count(size // CROWD * CROWD, seconds=600)
            took = time.perf_counter() - began
            print(f"| bound a second once there is room for all | {(len(bound.at) - done) / took:.0f} |")
        in_use = [raw async for raw in listed_objects(client.list_pages(path("v1", "pods", "line")))]
        print(f"| pods left behind a gate | {sum(b'schedulingGates' in bytes(raw) for raw in in_use)} |")


def wide(gpus: int) -> str:
    return json.dumps({"spec": {"quotas": [{"gpus": str(gpus)}]}})


def main() -> None:
    """Start the cluster with its tenants, measure, and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pods", type=int, default=5000, help="number of queued pods")
    size = parser.parse_args().pods
    with ControlPlane() as cluster:
        names = ("refuses", "holds", "line")
        for name in names:
            cluster.kubectl("create", "namespace", name)
        for number in range(2 + size // 900):  # each takes 1,000 pods
            cluster.add_node(f"gpu-{number}", gpus=size)
        address = install_chart(cluster)
        webhook = start_webhook(cluster, address, "--log-level=warning")
        wait_for_webhook(cluster)
        many = 10 * IDLE
        for each in (tenant("refuses", many, "Deny"), tenant("holds", many, "Hold"), tenant("line", RUNS, "Hold")):
            cluster.apply(json.dumps(each))
        cluster.kubectl("wait", "--for=condition=Ready", "tenantquota", "--all", "--timeout=60s")
        apiserver = cluster.processes.named("kube-apiserver")
        uvloop.run(measure(cluster, webhook, apiserver, size))


if __name__ == "__main__":
    main()
