"""The cost of reports for a replica: 5,000 pods, one report each 30 s, each over a connection of its own.

`python bench/reports.py`. The tokens are signed with the control plane's own key, as the API server signs them. Beside
it stands the same replica without reports.
"""

import asyncio
import base64
import os
import ssl
import time
import uuid
from dataclasses import dataclass
from pathlib import Path

import jwt
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from installation.local_webhook import install_chart, serve
from installation.readiness import wait_for_webhook
from localcluster import ControlPlane
from localcluster.components import ISSUER
from localcluster.ports import free_ports
from localcluster.processes import Process
from localcluster.waiting import wait_until
from webhook.policy.checkpoint.listen import AUDIENCE
from webhook.server.reports import KEYS, PATH

PODS, PERIOD, ROUNDS = 5000, 30.0, 2
HOST = "gpu-tiers-reports.gpu-tiers.svc"
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """The cost of a process: CPU seconds since it began, and MiB that it has. Linux: proc(5)."""

    cpu: float
    mib: float


def cost(process: Process) -> Cost:
    place = Path(f"/proc/{process.popen.pid}")
    fields = (place / "stat").read_text().rpartition(") ")[2].split()
    kib = int((place / "status").read_text().split("VmRSS:")[1].split()[0])
    return Cost((int(fields[11]) + int(fields[12])) / TICKS, kib / 1024)


def main() -> None:
    """Print the table."""
    with ControlPlane(controller_manager=False, scheduler=False, kwok=False) as cluster:
        cluster.kubectl("create", "serviceaccount", "default", "--namespace=default")
        address = install_chart(cluster)
        (port,) = free_ports(1)
        command = serve(cluster, address, f"--reports-port={port}")
        process = cluster.processes.start("webhook", command)
        wait_for_webhook(cluster)
        tokens = signed(cluster)
        print(f"{PODS:,} pods, a report each {PERIOD:.0f} s\n")
        print("| replica | reports a second | not heard | CPU, share of a core | CPU a report, ms | RSS, MiB |")
        print("|---|---|---|---|---|---|")
        before = cost(process)
        time.sleep(PERIOD)
        idle = cost(process)
        print(f"| without | 0 | 0 | {(idle.cpu - before.cpu) / PERIOD:.1%} | | {idle.mib:.0f} |")
        began = time.monotonic()
        refused = asyncio.run(report(port, authority(cluster), tokens))
        took, after = time.monotonic() - began, cost(process)
        rate, cpu = len(tokens) * ROUNDS / took, after.cpu - idle.cpu
        each = cpu / (len(tokens) * ROUNDS) * 1000
        print(f"| with | {rate:.0f} | {refused} | {cpu / took:.1%} | {each:.2f} | {after.mib:.0f} |")
        cluster.processes.end(process)


def signed(cluster: ControlPlane) -> list[str]:
    """Return a token for each of PODS pods, valid for an hour."""
    key = load_pem_private_key((cluster.folder / "service-account.pem").read_bytes(), None)
    public = cluster.kubectl("get", "--raw", KEYS).json()["keys"][0]
    now = int(time.time())
    claims = {"iss": ISSUER, "aud": [AUDIENCE], "iat": now, "nbf": now, "exp": now + 3600}
    bound = ({"namespace": "research", "pod": {"name": f"pod-{n}", "uid": str(uuid.uuid4())}} for n in range(PODS))
    names = {"kid": public["kid"]}
    return [jwt.encode(claims | {"kubernetes.io": each}, key, public["alg"], headers=names) for each in bound]


def authority(cluster: ControlPlane) -> str:
    """Return the CA that pods get, as PEM, once the webhook has written it."""
    found: list[str] = []

    def there() -> bool:
        secret = cluster.kubectl("get", "secret", "gpu-tiers-tls", "--namespace=gpu-tiers", "--output=json").json()
        found[:] = [base64.b64decode(each).decode() for each in [secret.get("data", {}).get("ca.crt", "")] if each]
        return bool(found)

    wait_until(there, 60, "the CA")
    return found[0]


async def report(port: int, ca: str, tokens: list[str]) -> int:
    """Report for each token ROUNDS times, evenly over the time; return how many reports were not answered with 204."""
    context = ssl.create_default_context(cadata=ca)
    refused, gap = 0, PERIOD / len(tokens)
    begun = asyncio.get_running_loop().time()

    async def one(number: int, token: str) -> None:
        nonlocal refused
        await asyncio.sleep(begun + number * gap - asyncio.get_running_loop().time())
        refused += not await heard(port, context, token)

    everything = [each for _ in range(ROUNDS) for each in tokens]
    await asyncio.gather(*(one(number, token) for number, token in enumerate(everything)))
    return refused


async def heard(port: int, context: ssl.SSLContext, token: str) -> bool:
    body = f'{{"step": 50, "last_saved_step": 40, "last_saved_at": {time.time()}}}'.encode()
    head = (
        f"POST {PATH} HTTP/1.1\r\nhost: {HOST}\r\nauthorization: Bearer {token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    reading, writing = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=HOST)
    writing.write(head.encode() + body)
    answer = await reading.readline()
    writing.close()
    return b" 204 " in answer


if __name__ == "__main__":
    main()
