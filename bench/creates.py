"""What booking costs: creates of GPU pods through real API servers, beside the in-tree ResourceQuota and nothing.

`python bench/creates.py`. Each arrangement of gpu-tiers has a control plane of its own, with a namespace for which
nothing is installed and one with a ResourceQuota; that of one replica has one that no tenant selects too. All take
turns, so that a machine that slows down slows all. The replicas of an arrangement, be it one, stand behind a balancer.
The machine bears everything: control planes, replicas and clients.
"""

import asyncio
import json
import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import uvloop
from load import ApiServer, Measured, burst

from installation.beside import install_chart
from installation.readiness import wait_for_webhook
from installation.replicas import start_replicas
from localcluster import ControlPlane
from webhook.policy.quota.tenant_quotas import API_VERSION

ALONE_ROUNDS, ALONE_CREATES = 12, 20
CROWD, CROWD_ROUNDS, CROWD_CREATES = 32, 4, 320
TENANTS = 8
PAUSE_SECONDS = 0.5
"""After a crowd's burst, so that nobody measures what follows from another's."""
GPUS = "1000000"

NOTHING, QUOTA, UNBOUNDED, ONE, THREE = (
    "nothing",
    "ResourceQuota",
    "gpu-tiers, no tenant",
    "gpu-tiers, 1 replica",
    "gpu-tiers, 3 replicas",
)
REPLICAS = {ONE: 1, THREE: 3}
SPREAD = [f"tenant-{number}" for number in range(TENANTS)]
Tree = dict[str, Any]


@dataclass
class Plane:
    """A control plane, and the arrangement of gpu-tiers beside it."""

    arrangement: str
    server: ApiServer

    def cases(self) -> dict[str, list[str]]:
        """What is measured here, and in which namespaces."""
        unbounded = {UNBOUNDED: ["unbounded"]} if self.arrangement == ONE else {}
        return {NOTHING: ["nothing"], QUOTA: ["quota"], **unbounded, self.arrangement: SPREAD[:1]}


def started(arrangement: str, stack: ExitStack) -> Plane:
    """Start a control plane with that arrangement; wait until its tenants are."""
    cluster = stack.enter_context(ControlPlane(scheduler=False, kwok=False))
    for namespace in ("nothing", "quota", "unbounded", *SPREAD):
        cluster.kubectl("create", "namespace", namespace)
        cluster.kubectl("wait", "--for=create", "serviceaccount/default", f"--namespace={namespace}", "--timeout=30s")
    cluster.kubectl("create", "quota", "gpus", "--namespace=quota", f"--hard=requests.nvidia.com/gpu={GPUS}")
    address = install_chart(cluster, exemptNamespaces=["kube-system", "nothing", "quota"])
    start_replicas(cluster, address, REPLICAS[arrangement], "--log-level=warning")
    wait_for_webhook(cluster)
    cluster.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(map(tenant, SPREAD))}))
    for condition in ("Ready", "Exact"):
        cluster.kubectl("wait", f"--for=condition={condition}", "tenantquota", "--all", "--timeout=60s")
    return Plane(arrangement, ApiServer(cluster.kubeconfig))


def tenant(namespace: str) -> Tree:
    """The TenantQuota of one namespace: a total, and the tier of the pods."""
    spec = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "quotas": [{"gpus": GPUS}, {"tier": "gpu-batch", "gpus": GPUS}],
    }
    return {"apiVersion": API_VERSION, "kind": "TenantQuota", "metadata": {"name": namespace}, "spec": spec}


