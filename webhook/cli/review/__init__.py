"""`gpu-tiers review`: the webhook's answers about manifests, without a cluster, for people, programs and CI."""

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import msgspec
import typer
import yaml
from msgspec.structs import replace
from rich.console import Console

from webhook.cli.ci_formats import JUnitCase, JUnitSuite, as_junit, as_sarif
from webhook.cli.cluster.installed import policy_in
from webhook.cli.command import BAD_INPUT, versioned, with_options
from webhook.cli.manifests.api_server import refused_by_api_server, with_served_version
from webhook.cli.manifests.documents import Document, LeftOut
from webhook.cli.manifests.finding import Finding, verdict_of
from webhook.cli.manifests.inputs import Inputs, cluster_of, tenants_in, titled
from webhook.cli.manifests.judge import Judge, judge_at
from webhook.cli.progress import shown_while
from webhook.cli.review.text import as_text, left_alone, summary
from webhook.cluster.offline import ReadOnceCluster
from webhook.config.load import DEFAULT_PRESET
from webhook.config.yaml_text import Dumper
from webhook.objects.group_kind import NAMESPACE
from webhook.objects.pods import Named
from webhook.objects.refusal import Refusal, Refused
from webhook.objects.view import view
from webhook.policy.assignment.assigned_by import assigned_by
from webhook.policy.assignment.limits import EXPLICIT
from webhook.policy.metadata_keys import namespace_warnings
from webhook.policy.quota.tenant_quotas import TENANT_QUOTA, checked_names, read_tenant, with_grants
from webhook.policy.quota.tenant_status import newly_unknown, tenant_warnings, unknown_names
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.sentences.sentence import WARNINGS, address, sentence

REFUSED = 1

ReviewForm = Literal["text", "json", "yaml", "junit", "sarif"]


class Only(StrEnum):
    """Which findings are written."""

    REFUSED = "refused"
    WARNED = "warned"


@with_options
def review(
    inputs: Inputs,
    policy: Path | None = None,
    tenants: list[Path] | None = None,
    namespace: str | None = None,
    only: list[Only] | None = None,
    output: ReviewForm = "text",
) -> None:
    """Show what gpu-tiers would do with manifests: the tier and why, the changes to the pods, or the refusal.

    Use it to ask what happens when you apply a manifest. `test` checks such answers against those that you wrote down,
    `policy diff` compares them under two policies, and `audit` sums them up for a whole cluster or folder.

    Example: `gpu-tiers review -f job.yaml --policy policy.yaml --tenants tenants/`

    No cluster is asked: each object is judged by itself as in Enforce, against tenants that use nothing yet. For the
    answer of a cluster now use `kubectl apply --dry-run=server`. In a folder, files that are no Kubernetes objects are
    skipped and named at the end. Exits with 1 if something would be refused, whatever --only shows, and with 2 on bad
    input. If a file of a folder is broken, the rest is reviewed.
    """
    # 1. The files, as the cluster.
    left_out: list[LeftOut] = []
    world = tenants_in(tenants or (), left_out)
    chosen = policy_in(policy)
    manifests = inputs.read(namespace, left_out, past_broken=True)
    objects = [with_served_version(each, chosen.kinds) for each in manifests]
    cluster = cluster_of(chosen, [*map(_with_grants, world), *map(_with_grants, objects)])
    notes = list(_notes(cluster, chosen, objects, world))

    # 2. The findings by the webhook's code. A TenantQuota of --tenants is only reported if it would be refused.
    reviewed, judge = {each.source for each in objects}, judge_at(cluster, chosen)
    quotas = [each for each in world if each.group_kind == TENANT_QUOTA and each.source not in reviewed]
    refused = [each for each in asyncio.run(_findings(judge, quotas)) if not each.allowed]
    findings = [*refused, *asyncio.run(_findings(judge, objects))]

    # 3. The report.
    known_tenants = cluster.known.tenants()
    if policy is None and any(any(unknown_names(each, chosen)) for each in known_tenants):
        tiers = ", ".join(each.name for each in chosen.tiers)
        notes.append(f"judged by the preset {DEFAULT_PRESET}, because --policy names no file; its tiers: {tiers}")
    for note in notes:
        Console(stderr=True).print(note, style="yellow", highlight=False, soft_wrap=True, markup=False)
    shown = findings
    if only:
        refusals, warnings = Only.REFUSED in only, Only.WARNED in only
        shown = [each for each in findings if (refusals and not each.allowed) or (warnings and each.warnings)]
    write_report(output, findings, shown, left_out, tenants=bool(known_tenants))
    if any(each.broken for each in left_out):
        raise typer.Exit(BAD_INPUT)
    raise typer.Exit(0 if all(finding.allowed for finding in findings) else REFUSED)


