"""Does what the plan says goes wrong, and starts again what died, as a kubelet does."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from installation.readiness import READY_SECONDS
from installation.replicas import Replica
from localcluster import ControlPlane
from localcluster.waiting import answers_ready, wait_until

from .api import TENANT_QUOTAS, Api
from .plan import Fault

LEASE = "/apis/coordination.k8s.io/v1/namespaces/gpu-tiers/leases/gpu-tiers"
RESTART_SECONDS = 1.0


class Faults:
    """Runs a plan's faults against the replicas and the API server. `done` gets a line about each."""

    def __init__(self, cluster: ControlPlane, replicas: Sequence[Replica], api: Api) -> None:
        self._cluster = cluster
        self._replicas = replicas
        self._api = api
        self._deeds: Mapping[str, Callable[[Fault], Awaitable[str]]] = {
            "kill": self._kill,
            "pause": self._pause,
            "restart the API server": self._restart,
            "empty a status": self._empty,
        }
        self.done: list[str] = []

    async def run(self, faults: Sequence[Fault]) -> None:
        """Run the faults, each at its time, and wait until all replicas are ready again."""
        reviving = asyncio.create_task(self._revive())
        await asyncio.gather(*(self._at_its_time(fault) for fault in faults))
        for replica in self._replicas:
            ready = partial(answers_ready, replica.address.metrics_port)
            await asyncio.to_thread(wait_until, ready, READY_SECONDS, replica.name)
        reviving.cancel()

    async def _revive(self) -> None:
        """A replica that ended, for whatever reason, is started again after a moment."""
        while True:
            ended = [each for each in self._replicas if each.has_ended]
            await asyncio.sleep(RESTART_SECONDS)
            for replica in ended:
                replica.start_again()

    async def _at_its_time(self, fault: Fault) -> None:
        await asyncio.sleep(fault.at)
        self.done.append(f"{fault.at:.1f} s {fault.deed} {await self._deeds[fault.deed](fault)}".strip())

    async def _kill(self, fault: Fault) -> str:
        victim = await self._victim(fault)
        victim.kill()
        return victim.name

    async def _pause(self, fault: Fault) -> str:
        victim = await self._victim(fault)
        victim.pause()
        await asyncio.sleep(fault.seconds)
        victim.resume()
        return f"{victim.name} for {fault.seconds:.1f} s"

    async def _restart(self, _: Fault) -> str:
        await asyncio.to_thread(self._cluster.restart_apiserver)
        return ""

    async def _empty(self, fault: Fault) -> str:
        """Empty the ledger as a user with the right to do so; it must be rebuilt."""
        path = f"{TENANT_QUOTAS}/{fault.tenant}/status"
        while (await self._api.ask("PATCH", path, {"status": None}))[0] != 200:  # noqa: ASYNC110 - it asks again
            await asyncio.sleep(0.2)
        return fault.tenant

    async def _victim(self, fault: Fault) -> Replica:
        """The leader where no other is named; the first one where nobody says who leads."""
        if fault.replica is not None:
            return self._replicas[fault.replica]
        _, lease = await self._api.ask("GET", LEASE)
        holder = lease.get("spec", {}).get("holderIdentity", "")
        return next((each for each in self._replicas if holder.startswith(f"{each.name}_")), self._replicas[0])
