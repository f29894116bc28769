"""`gpu-tiers review`: what the webhook would say of manifests, offline."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from webhook.admission.review import Request
from webhook.admission.verdict import Verdict
from webhook.admission.webhook import Webhooks
from webhook.cli.cluster_options import ContextOption, KubeconfigOption, Target, answered
from webhook.cli.desk import Desk
from webhook.cli.documents import BadInput, Document, called, documents
from webhook.cli.dry_run import DryRuns
from webhook.cli.fail import BAD_INPUT, fail
from webhook.cli.finding import Finding
from webhook.cli.inputs import FilenameOption, HelmOption, Inputs, KustomizeOption, ValuesOption
from webhook.cli.installed import policy_of
from webhook.cli.left_out import LeftOut
from webhook.cli.named_policy import policy_in
from webhook.cli.progress import Steps
from webhook.cli.report import Form, Only, Report, write_report
from webhook.cli.server_review import ServerDesk
from webhook.cluster.offline import OfflineCluster
from webhook.config.errors import ConfigError
from webhook.config.load import DEFAULT_PRESET
from webhook.config.tenant_quota_schema import tenant_quota_problems
from webhook.kube.client import Client
from webhook.kube.connection import context_namespace
from webhook.kube.errors import Forbidden, Unreachable
from webhook.ledger.memory import MemoryLedger
from webhook.objects.manifests import Manifest
from webhook.objects.refusal import Refused
from webhook.policy.classification.unknown_kinds.inside import with_objects_inside
from webhook.policy.quota.tenant_quotas import TENANT_QUOTA, read_tenant
from webhook.policy.quota.tenant_warnings import tenant_warnings
from webhook.policy.values.tier_policy import Mode, TierPolicy

REFUSED = 1


def review(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE|FOLDER|-", help="Manifests; - is standard input.")
    ] = None,
    *,
    filename: FilenameOption = None,
    kustomize: KustomizeOption = None,
    helm: HelmOption = None,
    values: ValuesOption = None,
    policy: Annotated[Path | None, typer.Option(help="Policy file or preset; without it the preset four-tier.")] = None,
    tenants: Annotated[
        list[Path] | None, typer.Option(help="File or folder of TenantQuotas and Namespaces; may be repeated.")
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", "-n", help="Namespace where a manifest names none; else default, or the context's."
        ),
    ] = None,
    server: Annotated[
        bool, typer.Option("--server", help="Ask the webhook of a cluster, by dry run, as its tenants stand now.")
    ] = False,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    only: Annotated[
        list[Only] | None, typer.Option(help="Show only what is refused, or what is warned of; may be repeated.")
    ] = None,
    output: Annotated[
        Form, typer.Option("--output", "-o", help="text, json (one object a line), yaml, junit or sarif.")
    ] = Form.TEXT,
) -> None:
    """Show what gpu-tiers would do with manifests: tier, trace, checkpoint hook as a diff, or the refusal.

    Each object is judged by itself as in Enforce, against tenants that use nothing yet; with --server by the cluster as
    it is. What is no Kubernetes object is left out of a folder and named at the end. Exits with 1 if something would be
    refused, whatever --only shows. Exits with 2 on bad input, without a review, and where a cluster can't be asked.
    """
    target = Target(kubeconfig, context)
    try:
        inputs = Inputs(
            [*(files or ()), *(filename or ())],
            kustomize or (),
            helm or (),
            values or (),
            namespace or (context_namespace(kubeconfig, context) if server else None),
        )
        if server:
            report = _by_server(inputs, target, policy, tenants)
        elif kubeconfig or context:
            raise BadInput("--kubeconfig and --context: go with --server, which is missing")  # noqa: TRY301
        else:
            report = _offline(inputs, policy, tenants or ())
    except (BadInput, ConfigError, Unreachable) as error:
        fail(str(error))
    write_report(replace(report, only=only or ()), output)
    raise typer.Exit(_exit_code(report.findings))


def _exit_code(findings: Sequence[Finding]) -> int:
    if any(finding.unasked for finding in findings):
        return BAD_INPUT
    return 0 if all(finding.allowed for finding in findings) else REFUSED


def _offline(inputs: Inputs, policy: Path | None, tenants: Sequence[Path]) -> Report:
    """By the code of the webhook, with files as the cluster. Raises BadInput, ConfigError."""
    world = [document for path in tenants for document in _tenants_in(path, inputs.left_out)]
    asked = inputs.read()
    in_force = policy_in(policy)
    cluster = cluster_of(in_force, [*world, *asked])
    notes = [*_tenant_notes(cluster, in_force, [*world, *asked]), *_without_tenant(cluster, in_force, asked)]
    findings = asyncio.run(_findings(desk_at(cluster, in_force), asked))
    for note in notes:
        _say(note, "yellow")
    return Report(findings, inputs.left_out, tenants=bool(cluster.tenants()))


def _by_server(inputs: Inputs, target: Target, policy: Path | None, tenants: Sequence[Path] | None) -> Report:
    """By the webhook of a cluster. Raises BadInput, ConfigError."""
    if tenants:
        raise BadInput("--tenants: goes without --server, which asks the cluster's own tenants")
    asked = inputs.read()

    async def ask() -> list[Finding]:
        async with target.client() as client:
            in_force = await _kinds_of(client, policy)
            complete = cluster_of(in_force, asked).completed
            with Steps() as steps:
                steps.begin("asking", len(asked))
                return await ServerDesk(DryRuns(client), complete, in_force).findings(asked, steps.done)

    return Report(answered(ask), inputs.left_out, tenants=True)


async def _kinds_of(client: Client, policy: Path | None) -> TierPolicy:
    """The policy in force, for the kinds that it knows; where nobody may read it, the preset's."""
    try:
        return await policy_of(client, policy)
    except (ConfigError, Forbidden) as error:
        if policy is not None:
            raise
        _say(f"{error}. Workloads are told by the preset {DEFAULT_PRESET}", "yellow")
        return policy_in(None)


