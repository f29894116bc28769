"""Views of single objects of a cluster: PriorityClasses, groups of pods, resource claims, ResourceQuotas and owners.

Owners are followed from a pod upwards by controllerRef, and the object must have the UID of the reference. The API
server does not check owner references, so any user may combine a real Job's UID with another name.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

import msgspec

from webhook.cluster.cluster import Lookups
from webhook.objects.group_kind import COMPOSITE_POD_GROUP, SCHEDULING_WORKLOAD, GroupKind
from webhook.objects.podgroups import PodGroup, PodGroupTemplate, SchedulingWorkload, TemplateReference
from webhook.objects.pods import LONGEST_UID, Metadata, Named, OwnerReference, PodClaim
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Missing, Reason, Refused, Unreadable
from webhook.objects.view import Tree, View, at, view
from webhook.policy.assignment.assigned_by import class_borne, read_assigned_by
from webhook.policy.quota.native_quotas import PRIORITY_CLASS, REQUESTS, NativeQuota
from webhook.policy.values.facts import Group
from webhook.policy.values.tenants import Operator, Requirement
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.claims import Claim, ClaimTemplate, devices_of
from webhook.policy.workloads.kind_table import KindRow, KindTable, RuntimeKinds
from webhook.policy.workloads.pod_groups import GroupSource, SchedulersGroup
from webhook.policy.workloads.templates import workload
from webhook.policy.workloads.workload import Devices, Workload
from webhook.sentences.sentence import sentence

log = logging.getLogger(__name__)

T = TypeVar("T")


class _Class(View, frozen=True):
    metadata: Metadata = Metadata()
    value: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    global_default: bool = False


def priority_class(tree: object) -> PriorityClass:
    """Return a PriorityClass from its decoded JSON. Raises Refused with the field's path on a wrong type."""
    found = view(tree, _Class)
    ours = found.metadata.labels.get("app.kubernetes.io/name") == "gpu-tiers"
    return PriorityClass(found.metadata.name, found.value, found.preemption_policy, found.global_default, ours)


def group_of(found: PodGroup, name: str, *, prioritized: bool) -> Group:
    """Return the group of that name. `prioritized`: the API server stores a class and a priority on it."""
    assigned_by = read_assigned_by(found.metadata.annotations)
    demoted_from = assigned_by.demoted_from if assigned_by else ""
    pods, claims = _count(at(found.spec.scheduling_policy.gang, "minCount")), found.spec.resource_claims
    return Group(name, class_borne(found), prioritized=prioritized, demoted_from=demoted_from, pods=pods, claims=claims)


def _count(found: object) -> int:
    return found if type(found) is int and found > 0 else 0


def claimed_object(claim: PodClaim) -> tuple[str, str]:
    made = claim.resource_claim_name is not None
    name = claim.resource_claim_name if made else claim.resource_claim_template_name
    if not name:
        raise Refused(Reason.INVALID, "claim-of-nothing", "spec.resourceClaims", entry=claim.name)
    return "ResourceClaim" if made else "ResourceClaimTemplate", name


