"""The cost of a create with gpu-tiers, next to Kubernetes' in-tree means and webhooks that do nothing.

`python bench/creates.py [--runs 3] [--rounds 4] [--keep FILE]`. Two real control planes, one with one replica and one
with three, and on them a namespace for each case. All cases take turns, so that a machine that slows down slows all.
The first round of a run does not count. The replicas, be it one, stand behind a balancer; where the webhooks alone are
measured, the API server calls the replica itself, as it does the others. The machine bears everything: control planes,
webhooks and clients. There is no controller manager, whose Job controller would make each gang's pods a second time.
"""

import argparse
import asyncio
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import uvloop
from floors import call_directly, create, install, only_in
from generators.performance import tables
from load import GPU_POD, OTHER_POD, ApiServer, Samples, burst

from bench.figures import (
    ALONE,
    ASGI_PAIR,
    CROWD,
    DRY_RUN,
    GANG,
    GO_PAIR,
    GPU_TIERS,
    JOB,
    LONE,
    MEMBER,
    NOTHING,
    OTHER,
    POLICIES,
    QUOTA,
    REAL,
    TENANTS,
    WORKERS,
    Figure,
    Key,
    Measured,
    Run,
    ours,
    tenants,
)
from installation.local_webhook import install_chart
from installation.readiness import wait_for_webhook
from installation.replicas import Replica, start_replicas
from localcluster import ControlPlane
from localcluster.waiting import wait_until
from webhook.policy.quota.tenant_quotas import API_VERSION

GPUS = "1000000"
GANG_OF, GANGS = 64, 2
"""Pods of a gang, and gangs in a round."""
PAUSE_SECONDS = 0.5
"""After many creates, so that no case is measured while the work of another goes on."""
SPREAD = [f"tenant-{number}" for number in range(TENANTS)]
BARE = {NOTHING: "nothing", QUOTA: "quota", POLICIES: "policies", GO_PAIR: "go-pair", ASGI_PAIR: "asgi-pair"}
OURS = ["direct", "unbounded", *SPREAD, "gangs"]
Tree = dict[str, Any]
Taken = defaultdict[Key, Samples]


@dataclass(frozen=True)
class Place:
    """The place of a case: the control plane with so many replicas, and these namespaces."""

    replicas: int
    namespaces: list[str]


@dataclass(frozen=True)
class Load:
    """A pod to create, and where: `creates` by `clients` at each place, `turns` times in a round, for each case."""

    what: str
    clients: int
    creates: int
    turns: int
    pod: Tree
    places: dict[str, Place]

    async def put(self, servers: dict[int, ApiServer], taken: Taken, turns: int) -> None:
        """Create the pods at all places in turns, `turns` times, and add the samples to `taken`."""
        query = "" if self.what == REAL else "?dryRun=All"
        for _ in range(turns):
            for case, place in self.places.items():
                paths = [f"/api/v1/namespaces/{each}/pods{query}" for each in place.namespaces]
                into = taken[Key(self.what, self.clients, case)]
                await burst(servers[place.replicas], paths, self.clients, self.creates, self.pod, into)
                if self.what == REAL and self.clients == CROWD:
                    await asyncio.sleep(PAUSE_SECONDS)


def loads() -> Iterator[Load]:
    """Yield the loads without the gangs."""
    bare = {case: Place(1, [namespace]) for case, namespace in BARE.items()}
    real = {case: bare[case] for case in (NOTHING, QUOTA)}
    dry = {case: bare[case] for case in (NOTHING, POLICIES, GO_PAIR, ASGI_PAIR)} | {GPU_TIERS: Place(1, ["direct"])}
    other = {case: bare[case] for case in (NOTHING, POLICIES)} | {GPU_TIERS: Place(1, ["unbounded"])}
    over_all = {}
    for replicas in (1, 3):
        real[ours(replicas, tenants(0))] = Place(replicas, ["unbounded"])
        real[ours(replicas, tenants(1))] = Place(replicas, SPREAD[:1])
        over_all[ours(replicas, tenants(TENANTS))] = Place(replicas, SPREAD)
    yield Load(OTHER, ALONE, 1, 400, OTHER_POD, other)
    yield Load(DRY_RUN, ALONE, 1, 120, GPU_POD, dry)
    yield Load(REAL, ALONE, 1, 60, GPU_POD, real)
    yield Load(OTHER, CROWD, 320, 1, OTHER_POD, other)
    yield Load(DRY_RUN, CROWD, 320, 1, GPU_POD, dry)
    yield Load(REAL, CROWD, 320, 1, GPU_POD, real | over_all)


async def gang(server: ApiServer, replicas: int, taken: Taken) -> None:
    """Measure pods that nobody makes, then a Job until one is created, and its pods as a controller makes them."""
    pods, jobs = "/api/v1/namespaces/gangs/pods", "/apis/batch/v1/namespaces/gangs/jobs"
    lone, members = (taken[Key(GANG, WORKERS, ours(replicas, each))] for each in (LONE, MEMBER))
    job = taken[Key(GANG, ALONE, ours(replicas, JOB))]
    await burst(server, [pods], WORKERS, GANG_OF, GPU_POD, lone)
    await asyncio.sleep(PAUSE_SECONDS)
    job.created = b""
    while not job.created:
        await burst(server, [jobs], 1, 1, job_of(GANG_OF), job)
    named = {key: json.loads(job.created)["metadata"][key] for key in ("name", "uid")}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "controller": True, **named}
    member = {**GPU_POD, "metadata": {**GPU_POD["metadata"], "ownerReferences": [owner]}}
    await burst(server, [pods], WORKERS, GANG_OF, member, members)
    await asyncio.sleep(PAUSE_SECONDS)