def _say(sentence: str, style: str) -> None:
    Console(stderr=True).print(sentence, style=style, highlight=False, soft_wrap=True, markup=False)


async def _findings(desk: Desk, asked: Sequence[Document]) -> list[Finding]:
    found: list[Finding] = []
    with Steps() as steps:
        steps.begin("judging", len(asked))
        for document in asked:
            found.append(await desk.finding(document))
            steps.done()
    return found


def _tenants_in(path: Path, left_out: list[LeftOut]) -> list[Document]:
    found = list(documents(str(path), left_out))
    if not any(document.kind in ("TenantQuota", "Namespace") for document in found):
        raise BadInput(f"{called(str(path))}: holds no TenantQuota and no Namespace")
    return found


def _tenant_notes(cluster: OfflineCluster, policy: TierPolicy, world: Sequence[Document]) -> Iterator[str]:
    """What the API server would warn of when the TenantQuotas are applied; nothing is in use yet."""
    tenants = {each.name: (each, read_tenant(each.tree)) for each in world if each.group_kind == TENANT_QUOTA}
    for document, tenant in tenants.values():
        others = [other for _, other in tenants.values() if other is not tenant]
        for warning in tenant_warnings(tenant, others, cluster.namespaces(), lambda *_: {}, policy):
            yield f"{_titled(document)}: {warning}"


def _without_tenant(cluster: OfflineCluster, policy: TierPolicy, asked: Sequence[Document]) -> Iterator[str]:
    """Notes on workloads' namespaces that no tenant selects, if there are tenants: a Namespace may be missing."""
    names = {each.namespace for each in asked if each.group_kind in policy.kinds.by_kind}
    for name in sorted(names) if cluster.tenants() else ():
        if cluster.tenant_name(name) is None:
            yield (
                f"no tenant selects namespace {name}, so no ceiling and no quota applies there. If one should, give "
                "the Namespace, with its labels, to --tenants"
            )


def desk_for(policy: TierPolicy, world: Sequence[Document]) -> Desk:
    """A desk at which these objects are all that the cluster knows, and nobody has booked anything."""
    return desk_at(cluster_of(policy, world), policy)


def desk_at(cluster: OfflineCluster, policy: TierPolicy, ledger: MemoryLedger | None = None) -> Desk:
    """A desk in that cluster, where nobody has booked anything; with a ledger it books there what it judges."""
    books = ledger or MemoryLedger(time.monotonic, cluster.tenant_name)
    webhooks = Webhooks(cluster, books, lambda: policy, lambda *_: None)

    async def judge(webhook: str, request: Request) -> Verdict:
        return await webhooks.judge(webhook, request, Mode.Enforce, policy)

    return Desk(judge, cluster.completed, policy, dry_run=ledger is None)


def cluster_of(policy: TierPolicy, world: Sequence[Document]) -> OfflineCluster:
    """The cluster that these objects are. Raises BadInput naming those that are broken."""
    objects = [each for document in world for each in with_objects_inside(document, policy.kinds)]
    problems = [f"{_titled(each)}: {problem}" for each in objects for problem in _refused_by_its_schema(each)]
    if problems:
        raise BadInput("\n".join(problems))
    try:
        return OfflineCluster(policy.tiers, [each.identified for each in objects])
    except Refused as refused:
        raise BadInput("\n".join(_broken(policy, objects)) or refused.sentence) from None


def _broken(policy: TierPolicy, world: Sequence[Manifest]) -> Iterator[str]:
    for document in world:
        try:
            OfflineCluster(policy.tiers, [document.tree])
        except Refused as refused:
            yield f"{_titled(document)}: {refused.sentence}"


def _refused_by_its_schema(document: Manifest) -> list[str]:
    """What the API server would refuse of a TenantQuota: it would not be there."""
    return tenant_quota_problems(document.tree) if document.group_kind == TENANT_QUOTA else []


def _titled(document: Manifest) -> str:
    return f"{document.source}: {document.kind}/{document.name}"
