"""A flood beside a bystander: creates over quota, dry runs of large pods, half-open connections, all at once.

`python -m tests.apiserver.flood [SECONDS]` prints what the bystander, who creates a pod a second, waits with it and
without.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from time import perf_counter

import aiohttp
import yaml

from localcluster import Cluster, ControlPlane

from .installed import Installed, Tree, gpu_pod

CLIENTS, HEAVY, HALF_OPEN = 64, 4, 500
CONTAINERS = 400
CREATED = 201


@dataclass
class Seen:
    """The milliseconds of each of the bystander's creates and what became of it; the answers to the flood."""

    milliseconds: list[float] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    flood: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        ordered = sorted(self.milliseconds)
        p50, p99 = (ordered[int(len(ordered) * part)] for part in (0.5, 0.99))
        return f"p50 {p50:.0f} ms, p99 {p99:.0f} ms: {dict(self.answers)}; the flood: {dict(self.flood)}"


def heavy_pod() -> Tree:
    """Return a pod with as many containers as are judged, each with its own command, and a class above the ceiling."""
    pod = gpu_pod("heavy", 1, priorityClassName="system-node-critical")
    names = (f"c{number}" for number in range(CONTAINERS))
    pod["spec"]["containers"] += [{"name": name, "image": name, "command": ["python", f"{name}.py"]} for name in names]
    return pod


async def watched(cluster: Cluster, port: int, noisy: str, quiet: str, seconds: float, *, clients: int) -> Seen:
    """Return what a bystander sees in namespace `quiet` while clients flood the webhook from namespace `noisy`."""
    tree, seen = yaml.safe_load(cluster.kubeconfig.read_text()), Seen()
    target, headers = tree["clusters"][0]["cluster"], {"authorization": f"Bearer {tree['users'][0]['user']['token']}"}
    connector = aiohttp.TCPConnector(limit=0, ssl=False)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(
            aiohttp.ClientSession(target["server"], headers=headers, connector=connector)
        )

        async def create(namespace: str, pod: Tree, query: str = "") -> str:
            path = f"/api/v1/namespaces/{namespace}/pods{query}"
            async with session.post(path, json=pod) as answer:
                reason = "" if answer.status == CREATED else f": {(await answer.json())['message'][:150]}"
                return f"{answer.status}{reason}"

        async def flooding(pod: Tree, query: str) -> None:
            while True:
                seen.flood[(await create(noisy, pod, query))[:3]] += 1

        if clients:
            await stack.enter_async_context(_half_open(port))
        over_quota, heavy = (flooding(gpu_pod("big", 64), "") for _ in range(clients)), range(HEAVY)
        others = [*over_quota, *(flooding(heavy_pod(), "?dryRun=All") for _ in heavy)] if clients else []
        tasks = [asyncio.create_task(each) for each in others]
        for number in range(int(seconds)):
            began = perf_counter()
            seen.answers[await create(quiet, gpu_pod(f"bystander-{clients}-{number}", 1))] += 1
            seen.milliseconds.append((perf_counter() - began) * 1000)
            await asyncio.sleep(max(0.0, began + 1 - perf_counter()))
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(each, asyncio.CancelledError) for each in ended), ended
    return seen


@asynccontextmanager
async def _half_open(port: int) -> AsyncIterator[None]:
    """Connections to the webhook that begin a TLS handshake and say no more."""

    async def one() -> None:
        while True:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(b"\x16\x03\x01")
                await reader.read()
            finally:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()

    tasks = [asyncio.create_task(one()) for _ in range(HALF_OPEN)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def main() -> None:
    """Print both."""
    seconds = float(next(iter(sys.argv[1:]), 60))
    with ControlPlane(scheduler=False, kwok=False) as cluster:
        installed = Installed(cluster)
        for name in ("noisy", "quiet"):
            cluster.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            cluster.kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={name}", "--timeout=30s")
            installed.tenant(name, name, quotas=[{"gpus": 1 if name == "noisy" else 1000}])
        for clients in (0, CLIENTS):
            watching = watched(cluster, installed.address.port, "noisy", "quiet", seconds, clients=clients)
            sys.stdout.write(f"{clients} clients: {asyncio.run(watching)}\n")


if __name__ == "__main__":
    main()
