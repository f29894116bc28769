"""The servers that the load is put on: `python bench/servers.py ours|nothing|traced FOLDER`. Each prints its port.

`collector` takes the traces.
"""

import asyncio
import gc
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import uvloop
from in_process import POLICY, TENANT

from certs.files import read_folder
from webhook.admission.review import Request, allow
from webhook.admission.webhook import Webhooks
from webhook.cluster.offline import offline_cluster
from webhook.config.load import parse
from webhook.ledger.memory import MemoryLedger
from webhook.server import logs
from webhook.server.drain import Drain
from webhook.server.listener import listen, port_of
from webhook.server.metrics import Metrics
from webhook.server.record import Recorder
from webhook.server.run import serve
from webhook.server.tls import LiveCertificate
from webhook.server.tracing import Tracing, tracing_of


class Nothing:
    """The same server, endpoint and decoder with nobody behind them."""

    async def mutate(self, request: Request, _: float) -> bytes:
        """Yes."""
        return allow(request)

    validate = mutate


class Collector(BaseHTTPRequestHandler):
    """Takes traces, and forgets them."""

    def do_POST(self) -> None:
        """Yes."""
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


def tell(port: int) -> None:
    """Print the port."""
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()


def collect() -> None:
    """Take traces until SIGTERM."""
    server = HTTPServer(("127.0.0.1", 0), Collector)
    tell(server.server_port)
    server.serve_forever()


def webhooks(which: str, metrics: Metrics, tracing: Tracing) -> Webhooks | Nothing:
    """Ours, or the baseline."""
    if which == "nothing":
        return Nothing()
    policy = parse(POLICY)
    cluster = offline_cluster(policy.tiers, [TENANT])
    ledger = MemoryLedger()
    record = tracing.record(Recorder(metrics))
    return Webhooks(tracing.cluster(cluster), tracing.ledger(ledger), lambda: policy, record)


async def main(which: str, folder: Path) -> None:
    """Serve until SIGTERM."""
    logs.set_up("warning", "console")
    metrics, drain = Metrics(), Drain(0)
    drain.on_signals()
    tracing = tracing_of(os.environ if which == "traced" else {})
    behind = webhooks(which, metrics, tracing)
    admission = listen("127.0.0.1", 0)
    gc.freeze()
    tell(port_of(admission))
    await serve(
        mutate=behind.mutate,
        validate=behind.validate,
        checks={},
        certificate=LiveCertificate(await asyncio.to_thread(read_folder, folder)),
        metrics=metrics,
        drain=drain,
        admission=admission,
        observability=listen("127.0.0.1", 0),
        tracing=tracing,
    )


if __name__ == "__main__":
    if sys.argv[1] == "collector":
        collect()
    else:
        uvloop.run(main(sys.argv[1], Path(sys.argv[2])))
