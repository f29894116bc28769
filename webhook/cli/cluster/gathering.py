"""Gathers the workloads that there are, each judged once, and the pods of each under the outermost one."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Generic, TypeVar

from msgspec.structs import replace

from webhook.cli.manifests.documents import Document
from webhook.cluster.pod_listing import PodSummary
from webhook.cluster.views import LONGEST
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Named, OwnerReference
from webhook.objects.refusal import Refused
from webhook.objects.view import Tree, view
from webhook.policy.assignment.assigned_by import ASSIGNED_BY, AssignedBy, parsed, read_assigned_by
from webhook.policy.assignment.request import GANG, TIER_LABEL
from webhook.policy.workloads.kind_table import KindTable
from webhook.policy.workloads.templates import pod_templates
from webhook.policy.workloads.workload import has_ended
from webhook.report.lint.audited import PodsAlike

T = TypeVar("T")

Judge = Callable[[Document], Awaitable[T]]

_Place = tuple[GroupKind, str, str]
"""Kind, namespace and name: a file may have lost the uid."""


@dataclass(slots=True)
class Gathered(Generic[T]):
    """A workload: the verdicts on it, and its pods.

    Where only its pods can be judged, there is a verdict on each sort of them.
    """

    kind: GroupKind
    namespace: str
    name: str
    judged: list[T]
    pods: dict[PodsAlike, tuple[int, Decimal]] = field(default_factory=dict)

    def with_pod(self, pod: PodSummary) -> None:
        alike = _alike(pod)
        count, gpus = self.pods.get(alike, (0, Decimal(0)))
        self.pods[alike] = count + 1, gpus + pod.gpus

    @property
    def pods_alike(self) -> tuple[PodsAlike, ...]:
        ordered = sorted(self.pods.items(), key=lambda item: -item[1][0])
        return tuple(replace(alike, count=count, gpus=gpus) for alike, (count, gpus) in ordered)


@dataclass
class Gathering(Generic[T]):
    """Takes all workloads first, and then all pods. It keeps what `judge` makes of an object, and not the object.

    Only a workload that another makes is kept until that one is there. A `hidden` kind can't be read, so what such a
    workload makes is left out.
    """

    kinds: KindTable
    judge: Judge[T]
    found: dict[str, Gathered[T]] = field(default_factory=dict)
    hidden: set[GroupKind] = field(default_factory=set)
    _made_by: dict[str, OwnerReference] = field(default_factory=dict)
    _seen: set[_Place] = field(default_factory=set)
    _waiting: dict[_Place, list[Document]] = field(default_factory=dict)
    _sorts: set[tuple[str, object]] = field(default_factory=set)

    async def workload(self, document: Document) -> None:
        """Take a workload unless it has ended; one that another makes belongs to its maker, if that exists."""
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
        if above not in self._seen and self._makes_pods(document):
            self._waiting.setdefault(above, []).append(document)

    async def by_itself(self, document: Document) -> None:
        """Take a workload that no existing workload makes, unless it has ended."""
        if not has_ended(document.tree):
            of_it = Gathered(document.group_kind, document.namespace, document.name, [await self.judge(document)])
            self.found[document.uid] = of_it

    def without_maker(self) -> list[Document]:
        """Return workloads whose maker does not exist and which no pod of theirs showed, once all were taken."""
        made = (each for some in self._waiting.values() for each in some)
        makers = ((each, self._made_by[each.uid]) for each in made)
        return [each for each, maker in makers if maker.uid not in self.found and not self._is_hidden(maker)]

    async def pod(self, pod: PodSummary, tree: Callable[[], Tree]) -> None:
        """Take an existing pod that holds GPUs. Its `tree` is read only where no workload tells what it is."""
        maker = self._outermost(pod.owner)
        if maker and self._is_hidden(maker):
            return
        uid = maker.uid if maker else pod.uid
        if uid not in self.found:
            kind = GroupKind(maker.group, maker.kind) if maker else GroupKind("", "Pod")
            self.found[uid] = Gathered(kind, pod.namespace, maker.name if maker else pod.name, [])
            self._sorts.add((uid, ()))
        if (uid, ()) in self._sorts:
            await self._judge_pod(uid, pod, tree)
        self.found[uid].with_pod(pod)

    def _is_hidden(self, maker: OwnerReference) -> bool:
        return GroupKind(maker.group, maker.kind) in self.hidden

    def _makes_pods(self, document: Document) -> bool:
        """Tell whether it makes pods now: old ReplicaSets of a Deployment make none."""
        try:
            made = list(pod_templates(document.tree, self.kinds.by_kind[document.group_kind]))
        except Refused:
            return True  # its verdict says so
        return not made or any(each.count for each in made)

    async def _judge_pod(self, uid: str, pod: PodSummary, tree: Callable[[], Tree]) -> None:
        sort = (uid, (pod.tier_label, pod.class_name, pod.gpus, pod.workload_type, pod.hook_asked))
        if sort not in self._sorts:
            self._sorts.add(sort)
            self.found[uid].judged.append(await self.judge(Document("", anew(tree()))))

    def _outermost(self, maker: OwnerReference | None) -> OwnerReference | None:
        """Return the end of the chain of controllers, as far as their kinds are known and they were listed."""
        for _ in range(LONGEST):
            above = self._made_by.get(maker.uid) if maker else None
            if above is None:
                break
            maker = above
        return maker


def _alike(pod: PodSummary) -> PodsAlike:
    written = parsed(pod.assigned_by)
    return PodsAlike(
        count=0,
        gpus=Decimal(0),
        class_name=pod.class_name,
        priority=pod.priority,
        tier=pod.tier,
        flavor=pod.flavor,
        marked=bool(pod.assigned_by),
        demoted=bool(written and written.demoted_from),
        wait=pod.held,
        hook=pod.hook,
        grace=pod.grace,
    )


_OF_THE_AUTHOR = ("namespace", "labels", "annotations", "ownerReferences")
_BORN_WITH = ("priority", "preemptionPolicy", "nodeName")


def anew(pod: Tree) -> Tree:
    """Return the pod as a controller would create it again, under another name.

    The annotation that gpu-tiers wrote on it tells which label and class its author wrote.
    """
    metadata, spec = pod.get("metadata") or {}, {**(pod.get("spec") or {})}
    kept = {key: metadata[key] for key in _OF_THE_AUTHOR if key in metadata}
    labels, annotations = {**(kept.get("labels") or {})}, {**(kept.get("annotations") or {})}
    annotations.pop(GANG, None)
    if ASSIGNED_BY in annotations:
        _unmark(labels, spec, read_assigned_by(annotations))
        del annotations[ASSIGNED_BY]
    spec = {key: value for key, value in spec.items() if key not in _BORN_WITH}
    kept |= {"generateName": f"{metadata.get('name', '')}-", "labels": labels, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": spec}


def _unmark(labels: dict[str, str], spec: Tree, written: AssignedBy | None) -> None:
    higher = written.demoted_from if written else ""
    if written is None or not written.names_own_label:
        labels.pop(TIER_LABEL, None)
    if written is None or not written.names_own_class:
        spec.pop("priorityClassName", None)
    elif higher:
        spec["priorityClassName"] = higher
