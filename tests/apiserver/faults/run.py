"""One run: the tenants of a plan, the crowd and the faults, and what is found afterwards."""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from installation.examples import example_policy
from installation.local_webhook import install_chart
from installation.readiness import wait_for_webhook
from installation.replicas import Replica, start_replicas
from localcluster import ControlPlane
from tests.apiserver.another_webhook import RefusingWebhook

from .api import TENANT_QUOTAS, Api
from .books import books, differences
from .crowd import Crowd
from .deeds import Faults
from .history import History
from .outcome import Outcome
from .plan import REFUSED_LABEL, TENANT_LABEL, Plan, Team
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
APISERVER = (f"--request-timeout={REQUEST_SECONDS}s", "--storage-media-type=application/json")


@dataclass
class Arena:
    """A control plane of its own, with replicas behind one address and another webhook that refuses."""

    cluster: ControlPlane
    replicas: list[Replica]

    async def run(self, plan: Plan, name: str) -> Outcome:
        """Play a plan to its end. The names of its tenants must be new ones."""
        self.add_tenants(plan)
        history = History(self.cluster.etcd_url)
        async with Api(self.cluster.kubeconfig) as api:
            crowd, faults = Crowd(api, plan), Faults(self.cluster, self.replicas, api)
            settled_after = await _played(crowd, faults, plan)
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
        items = [item for team in plan.teams for item in _objects(team)]
        self.cluster.apply(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), "--validate=false")
        names = [f"tenantquota/{team.name}" for team in plan.teams]
        self.cluster.kubectl("wait", "--for=condition=Ready", *names, f"--timeout={READY_SECONDS}s")

    async def remove(self, plan: Plan) -> None:
        """Delete its pods and tenants, as far as another run would be slower for them."""
        async with Api(self.cluster.kubeconfig) as api:
            for namespace in plan.namespaces:
                await api.ask("DELETE", f"/api/v1/namespaces/{namespace}/pods")
            for team in plan.teams:
                await api.ask("DELETE", f"{TENANT_QUOTAS}/{team.name}")


def bare_plane(minor: str) -> ControlPlane:
    """etcd, whose values can be read, and an API server that soon gives a request up. No controller, no scheduler.

    So whoever uses a namespace makes its account.
    """
    return ControlPlane(minor, controller_manager=False, scheduler=False, kwok=False, apiserver_options=APISERVER)


@contextmanager
def arena(cluster: ControlPlane, folder: Path, *options: str, replicas: int = 3) -> Iterator[Arena]:
    """Fill a bare plane with all of it; options are those of `gpu-tiers serve`."""
    cluster.apply(json.dumps(account("default")))
    address = install_chart(cluster, policy=example_policy())
    timing = (f"--create-timeout={CREATE_SECONDS}", f"--lease-seconds={LEASE_SECONDS}")
    started = start_replicas(cluster, address, replicas, *timing, *options)
    wait_for_webhook(cluster)
    with RefusingWebhook(cluster, "zzz-refuses", REFUSED_LABEL, folder):
        yield Arena(cluster, started)
    for each in (cluster.processes.named("balancer"), *(replica.process for replica in started)):
        each.popen.kill()
        cluster.processes.end(each)


async def _played(crowd: Crowd, faults: Faults, plan: Plan) -> float:
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
    crowd.give_up()
    settled = waited()
    await wanting
    return settled


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
