"""The servers that the load is put on: `python bench/servers.py ours|nothing FOLDER`. Each prints its port."""

import asyncio
import gc
import sys
from pathlib import Path

import uvloop
from in_process import POLICY, TENANT

from certs.source import read_folder
from webhook.admission.review import Request, allow
from webhook.admission.webhook import Webhooks
from webhook.cluster.offline import offline_cluster
from webhook.config.load import parse
from webhook.ledger.memory import MemoryLedger
from webhook.server import logs
from webhook.server.listener import Drain, listen, port_of
from webhook.server.metrics import Metrics
from webhook.server.record import Recorder
from webhook.server.run import AdmissionPort, serve
from webhook.server.tls import LiveCertificate


class Nothing:
    """The same server, endpoint and decoder with nobody behind them."""

    async def mutate(self, request: Request, _: float) -> bytes:
        """Admit the request."""
        return allow(request)

    validate = mutate


def tell(port: int) -> None:
    """Print the port."""
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


def webhooks(which: str, metrics: Metrics) -> Webhooks | Nothing:
    """Return our webhooks, or the baseline if `which` is nothing."""
    if which == "nothing":
        return Nothing()
    policy = parse(POLICY)
    cluster = offline_cluster(policy.tiers, [TENANT])
    ledger = MemoryLedger()
    return Webhooks(cluster, ledger, lambda: policy, Recorder(metrics))


async def main(which: str, folder: Path) -> None:
    """Print the port, and serve until SIGTERM."""
    logs.set_up("warning", "console")
    metrics, drain = Metrics(), Drain(0)
    drain.on_signals()
    behind = webhooks(which, metrics)
    admission = listen("127.0.0.1", 0)
    certificate = LiveCertificate(await asyncio.to_thread(read_folder, folder))
    gc.freeze()
    tell(port_of(admission))
    await serve(
        AdmissionPort(behind.mutate, behind.validate, certificate, admission),
        listen("127.0.0.1", 0),
        {},
        metrics,
        drain,
    )


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], Path(sys.argv[2])))
