"""Creates through a real API server: so many clients at once, each on a connection that stays open."""

import asyncio
import json
import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Tree = dict[str, Any]
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]

MOST_BYTES = 1 << 20
CREATED, TRY_AGAIN = 201, (500, 503, 504)
"""The statuses of a create: done, and those with which the API server says that a webhook did not decide in time."""
GPU_POD: Tree = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "train-", "labels": {"app": "train", "gpu-tiers.dev/tier": "gpu-batch"}},
    "spec": {
        "containers": [
            {
                "name": "train",
                "image": "registry.example/train:1",
                "command": ["python", "-m", "train"],
                "resources": {"limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}},
            }
        ],
    },
}


OTHER_POD: Tree = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "generateName": "web-5d9c7b9f4-",
        "labels": {
            "app.kubernetes.io/name": "web",
            "app.kubernetes.io/instance": "web",
            "pod-template-hash": "5d9c7b9f4",
        },
    },
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "example.com/web:1",
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "128Mi"}},
            }
        ],
    },
}
"""The pod of a web server, as a ReplicaSet makes it."""


@dataclass
class Samples:
    """The latency of every create in milliseconds, creates a second by burst, and how many were told to try again."""

    latencies: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    again: int = 0
    created: bytes = b""
    """The latest object."""


class ApiServer:
    """The address in a kubeconfig, our credentials, and the connections of earlier clients."""

    def __init__(self, kubeconfig: Path) -> None:
        tree = yaml.safe_load(kubeconfig.read_text())
        cluster, user = tree["clusters"][0]["cluster"], tree["users"][0]["user"]
        self.host, port = cluster["server"].removeprefix("https://").split(":")
        self.port = int(port)
        self.trust = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self.token = user["token"]
        self._clients: list[Connection] = []

    async def connect(self) -> Connection:
        """Open a connection to the API server."""
        return await asyncio.open_connection(self.host, self.port, ssl=self.trust, limit=MOST_BYTES)

    async def clients(self, count: int) -> list[Connection]:
        """Return `count` connections, the same each time; one that the API server has closed is replaced."""
        self._clients = [each for each in self._clients if not each[0].at_eof()]
        while len(self._clients) < count:
            self._clients.append(await self.connect())
        return self._clients[:count]

    def request(self, method: str, path: str, body: bytes = b"") -> bytes:
        """A request as it goes over the wire."""
        head = f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {self.token}\r\n"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The status and the body of the next answer."""
    head = await reader.readuntil(b"\r\n\r\n")
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        body = b""
        while size := int(await reader.readline(), 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    else:
        body = await reader.readexactly(int(lower.split(b"content-length: ")[1].split(b"\r\n")[0]))
    return int(head.split(b" ", 2)[1]), body


async def burst(server: ApiServer, paths: Sequence[str], clients: int, creates: int, tree: Tree, into: Samples) -> None:
    """Create `creates` objects at `paths`, and add the latencies and the rate to `into`.

    Each of `clients` stays at one path and creates its whole share. An answer of TRY_AGAIN is counted and not repeated;
    any other refusal ends the program.
    """
    body, connections = json.dumps(tree).encode(), await server.clients(clients)

    async def one_client(number: int) -> None:
        reader, writer = connections[number]
        path = paths[number % len(paths)]
        message = server.request("POST", path, body)
        for _ in range(creates // clients):
            began = time.perf_counter()
            writer.write(message)
            status, text = await answer(reader)
            into.latencies.append((time.perf_counter() - began) * 1000)
            if status == CREATED:
                into.created = text
            elif status in TRY_AGAIN:
                into.again += 1
            else:
                raise SystemExit(f"{path}: {status} {text.decode()}")

    began, before = time.perf_counter(), into.again
    await asyncio.gather(*map(one_client, range(clients)))
    into.rates.append((creates - into.again + before) / (time.perf_counter() - began))
