"""Reads whether the webhook of a cluster runs: a dry run, certificates, the Lease, the policy in force."""

import asyncio
import base64
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from webhook.cli.cluster.installed import RELEASE
from webhook.cli.cluster.reader import ClusterReader
from webhook.cli.cluster.rights import RIGHTS
from webhook.cli.manifests.documents import BadInput
from webhook.cluster.listed import listed_namespaces, tenant_quotas
from webhook.cluster.webhook_configurations import (
    WebhookConfiguration,
    admission_policies,
    leaves_out,
    missing_kinds,
    webhook_configurations,
)
from webhook.config.published import InstalledPolicy, place_beside
from webhook.kube.client import Client
from webhook.kube.errors import ApiError, Failed, Forbidden, NotFound
from webhook.kube.paths import path
from webhook.objects.view import Tree
from webhook.policy.assignment.request import TIER_LABEL
from webhook.policy.values.facts import NAME_LABEL
from webhook.report.cluster_parts import Part
from webhook.report.lint.snapshot import CertificateSeen, ClusterSnapshot, DryRun, Running
from webhook.report.replica_mark import ANNOTATION, marks_in

PATIENCE = 45.0
"""Seconds for a dry run: the API server may wait for each webhook up to its timeout, and ask one of them twice."""
LOOK_AGAIN = 0.5
LEASES = "coordination.k8s.io/v1"
_SECRET = re.compile(r"(?<=/)[a-z0-9-]{26,63}(?=/(?:mutate|validate)\b)")
"""What the webhook's paths begin with; the API server names them where it gets no answer."""
NOT_LEFT_OUT = "a namespace that gpu-tiers does not leave out: name one with --namespace"


async def running_snapshot(reader: ClusterReader, installed: InstalledPolicy, namespace: str) -> ClusterSnapshot:
    """What tells whether it runs, tenants and namespaces among it; what may not be read is noted. Raises as below."""
    configurations = await reader.part("configurations", webhook_configurations(reader.client), ())
    running = await running_webhook(reader, installed, namespace, configurations)
    return ClusterSnapshot(
        reader.policy,
        datetime.now(UTC),
        tenants=tuple(await reader.part("tenants", tenant_quotas(reader.client), [])),
        namespaces=await reader.part("namespaces", listed_namespaces(reader.client), ()),
        configurations=configurations,
        admission_policies=await reader.part("admission_policies", admission_policies(reader.client), ()),
        certificates=await _certificates_seen(reader, configurations, running),
        running=running,
        unread=unread_of(reader, running),
    )


async def running_webhook(
    reader: ClusterReader,
    installed: InstalledPolicy,
    namespace: str,
    configurations: Sequence[WebhookConfiguration],
) -> Running:
    """Raises ApiError where the API server can't be asked at all, BadInput where there is no such namespace."""
    unread: dict[Part, str] = {}
    if installed.unread:
        unread["policy_in_force"] = f"the right to get ConfigMap {place_beside(installed.where)}"
    answered = DryRun(())
    if leaves_out(configurations, {NAME_LABEL: namespace}):
        unread["answer"] = NOT_LEFT_OUT
    else:
        reader.steps.begin("asking the webhook")
        try:
            answered = await _dry_run(reader.client, namespace, reader.policy.default_tier)
        except Forbidden as error:  # for want of the right, or something else refused
            unread["answer"] = f"the right to create pods in {namespace}, for a dry run ({_shown(error.said)})"
    gone = () if "configurations" in reader.unread else missing_kinds(configurations)
    if gone:  # whom the API server does not ask marks nothing, however well it is
        unread["answer"] = f"the {' and the '.join(gone)} of gpu-tiers"
    if not answered.marks:
        unread["replica"] = unread.get("answer", "an answer of the webhook")
    leader = await reader.part("leader", _leader(reader.client, *installed.where.split("/")), "")
    return Running(installed, answered, leader, unread)


def unread_of(reader: ClusterReader, running: Running) -> dict[Part, str]:
    """What it takes to tell what could not be read."""
    return {part: f"the right to {right}" for part, right in reader.unread.items()} | {**running.unread}


