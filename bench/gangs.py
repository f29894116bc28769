"""What a gang costs: a Job of 64 pods with its pods, beside 64 pods that nobody makes.

`python bench/gangs.py`. Both are created for real in one tenant, in turns, by as many clients as a controller has
workers. The machine bears everything: control plane, replica and clients.
"""

import json
import statistics
import time
from contextlib import ExitStack
from typing import Any

import uvloop
from creates import ONE, Plane, started
from load import CREATED, POD, ApiServer, Measured, answer, burst

PODS, CLIENTS, ROUNDS = 64, 8, 10
NAMESPACE = "tenant-0"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"

Tree = dict[str, Any]


async def create_job(server: ApiServer, name: str, into: Measured) -> Tree:
    """A Job of that many pods at once. A refusal ends the program."""
    template = {"metadata": {"labels": POD["metadata"]["labels"]}, "spec": {**POD["spec"], "restartPolicy": "Never"}}
    spec = {"parallelism": PODS, "completions": PODS, "completionMode": "Indexed", "template": template}
    spec |= {"managedBy": "example.com/bench"}  # else the Job controller makes as many pods beside ours
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    reader, writer = await server.connect()
    began = time.perf_counter()
    writer.write(server.request("POST", JOBS, json.dumps(job).encode()))
    status, text = await answer(reader)
    into.latencies.append((time.perf_counter() - began) * 1000)
    writer.close()
    if status != CREATED:
        raise SystemExit(f"{name}: {status} {text.decode()}")
    made: Tree = json.loads(text)
    return made


def member_of(job: Tree) -> Tree:
    """A pod as the Job controller makes it."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True}
    named = {key: job["metadata"][key] for key in ("name", "uid")}
    return {**POD, "metadata": {**POD["metadata"], "ownerReferences": [owner | named]}}


async def measure(plane: Plane) -> dict[str, Measured]:
    """In turns, after a round that doesn't count."""
    found: dict[str, Measured] = {}
    for number in range(ROUNDS + 1):
        if number == 1:
            found = {name: Measured() for name in ("a pod that nobody makes", "the Job of a gang", "a pod of the gang")}
        lone, whole, members = found.values() if found else (Measured(), Measured(), Measured())
        await burst(plane.server, [NAMESPACE], CLIENTS, PODS, lone)
        job = await create_job(plane.server, f"gang-{number}", whole)
        await burst(plane.server, [NAMESPACE], CLIENTS, PODS, members, member_of(job))
    return found


def main() -> None:
    """Print the table."""
    with ExitStack() as stack:
        found = uvloop.run(measure(started(ONE, stack)))
    print(f"creates in one tenant by {CLIENTS} clients, {PODS} pods at a time, with and without a gang\n")
    print("| | creates/s | p50 ms | p99 ms |\n|---|---|---|---|")
    for name, measured in found.items():
        ordered = sorted(measured.latencies)
        p50, p99 = (ordered[int(len(ordered) * part)] for part in (0.5, 0.99))
        rate = f"{statistics.median(measured.rates):,.0f}" if measured.rates else ""
        print(f"| {name} | {rate} | {p50:.1f} | {p99:.1f} |")


if __name__ == "__main__":
    main()