def _with_grants(document: Document) -> Document:
    """Return a TenantQuota with the grants that apply now; any other document, and a broken one, as it is."""
    if document.group_kind != TENANT_QUOTA or not document.tree.get("spec"):
        return document
    with suppress(Refused):
        return replace(document, tree=with_grants(document.tree, time.time()))
    return document


async def _findings(judge: Judge, asked: Sequence[Document]) -> list[Finding]:
    found, tenants = list[Finding](), {each.name: each for each in judge.cluster.known.tenants()}
    for document in shown_while("judging", asked):
        finding = await judge.finding(document)
        notes = (*finding.notes, *_unasked(finding, judge.policy, tenants))
        found.append(replace(_of_files(finding, judge.policy), notes=notes))
    return found


def _unasked(finding: Finding, policy: TierPolicy, tenants: Mapping[str, Tenant]) -> Iterator[str]:
    """Yield notes of what needs a cluster (the user's rights, the tenant's GPU-hours), and of active grants."""
    tenant = tenants.get(finding.verdict.tenant or "")
    if tenant is not None and tenant.budgets:
        yield f"not checked: the budgets of tenant {tenant.name}, which its cluster counts"
    if tenant is not None and tenant.rows != (tenant.rows_of_spec or tenant.rows):
        yield f"judged with the grants of tenant {tenant.name} that apply now"
    given = finding.verdict.assignment
    if policy.tier_access == "RBAC" and given and given.tier and given.step in EXPLICIT:
        tier, namespace = given.demoted_from or given.tier.name, finding.document.namespace
        ask = f"kubectl auth can-i use priorityclasses/{tier} -n {namespace} --as USER"
        yield f"not checked: whether its user may name {tier} (tierAccess: RBAC). To see it: {ask}"


def _of_files(finding: Finding, policy: TierPolicy, *, stored: bool = True) -> Finding:
    """Return the finding with what differs without a cluster, also in its parts.

    Only objects that are `stored` get the API server's own refusals, not the pods that a workload would make. The
    refusal of an unknown class says that the files lack it, because the cluster may have it.
    """
    pods = tuple(_of_files(each, policy, stored=False) for each in finding.pods)
    inside = tuple(_of_files(each, policy, stored=stored) for each in finding.inside)
    invalid = tuple(refused_by_api_server(finding.document, policy.kinds)) if stored else ()
    verdict, refusal = finding.verdict, finding.verdict.refusal
    if refusal is not None and refusal.id == "class-unknown":
        given = Refusal(refusal.reason, "class-not-given", refusal.field, name=refusal.get("name"))
        verdict = replace(verdict, refusal=given.within(refusal.place.removesuffix(".")))
    return replace(finding, verdict=verdict, pods=pods, inside=inside, invalid=invalid)


