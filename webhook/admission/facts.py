"""Gathers the facts about a pod, a PodGroup or a workload, as they are in the cluster now."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import msgspec
from msgspec.structs import replace

from webhook.cluster.cluster import Cluster
from webhook.ledger.protocol import Ledger
from webhook.objects.group_kind import POD_GROUP
from webhook.objects.pods import Metadata, OwnerReference, Pod, PodClaim, PodSpec, require_few, require_few_devices
from webhook.objects.refusal import Aside, Missing, Reason, Refusal, Refused, Unreadable
from webhook.objects.view import Tree
from webhook.policy.values.facts import Facts, Group, Namespace, selecting
from webhook.policy.values.tenants import Tenant, Usage
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kind_table import KindRow
from webhook.policy.workloads.pod_groups import LOOKED_UP, PodsTogether, SchedulersGroup, kueue_group, named_groups
from webhook.policy.workloads.templates import workload
from webhook.policy.workloads.workload import Devices, Workload, gang_among, group_number

_NAMING = frozenset(source.key for source in LOOKED_UP)


class WorkloadFacts(msgspec.Struct, frozen=True):
    """A workload as its author `sent` it, and the `whole` with the templates of its runtime.

    `unread_runtime` names a runtime that can't be read, "" for none.
    """

    sent: Tree
    metadata: Metadata
    whole: Tree
    facts: Facts
    unread_runtime: str


@contextmanager
def needed_to(what: str) -> Iterator[None]:
    """Refuse if a fact can't be read that is needed to do `what`. All such refusals count as the same mistake."""
    try:
        yield
    except Unreadable as problem:
        aside = Aside("as-told", text=str(problem))
        raise Refused.of(Refusal(Reason.UNREADABLE, "unreadable", problem=aside, what=what)) from problem


async def facts_of_workload(
    tree: Tree, row: KindRow, metadata: Metadata, namespace: str, cluster: Cluster, policy: TierPolicy
) -> WorkloadFacts:
    """Gather the facts about a workload of that kind. Raises Refused if the workload or a fact can't be read.

    An unread runtime or claim is in the result instead. Raises Refused also for too many templates.
    """
    whole, unread = await cluster.lookups.completed(namespace, tree, row)
    own = workload(whole, row)
    require_few([member.template for member in own.members])
    facts = await facts_of(metadata, namespace, cluster, policy, own=own)
    return WorkloadFacts(tree, metadata, whole, facts, unread)


async def facts_of(
    found: Pod | Metadata, namespace: str, cluster: Cluster, policy: TierPolicy, *, own: Workload | None = None
) -> Facts:
    """Return the facts about a pod, or about another object by its metadata; `own` is the workload under review.

    Raises Refused if a fact can't be read, except claims of `own`, which become `unread_claims`.
    """
    pod, metadata = (found, found.metadata) if isinstance(found, Pod) else (None, found)
    with needed_to("choose a tier"):
        home = await cluster.known.namespace(namespace)
        above = await _owners(metadata.controller, namespace, cluster, policy)
        scheduled = pod.spec.scheduling_group if pod else None
        group = await cluster.lookups.pod_group(namespace, scheduled.pod_group_name) if scheduled else None
        tenant = cluster.known.tenant(home)
        groups = await schedulers_groups(pod.metadata, namespace, cluster) if pod else ()
        made, unread = await _with_devices(own, namespace, cluster, Unreadable) if own else (None, ())
        owners = (made, *above) if made else above
        if home.selector:
            # the API server adds the namespace's selector to pods before their review, so the templates get it too
            added = partial(selecting, selector=home.selector)
            owners = tuple(
                replace(each, members=tuple(replace(one, template=added(one.template)) for one in each.members))
                for each in owners
            )
        return Facts(
            namespace=home,
            classes=cluster.known.classes(),
            owners=owners,
            tenant=tenant,
            group=_believed(group, tenant, policy) if group else None,
            devices=await _devices(pod.spec, namespace, cluster) if pod else (),
            unread_claims=unread,
            node_labels=cluster.known.node_labels(pod.spec.node_name) if pod and pod.spec.node_name else {},
            groups=groups,
            together=_together(metadata, group, groups) if pod and not gang_among(above) else None,
            eviction=cluster.known.eviction(),
        )


def gang_of_pod(facts: Facts) -> Workload | PodsTogether | None:
    """Return the gang of a pod: the workload that makes it, or the group that the pod names; None for a single pod."""
    return gang_among(facts.owners) or facts.together


def usage_met(
    ledger: Ledger, tenant: Tenant, rank: int, without: Collection[str] = (), own: Collection[str] = ()
) -> tuple[Usage, Usage]:
    """Return the usage of each row that counts against a new pod of this `rank`, and the part reserved for the queue.

    The usage leaves out the ResourceClaims `without`, which the pod shares. Reservations for tiers of a lower rank do
    not count, nor do those for the uids `own`.
    """
    usage = ledger.usage(tenant, without)
    of_all, reserved = ledger.reserved_for_queue(tenant), ledger.reserved_for_queue(tenant, rank, own)
    return {row: gpus - of_all[row] + reserved[row] for row, gpus in usage.items()}, reserved


