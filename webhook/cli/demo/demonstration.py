"""The demo: the real server over real TLS, and the example workloads, sent as by an API server."""

import asyncio
import base64
import ssl
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import aiohttp
import msgspec
from msgspec.structs import replace
from rich.console import Console

from certs.source import make_files
from webhook.admission.review import API_VERSION, Request
from webhook.admission.reviewer import Verdict
from webhook.admission.webhook import Webhooks
from webhook.cli.cluster.installed import policy_in
from webhook.cli.manifests.documents import Document, documents
from webhook.cli.manifests.finding import Finding
from webhook.cli.manifests.inputs import cluster_of
from webhook.cli.manifests.judge import Judge
from webhook.cli.review.text import as_text
from webhook.ledger.memory import MemoryLedger
from webhook.objects.refusal import AdmissionWarning, Phrase, Reason, Refusal
from webhook.objects.view import Tree
from webhook.policy.assignment.assigned_by import parsed
from webhook.policy.assignment.request import Assignment
from webhook.policy.values.tier_policy import Mode, TierPolicy
from webhook.server import logs
from webhook.server.listener import Drain, listen, port_of
from webhook.server.metrics import Metrics
from webhook.server.record import Recorder
from webhook.server.run import AdmissionPort, serve
from webhook.server.tls import LiveCertificate

LOOPBACK = "127.0.0.1"


def run_demo(examples: Path, console: Console) -> None:
    """Send the examples to the webhook and show the answers. Raises BadInput and ConfigError."""
    policy = replace(policy_in(examples / "policies" / "four-tier.yaml"), mode=Mode.Enforce)
    tenants = list(documents(str(examples / "tenants")))
    workloads = [each for file in sorted(examples.glob("*.yaml")) for each in documents(str(file))]
    logs.set_up("warning", "console")

    findings, shown = asyncio.run(_findings([*tenants, *workloads], workloads, policy, console)), ShownOnce()
    for finding in findings:
        as_text(shown.shortened(finding), console)
    refused = [finding for finding in findings if not finding.allowed]
    console.rule(f"{len(findings)} objects: {len(findings) - len(refused)} admitted, {len(refused)} refused")
    for finding in refused:
        console.print(f"refused: {finding.title}: {finding.message}", highlight=False, markup=False, soft_wrap=True)
    console.print("Try your own: .venv/bin/gpu-tiers review -f FILE --tenants examples/tenants", highlight=False)


async def _findings(
    world: Sequence[Document], workloads: Sequence[Document], policy: TierPolicy, console: Console
) -> list[Finding]:
    """Run the server as `gpu-tiers serve` does, on a free port, and ask it over TLS."""
    cluster = cluster_of(policy, world)
    metrics, drain = Metrics(), Drain(0)
    webhooks = Webhooks(cluster, MemoryLedger(), lambda: policy, Recorder(metrics))
    admission, observability = listen(LOOPBACK, 0), listen(LOOPBACK, 0)
    with tempfile.TemporaryDirectory(prefix="gpu-tiers-") as folder:
        bundle = make_files(Path(folder), [LOOPBACK])
        trust = ssl.create_default_context(cafile=str(Path(folder) / "ca.crt"))
    async with asyncio.TaskGroup() as tasks, aiohttp.ClientSession() as session:
        reviews = AdmissionPort(webhooks.mutate, webhooks.validate, LiveCertificate(bundle), admission)
        tasks.create_task(serve(reviews, observability, {}, metrics, drain))
        ask = partial(_over_tls, session, f"https://{LOOPBACK}:{port_of(admission)}", trust, policy)
        judge = Judge(ask, cluster, policy, dry_run=False)
        console.rule("gpu-tiers: the examples, as an API server would send them (Enforce)")
        found = [await judge.finding(document) for document in workloads]
        drain.begin()
    return found


async def _over_tls(
    session: aiohttp.ClientSession,
    address: str,
    trust: ssl.SSLContext,
    policy: TierPolicy,
    webhook: str,
    request: Request,
) -> Verdict:
    """Ask a webhook over TLS, and return the verdict in its answer. Raises aiohttp.ClientError, also for 4xx, 5xx."""
    body = msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "request": request})
    url, headers = f"{address}/{webhook}?timeout=5s", {"Content-Type": "application/json"}
    async with session.post(url, data=body, ssl=trust, headers=headers) as answer:
        answer.raise_for_status()
        response = (await answer.json())["response"]
    patch = msgspec.json.decode(base64.b64decode(response["patch"])) if "patch" in response else []
    assignment, audit = None, response.get("auditAnnotations") or {}
    written = parsed(audit.get("assigned-by", ""))
    if written is not None:
        reason, higher = Phrase("as-told", text=written.reason), written.demoted_from or None
        assignment = Assignment(policy.tiers.get(audit["tier"]), written.step, reason, demoted_from=higher)
    refused = None if response["allowed"] else Refusal(Reason.INVALID, "unread", problem=response["status"]["message"])
    warnings = tuple(AdmissionWarning("as-told", text=each) for each in response.get("warnings") or ())
    return Verdict(assignment=assignment, patch=tuple(patch), warnings=warnings, refusal=refused)


SAME_HOOK = "the same hook as above"


@dataclass(slots=True)
class ShownOnce:
    """Shortens findings: replaces a diff or a hook's script that an earlier finding showed by a reference to it."""

    hooks: set[bytes] = field(default_factory=set)
    first: dict[tuple[str, ...], str] = field(default_factory=dict)
    """The title of the first finding with each change."""

    def shortened(self, finding: Finding) -> Finding:
        changed = [each for each in (finding, *finding.pods) if each.patch and each.verdict.refusal is None]
        likes = {self.first.get(_change(each), "") for each in changed}
        if changed and "" not in likes:
            pods = tuple(replace(each, patch=()) for each in finding.pods)
            note = f"it would be changed as {' and '.join(sorted(likes))}, above"
            return replace(finding, patch=(), pods=pods, notes=(*finding.notes, note))
        for each in changed:
            self.first.setdefault(_change(each), finding.title)
        return replace(self._with_hook_once(finding), pods=tuple(map(self._with_hook_once, finding.pods)))

    def _with_hook_once(self, part: Finding) -> Finding:
        hooked = _hooked(part)
        if not hooked:
            return part
        containers = []
        for container in part.after["spec"]["containers"]:
            lifecycle = container["lifecycle"] if container in hooked else {}
            key = msgspec.json.encode(lifecycle.get("preStop"), order="sorted")
            seen = container in hooked and key in self.hooks
            containers.append(container | {"lifecycle": lifecycle | {"preStop": SAME_HOOK}} if seen else container)
            self.hooks.add(key)
        return replace(part, after=part.after | {"spec": part.after["spec"] | {"containers": containers}})


def _change(part: Finding) -> tuple[str, ...]:
    """Return the key of equal changes: the object's kind or "template", the tier, and whether it gets a hook."""
    assignment = part.verdict.assignment
    tier = assignment.tier.name if assignment and assignment.tier else ""
    return ("template" if part.path else part.document.kind, tier, "hook" if _hooked(part) else "")


def _hooked(part: Finding) -> list[Tree]:
    had = (part.document.tree.get("spec") or {}).get("containers") or ()
    has = (part.after.get("spec") or {}).get("containers") or ()
    return [each for each in has if each not in had and (each.get("lifecycle") or {}).get("preStop")]
