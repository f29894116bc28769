"""Gathers all workloads, each judged once, and counts pods under their outermost workload.

1. `Gathering` takes the objects of a cluster or of files.
2. `WorkloadsOfCluster` reads those of a cluster. It lists namespaces, tenants and classes once, and looks up the rest.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import astuple, replace

from webhook.cli.cluster.reader import ClusterReader, CommandLookups
from webhook.cli.cluster.target import ASK_FOR_CLUSTER_READER, role_for, unknown_without
from webhook.cli.manifests.documents import BadInput, Document
from webhook.cluster.listed import (
    PodSummary,
    gpu_nodes,
    listed_namespaces,
    pods_with_json,
    priority_classes,
    tenant_quotas,
)
from webhook.cluster.live import LiveLookups
from webhook.cluster.offline import ClusterAbout, Files, ManifestStore, ReadOnce, ReadOnceCluster, classes_in
from webhook.cluster.views import LONGEST
from webhook.cluster.webhook_configurations import leaves_out, webhook_configurations
from webhook.kube.client import listed_objects, path
from webhook.kube.discovery import resources_of
from webhook.kube.errors import Forbidden
from webhook.objects.group_kind import POD, GroupKind
from webhook.objects.manifests import Manifest
from webhook.objects.pods import Named, OwnerReference, is_filled_in
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import Tree, view
from webhook.policy.assignment.assigned_by import ASSIGNED_BY, parsed, read_assigned_by
from webhook.policy.assignment.request import GANG, TIER_LABEL
from webhook.policy.classification.by_shape import with_objects_inside
from webhook.policy.values.facts import NAME_LABEL, Namespace
from webhook.policy.values.tenants import Tenant, by_age
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kind_table import KindTable
from webhook.policy.workloads.templates import pod_templates
from webhook.policy.workloads.workload import Workload, has_ended
from webhook.report.lint.snapshot import ClusterSnapshot, Part, PodsAlike, number_of
from webhook.sentences.sentence import problem_text

T = TypeVar("T")

_Place = tuple[GroupKind, str, str]
"""Kind, namespace and name, because a file may have lost the uid."""


@dataclass(slots=True)
class Gathered(Generic[T]):
    """A workload: the results of judging it, and its pods, alike ones together with their number and GPUs.

    If only its pods can be judged, there is a result for each sort of them.
    """

    kind: GroupKind
    namespace: str
    name: str
    judged: list[T]
    pods: dict[PodsAlike, tuple[int, Decimal]] = field(default_factory=dict)

    def with_pod(self, pod: PodSummary) -> None:
        written = parsed(pod.assigned_by)
        alike = PodsAlike(
            0,
            Decimal(0),
            class_name=pod.class_name,
            priority=pod.priority,
            tier=pod.tier,
            flavor=pod.flavor,
            marked=bool(pod.assigned_by),
            demoted=bool(written and written.demoted_from),
            wait=pod.queued,
            hook=pod.hook,
            grace=pod.grace,
        )
        count, gpus = self.pods.get(alike, (0, Decimal(0)))
        self.pods[alike] = count + 1, gpus + pod.gpus

    @property
    def pods_alike(self) -> tuple[PodsAlike, ...]:
        ordered = sorted(self.pods.items(), key=lambda item: -item[1][0])
        return tuple(replace(alike, count=count, gpus=gpus) for alike, (count, gpus) in ordered)


@dataclass
class Gathering(Generic[T]):
    """Takes all workloads first, and then all pods. It stores the result of `judge`, and not the object.

    A workload that another one makes is stored itself until its maker arrives. The user may not list `hidden` kinds, so
    workloads and pods that such an object makes are left out.
    """

    kinds: KindTable
    judge: Callable[[Document], Awaitable[T]]
    found: dict[str, Gathered[T]] = field(default_factory=dict)
    hidden: set[GroupKind] = field(default_factory=set)
    _made_by: dict[str, OwnerReference] = field(default_factory=dict)
    _seen: set[_Place] = field(default_factory=set)
    _waiting: dict[_Place, list[Document]] = field(default_factory=dict)
    _sorts: set[tuple[str, object]] = field(default_factory=set)

    async def workload(self, document: Document) -> None:
        """Take a workload unless it has ended. One that another workload makes is part of its maker, if that exists."""
        place = (document.group_kind, document.namespace, document.name)
        self._seen.add(place)
        self._waiting.pop(place, None)
        maker = None
        with suppress(Refused):  # its verdict says so
            maker = view({"metadata": document.metadata}, Named).metadata.controller
        if maker is None or GroupKind(maker.group, maker.kind) not in self.kinds.by_kind:
            await self.by_itself(document)
            return
        self._made_by[document.uid] = maker
        above = (GroupKind(maker.group, maker.kind), document.namespace, maker.name)
        if above in self._seen:
            return
        with suppress(Refused):  # its verdict says so
            counts = [each.count for each in pod_templates(document.tree, self.kinds.by_kind[document.group_kind])]
            if counts and not any(counts):  # old ReplicaSets of a Deployment make no pods now
                return
        self._waiting.setdefault(above, []).append(document)

    async def by_itself(self, document: Document) -> None:
        """Take a workload that no existing workload makes, unless it has ended."""
        if not has_ended(document.tree):
            place = document.group_kind, document.namespace, document.name
            self.found[document.uid] = Gathered(*place, [await self.judge(document)])

    def without_maker(self) -> list[Document]:
        """Return the workloads whose maker was not taken, is of no hidden kind, and is the outermost owner of no pod.

        Call it last.
        """
        made = (each for some in self._waiting.values() for each in some)
        makers = ((each, self._made_by[each.uid]) for each in made)
        gone = ((each, maker) for each, maker in makers if maker.uid not in self.found)
        return [each for each, maker in gone if GroupKind(maker.group, maker.kind) not in self.hidden]

    async def pod(self, pod: PodSummary, tree: Callable[[], Tree]) -> None:
        """Take an existing pod with GPUs. Its `tree` is read only if the pod's workload was not taken."""
        # 1. The end of the chain of controllers, as far as their kinds are known and they were listed.
        maker, above = pod.owner, pod.owner
        for _ in range(LONGEST):
            above = self._made_by.get(above.uid) if above else None
            maker = above or maker
        kind = GroupKind(maker.group, maker.kind) if maker else POD
        if maker and kind in self.hidden:
            return

        # 2. The workload, or the sort of pods if only these can be judged.
        uid = maker.uid if maker else pod.uid
        if uid not in self.found:
            self.found[uid] = Gathered(kind, pod.namespace, maker.name if maker else pod.name, [])
            self._sorts.add((uid, ()))
        sort = (uid, (pod.tier_label, pod.class_name, pod.gpus, pod.workload_type, pod.hook_asked))
        if (uid, ()) in self._sorts and sort not in self._sorts:
            self._sorts.add(sort)
            self.found[uid].judged.append(await self.judge(Document("", as_new(tree()))))
        self.found[uid].with_pod(pod)


