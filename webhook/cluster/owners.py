"""Walks from a pod to what made it, and completes workloads with the runtimes that they name.

The walk goes by controllerRef, and the object must have the UID that the reference names. The API server does not
check owner references, so anybody may name a real Job's UID beside another name.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from webhook.cluster.cluster import Lookups
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import LONGEST_UID, Named, OwnerReference
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import Tree, at, view
from webhook.policy.workloads.kind_table import KindRow, KindTable, RuntimeKinds
from webhook.policy.workloads.workload import Workload, workload
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)

LONGEST = 8
"""Owners of one pod. The longest chain of the table, Pod <- Job <- JobSet <- TrainJob, has three."""


class Owner(msgspec.Struct, frozen=True):
    """An object that owns, and the controller that it has itself."""

    workload: Workload
    controller: OwnerReference | None


FetchOwner = Callable[[OwnerReference, KindRow], Awaitable[Owner | None]]
"""Reads the object that a reference names; None where no such API is served. Raises Unreadable where it can't."""


async def links(
    first: OwnerReference, kinds: KindTable, fetch: FetchOwner
) -> tuple[tuple[OwnerReference, Workload], ...]:
    """Return the owners upwards from `first`, each with the reference that names it. Raises Unreadable.

    The chain ends at a kind that the table or the API server has not.
    """
    found: dict[str, tuple[OwnerReference, Workload]] = {}
    reference: OwnerReference | None = first
    while reference is not None and (row := kinds.by_kind.get(GroupKind(reference.group, reference.kind))) is not None:
        shown = f"owner {reference.kind}/{reference.name[:63]}"
        if len(reference.uid) > LONGEST_UID:
            raise Unreadable(f"{shown} is named with a uid of {len(reference.uid)} characters")
        if reference.uid in found:
            raise Unreadable(f"{shown} is among its own owners")
        if len(found) == LONGEST:
            raise Unreadable(f"{shown} is number {LONGEST + 1} in a chain of owners; {LONGEST} are read at most")
        owner = await fetch(reference, row)
        if owner is None:
            break
        require_named(owner, reference)
        found[reference.uid] = (reference, owner.workload)
        reference = owner.controller
    return tuple(found.values())


def require_named(owner: Owner, reference: OwnerReference) -> None:
    """Raises Unreadable where the object is not the one that the reference names."""
    if owner.workload.uid != reference.uid:
        shown = f"owner {reference.kind}/{reference.name[:63]}"
        raise Unreadable(f"{shown} has another UID than the reference to it: it was created again, or forged")


async def completed_owner(lookups: Lookups, namespace: str, tree: Tree, row: KindRow) -> Owner:
    """An object as an owner, with the runtime that it names.

    Where a count in it is none it is taken as it stands, for the review of the workload refuses that.
    """
    with suppress(Refused):
        tree, _ = await lookups.completed(namespace, tree, row)
    return owner_of(tree, row)


def owner_of(tree: Tree, row: KindRow) -> Owner:
    """An object as an owner.

    An owner with a broken template has no members: its labels and its kind still count, and the review of the
    workload itself refuses the template.
    """
    metadata = view({"metadata": tree.get("metadata") or {}}, Named).metadata
    try:
        found = workload(tree, row)
    except Refused as refused:
        log.info("owner without members", {"owner": f"{row.kind}/{metadata.name}", "reason": sentence(refused.refusal)})
        found = Workload(row, metadata.name, metadata.uid, metadata.labels, metadata.annotations)
    return Owner(found, metadata.controller)


async def complete_workload(
    tree: Tree, row: KindRow, read: Callable[[RuntimeKinds, str, str], Awaitable[Tree]]
) -> tuple[Tree, str]:
    """The workload with the runtime that it names; alone with that name where it can't be read.

    `read` reads one by its kind and name, and raises Unreadable. Raises Refused with the path of a field of either
    that is no count.
    """
    named = at(tree, f"{row.runtime.reference}.name") if row.runtime else None
    if row.runtime is None or not isinstance(named, str) or not named:
        return tree, ""
    kind = str(at(tree, f"{row.runtime.reference}.kind") or next(iter(row.runtime.plurals)))
    group = at(tree, f"{row.runtime.reference}.apiGroup") or row.runtime.group
    if kind not in row.runtime.plurals or group != row.runtime.group:
        return tree, f"{kind}/{named}"
    try:
        return row.runtime.merged(tree, await read(row.runtime, kind, named)), ""
    except Unreadable:
        return tree, f"{kind}/{named}"