async def what_may_demote(facts: Facts, ledger: Ledger, devices: Iterable[Devices]) -> tuple[Usage | None, str]:
    """Return what may demote a pod or a group: its tenant's usage without its own claims, or its gang's tier.

    A gang that was demoted when it was applied keeps its tier, also after `onExceed` changed. (None, "") if nothing
    demotes the pod.
    """
    gang, tenant = gang_of_pod(facts), facts.tenant
    if tenant is None or not (tenant.demotes or tenant.demoted_before):
        return None, ""
    tier = await ledger.gang_tier(tenant, facts.namespace.name, gang.uid) if gang else None
    if tier is not None or not tenant.demotes:
        return None, tier or ""
    return ledger.usage(tenant, {each.claim for each in devices if each.claim}), ""


def gang_uid(metadata: Metadata, facts: Facts) -> str:
    """Return the uid of a pod's gang, with the number of a further group of a workload: "<uid>/2"; "" for no gang."""
    gang = gang_of_pod(facts)
    if not isinstance(gang, Workload):
        return gang.uid if gang else ""
    number = group_number(gang, metadata.labels)
    return f"{gang.uid}/{number}" if number else gang.uid


async def queued_group(pod: Pod, namespace: str, cluster: Cluster, policy: TierPolicy) -> PodsTogether | None:
    """Return the Kueue pod group of a pod; None for a single pod, or if a workload makes these pods into a gang.

    Raises Unreadable if an owner can't be read.
    """
    group = kueue_group(pod.metadata)
    if group is None or gang_among(await _owners(pod.metadata.controller, namespace, cluster, policy)):
        return None
    return group if group.count > 1 else None


async def charged_facts(pod: Pod, namespace: str, cluster: Cluster) -> tuple[Namespace, tuple[Devices, ...]]:
    """Return the namespace and the devices by which an existing pod is charged. Raises Refused if one can't be read."""
    with needed_to("find what this pod is charged"):
        return await cluster.known.namespace(namespace), await _devices(pod.spec, namespace, cluster)


async def _owners(
    controller: OwnerReference | None, namespace: str, cluster: Cluster, policy: TierPolicy
) -> tuple[Workload, ...]:
    """Return the owners. If one can't be read, raise Unreadable, or return none if unreadableOwners is DefaultTier."""
    if controller is None:
        return ()
    try:
        owners = await cluster.lookups.owners(namespace, controller, policy.kinds)
        return tuple([(await _with_devices(each, namespace, cluster, Missing))[0] for each in owners])
    except Unreadable:
        if policy.unreadable_owners == "DefaultTier":
            return ()
        raise


def _believed(group: Group, tenant: Tenant | None, policy: TierPolicy) -> Group:
    """Return the group, without `demoted_from` if that can't be true, because pods may have the label of that tier.

    The annotation for it is written at the group's CREATE, and any user who may edit PodGroups can change it later.
    """
    higher, own = policy.tiers.get(group.demoted_from), policy.tiers.of_class(group.priority_class_name)
    lowered = higher is not None and own is not None and own.value < higher.value
    within = higher is not None and (tenant is None or tenant.may_use(higher, policy.tiers))
    return group if lowered and within else replace(group, demoted_from="")


async def schedulers_groups(metadata: Metadata, namespace: str, cluster: Cluster) -> tuple[SchedulersGroup, ...]:
    """Return the groups of other schedulers that a pod names; nearly all pods name none. Raises Unreadable."""
    if _NAMING.isdisjoint((*metadata.labels, *metadata.annotations)):
        return ()
    return tuple([await cluster.lookups.schedulers_group(namespace, *named) for named in named_groups(metadata)])


def _together(metadata: Metadata, group: Group | None, groups: Sequence[SchedulersGroup]) -> PodsTogether | None:
    """Return the gang that a pod names, if no workload makes it; None for a single pod."""
    if group is not None:
        found: PodsTogether | None = PodsTogether(POD_GROUP, group.name, group.pods)
    elif groups:
        found = PodsTogether(groups[0].source.kind, groups[0].name, groups[0].pods)
    else:
        found = kueue_group(metadata)
    return found if found is not None and found.count > 1 else None


async def _devices(spec: PodSpec, namespace: str, cluster: Cluster) -> tuple[Devices, ...]:
    found: list[Devices] = []
    for claim in spec.resource_claims:
        found += await cluster.lookups.devices(namespace, claim)
        require_few_devices(len(found))
    return tuple(found)


async def _with_devices(
    owner: Workload, namespace: str, cluster: Cluster, passed: type[Unreadable]
) -> tuple[Workload, tuple[str, ...]]:
    """Return the workload with the devices of its templates' claims, and why claims can't be read.

    Only errors of the type `passed` are returned; any other Unreadable is raised.
    """
    claims = dict.fromkeys(claim for member in owner.members for claim in member.template.spec.resource_claims)
    if not claims:
        return owner, ()
    found: dict[PodClaim, tuple[Devices, ...]] = {}
    unread: list[str] = []
    for claim in claims:
        try:
            found[claim] = await cluster.lookups.devices(namespace, claim)
            require_few_devices(sum(map(len, found.values())))
        except passed as problem:
            unread.append(str(problem))
    members = (
        replace(
            member,
            devices=tuple(each for claim in member.template.spec.resource_claims for each in found.get(claim, ())),
        )
        for member in owner.members
    )
    return replace(owner, members=tuple(members)), tuple(unread)