_OF_THE_AUTHOR = ("namespace", "labels", "annotations", "ownerReferences")
_BORN_WITH = ("priority", "preemptionPolicy")


def as_new(pod: Tree) -> Tree:
    """Return the pod as a controller would create it again, under another name.

    The annotation that gpu-tiers wrote on it says which label and class its author wrote.
    """
    metadata, spec = pod.get("metadata") or {}, {**(pod.get("spec") or {})}
    fields = {key: metadata[key] for key in _OF_THE_AUTHOR if key in metadata}
    labels, annotations = {**(fields.get("labels") or {})}, {**(fields.get("annotations") or {})}
    annotations.pop(GANG, None)
    if ASSIGNED_BY in annotations:
        written = read_assigned_by(annotations)
        if written is None or not written.names_own_label:
            labels.pop(TIER_LABEL, None)
        if written is None or not written.names_own_class:
            spec.pop("priorityClassName", None)
        elif written.demoted_from:
            spec["priorityClassName"] = written.demoted_from
        del annotations[ASSIGNED_BY]
    # A node that a person named has a manager in managedFields; the scheduler writes without one.
    placed = ("nodeName",) if is_filled_in(pod, "spec", "nodeName") or not metadata.get("managedFields") else ()
    spec = {key: value for key, value in spec.items() if key not in (*_BORN_WITH, *placed)}
    fields |= {"generateName": f"{metadata.get('name', '')}-", "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": fields, "spec": spec}


