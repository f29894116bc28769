"""`gpu-tiers policy diff`: what changes for workloads if another policy comes in force."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from webhook.cli.alone import NO_TENANTS, is_fact
from webhook.cli.documents import BadInput, Document, documents
from webhook.cli.fail import fail
from webhook.cli.named_policy import policy_named
from webhook.cli.output import Answer, AnswerForm, FormOption, Table, write
from webhook.cli.policy_changes import ObjectChange, change_of, changes_summary, rulings
from webhook.config.errors import ConfigError
from webhook.policy.values.tier_policy import TierPolicy

CHANGES = 1


def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="Policy file, or the name of a preset.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Policy file, or the name of a preset.")],
    workloads: Annotated[
        list[str], typer.Argument(metavar="FILES|FOLDERS", help="Manifests of workloads, or - for standard input.")
    ],
    tenants: Annotated[
        list[Path] | None, typer.Option(help="File or folder of TenantQuotas and Namespaces; may be repeated.")
    ] = None,
    output: FormOption = AnswerForm.TABLE,
) -> None:
    """Show what changes for workloads from one policy to another: tier, hook, verdict, warnings.

    Each object is judged by itself as in Enforce, with all of its pods, against tenants that use nothing yet.
    Exits with 0 if nothing changes, with 1 if something does, and with 2 on bad input, as kubectl diff does.
    """
    try:
        policies = policy_named(old), policy_named(new)
        world = [each for path in tenants or () for each in documents(str(path))]
        asked = [each for name in workloads for each in documents(name)]
        changes = asyncio.run(_changes(asked, world, *policies))
    except (BadInput, ConfigError) as error:
        fail(str(error))
    objects = sum(not is_fact(each) for each in asked)
    notes = [changes_summary(changes, objects), *_notes(*policies, [*world, *asked])]
    write(answer(changes, objects, notes), output)
    sys.stdout.flush()
    raise typer.Exit(CHANGES if changes else 0)


async def _changes(
    asked: Sequence[Document], world: Sequence[Document], old: TierPolicy, new: TierPolicy
) -> list[ObjectChange]:
    before, after = [await rulings(asked, world, policy) for policy in (old, new)]
    judged = [each for each in asked if not is_fact(each)]
    found = (change_of(*each) for each in zip(judged, before, after, strict=True))
    return [each for each in found if each is not None]


def _notes(old: TierPolicy, new: TierPolicy, world: Sequence[Document]) -> Iterator[str]:
    """What no object shows."""
    if old.mode is not new.mode:
        yield f"The mode changes from {old.mode.name} to {new.mode.name}; the objects are judged as in Enforce."
    if not any(each.kind == "TenantQuota" for each in world):
        yield NO_TENANTS


def answer(changes: Sequence[ObjectChange], objects: int, notes: Sequence[str]) -> Answer:
    """The changes, field by field; the object is named with its first."""
    rows = [row for each in changes for row in _rows(each)]
    value = {"objects": objects, "changed": len(changes), "changes": [_record(each) for each in changes]}
    return Answer(value, [Table(("Object", "Field", "Old → new"), rows)] if rows else (), notes)


def _rows(change: ObjectChange) -> Iterator[tuple[str, str, str]]:
    for number, each in enumerate(change.fields):
        yield ("" if number else _title(change.document)), each.field, f"{each.old} → {each.new}"


def _title(document: Document) -> str:
    return f"{document.kind} {document.namespace}/{document.name}"


def _record(change: ObjectChange) -> dict[str, Any]:
    document = change.document
    return {
        "source": document.source,
        "kind": document.kind,
        "namespace": document.namespace,
        "name": document.name,
        "effect": change.effect.name.lower().replace("_", "-"),
        "fields": change.fields,
    }
