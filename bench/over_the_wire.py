"""Reviews over TLS from 8 connections that stay open, as an API server keeps them; each server in its own process.

`python bench/over_the_wire.py`. The baseline is the same server that decodes the review and says yes: what is left
is what deciding costs. Rounds alternate, so that a machine that slows down slows both.
"""

import asyncio
import os
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import uvloop
from reviews import review

from certs.source import make_files

CONNECTIONS, REQUESTS, ROUNDS = 8, 4000, 5
HERE = Path(__file__).parent


@dataclass
class Measured:
    """Requests a second by round, and the latency of every request in milliseconds."""

    rates: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)


async def connection(port: int, trust: ssl.SSLContext, message: bytes, count: int, into: list[float]) -> None:
    """Send requests over one connection, one after another, and time them; an answer but 200 ends the program."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
    for _ in range(count):
        began = time.perf_counter()
        writer.write(message)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        into.append((time.perf_counter() - began) * 1000)
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"the server said {head!r}")
    writer.close()


async def round_of(port: int, trust: ssl.SSLContext, path: str, measured: Measured) -> None:
    """Send REQUESTS over new connections, and add the rate and the latencies to `measured`."""
    body = review()
    head = f"POST /{path}?timeout=5s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    message = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    began = time.perf_counter()
    share = REQUESTS // CONNECTIONS
    await asyncio.gather(*(connection(port, trust, message, share, measured.latencies) for _ in range(CONNECTIONS)))
    measured.rates.append(REQUESTS / (time.perf_counter() - began))


def started(which: str, folder: str) -> tuple[subprocess.Popen[str], int]:
    """Start a server of servers.py; return its process and port."""
    environment = os.environ | {"PYTHONPATH": f"{HERE.parent}"}
    command = [sys.executable, str(HERE / "servers.py"), which, folder]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    return process, int(process.stdout.readline()) if process.stdout else 0


def cpu_seconds(pid: int) -> float:
    """User and system time that a process has used (Linux: proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def row(name: str, measured: Measured, cpu: float) -> str:
    """A line of the table."""
    ordered = sorted(measured.latencies)
    p50, p99 = (ordered[int(len(ordered) * part)] for part in (0.5, 0.99))
    total = ROUNDS * REQUESTS
    return f"| {name} | {statistics.median(measured.rates):,.0f} | {p50:.2f} / {p99:.2f} | {cpu / total * 1e6:.0f} |"


def main() -> None:
    """Print the table."""
    print(f"reviews of {len(review())} bytes over TLS, {CONNECTIONS} connections, one process a server\n")
    print("| | requests/s | p50 / p99 ms | CPU us a request |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        make_files(Path(folder), ["127.0.0.1"])
        trust = ssl.create_default_context(cafile=str(Path(folder) / "ca.crt"))
        cases = {
            "decodes and says yes": ("nothing", "mutate"),
            "mutate": ("ours", "mutate"),
        }
        servers = {name: started(which, folder) for name, (which, _) in cases.items()}
        for name, (_, path) in cases.items():  # warm-up
            uvloop.run(round_of(servers[name][1], trust, path, Measured()))
        idle = {name: cpu_seconds(process.pid) for name, (process, _) in servers.items()}
        results = {name: Measured() for name in cases}
        for _ in range(ROUNDS):
            for name, (_, path) in cases.items():
                uvloop.run(round_of(servers[name][1], trust, path, results[name]))
        for name, (process, _) in servers.items():
            print(row(name, results[name], cpu_seconds(process.pid) - idle[name]))
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
