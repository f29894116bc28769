"""One run: the tenants of a plan, the crowd and the faults, and what is found afterwards."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from installation.examples import example_policy
from installation.local_webhook import install_chart
from installation.readiness import wait_for_webhook
from installation.replicas import Replica, start_replicas
from localcluster import ControlPlane
from localcluster.fake_nodes import node as fake_node
from tests.apiserver.another_webhook import RefusingWebhook
from tests.builders.claims import a_device, a_device_class, a_slice
from webhook.policy.preemption.node_state import RESERVED

from .api import DEVICES, TENANT_QUOTAS, Api
from .books import books, differences, is_gated
from .crowd import Crowd
from .deeds import Faults
from .history import History
from .outcome import Outcome
from .plan import REFUSED_LABEL, TENANT_LABEL, TIERS, Plan, Team
from .queue import left_gated

REQUEST_SECONDS = 6
"""The API server gives a create up after this."""
CREATE_SECONDS = 8
"""An admitted create is stored or has failed by then."""
LEASE_SECONDS = 4
SETTLE_SECONDS = 30
"""After the last fault or error: one expiry by a leader who is new, and the tries of those who wait."""
LONGEST_SECONDS = 180
READY_SECONDS = 240
PER_NODE = 8
"""Devices of a node."""
CONTROLLERS = ("node-lifecycle-controller", "resourceclaim-controller", "serviceaccount-controller")
"""Those without which no node is ready, no device comes free and no pod is created."""
APISERVER = (f"--request-timeout={REQUEST_SECONDS}s", "--storage-media-type=application/json")


@dataclass
class Arena:
    """A control plane of its own, with replicas behind one address and another webhook that refuses."""

    cluster: ControlPlane
    replicas: list[Replica]
    devices: int = 0

    async def run(self, plan: Plan, name: str) -> Outcome:
        """Play a plan to its end. The names of its tenants must be new ones."""
        self.add_tenants(plan)
        for node, devices in self._device_nodes(plan).items():
            self.cluster.api.apply(*_device_node(node, devices))
        history = History(self.cluster.etcd_url)
        async with Api(self.cluster.kubeconfig) as api:
            crowd, faults = Crowd(api, plan), Faults(self.cluster, self.replicas, api)
            await crowd.come_early()
            settled_after = await _played(crowd, faults, plan, partial(_nobody_preempts, api, plan))
            differing = await _settled(api, plan)
        return Outcome(
            name,
            crowd.answers,
            api.errors,
            settled_after,
            crowd.left_out(),
            differing,
            faults.done,
            books(plan, history.changes("pods", "gpu-tiers.dev/tenantquotas")),
        )

    def add_tenants(self, plan: Plan) -> None:
        """Make the tenants of a plan, and wait until they are active."""
        # Applied by the server, for the controller manager may have made an account by now.
        self.cluster.api.apply(*(item for team in plan.teams for item in _objects(team)))
        names = [f"tenantquota/{team.name}" for team in plan.teams]
        self.cluster.kubectl("wait", "--for=condition=Ready", *names, f"--timeout={READY_SECONDS}s")

    async def remove(self, plan: Plan) -> None:
        """Delete its pods and tenants, as far as another run would be slower for them."""
        async with Api(self.cluster.kubeconfig) as api:
            for namespace in plan.namespaces:
                await api.ask("DELETE", f"/api/v1/namespaces/{namespace}/pods")
            for team in plan.teams:
                await api.ask("DELETE", f"{TENANT_QUOTAS}/{team.name}")
        for node in self._device_nodes(plan):
            self.cluster.api.delete(f"node/{node}", f"resourceslices/{node}")

    def _device_nodes(self, plan: Plan) -> dict[str, int]:
        """Return the devices of each node of a plan.

        Each plan has nodes of its own: without a garbage collector a claim of a pod that is gone may keep its device.
        """
        names = {number: f"{plan.teams[0].name}-{number}" for number in range(0, self.devices, PER_NODE)}
        return {name: min(PER_NODE, self.devices - number) for number, name in names.items()}


def bare_plane(minor: str, *, places_pods: bool = False) -> ControlPlane:
    """etcd, whose values can be read, and an API server that soon gives a request up. No controller, no scheduler.

    So whoever uses a namespace makes its account. `places_pods`: with a scheduler, with what frees the devices of DRA
    of pods that end, and with kwok.
    """
    return ControlPlane(
        minor,
        controller_manager=places_pods,
        controllers=CONTROLLERS,
        scheduler=places_pods,
        kwok=places_pods,
        apiserver_options=APISERVER,
    )


@contextmanager
def arena(cluster: ControlPlane, folder: Path, *options: str, replicas: int = 3, devices: int = 0) -> Iterator[Arena]:
    """Fill a bare plane with all of it; options are those of `gpu-tiers serve`.

    `devices`: as many of DRA serve nvidia.com/gpu on nodes of their own, and pods of lower tiers are evicted for them.
    """
    cluster.apply(json.dumps(account("default")))
    preemption = {"preemption": {"dra": "On"}} if devices else {}
    address = install_chart(cluster, policy=example_policy() | preemption)
    timing = (f"--create-timeout={CREATE_SECONDS}", f"--lease-seconds={LEASE_SECONDS}")
    started = start_replicas(cluster, address, replicas, *timing, *options)
    wait_for_webhook(cluster)
    with RefusingWebhook(cluster, "zzz-refuses", REFUSED_LABEL, folder):
        yield Arena(cluster, started, devices)
    for each in (cluster.processes.named("balancer"), *(replica.process for replica in started)):
        each.popen.kill()
        cluster.processes.end(each)


async def _played(crowd: Crowd, faults: Faults, plan: Plan, is_calm: Callable[[], Awaitable[bool]]) -> float:
    """Wait until all have what they can have, or have given up; return the seconds since the last fault or error."""
    wanting = asyncio.create_task(crowd.want())
    await faults.run(plan.faults)
    calm = time.monotonic()

    def waited() -> float:
        return time.monotonic() - max(calm, crowd.last_error)

    def is_over() -> bool:
        return crowd.is_settled() or waited() > SETTLE_SECONDS or time.monotonic() > calm + LONGEST_SECONDS

    while not is_over():  # noqa: ASYNC110 - nobody tells when the last one is answered
        await asyncio.sleep(0.1)
    while not await is_calm() and time.monotonic() < calm + LONGEST_SECONDS:  # noqa: ASYNC110 - the scheduler does
        await asyncio.sleep(1)
    crowd.give_up()
    settled = waited()
    await wanting
    return settled


async def _nobody_preempts(api: Api, plan: Plan) -> bool:
    """Tell whether no node is reserved, and no pod of the high tier waits while pods of the low tier have devices."""
    names = {each.namespace for each in plan.wishes if each.by_dra}
    pods = [pod for name in names for pod in await api.items(f"/api/v1/namespaces/{name}/pods") if not is_gated(pod)]
    placed = Counter((pod["spec"]["priorityClassName"], bool(pod["spec"].get("nodeName"))) for pod in pods)
    nodes = await api.items("/api/v1/nodes") if names else []
    taints = [taint["key"] for node in nodes for taint in node["spec"].get("taints", ())]
    high, low = TIERS
    is_done = not placed[high, False] or (placed[high, True] and not placed[low, True])
    return RESERVED not in taints and is_done


async def _settled(api: Api, plan: Plan) -> list[str]:
    """Return where statuses differ from a quorum list of pods without reservations, and who waits without end."""
    until = time.monotonic() + SETTLE_SECONDS
    while True:
        quotas = await api.items(TENANT_QUOTAS)
        lists = [await api.items(f"/api/v1/namespaces/{namespace}/pods") for namespace in plan.namespaces]
        pods = [pod for items in lists for pod in items]
        jobs = [await api.items(f"/apis/batch/v1/namespaces/{namespace}/jobs") for namespace in plan.namespaces]
        waiting = left_gated(plan, pods, [job for items in jobs for job in items])
        found = [*differences(plan, quotas, pods), *waiting]
        if not found or time.monotonic() > until:
            return found
        await asyncio.sleep(0.2)


def account(namespace: str) -> dict[str, object]:
    """Make the account without which a namespace takes no pods, because no controller makes it here."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}


def _device_node(name: str, devices: int) -> Iterator[dict[str, object]]:
    """A node with devices that the DeviceClass of this name serves as nvidia.com/gpu."""
    driver = "gpu.example.com"
    yield a_device_class(driver, f"device.driver == '{driver}'", resource="nvidia.com/gpu").json()
    yield fake_node(name, 0, {"team": DEVICES})
    yield a_slice(*(a_device(f"d{number}") for number in range(devices)), node=name, driver=driver).json()


def _objects(team: Team) -> Iterator[dict[str, object]]:
    """A tenant and its namespaces, which take pods at once."""
    for name in team.namespaces:
        labels = {TENANT_LABEL: team.name}
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        yield account(name)
    rows = [{"gpus": hard} | ({"tier": tier} if tier else {}) for tier, hard in team.rows.items()]
    yield {
        "apiVersion": "gpu-tiers.dev/v1alpha1",
        "kind": "TenantQuota",
        "metadata": {"name": team.name},
        "spec": {
            "namespaceSelector": {"matchLabels": {TENANT_LABEL: team.name}},
            "quotas": rows,
            "onExceed": "Hold" if team.holds else "Deny",
        },
    }
