"""Workloads as they are stored, with the runtimes that they name; and the walk from a pod to what made it.

That walk goes by controllerRef, and the object must have the UID that the reference names. The API server does not
check owner references, so anybody may name a real Job's UID beside another name.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from webhook.cluster.cluster import StoredWorkloads
from webhook.cluster.stored_objects import FreshLookups, StoredObjects, in_time, kept_objects
from webhook.kube.errors import NoSuchApi
from webhook.kube.paths import path
from webhook.kube.ttl_cache import TTLCache
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


class WorkloadLookup(FreshLookups, frozen=True):
    """`StoredWorkloads` and `Owners` of an API server.

    A workload itself is never kept, for the request under review changes it. Reviews that come together share the
    look-up of an owner, as long as it began after all of them: a pod that is created after its Deployment was
    relabelled gets the new tier, whichever replica is asked.
    """

    objects: StoredObjects
    owners: TTLCache[tuple[str, KindTable, OwnerReference], Owner | None] = kept_objects()

    async def close(self) -> None:
        await self.owners.close()

    async def stored(self, namespace: str, name: str, row: KindRow) -> Tree:
        shown = f"{row.kind}/{name[:63]}"
        async with in_time(shown):
            return await self.objects.named(row.group, row.plural, namespace, name, shown)

    async def completed(self, namespace: str, tree: Tree, row: KindRow) -> tuple[Tree, str]:
        async def read(runtime: RuntimeKinds, kind: str, name: str) -> Tree:
            shown, home = f"{kind}/{name[:63]}", None if kind in runtime.cluster_wide else namespace
            async with in_time(shown):
                return await self.objects.named(runtime.group, runtime.plurals[kind], home, name, shown)

        return await complete_workload(tree, row, read)

    async def chain(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        async with in_time(f"the owners of {first.kind}/{first.name[:63]}"):
            return await walk(first, kinds, self._fetching(namespace, kinds))

    async def outermost(self, namespace: str, first: OwnerReference, kinds: KindTable) -> OwnerReference | None:
        """The end of the chain, as a reference; None where `kinds` does not hold the kind of `first`."""
        async with in_time(f"the owners of {first.kind}/{first.name[:63]}"):
            chain = await links(first, kinds, self._fetching(namespace, kinds))
        return chain[-1][0] if chain else None

    def _fetching(self, namespace: str, kinds: KindTable) -> FetchOwner:
        """Kept by all that a reference says, so a forged one never meets a true one's answer."""

        async def fetch(reference: OwnerReference, row: KindRow) -> Owner | None:
            key = (namespace, kinds, reference)
            return await self.owners.get(key, lambda: self._owner(namespace, reference, row), self.since)

        return fetch

    async def _owner(self, namespace: str, reference: OwnerReference, row: KindRow) -> Owner | None:
        """The owner; None where its API is not served: nothing of that kind can exist, and the walk ends.

        Raises Unreadable where the reference is forged: one object of a megabyte would be kept for each UID that
        somebody thinks of.
        """
        place = path(reference.api_version, row.plural, namespace, reference.name)
        try:
            tree = await self.objects.at(place, f"owner {reference.kind}/{reference.name}")
        except NoSuchApi:
            return None
        found = await completed_owner(self, namespace, tree, row)
        require_named(found, reference)
        return found


async def walk(first: OwnerReference, kinds: KindTable, fetch: FetchOwner) -> tuple[Workload, ...]:
    """The owners upwards from `first`, up to a kind that the table or the API server has not. Raises Unreadable."""
    return tuple(owner for _, owner in await links(first, kinds, fetch))


async def links(
    first: OwnerReference, kinds: KindTable, fetch: FetchOwner
) -> tuple[tuple[OwnerReference, Workload], ...]:
    """The same chain, each owner with the reference that names it."""
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


async def completed_owner(workloads: StoredWorkloads, namespace: str, tree: Tree, row: KindRow) -> Owner:
    """An object as an owner, with the runtime that it names.

    Where a count in it is none it is taken as it stands, for the review of the workload refuses that.
    """
    with suppress(Refused):
        tree, _ = await workloads.completed(namespace, tree, row)
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