_ALL = "what the policy does to workloads"
_NAME_YOURS = f"Name a namespace of yours: -n NAMESPACE. Else {ASK_FOR_CLUSTER_READER}"
_FOR_VERDICTS: tuple[Part, ...] = ("classes", "device_classes", "tenants", "namespaces", "home")


def listed_cluster(listed: ClusterSnapshot, lookups: LiveLookups) -> ReadOnceCluster:
    """Return a cluster with the listed namespaces, tenants and classes, which looks up owners, groups and claims.

    A tier's class that the cluster lacks has the policy's values.
    """
    known = _KnownOfMany(
        {**classes_in(listed.policy.tiers), **listed.classes},
        tuple(by_age(each.tenant for each in listed.tenants if each.tenant)),
        {each.name: each for each in listed.namespaces},
    )
    return ReadOnceCluster(known, _OfMany(*astuple(lookups)))


@dataclass
class _KnownOfMany(ReadOnce):
    """Looks up the tenant of a namespace once, because there may be many tenants, and more objects."""

    found: dict[str, Tenant | None] = field(default_factory=dict)

    def tenant(self, namespace: Namespace) -> Tenant | None:
        if namespace.name not in self.found:
            self.found[namespace.name] = super().tenant(namespace)
        return self.found[namespace.name]


class _OfMany(CommandLookups, frozen=True):
    """Reads no ResourceQuotas, which would take a list in each namespace."""

    async def native_quotas(self, _namespace: str) -> tuple[()]:
        return ()