def _notes(
    cluster: ReadOnceCluster, policy: TierPolicy, asked: Sequence[Document], world: Sequence[Document]
) -> Iterator[str]:
    """Yield the warnings about the tenants and namespaces by which the objects are judged."""
    every = [*world, *asked]
    yield from (f"{titled(each)}: {sentence(odd)}" for each in world for odd in each.warnings)

    # 1. The warnings at the apply of these TenantQuotas and Namespaces; nothing is in use yet.
    tenants = {each.name: (each, read_tenant(each.tree)) for each in every if each.group_kind == TENANT_QUOTA}
    for document, tenant in tenants.values():
        others = [other for _, other in tenants.values() if other is not tenant]
        refused = newly_unknown(tenant, None, policy, checked_names(document.tree))
        for warning in tenant_warnings(tenant, others, cluster.known.namespaces(), lambda *_: {}, policy):
            if refused is None or warning.get("unknown") != refused:
                yield f"{titled(document)}: {sentence(warning)}"
    given = [each for each in every if each.group_kind == NAMESPACE]
    for document in given:
        labels = view(document.tree, Named).metadata.labels
        for warning in namespace_warnings(labels, policy, [tenant for _, tenant in tenants.values()]):
            yield f"{titled(document)}: {sentence(warning)}"

    # 2. Namespaces of workloads that no tenant selects, if there are tenants, because a Namespace may be missing.
    denied = policy.namespaces_without_tenant == "Deny"
    so = "pods with GPUs or a tier are refused there" if denied else "no ceiling and no quota applies there"
    names = {each.namespace for each in asked if each.group_kind in policy.kinds.by_kind}
    for name in sorted(names) if cluster.known.tenants() else ():
        if cluster.known.tenant_name(name) is None:
            missing = name not in {each.name for each in given}
            advice = ". If one should, give the Namespace, with its labels, to --tenants" if missing else ""
            yield f"no tenant selects namespace {name}, so {so}{advice}"


def write_report(
    form: ReviewForm, findings: Sequence[Finding], shown: Sequence[Finding], left: Sequence[LeftOut], *, tenants: bool
) -> None:
    """Write the findings to be `shown` to stdout. With JSON and YAML the left-out files go to stderr.

    `tenants`: whether any TenantQuota was given.
    """
    left_out = [f"{each.what}: {each}" for each in left]
    match form:
        case "text":
            console = Console()
            for finding in shown:
                as_text(finding, console)
            end = summary(findings, left, tenants=tenants, shown=bool(shown))
            sys.stdout.writelines(f"{line}\n" for line in end)
            if any(warning.id in WARNINGS for each in shown for warning in each.shown_warnings):
                sys.stdout.write(f"what each warning means, by its id: {address('docs/warnings.md')}\n")
        case "json":
            sys.stdout.writelines(f"{msgspec.json.encode(_whole(each)).decode()}\n" for each in shown)
        case "yaml":
            for each in shown:
                built = msgspec.to_builtins(_whole(each))
                text = yaml.dump(built, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=4096)
                sys.stdout.write(f"---\n{text}")
        case "junit":
            # A refusal is a failure, an object that is left alone is skipped.
            sys.stdout.write(as_junit([JUnitSuite(SUITE, tuple(map(_junit_case, shown)), left_out)], SUITE))
        case _:
            sys.stdout.write(as_sarif(shown, left))
    if form in ("json", "yaml"):
        sys.stderr.writelines(f"{each}\n" for each in left_out)


def _whole(finding: Finding) -> dict[str, Any]:
    """Return the verdict on an object with its file and line, its patch, and the findings for what it creates."""
    document = finding.document
    return versioned({"file": document.file, "line": document.line or None, **_record(finding)})


def _record(finding: Finding) -> dict[str, Any]:
    extras = {
        "notes": finding.notes,
        "placement": finding.verdict.placement,
        "autoscaler": finding.verdict.autoscaler,
        "placeholders": finding.document.placeholders,
        "uncounted": finding.uncounted,
        "invalid": tuple(map(sentence, finding.invalid)),
        "pods": [_part(each) for each in finding.pods],
        "inside": [_part(each) for each in finding.inside],
    }
    given = {name: value for name, value in extras.items() if value}
    return {**verdict_of(finding).as_json(), "patch": finding.patch, **given}


def _part(part: Finding) -> dict[str, Any]:
    return {"path": part.path, "count": part.count, **_record(part)}


SUITE = "gpu-tiers review"


def _junit_case(finding: Finding) -> JUnitCase:
    assignment, said = finding.verdict.assignment, [f"warning: {each}" for each in finding.warnings]
    if finding.evidence:
        said.insert(0, f"type: {finding.evidence}")
    if assignment is not None and assignment.tier is not None:
        said.insert(0, f"tier: {assignment.tier.name} ({assigned_by(assignment)})")
    case = JUnitCase(finding.title, finding.document.file, finding.document.line, said=said)
    if finding.message:
        return replace(case, tag="failure", kind=finding.refusal_kind, text=finding.message)
    if not finding.tiered:
        return replace(case, tag="skipped", text=f"left alone: {left_alone(finding)}")
    return case
