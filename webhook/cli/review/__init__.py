"""`gpu-tiers review`: what the webhook would say of manifests, offline."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from webhook.cli.cluster.installed import policy_in
from webhook.cli.manifests.desk import Desk
from webhook.cli.manifests.documents import BadInput, Document, called, documents
from webhook.cli.manifests.finding import Finding
from webhook.cli.manifests.inputs import FilenameOption, HelmOption, Inputs, KustomizeOption, ValuesOption
from webhook.cli.manifests.left_out import LeftOut
from webhook.cli.manifests.offline_desk import cluster_of, desk_at, titled
from webhook.cli.output import fail
from webhook.cli.progress import Steps
from webhook.cli.review.report import Form, Only, Report, write_report
from webhook.cluster.offline import ReadOnceCluster
from webhook.config.errors import ConfigError
from webhook.objects.group_kind import NAMESPACE
from webhook.objects.pods import Named
from webhook.objects.view import view
from webhook.policy.namespace_labels import namespace_warnings
from webhook.policy.quota.tenant_quotas import TENANT_QUOTA, read_tenant
from webhook.policy.quota.tenant_warnings import tenant_warnings
from webhook.policy.values.tier_policy import TierPolicy
from webhook.sentences.sentence import sentence

REFUSED, BAD_INPUT = 1, 2


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
        typer.Option("--namespace", "-n", help="Namespace where a manifest names none; else default."),
    ] = None,
    only: Annotated[
        list[Only] | None, typer.Option(help="Show only what is refused, or what is warned of; may be repeated.")
    ] = None,
    output: Annotated[
        Form, typer.Option("--output", "-o", help="text, json (one object a line), yaml, junit or sarif.")
    ] = Form.TEXT,
) -> None:
    """Show what gpu-tiers would do with manifests: tier, trace, checkpoint hook as a diff, or the refusal.

    Each object is judged by itself as in Enforce, against tenants that use nothing yet; what a cluster says now,
    `kubectl apply --dry-run=server` tells. What is no Kubernetes object is left out of a folder and named at the end.
    Exits with 1 if something would be refused, whatever --only shows, and with 2 on bad input: of a folder the rest is
    reviewed, and what is broken is named; else there is no review.
    """
    try:
        inputs = Inputs(
            [*(files or ()), *(filename or ())],
            kustomize or (),
            helm or (),
            values or (),
            namespace,
            past_broken=True,
        )
        report = _report(inputs, policy, tenants or ())
    except (BadInput, ConfigError) as error:
        fail(str(error))
    write_report(replace(report, only=only or ()), output)
    raise typer.Exit(_code(report))


def _code(report: Report) -> int:
    if any(each.broken for each in report.left_out):
        return BAD_INPUT
    return 0 if all(finding.allowed for finding in report.findings) else REFUSED


def _report(inputs: Inputs, policy: Path | None, tenants: Sequence[Path]) -> Report:
    """By the code of the webhook, with files as the cluster. Raises BadInput, ConfigError."""
    world = [document for path in tenants for document in _tenants_in(path, inputs.left_out)]
    asked = inputs.read()
    in_force = policy_in(policy)
    cluster = cluster_of(in_force, [*world, *asked])
    notes = [f"{titled(each)}: {sentence(odd)}" for each in world for odd in each.warnings]
    notes += [*_tenant_notes(cluster, in_force, [*world, *asked]), *_without_tenant(cluster, in_force, asked, world)]
    findings = asyncio.run(_findings(desk_at(cluster, in_force), asked))
    for note in notes:
        _say(note, "yellow")
    return Report(findings, inputs.left_out, tenants=bool(cluster.known.tenants()))


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


def _tenant_notes(cluster: ReadOnceCluster, policy: TierPolicy, world: Sequence[Document]) -> Iterator[str]:
    """What the API server would warn of when TenantQuotas and Namespaces are applied; nothing is in use yet."""
    tenants = {each.name: (each, read_tenant(each.tree)) for each in world if each.group_kind == TENANT_QUOTA}
    for document, tenant in tenants.values():
        others = [other for _, other in tenants.values() if other is not tenant]
        for warning in tenant_warnings(tenant, others, cluster.known.namespaces(), lambda *_: {}, policy):
            yield f"{titled(document)}: {sentence(warning)}"
    for document in (each for each in world if each.group_kind == NAMESPACE):
        labels = view(document.tree, Named).metadata.labels
        for warning in namespace_warnings(labels, policy, [tenant for _, tenant in tenants.values()]):
            yield f"{titled(document)}: {sentence(warning)}"


def _without_tenant(
    cluster: ReadOnceCluster, policy: TierPolicy, asked: Sequence[Document], world: Sequence[Document]
) -> Iterator[str]:
    """Notes on workloads' namespaces that no tenant selects, if there are tenants: a Namespace may be missing."""
    denied = policy.namespaces_without_tenant == "Deny"
    so = "pods with GPUs or a tier are refused there" if denied else "no ceiling and no quota applies there"
    given = {each.name for each in (*world, *asked) if each.group_kind == NAMESPACE}
    names = {each.namespace for each in asked if each.group_kind in policy.kinds.by_kind}
    for name in sorted(names) if cluster.known.tenants() else ():
        if cluster.known.tenant_name(name) is None:
            advice = ". If one should, give the Namespace, with its labels, to --tenants" if name not in given else ""
            yield f"no tenant selects namespace {name}, so {so}{advice}"