class _MadeByObject(_OfMany, frozen=True, kw_only=True):
    """Finds owners only in `makers`: the judged object and the objects inside it."""

    makers: Files

    async def owners(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        """Return the owners; none if one is not among `makers`."""
        try:
            return await self.makers.owners(namespace, first, kinds)
        except Unreadable:
            return ()


class WorkloadsOfCluster(msgspec.Struct, frozen=True):
    """Reads the workloads of a cluster; `listed` is the snapshot by which all are judged.

    `broken` has the problems of objects that can't be judged, `left_out` the GPU pods in exempt namespaces.
    """

    reader: ClusterReader
    listed: ClusterSnapshot
    broken: list[str] = msgspec.field(default_factory=list)
    left_out: Counter[str] = msgspec.field(default_factory=Counter)
    _exempt: dict[str, bool] = msgspec.field(default_factory=dict)

    def judged_by(self, policy: TierPolicy) -> ClusterAbout:
        """Return the function that returns the cluster in which an object without a known maker is judged.

        The only owners of its pods are the object itself and the objects inside it.
        """
        cluster = listed_cluster(replace(self.listed, policy=policy), self.reader.lookups)

        def about(document: Manifest) -> ReadOnceCluster:
            store = ManifestStore(each.identified for each in with_objects_inside(document, policy.kinds))
            makers = Files(store, cluster.lookups)
            return ReadOnceCluster(cluster.known, _MadeByObject(*astuple(self.reader.lookups), makers=makers))

        return about

    async def gather(self, gathering: Gathering[T], namespace: str | None = None) -> None:
        """Gather the workloads of a namespace or of all, then the pods with GPUs.

        Workloads of kinds that the user may not list are left out, with their pods. Raises ApiError, and BadInput if
        the user may not list pods.
        """
        client, steps, hidden = self.reader.client, self.reader.steps, dict[str, str]()
        served = await resources_of(client, {kind.group for kind in gathering.kinds.by_kind})
        of_kind = ((GroupKind(each.group, each.kind), each) for each in served)
        known = [(kind, each) for kind, each in of_kind if kind in gathering.kinds.by_kind]

        # 1. The workloads, with pods as the last kind: they are many, and are stored until their maker has been read.
        for kind, resource in sorted(known, key=lambda each: each[0] == POD):
            steps.begin(f"judging {resource.plural}")
            named = {"apiVersion": resource.api_version, "kind": resource.kind}
            try:
                pages = client.list_pages(path(resource.api_version, resource.plural, namespace))
                async for raw in listed_objects(pages):
                    document = Document("", {**msgspec.json.decode(raw), **named})
                    if not self._is_exempt(document.namespace):
                        await self._judged(document, gathering.workload(document))
                    steps.done()
            except Forbidden as error:
                gathering.hidden.add(kind)
                hidden[f"{resource.plural}{f'.{resource.group}' if resource.group else ''}"] = role_for(error)
        if hidden:
            *others, last = hidden
            kinds = f"{', '.join(others)} and {last}" if others else last
            sentence = unknown_without(f"what the policy does to {kinds} and their pods", "list them")
            self.reader.unknown[sentence] = tuple(hidden.values())

        # 2. The pods with GPUs, and the workloads without a maker.
        steps.begin("reading pods")
        claims, flavors = self.reader.lookups.devices, {each.name: each.flavor for each in self.listed.nodes}
        try:
            async for raw, pod in pods_with_json(client, self.reader.policy, claims, namespace):
                if pod.gpus and self._is_exempt(pod.namespace):
                    self.left_out[pod.namespace] += 1
                elif pod.gpus:
                    placed = replace(pod, flavor=flavors.get(pod.node) or pod.flavor)
                    await gathering.pod(placed, partial(msgspec.json.decode, raw))
                steps.done()
        except Forbidden as error:
            lost = unknown_without(_ALL, f"list pods in {namespace or 'all namespaces'}")
            raise BadInput(f"{lost} {role_for(error) if namespace else _NAME_YOURS}") from error
        for document in gathering.without_maker():
            await self._judged(document, gathering.by_itself(document))

    @property
    def notes(self) -> list[str]:
        """Return sentences on GPU pods in exempt namespaces, and on objects that can't be judged."""
        pods, names = self.left_out.total(), ", ".join(sorted(self.left_out))
        exempt = f"{number_of(pods, 'pod')} with GPUs in exempt namespaces ({names}) left out."
        return [exempt, *self.broken] if pods else self.broken

    async def _judged(self, document: Document, judging: Awaitable[None]) -> None:
        try:
            await judging
        except (Refused, BadInput) as problem:  # an API server stored it that checks less than we do
            where = f"{document.kind}/{document.name} in {document.namespace}"
            self.broken.append(f"{where} can't be judged: {problem_text(problem)}")

    def _is_exempt(self, namespace: str) -> bool:
        if namespace not in self._exempt:
            labels = next((each.labels for each in self.listed.namespaces if each.name == namespace), None)
            self._exempt[namespace] = leaves_out(self.listed.configurations, labels or {NAME_LABEL: namespace})
        return self._exempt[namespace]


async def workloads_of(reader: ClusterReader, namespace: str | None = None) -> WorkloadsOfCluster:
    """Read what verdicts in a cluster or a namespace need. Raises ApiError, and BadInput without a right to that."""
    client, policy = reader.client, reader.policy
    if namespace:
        homes: tuple[Namespace, ...] = (await reader.home(namespace, {}),)
    else:
        homes = await reader.part("namespaces", listed_namespaces(client), ())
    tenants = tuple(await reader.part("tenants", tenant_quotas(client), []))
    classes = await reader.part("classes", priority_classes(client), {})
    needs = [reader.unread[part] for part in _FOR_VERDICTS if part in reader.unread]
    if needs:
        first, *others = reader.roles.values()
        whole = ASK_FOR_CLUSTER_READER in (first, *others)  # this role includes the other one
        raise BadInput(f"{unknown_without(_ALL, *needs)} {_NAME_YOURS if whole else first}")
    lost = "on which flavor a pod runs that names none"
    nodes = await reader.part("nodes", gpu_nodes(client, policy), (), lost) if policy.flavors else ()
    lost = "which namespaces are exempt"
    configurations = await reader.part("configurations", webhook_configurations(client), (), lost)
    parts = classes, tenants, homes, nodes
    return WorkloadsOfCluster(reader, ClusterSnapshot(policy, datetime.now(UTC), *parts, configurations=configurations))
