"""The demo: the real server over real TLS, the example workloads sent to it as an API server would."""

import asyncio
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import aiohttp
from rich.console import Console

from certs.on_disk import make_files
from webhook.admission.webhook import Webhooks
from webhook.cli.desk import Desk
from webhook.cli.documents import Document, documents
from webhook.cli.finding import Finding
from webhook.cli.named_policy import policy_in
from webhook.cli.over_tls import OverTls
from webhook.cli.review import cluster_of
from webhook.cli.show import as_text
from webhook.cli.shown_once import shown_once
from webhook.ledger.memory import MemoryLedger
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.server import logs
from webhook.server.drain import Drain
from webhook.server.listener import listen, port_of
from webhook.server.metrics import Metrics
from webhook.server.record import Recorder
from webhook.server.run import serve
from webhook.server.tls import LiveCertificate

LOOPBACK = "127.0.0.1"


def run_demo(examples: Path, console: Console) -> None:
    """Send the examples to the webhook and show what comes back. Raises BadInput and ConfigError."""
    policy = replace(policy_in(examples / "policies" / "four-tier.yaml"), mode=Mode.Enforce)
    tenants = list(documents(str(examples / "tenants")))
    workloads = [each for file in sorted(examples.glob("*.yaml")) for each in documents(str(file))]
    asyncio.run(_demo(policy, tenants, workloads, console))


async def _demo(
    policy: TierPolicy, tenants: Sequence[Document], workloads: Sequence[Document], console: Console
) -> None:
    logs.set_up("warning", "console")
    async with _webhook([*tenants, *workloads], policy) as desk:
        console.rule("gpu-tiers: the examples, as an API server would send them (Enforce)")
        findings = [await desk.finding(document) for document in workloads]
    for finding in shown_once(findings):
        as_text(finding, console)
    _sum_up(findings, console)


@asynccontextmanager
async def _webhook(world: Sequence[Document], policy: TierPolicy) -> AsyncIterator[Desk]:
    """The server as `gpu-tiers serve` runs it, on a free port of this machine, and a desk that asks it over TLS."""
    cluster = cluster_of(policy, world)
    metrics, drain = Metrics(), Drain(0)
    ledger = MemoryLedger(time.monotonic, cluster.tenant_name, patience=0)  # no pod ever ends here
    webhooks = Webhooks(cluster, ledger, lambda: policy, Recorder(metrics))
    admission, observability = listen(LOOPBACK, 0), listen(LOOPBACK, 0)
    with tempfile.TemporaryDirectory(prefix="gpu-tiers-") as folder:
        bundle = make_files(Path(folder), [LOOPBACK])
        trust = ssl.create_default_context(cafile=str(Path(folder) / "ca.crt"))
    async with asyncio.TaskGroup() as tasks, aiohttp.ClientSession() as session:
        tasks.create_task(
            serve(
                mutate=webhooks.mutate,
                validate=webhooks.validate,
                checks={},
                certificate=LiveCertificate(bundle),
                metrics=metrics,
                drain=drain,
                admission=admission,
                observability=observability,
            )
        )
        wire = OverTls(session, f"https://{LOOPBACK}:{port_of(admission)}", trust, policy)
        yield Desk(wire.judge, cluster.completed, policy, dry_run=False)
        drain.begin()


def _sum_up(findings: Sequence[Finding], console: Console) -> None:
    refused = [finding for finding in findings if not finding.allowed]
    console.rule(f"{len(findings)} objects: {len(findings) - len(refused)} let in, {len(refused)} refused")
    for finding in refused:
        console.print(f"refused: {finding.title}: {finding.message}", highlight=False, markup=False, soft_wrap=True)
    console.print("Try your own: .venv/bin/gpu-tiers review -f FILE --tenants examples/tenants", highlight=False)