class Table:
    """What was measured, by case and number of clients."""

    def __init__(self) -> None:
        self._measured: dict[tuple[str, int, int], Measured] = {}

    def of(self, case: str, clients: int, tenants: int = 1) -> Measured:
        """What was measured of a case so far."""
        return self._measured.setdefault((case, clients, tenants), Measured())

    def p50(self, case: str, clients: int = 1) -> float:
        """The median latency, in milliseconds."""
        return statistics.median(self.of(case, clients).latencies)

    def rate(self, case: str, clients: int = CROWD, tenants: int = 1) -> float:
        """Creates a second, the median of the bursts."""
        return statistics.median(self.of(case, clients, tenants).rates)

    def print(self) -> None:
        """One line for each case and number of clients."""
        print("| | clients | tenants | creates/s | p50 ms | p99 ms |\n|---|---|---|---|---|---|")
        for (case, clients, tenants), measured in sorted(self._measured.items(), key=lambda each: each[0][1:]):
            ordered = sorted(measured.latencies)
            p50, p99 = (ordered[int(len(ordered) * part)] for part in (0.5, 0.99))
            rate = self.rate(case, clients, tenants)
            said = f", {measured.failed} told to try again" if measured.failed else ""
            print(f"| {case} | {clients} | {tenants} | {rate:,.0f} | {p50:.1f} | {p99:.1f}{said} |")

    def p99(self, case: str, clients: int = CROWD) -> float:
        """The latency of the slowest hundredth begins here, in milliseconds."""
        ordered = sorted(self.of(case, clients).latencies)
        return ordered[int(len(ordered) * 0.99)]

    def print_goals(self) -> None:
        """How far each goal is met."""
        quota_adds, unbooked = self.p50(QUOTA) - self.p50(NOTHING), self.p50(UNBOUNDED)
        print("\n| goal | 1 replica | 3 replicas |\n|---|---|---|")
        adds = [(self.p50(each) - unbooked) / quota_adds for each in (ONE, THREE)]
        print(
            goal("what booking adds over a review that books nothing, of what ResourceQuota adds: at most 2", adds, 2)
        )
        booked = [self.rate(each) / self.rate(UNBOUNDED) for each in (ONE, THREE)]
        print(goal(f"creates/s of {CROWD} clients, of those that book nothing: at least 0.9", booked, least=0.9))
        replicas = [self.rate(each) / self.rate(ONE) for each in (ONE, THREE)]
        print(goal(f"creates/s of {CROWD} clients on one tenant, of 1 replica's: at least 1", replicas, least=1))
        slowest = [self.p99(each) / self.p99(ONE) for each in (ONE, THREE)]
        print(goal(f"p99 of {CROWD} clients on one tenant, of 1 replica's: at most 1.2", slowest, 1.2))


def goal(text: str, found: list[float], most: float = float("inf"), least: float = 0.0) -> str:
    """A line that says what was found, and whether it is enough."""
    cells = [f"{each:.2f} {'met' if least <= each <= most else 'MISSED'}" for each in found]
    return f"| {text} | {' | '.join(cells)} |"


async def measure(planes: list[Plane], table: Table) -> None:
    """Take turns: creates by one client, then bursts of many, after some that don't count."""
    for plane in planes:
        await crowd(plane, Table(), CROWD)
    for _ in range(ALONE_ROUNDS):
        for plane in planes:
            for case, namespaces in plane.cases().items():
                await burst(plane.server, namespaces, 1, ALONE_CREATES, table.of(case, 1))
    for _ in range(CROWD_ROUNDS):
        for plane in planes:
            await crowd(plane, table, CROWD_CREATES)


async def crowd(plane: Plane, table: Table, creates: int) -> None:
    """A burst of many clients for each case, and one over all tenants."""
    for case, namespaces in plane.cases().items():
        await burst(plane.server, namespaces, CROWD, creates, table.of(case, CROWD))
        await asyncio.sleep(PAUSE_SECONDS)
    await burst(plane.server, SPREAD, CROWD, creates, table.of(plane.arrangement, CROWD, TENANTS))
    await asyncio.sleep(PAUSE_SECONDS)


def main() -> None:
    """Print the tables."""
    table, began = Table(), time.monotonic()
    with ExitStack() as stack:
        planes = [started(arrangement, stack) for arrangement in REPLICAS]
        uvloop.run(measure(planes, table))
    print("creates of a pod with a GPU through a real API server, all cases in turns\n")
    table.print()
    table.print_goals()
    print(f"\nmeasured in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