def devices_in(tree: object, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
    """Return the devices that the claim or template asks for. Raises Refused."""
    if claim.resource_claim_name is not None:
        return tuple(devices_of(view(tree, Claim).spec, claim.name, f"{namespace}/{claim.resource_claim_name}"))
    return tuple(devices_of(view(tree, ClaimTemplate).spec.spec, claim.name))


LOOKED_AT = {PRIORITY_CLASS, "NotTerminating", "NotBestEffort"}
"""Scopes that are read. A ResourceQuota of any other scope counts few pods with GPUs, or none. Most pods with GPUs have
no deadline and ask for CPU or memory, so the last two are taken to count them."""


class _Line(View, frozen=True):
    scope_name: str = ""
    operator: Operator = "Exists"
    values: tuple[str, ...] = ()


class _Selector(View, frozen=True):
    match_expressions: tuple[_Line, ...] = ()


class _Spec(View, frozen=True):
    hard: dict[str, str | int | float] = msgspec.field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: _Selector = _Selector()


class _Status(View, frozen=True):
    hard: dict[str, str | int | float] = msgspec.field(default_factory=dict)
    used: dict[str, str | int | float] = msgspec.field(default_factory=dict)


class ResourceQuota(View, frozen=True):
    """A ResourceQuota."""

    metadata: Metadata = Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


def native_quota(found: ResourceQuota) -> NativeQuota | None:
    """Return the free amounts of a ResourceQuota's `requests.*`; None if it has a scope that is not read."""
    lines = (*(_Line(scope_name=each) for each in found.spec.scopes), *found.spec.scope_selector.match_expressions)
    if not {line.scope_name for line in lines} <= LOOKED_AT:
        return None
    classes = (line for line in lines if line.scope_name == PRIORITY_CLASS)
    hard, used = found.status.hard or found.spec.hard, found.status.used
    free = {
        name.removeprefix(REQUESTS): quantity(limit, f"hard.{name}") - quantity(used.get(name, 0), f"used.{name}")
        for name, limit in hard.items()
        if name.startswith(REQUESTS)
    }
    return NativeQuota(
        found.metadata.name, tuple(Requirement(PRIORITY_CLASS, line.operator, line.values) for line in classes), free
    )


LONGEST = 8
"""Most owners of one pod. The longest chain of the table, Pod <- Job <- JobSet <- TrainJob, has three."""


class Owner(msgspec.Struct, frozen=True):
    """An owner, and its own controller."""

    workload: Workload
    controller: OwnerReference | None


FetchOwner = Callable[[OwnerReference, KindRow], Awaitable[Owner | None]]
"""Reads the object that a reference names; None if its API is not served. Raises Unreadable for other failures."""


async def links(
    first: OwnerReference, kinds: KindTable, fetch: FetchOwner
) -> tuple[tuple[OwnerReference, Workload], ...]:
    """Return the owners upwards from `first`, each with the reference that names it. Raises Unreadable.

    The chain ends at a kind that the table or the API server does not have.
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
    """Check that the object is the one that the reference names. Raises Unreadable."""
    if owner.workload.uid != reference.uid:
        shown = f"owner {reference.kind}/{reference.name[:63]}"
        raise Unreadable(f"{shown} has another UID than the reference to it: it was created again, or forged")


async def completed_owner(lookups: Lookups, namespace: str, tree: Tree, row: KindRow) -> Owner:
    """Return an object as an owner, with the pod templates of the runtime that it names.

    An invalid count is left as it is, because the review of the workload refuses it.
    """
    with suppress(Refused):
        tree, _ = await lookups.completed(namespace, tree, row)
    return owner_of(tree, row)


def owner_of(tree: Tree, row: KindRow) -> Owner:
    """Return an object as an owner.

    An owner with a broken template has no members. Its labels and its kind still count, and the review of the workload
    itself refuses the template.
    """
    metadata = view({"metadata": tree.get("metadata") or {}}, Named).metadata
    try:
        found = workload(tree, row)
    except Refused as refused:
        log.info("owner without members", {"owner": f"{row.kind}/{metadata.name}", "reason": sentence(refused.refusal)})
        found = Workload(row, metadata.name, metadata.uid, metadata.labels, metadata.annotations)
    return Owner(found, metadata.controller)


class ObjectLookups:
    """The look-ups of single objects for an API server and for files, which each implement `one` and `runtime`."""

    async def one(self, kind: GroupKind, namespace: str, name: str, reading: Callable[[Tree], T]) -> T:
        """Return what `reading` makes of an object. Raises Missing if it does not exist, and Unreadable."""
        raise NotImplementedError

    async def runtime(self, kinds: RuntimeKinds, kind: str, namespace: str, name: str) -> Tree:
        """Return a runtime that a workload names. Raises Unreadable."""
        raise NotImplementedError

    async def completed(self, namespace: str, tree: Tree, row: KindRow) -> tuple[Tree, str]:
        kinds = row.runtime
        named = at(tree, f"{kinds.reference}.name") if kinds else None
        if kinds is None or not isinstance(named, str) or not named:
            return tree, ""
        kind = str(at(tree, f"{kinds.reference}.kind") or next(iter(kinds.plurals)))
        if kind in kinds.plurals and (at(tree, f"{kinds.reference}.apiGroup") or kinds.group) == kinds.group:
            with suppress(Unreadable):
                return kinds.merged(tree, await self.runtime(kinds, kind, namespace, named)), ""
        return tree, f"{kind}/{named}"

    async def composite_pod_group(self, namespace: str, name: str) -> Group | None:
        def reading(tree: Tree) -> Group:
            return group_of(view(tree, PodGroup), name, prioritized=True)

        with suppress(Missing):
            return await self.one(COMPOSITE_POD_GROUP, namespace, name, reading)
        return None

    async def pod_group_template(self, namespace: str, reference: TemplateReference) -> PodGroupTemplate | None:
        def reading(tree: Tree) -> SchedulingWorkload:
            return view(tree, SchedulingWorkload)

        with suppress(Missing):
            found = await self.one(SCHEDULING_WORKLOAD, namespace, reference.workload_name, reading)
            return found.template(reference.template)
        return None

    async def schedulers_group(self, namespace: str, source: GroupSource, name: str) -> SchedulersGroup:
        def reading(tree: Tree) -> SchedulersGroup:
            class_name, pods = at(tree, "spec.priorityClassName"), _count(at(tree, "spec.minMember"))
            return SchedulersGroup(source, name, pods, class_name if isinstance(class_name, str) else "")

        with suppress(Missing):
            return await self.one(source.kind, namespace, name, reading)
        return SchedulersGroup(source, name)