async def _dry_run(client: Client, namespace: str, tier: str) -> DryRun:
    """Raises Forbidden where the person may not create pods there, or something else refused: nothing is known then."""
    warnings: list[str] = []
    began, said = time.monotonic(), ""
    try:
        await client.try_create(path("v1", "pods", namespace), _pod(tier), warnings, seconds=PATIENCE)
    except NotFound:
        raise BadInput(f"there is no namespace {namespace}") from None
    except ApiError as error:
        if isinstance(error, Forbidden) and not [*marks_in(warnings)]:
            raise
        said = error.said if isinstance(error, Failed) else str(error)
    return DryRun(tuple(marks_in(warnings)), time.monotonic() - began, _shown(said))


def _shown(said: str) -> str:
    """What the API server says, for many eyes: a pipeline keeps what a check prints."""
    return _SECRET.sub("SECRET", said)


def _pod(tier: str) -> Tree:
    """A pod that asks for no GPU, so that no quota speaks against it, and that the strictest namespace takes."""
    confined = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "gpu-tiers-check", "labels": {TIER_LABEL: tier}, "annotations": {ANNOTATION: ""}},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "none", "image": "example.com/none", "securityContext": confined}],
        },
    }


async def _leader(client: Client, namespace: str, name: str) -> str:
    """Who renews the Lease: it is looked at again until it changes, or until it has run out."""
    place = path(LEASES, "leases", namespace, name)
    try:
        first = (await client.get(place)).get("spec") or {}
        deadline = time.monotonic() + (first.get("leaseDurationSeconds") or 0)
        while first.get("holderIdentity") and time.monotonic() < deadline:
            await asyncio.sleep(LOOK_AGAIN)
            now = (await client.get(place)).get("spec") or {}
            if now != first and now.get("holderIdentity"):
                return str(now["holderIdentity"]).rpartition("_")[0]
    except NotFound:
        pass
    return ""


async def _certificates_seen(
    reader: ClusterReader, configurations: Iterable[WebhookConfiguration], running: Running
) -> tuple[CertificateSeen, ...]:
    """Those of our configurations and of the Secret, else that of the replica that answered. Raises ApiError."""
    entries = [(each, entry) for each in configurations if each.is_ours for entry in each.webhooks]
    bundles = dict.fromkeys((str(each), entry.client_config.ca_bundle) for each, entry in entries)
    found = [each for where, bundle in bundles for each in _certificates(bundle, where, ca=True)]
    hidden = "configurations" in reader.unread
    services = (entry.client_config.service for _, entry in entries)
    # The chart keeps it beside the Service that is called; of a URL it is taken to be where the default release has it.
    secrets = ((each.namespace, f"{each.name}-tls") if each else (RELEASE, f"{RELEASE}-tls") for each in services)
    for namespace, name in dict.fromkeys(secrets):
        try:
            secret = await reader.client.get(path("v1", "secrets", namespace, name))
        except NotFound:
            continue  # certificates of files, or of a Secret with a name of its own
        except Forbidden:
            hidden = True
            continue
        text = str((secret.get("data") or {}).get("tls.crt") or "")
        found += list(_certificates(text, f"Secret/{name} in {namespace}"))[:1]
    told = running.replica if all(each.ca for each in found) else None
    if told:
        found.append(CertificateSeen(f"replica {told.replica}", datetime.fromtimestamp(told.certificate, UTC)))
    elif hidden:
        reader.unread["certificates"] = reader.unread.get("configurations", RIGHTS["certificates"])
    return tuple(found)


def _certificates(text: str, where: str, *, ca: bool = False) -> Iterator[CertificateSeen]:
    """The leaf first, of PEM in base64. What can't be read as a certificate is told by the webhook itself."""
    from cryptography import x509  # noqa: PLC0415 - an audit, or a check that gets no answer, reads none

    try:
        pem = base64.b64decode(text)
        found = x509.load_pem_x509_certificates(pem) if pem.strip() else []
    except ValueError:
        return
    for each in found:
        yield CertificateSeen(where, each.not_valid_after_utc, ca)
