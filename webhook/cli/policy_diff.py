"""`gpu-tiers policy diff`: what changes for workloads if another policy comes in force."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from webhook.cli.alone import NO_TENANTS, is_fact
from webhook.cli.asked_cluster import policy_in_force
from webhook.cli.cluster_comparison import Comparison, both
from webhook.cli.cluster_options import ContextOption, KubeconfigOption, Target, answered
from webhook.cli.documents import BadInput, Document, documents
from webhook.cli.fail import fail
from webhook.cli.inputs import FilenameOption, Inputs
from webhook.cli.named_policy import policy_named
from webhook.cli.output import Answer, AnswerForm, FormOption, Table, write
from webhook.cli.policy_changes import ObjectChange, change_of, changes_summary, ruled_under
from webhook.cli.progress import Steps
from webhook.cli.read_workloads import workloads_of
from webhook.cli.review import cluster_of
from webhook.cluster.offline import OfflineCluster
from webhook.config.errors import ConfigError
from webhook.policy.values.tier_policy import TierPolicy

CHANGES = 1
NAME_BOTH = "name the old policy too: policy diff OLD NEW"


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
    tenants: Annotated[
        list[Path] | None, typer.Option(help="With manifests: file or folder of TenantQuotas and Namespaces.")
    ] = None,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", help="Compare this one alone; of manifests, that of those that name none."),
    ] = None,
    output: FormOption = AnswerForm.TABLE,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Show what changes for workloads from one policy to another: tier, hook, verdict, warnings.

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
    write(answer(compared.changes, compared.objects, notes), output)
    sys.stdout.flush()
    raise typer.Exit(CHANGES if compared.changes else 0)


@dataclass(frozen=True, slots=True)
class Compared:
    """What changes among so many objects, and what no object shows."""

    changes: Sequence[ObjectChange]
    objects: int
    notes: Sequence[str]


def _of_files(old: str, new: str | None, inputs: Inputs, tenants: Sequence[Path]) -> Compared:
    if new is None:
        fail(f"manifests are compared without a cluster, so {NAME_BOTH}")
    try:
        policies = policy_named(old), policy_named(new)
        world = [each for path in tenants for each in documents(str(path))]
        asked = inputs.read()
        changes = asyncio.run(_changes(asked, world, *policies))
    except (BadInput, ConfigError) as error:
        fail(str(error))
    notes = [*_notes(*policies)]
    if not any(each.kind == "TenantQuota" for each in (*world, *asked)):
        notes.append(NO_TENANTS)
    notes += [f"left out: {each}" for each in inputs.left_out]
    return Compared(changes, sum(not is_fact(each) for each in asked), notes)


async def _changes(
    asked: Sequence[Document], world: Sequence[Document], old: TierPolicy, new: TierPolicy
) -> list[ObjectChange]:
    clusters = [cluster_of(policy, [*world, *asked]) for policy in (old, new)]
    with Steps() as steps:
        judged = [each for each in asked if not is_fact(each)]
        steps.begin("judging", len(judged))
        found = [await _compared(each, clusters, (old, new), steps) for each in judged]
    return [each for each in found if each is not None]


async def _compared(
    document: Document, clusters: Sequence[OfflineCluster], policies: tuple[TierPolicy, TierPolicy], steps: Steps
) -> ObjectChange | None:
    before, after = [await ruled_under(document, *each) for each in zip(clusters, policies, strict=True)]
    steps.done()
    return change_of(document, before, after)


async def _of_cluster(old: str | None, new: str, namespace: str | None, target: Target) -> Compared:
    """One reading for both policies. What asks for GPUs under neither is left alone, and not counted."""
    after = policy_named(new)
    async with target.client() as client:
        before = await policy_in_force(client, old, instead=NAME_BOTH)
        with Steps() as steps:
            async with workloads_of(client, both(before, after), steps) as there:
                comparison = Comparison(there, before, after)
                await there.gather(comparison.gathering, namespace)
                return Compared(comparison.changes, comparison.objects, [*_notes(before, after), *there.notes])


def _notes(old: TierPolicy, new: TierPolicy) -> Iterator[str]:
    if old.mode is not new.mode:
        yield f"The mode changes from {old.mode.name} to {new.mode.name}; the objects are judged as in Enforce."


def answer(changes: Sequence[ObjectChange], objects: int, notes: Sequence[str]) -> Answer:
    """The changes, field by field; the object is named with its first."""
    rows = [row for each in changes for row in _rows(each)]
    value = {"objects": objects, "changed": len(changes), "changes": [_record(each) for each in changes]}
    return Answer(value, [Table(("Object", "Field", "Old → new"), rows)] if rows else (), notes)


def _rows(change: ObjectChange) -> Iterator[tuple[str, str, str]]:
    for number, each in enumerate(change.fields):
        yield ("" if number else _title(change)), each.field, f"{each.old} → {each.new}"


def _title(change: ObjectChange) -> str:
    return f"{change.kind} {change.namespace}/{change.name}"


def _record(change: ObjectChange) -> dict[str, Any]:
    return {
        "source": change.source,
        "kind": change.kind,
        "namespace": change.namespace,
        "name": change.name,
        "effect": change.effect.name.lower().replace("_", "-"),
        "fields": change.fields,
    }