def job_of(pods: int) -> Tree:
    """A Job of that many pods at once."""
    labels, spec = GPU_POD["metadata"]["labels"], {**GPU_POD["spec"], "restartPolicy": "Never"}
    many = {"parallelism": pods, "completions": pods, "completionMode": "Indexed"}
    template = {"template": {"metadata": {"labels": labels}, "spec": spec}}
    metadata = {"generateName": "gang-"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {**many, **template}}


async def measure(servers: dict[int, ApiServer], rounds: int) -> Taken:
    """Return the samples of rounds of all loads and gangs, after a shorter round that doesn't count."""
    for number in range(rounds + 1):
        if number <= 1:
            taken: Taken = defaultdict(Samples)
        for load in loads():
            await load.put(servers, taken, load.turns if number else 1 + load.turns // 10)
        for _ in range(GANGS if number else 1):
            for replicas, server in servers.items():
                await gang(server, replicas, taken)
    return taken


def started(count: int, stack: ExitStack) -> tuple[ControlPlane, list[Replica]]:
    """Start a control plane with that many replicas; wait until all that is installed has an effect."""
    cluster = stack.enter_context(ControlPlane(controller_manager=False, scheduler=False, kwok=False))
    create(cluster, *(each for name in ("default", *BARE.values(), *OURS) for each in namespace(name)))
    address = install_chart(cluster, exemptNamespaces=["kube-system", *BARE.values()])
    replicas = start_replicas(cluster, address, count, "--log-level=warning")
    wait_for_webhook(cluster)
    create(cluster, *map(tenant, (*SPREAD, "gangs")))
    for condition in ("Ready", "Exact"):
        cluster.kubectl("wait", f"--for=condition={condition}", "tenantquota", "--all", "--timeout=60s")
    if count == 1:
        call_directly(cluster, "direct", address.port, replicas[0])
        install(cluster, quota=GPUS)
        for each in (BARE[POLICIES], BARE[GO_PAIR], BARE[ASGI_PAIR], *OURS):
            wait_until(partial(gives_a_class, cluster, each), 60, f"a class in namespace {each}")
    return cluster, replicas


def namespace(name: str) -> Iterator[Tree]:
    """Yield a namespace with the ServiceAccount that its pods need."""
    if name != "default":
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}


def tenant(namespace: str) -> Tree:
    """The TenantQuota of one namespace: a total, and the tier of the pods."""
    spec = {"namespaceSelector": only_in(namespace), "quotas": [{"gpus": GPUS}, {"tier": "gpu-batch", "gpus": GPUS}]}
    return {"apiVersion": API_VERSION, "kind": "TenantQuota", "metadata": {"name": namespace}, "spec": spec}


def gives_a_class(cluster: ControlPlane, namespace: str) -> bool:
    """Return whether a GPU pod would have the class of its tier there."""
    command = ("create", "--dry-run=server", "--output=json", f"--namespace={namespace}", "-f", "-")
    answer = cluster.kubectl(*command, input=json.dumps(GPU_POD), check=False)
    return not answer.code and answer.json()["spec"].get("priorityClassName") == "gpu-batch"


def run(rounds: int) -> tuple[str, Run]:
    """Return the version of Kubernetes and the figures of one run, on new control planes.

    SystemExit if the ResourceQuota has counted nothing.
    """
    began = time.monotonic()
    with ExitStack() as stack:
        clusters = {replicas: started(replicas, stack)[0] for replicas in (1, 3)}
        servers = {replicas: ApiServer(cluster.kubeconfig) for replicas, cluster in clusters.items()}
        taken = uvloop.run(measure(servers, rounds))
        path = "--output=jsonpath={.status.used}"
        used = clusters[1].kubectl("get", "quota/gpus", "--namespace=quota", path).stdout
        if not any(each in used for each in "123456789"):
            raise SystemExit(f"the ResourceQuota has counted nothing: {used}")
        figures = [figure(key, samples) for key, samples in taken.items()]
        return clusters[1].version, Run(round(time.monotonic() - began), figures)


def figure(key: Key, samples: Samples) -> Figure:
    """Return the figure of a case: the median of its rates, and p50 and p99 of its latencies."""
    ordered = sorted(samples.latencies)
    p50, p99 = (round(ordered[int(len(ordered) * part)], 4) for part in (0.5, 0.99))
    return Figure(key, round(statistics.median(samples.rates), 2), p50, p99, samples.again)


def main() -> None:
    """Measure all runs, print the tables, and write the figures to the file of --keep."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1, help="each on new control planes")
    parser.add_argument("--rounds", type=int, default=4, help="of a run")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write the figures there")
    asked = parser.parse_args()
    runs = []
    for number in range(asked.runs):
        version, measured = run(asked.rounds)
        runs.append(measured)
        print(f"run {number + 1} of {asked.runs} took {measured.seconds:.0f} s", flush=True)
    found = Measured(version, runs)
    if asked.keep:
        found.write(asked.keep)
    for name, table in tables(found).items():
        print(f"\n{name}\n\n{table}")


if __name__ == "__main__":
    main()
