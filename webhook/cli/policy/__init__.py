"""`gpu-tiers policy`: whether a policy file would be taken, and what changes for workloads if it comes in force."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from msgspec.structs import replace

from webhook.cli.cluster.installed import fields_named, policy_in_force, policy_named
from webhook.cli.cluster.reader import cluster_reader
from webhook.cli.cluster.target import ContextOption, KubeconfigOption, Target, answered
from webhook.cli.cluster.workloads import workloads_of
from webhook.cli.manifests.documents import BadInput, Document, documents
from webhook.cli.manifests.finding import is_fact
from webhook.cli.manifests.inputs import FilenameOption, Inputs, TenantsOption
from webhook.cli.manifests.offline import NO_TENANTS, cluster_of, in_all
from webhook.cli.output import Answer, FormOption, Table, fail, write
from webhook.cli.policy.policy_changes import Comparison, ObjectChange, both, changes_summary, tenant_changes
from webhook.cli.progress import Steps
from webhook.config.errors import ConfigError
from webhook.config.load import DEFAULT_PRESET
from webhook.policy.quota.tenant_quotas import TENANT_QUOTA, read_tenant
from webhook.policy.values.tier_policy import TierPolicy

CHANGES = 1
NAME_BOTH = "name the old policy too: policy diff OLD NEW"

app = typer.Typer(no_args_is_help=True, rich_markup_mode="markdown", help="Look at policy files.")


@app.callback()
def policy_commands() -> None:
    """Look at policy files."""


@app.command()
def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="Policy file or preset. Alone it is the new one.")],
    new: Annotated[str | None, typer.Argument(metavar="NEW", help="Policy file or preset.")] = None,
    workloads: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE|FOLDER|-", help="Manifests of workloads; - is standard input. Without any, the cluster."
        ),
    ] = None,
    filename: FilenameOption = None,
    tenants: TenantsOption = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Compare this one alone; of manifests, that of those that name none."),
    ] = None,
    output: FormOption = "table",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Show what changes for workloads from one policy to another (tier, hook, verdict, warnings), and for tenants.

    `policy diff NEW` compares the policy in force with a new one for all workloads with GPUs of the cluster, as kubectl
    diff compares what is live with a file; `policy diff OLD NEW` does so for two policies. With manifests no cluster is
    asked. Each workload is judged by itself as in Enforce, with all of its pods, against tenants that use nothing yet.
    Exits with 0 if nothing changes, with 1 if something does, and with 2 on bad input, as kubectl diff does.
    """
    target, named = Target(kubeconfig, context), [*(workloads or ()), *(filename or ())]
    if named:
        target.refuse_if_named("about manifests")
        compared = _of_files(old, new, Inputs(named, namespace=namespace), tenants or ())
    elif tenants:
        fail("--tenants: goes with manifests; without them the cluster's own TenantQuotas are read")
    else:
        before, after = (old, new) if new else (None, old)
        compared = answered(lambda: _of_cluster(before, after, namespace, target))
    notes = [changes_summary(compared.changes, compared.objects), *compared.notes]
    write(answer(compared.changes, compared.objects, notes, compared.missing), output)
    sys.stdout.flush()
    raise typer.Exit(CHANGES if compared.changes else 0)


class Compared(msgspec.Struct, frozen=True):
    """What changes among so many objects, and what no object shows."""

    changes: Sequence[ObjectChange]
    objects: int
    notes: Sequence[str]
    missing: Sequence[str] = ()


