"""`gpu-tiers review`: what the webhook would say of manifests, offline."""

import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from webhook.admission.review import Request
from webhook.admission.webhook import Webhooks
from webhook.cli.documents import BadInput, Document, documents
from webhook.cli.findings import Desk, Finding
from webhook.cli.show import as_json, as_text
from webhook.cluster.offline import OfflineCluster
from webhook.config.errors import ConfigError
from webhook.config.load import DEFAULT_PRESET, load, parse
from webhook.ledger.memory import MemoryLedger
from webhook.policy.refusal import Refused
from webhook.policy.tier_policy import Mode, TierPolicy
from webhook.policy.verdict import Verdict

REFUSED, BAD_INPUT = 1, 2


class Output(StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"


def review(
    filename: Annotated[list[str], typer.Option("--filename", "-f", help="File, folder, or - for standard input.")],
    policy: Annotated[Path | None, typer.Option(help="Policy file; the preset four-tier without one.")] = None,
    tenants: Annotated[
        list[Path] | None, typer.Option(help="File or folder of TenantQuotas and Namespaces; may be repeated.")
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="text, or json: one object a line.")] = Output.TEXT,
) -> None:
    """Say what gpu-tiers would do with manifests: tier, trace, checkpoint hook as a diff, or the refusal.

    Each object is judged by itself as in Enforce, against tenants that use nothing yet.
    Ends with 1 where something would be refused, with 2 on bad input.
    """
    try:
        findings = asyncio.run(_findings(filename, policy, tenants or ()))
    except (BadInput, ConfigError) as error:
        Console(stderr=True).print(str(error), style="red", highlight=False, soft_wrap=True, markup=False)
        raise typer.Exit(BAD_INPUT) from None
    _write(findings, output)
    raise typer.Exit(0 if all(finding.allowed for finding in findings) else REFUSED)


def _write(findings: Sequence[Finding], output: Output) -> None:
    console = Console()
    for finding in findings:
        if output is Output.JSON:
            sys.stdout.write(as_json(finding) + "\n")
        else:
            as_text(finding, console)


async def _findings(filenames: list[str], policy: Path | None, tenants: Sequence[Path]) -> list[Finding]:
    world = [document for path in tenants for document in documents(str(path))]
    asked = [document for name in filenames for document in documents(name)]
    in_force = policy_in(policy)
    desk = desk_for(in_force, [*world, *asked])
    return [await desk.finding(document) for document in asked]


def policy_in(path: Path | None) -> TierPolicy:
    """The policy of a file, or the default preset's."""
    if path is not None:
        return load(path)
    return parse(f"{{apiVersion: config.gpu-tiers.dev/v1alpha1, kind: TierPolicy, preset: {DEFAULT_PRESET}}}")


def desk_for(policy: TierPolicy, world: Sequence[Document]) -> Desk:
    """A desk at which these objects are all that the cluster knows, and nobody has booked anything."""
    cluster = cluster_of(policy, world)
    ledger = MemoryLedger(time.monotonic, cluster.tenant_name)
    webhooks = Webhooks(cluster, ledger, lambda: policy, lambda *_: None)

    async def judge(webhook: str, request: Request) -> Verdict:
        return await webhooks.judge(webhook, request, Mode.Enforce, policy)

    return Desk(judge, policy)


def cluster_of(policy: TierPolicy, world: Sequence[Document]) -> OfflineCluster:
    """The cluster that these objects are. Raises BadInput naming those that are broken."""
    try:
        return OfflineCluster(policy.tiers, [document.identified for document in world])
    except Refused as refused:
        raise BadInput("\n".join(_broken(policy, world)) or refused.sentence) from None


def _broken(policy: TierPolicy, world: Sequence[Document]) -> Iterator[str]:
    for document in world:
        try:
            OfflineCluster(policy.tiers, [document.tree])
        except Refused as refused:
            yield f"{document.source}: {document.kind}/{document.name}: {refused.sentence}"