def _of_files(old: str, new: str | None, inputs: Inputs, tenants: Sequence[Path]) -> Compared:
    if new is None:
        fail(f"manifests are compared without a cluster, so {NAME_BOTH}")
    try:
        policies = policy_named(old), policy_named(new)
        world = [each for path in tenants for each in documents(str(path))]
        asked = inputs.read()
        judged = [each for each in asked if not is_fact(each)]
        comparison = Comparison(lambda policy: in_all(cluster_of(policy, [*world, *asked])), *policies)
        quotas = [read_tenant(each.tree) for each in (*world, *asked) if each.group_kind == TENANT_QUOTA]
        of_tenants = [*tenant_changes(quotas, *policies)]
        changes = [*of_tenants, *asyncio.run(_changes(comparison, judged))]
    except (BadInput, ConfigError) as error:
        fail(str(error))
    notes = [*_notes(*policies)]
    if not quotas:
        notes.append(NO_TENANTS)
    notes += [f"left out: {each}" for each in inputs.left_out]
    return Compared(changes, len(judged) + len(of_tenants), notes)


async def _changes(comparison: Comparison, asked: Sequence[Document]) -> list[ObjectChange]:
    found: list[ObjectChange] = []
    with Steps() as steps:
        steps.begin("judging", len(asked))
        for each in asked:
            _, change = await comparison.judged(each)
            found += [change] if change else []
            steps.done()
    return found


async def _of_cluster(old: str | None, new: str, namespace: str | None, target: Target) -> Compared:
    """One reading for both policies. What asks for GPUs under neither is left alone, and not counted."""
    after = policy_named(new)
    async with target.client() as client:
        before = await policy_in_force(client, old, instead=NAME_BOTH)
        async with cluster_reader(client, both(before, after)) as reader:
            there = await workloads_of(reader, namespace)
            comparison = Comparison(
                there.judged_by, *(replace(each, classes=reader.policy.classes) for each in (before, after))
            )
            await there.gather(comparison.gathering, namespace)
            notes = [*_notes(before, after), *there.notes]
            tenants = [each.tenant for each in there.listed.tenants if each.tenant and not namespace]
            of_tenants = [*tenant_changes(tenants, before, after)]
            changes, objects = [*of_tenants, *comparison.changes], comparison.objects + len(of_tenants)
            return Compared(changes, objects, notes, reader.missing())


def _notes(old: TierPolicy, new: TierPolicy) -> Iterator[str]:
    if old.mode is not new.mode:
        yield f"The mode changes from {old.mode.name} to {new.mode.name}; the objects are judged as in Enforce."


def answer(changes: Sequence[ObjectChange], objects: int, notes: Sequence[str], missing: Sequence[str] = ()) -> Answer:
    """The changes, field by field; the object is named with its first."""
    rows = [
        ("" if number else _title(each), change.field, f"{change.old} → {change.new}")
        for each in changes
        for number, change in enumerate(each.fields)
    ]
    value = {"objects": objects, "changed": len(changes), "changes": [_record(each) for each in changes]}
    return Answer(value, [Table(("Object", "Field", "Old → new"), rows)] if rows else (), notes, missing)


def _title(change: ObjectChange) -> str:
    place = f"{change.namespace}/" if change.namespace else ""
    return f"{change.kind} {place}{change.name}"


def _record(change: ObjectChange) -> dict[str, Any]:
    return {
        "source": change.source,
        "kind": change.kind,
        "namespace": change.namespace,
        "name": change.name,
        "effect": change.effect.name.lower().replace("_", "-"),
        "fields": change.fields,
    }


@app.command()
def check(file: Annotated[Path, typer.Argument(metavar="FILE|PRESET", help="Policy file or preset.")]) -> None:
    """Say what is wrong with a policy file, each mistake with its field's path. Exits with 2 if anything is.

    A good one is summed up in one line. The webhook refuses the same mistakes, so ask before you install.
    """
    try:
        found = fields_named(file)
    except ConfigError as error:
        fail(str(error))
    preset = DEFAULT_PRESET if found.preset is None else found.preset
    tiers = ", ".join(f"{tier.name} {tier.value}" for tier in sorted(found.tiers, key=lambda tier: -tier.value))
    told = f"Preset {preset or 'none'}, mode {found.mode}, tiers {tiers}, default {found.default_tier}"
    typer.echo(f"{file}: good. {told}")
