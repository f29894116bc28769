"""Reads what a question about one object needs: the object, the facts and the ledger, its pods and its Events.

A user names a pod or a workload as in kubectl.
"""

import difflib
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from operator import itemgetter

import msgspec
from msgspec import structs
from msgspec.structs import replace

from webhook.cli.cluster.reader import ClusterReader, CommandLookups, cluster_reader
from webhook.cli.manifests.documents import BadInput, Document
from webhook.cli.manifests.judge import Judge, judge_of
from webhook.cluster.listed import priority_classes
from webhook.cluster.offline import ReadOnce, ReadOnceCluster, classes_in
from webhook.cluster.watched import stored_namespace
from webhook.kube.client import RFC_3339, Client, path
from webhook.kube.discovery import ServedResource, resources_of
from webhook.kube.errors import Forbidden, NotFound
from webhook.ledger.accounts import Accounts
from webhook.ledger.kubernetes_store import KubernetesStore
from webhook.ledger.versions import Version, Versions
from webhook.objects.group_kind import POD, POD_GROUP, GroupKind
from webhook.objects.pods import Metadata, Named, OwnerReference, PodClaim
from webhook.objects.refusal import Refused, Unreadable
from webhook.objects.view import Tree, at, listed, view
from webhook.policy.values.facts import NAME_LABEL, Namespace
from webhook.policy.values.tenants import by_age
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.kind_table import KindTable
from webhook.policy.workloads.pod_groups import LOOKED_UP
from webhook.policy.workloads.templates import pod_templates
from webhook.policy.workloads.workload import Devices, Workload, has_ended, is_suspended, manager_elsewhere
from webhook.report.latest import EVENT
from webhook.report.lint.snapshot import Part
from webhook.report.waiting import REASONS, Eviction, RefusedPods, refused_pods, reported_at

WHAT = "NAME of a pod, or KIND/NAME or KIND NAME as kubectl takes them: job/NAME, deploy/NAME, pytorchjobs NAME"

_POD = ServedResource("v1", POD.kind, "pods", frozenset(("pods", "pod", "po")))


def kind_and_name(words: Sequence[str]) -> tuple[str, str]:
    """Return kind and name of `train`, `job/train` or `job train`; the kind is "" if none is given.

    Raises BadInput.
    """
    parts = [part for word in words for part in word.split("/")]
    if len(parts) > 2 or not all(parts):  # noqa: PLR2004 - a kind and a name
        raise BadInput(f'"{" ".join(words)}" does not name one object; write {WHAT}')
    return (parts[0], parts[1]) if len(parts) > 1 else ("", parts[0])


_GROUPS_OF_PODS = (POD_GROUP.group, *(each.kind.group for each in LOOKED_UP))
_BUILT_IN_GROUPS = ("", "apps", "batch")


def kubectl_name(kind: GroupKind, name: str) -> str:
    """Return a name such as job/train, pytorchjob.kubeflow.org/train."""
    word = kind.kind.lower()
    return f"{word}/{name}" if kind.group in _BUILT_IN_GROUPS else f"{word}.{kind.group}/{name}"


class NoSuchPod(BadInput):
    """No pod has this name; it may have been deleted."""


async def object_named(client: Client, kinds: KindTable, namespace: str, kind: str, name: str) -> Tree:
    """Return the object, with its apiVersion and kind. Raises ApiError, and BadInput if it or its kind is missing."""
    word = kind or "pod"
    resource = _POD if _POD.is_called(word) else await _workload(client, kinds, word, name)
    try:
        found = await client.get(path(resource.api_version, resource.plural, namespace, name))
    except NotFound:
        with suppress(Forbidden):  # without the right to look, the namespace is assumed to exist
            try:
                await client.get(path("v1", "namespaces", name=namespace))
            except NotFound:
                raise BadInput(f"there is no namespace {namespace}") from None
        hint = "" if kind else f". For a workload write its kind too, such as job/{name} or deploy/{name}"
        problem = NoSuchPod if resource is _POD else BadInput
        raise problem(f'there is no {resource.kind} "{name}" in namespace {namespace}{hint}') from None
    return {"apiVersion": resource.api_version, "kind": resource.kind} | found


async def _workload(client: Client, kinds: KindTable, word: str, name: str) -> ServedResource:
    served = await resources_of(client, {*(kind.group for kind in kinds.by_kind), *_GROUPS_OF_PODS})
    known = [each for each in served if GroupKind(each.group, each.kind) in kinds.by_kind]
    named = next((each for each in known if each.is_called(word)), None)
    if named is not None:
        return named
    if any(each.is_called(word) for each in served):
        advice = "ask about one of its pods by name, or about its owner"
        raise BadInput(f'"{word}" makes no pods that gpu-tiers knows of; {advice}')
    raise BadInput(f'this cluster serves no "{word}" that makes pods; {meant([_POD, *known], word, name)}')


def meant(known: Sequence[ServedResource], word: str, name: str) -> str:
    """Return advice on the kind that was perhaps meant; all kinds if none is similar."""
    if any(each.is_called(name) for each in known):
        return f"write the kind first: {name} {word}"
    spellings = sorted({spelling for each in known for spelling in (each.kind.lower(), each.plural)})
    near = difflib.get_close_matches(word.lower(), spellings, n=1)
    if near:
        return f"did you mean {near[0]}/{name}?"
    return f"it serves {', '.join(sorted({each.kind for each in known}))}"


class AskedCluster(msgspec.Struct, frozen=True):
    """A cluster for a command about one object: facts to judge by, and the TenantQuota of each tenant by name."""

    reader: ClusterReader
    cluster: ReadOnceCluster
    ledger: Accounts
    quotas: Mapping[str, Version]

    @property
    def policy(self) -> TierPolicy:
        return self.reader.policy

    @property
    def judge(self) -> Judge:
        """Return a judge that judges as the webhook in Enforce would judge a create now. Nothing is booked."""
        return judge_of(self.cluster, self.ledger, self.policy)


@asynccontextmanager
async def asked_cluster(client: Client, policy: TierPolicy, namespace: str) -> AsyncIterator[AskedCluster]:
    """Yield the facts for verdicts in a namespace. Raises ApiError, and BadInput if there is no such namespace."""
    stored = KubernetesStore(client, Versions())
    ledger = Accounts(stored)
    try:
        async with cluster_reader(client, policy) as reader:
            quotas = await reader.part("tenants", _quotas(stored), [])
            home = await reader.home(namespace, {NAME_LABEL: namespace})
            classes = await reader.part("classes", priority_classes(client), classes_in(policy.tiers))
            tenants = by_age(each.tenant for each in quotas if each.tenant)

            async def other_namespace(name: str) -> Namespace:
                if found := await stored_namespace(client, name):
                    return found
                raise Unreadable(f"namespace {name} does not exist")

            known = ReadOnce(classes, tuple(tenants), {namespace: home}, other_namespace)
            known.scope = await reader.eviction()
            facts = ReadOnceCluster(known, _Readable(*structs.astuple(reader.lookups), reader=reader))
            yield AskedCluster(reader, facts, ledger, {each.name: each for each in quotas})
    finally:
        await ledger.close()


async def _quotas(stored: KubernetesStore) -> list[Version]:
    try:
        return await stored.every()
    except NotFound:
        return []


class _Readable(CommandLookups, frozen=True, kw_only=True):
    """Looks up owners and claims. Those that the user may not read are left out, and noted in `reader`."""

    reader: ClusterReader

    async def owners(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        try:
            return await super().owners(namespace, first, kinds)
        except Unreadable as problem:
            return self._lacks("owners", "get what makes it", problem)

    async def devices(self, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
        try:
            return await super().devices(namespace, claim)
        except Unreadable as problem:
            return self._lacks("claims", "get its resource claims", problem)

    def _lacks(self, part: Part, right: str, problem: Unreadable) -> tuple[()]:
        cause = problem.__cause__
        if not isinstance(cause, Forbidden):
            raise problem
        self.reader.lacks(part, f"{right} ({cause.said})" if cause.said else right, cause)
        return ()


PREEMPTED = "Preempted"
"""The reason of the scheduler's own event on a pod that it evicts."""


async def pods_of_workload(asked: AskedCluster, namespace: str, uid: str) -> list[Tree] | None:
    """Return the pods that a workload makes, itself or by other workloads; None if the user may not list pods."""
    pods = await asked.reader.objects("pods", namespace, path("v1", "pods", namespace), "which pods it has")
    makers = ((pod, view(pod, Named).metadata.controller) for pod in pods or ())
    return None if pods is None else await _made_by(uid, makers, namespace, asked)


async def last_refusal(
    asked: AskedCluster, namespace: str, uid: str, pods: Iterable[Tree], *, lacks_pods: bool = False
) -> RefusedPods | None:
    """Return the last refusal of a workload's pods; None if there is none, or if one of `pods` was created after it.

    If the workload `lacks_pods`, newer pods don't matter, because the refused ones are still missing.
    """
    found: list[tuple[Tree, OwnerReference | None]] = []
    for reason in REASONS:
        for event in await _events(asked, namespace, f"reason={reason}") or ():
            about = event.get("involvedObject") or {}
            regards = view({**about, "controller": True}, OwnerReference) if about.get("apiVersion") else None
            found.append((event, regards))
    times = [(each, each["metadata"]["creationTimestamp"]) for each in pods]
    created: dict[str, datetime] = {}
    for each, time in times:
        controller = view(each, Named).metadata.controller
        for maker in {uid, controller.uid if controller else uid}:
            created[maker] = max(datetime.fromisoformat(time), created.get(maker, datetime.min.replace(tzinfo=UTC)))
    refused = refused_pods(await _made_by(uid, found, namespace, asked), created)
    newest = "" if lacks_pods else max((time for _, time in times), default="")
    return refused if refused and refused.last.strftime(RFC_3339) >= newest else None


async def events_about(asked: AskedCluster, namespace: str, uid: str) -> list[Tree] | None:
    """Return all Events about one object; None if the user may not list Events."""
    return await _events(asked, namespace, f"involvedObject.uid={uid}")


async def _events(asked: AskedCluster, namespace: str, selector: str) -> list[Tree] | None:
    lost = "what Events report of refusals, evictions and the scheduler"
    where = path("v1", "events", namespace)
    return await asked.reader.objects("events", namespace, where, lost, {"fieldSelector": selector})


async def eviction_of_pod(asked: AskedCluster, namespace: str, name: str) -> Eviction | None:
    """Return the last eviction of a pod of this name, as gpu-tiers or else the scheduler reports it; None for none."""
    ours = await _events(asked, namespace, f"reason={EVENT}") or ()
    about_it = f"reason={PREEMPTED},involvedObject.kind=Pod,involvedObject.name={name}"
    if found := _last_eviction(each for each in ours if at(each, "related.name") == name):
        return found
    theirs = _last_eviction(await _events(asked, namespace, about_it) or ())
    return replace(theirs, sentence=f"the scheduler evicted it: {theirs.sentence}") if theirs else None


def _last_eviction(events: Iterable[Tree]) -> Eviction | None:
    found = messages_of(events)
    return Eviction(*max(found, key=itemgetter(0)), number=len(found)) if found else None


def messages_of(events: Iterable[Tree]) -> list[tuple[datetime, str]]:
    """Return the messages of Events, each with when it was last reported."""
    times = ((reported_at(each), str(each.get("message") or "")) for each in events)
    return [(when, text) for when, text in times if when]


async def eviction_of(asked: AskedCluster, namespace: str, of: Metadata) -> Eviction | None:
    """Return the last eviction that gpu-tiers reported of an object, or of pods of one of its owners; None for none."""
    return _last_eviction(await _evictions(asked, namespace, of))


async def evicted_pods_of(asked: AskedCluster, namespace: str, job: Metadata) -> frozenset[str]:
    """Return the names of a Job's evicted pods, as far as Events report them.

    Events about an owner, such as a JobSet, report pods of its other Jobs too, so the names must begin with the Job's.
    """
    names = (str(at(each, "related.name")) for each in await _evictions(asked, namespace, job))
    return frozenset(each for each in names if each.startswith(f"{job.name}-"))


async def _evictions(asked: AskedCluster, namespace: str, of: Metadata) -> list[Tree]:
    """Return the Events of gpu-tiers about evictions that involve the object itself or one of its owners."""
    controller, uids = of.controller, {of.uid}
    if controller is not None:
        owners = await asked.cluster.lookups.owners(namespace, controller, asked.policy.kinds)
        uids |= {controller.uid, *(each.uid for each in owners)}
    ours = await _events(asked, namespace, f"reason={EVENT}") or ()
    return [each for each in ours if at(each, "involvedObject.uid") in uids]


async def _made_by(
    uid: str, found: Iterable[tuple[Tree, OwnerReference | None]], namespace: str, asked: AskedCluster
) -> list[Tree]:
    """Return the objects of `found` whose reference is to the workload, or to an object that it owns at any depth."""
    made, known = list[Tree](), dict[str, bool]({uid: True})
    for each, reference in found:
        if reference and reference.uid not in known:
            known[reference.uid] = False
            with suppress(Unreadable):  # it is gone, or the user may not read it
                owners = await asked.reader.lookups.owners(namespace, reference, asked.policy.kinds)
                known[reference.uid] = any(owner.uid == uid for owner in owners)
        if reference and known[reference.uid]:
            made.append(each)
    return made


def asks_for_none(document: Document, kinds: KindTable) -> str:
    """Return why a workload's controller makes no pods (ended, suspended, paused, managed elsewhere, no replicas).

    If it makes none, an earlier refusal of pods does not matter. "" if it makes pods, also for a suspended CronJob with
    active Jobs.
    """
    tree, row = document.tree, kinds.by_kind.get(document.group_kind)
    if has_ended(tree):
        found = [each for each in listed(at(tree, "status.conditions")) if isinstance(each, dict)]
        failed = next((each for each in found if each.get("type") == "Failed" and each.get("status") == "True"), None)
        end = f"failed ({failed.get('reason')}: {failed.get('message')})" if failed else "ended"
        return f"It has {end}, and makes no pods any more."
    if is_suspended(tree) and not listed(at(tree, "status.active")):
        by = "by a queue such as Kueue or by hand"
        return f"It is suspended (spec.suspend), so it has no pods until it is resumed, {by}."
    # A Deployment paused later has a ReplicaSet, which makes its pods.
    begun = "deployment.kubernetes.io/revision" in document.metadata.get("annotations", {})
    if document.kind == "Deployment" and at(tree, "spec.paused") is True and not begun:
        return f"It is paused (spec.paused): it makes no pods until kubectl rollout resume deployment/{document.name}."
    if row and row.managed_by and (manager := manager_elsewhere(tree, row)):
        return f"{manager} manages it ({row.managed_by.field}), so no controller of this cluster makes its pods."
    return "It asks for no pod: its count is 0." if pods_asked(document, kinds) == 0 else ""


def pods_asked(document: Document, kinds: KindTable) -> int | None:
    """Return how many pods a workload asks for; None if its kind is unknown or its templates can't be read."""
    row, on_nodes = kinds.by_kind.get(document.group_kind), at(document.tree, "status.desiredNumberScheduled")
    if isinstance(on_nodes, int):
        return on_nodes  # of a DaemonSet, which declares no number
    try:
        counts = [each.count for each in pod_templates(document.tree, row)] if row else []
    except Refused:
        return None
    return sum(counts) if counts else None


def pods_due(document: Document, kinds: KindTable) -> int:
    """Return how many pods a workload asks for; 0 if unknown."""
    return pods_asked(document, kinds) or 0


def has_all_pods(document: Document, exist: int, due: int) -> bool:
    """Tell whether a workload has all the pods that are `due`, so that its next pod replaces an existing one."""
    status = document.tree.get("status") or {}
    if document.group == "apps" and document.kind in ("Deployment", "StatefulSet") and "replicas" in status:
        exist = min(exist, status.get("updatedReplicas", 0))  # the others are of an old template
    if isinstance(completions := at(document.tree, "spec.completions"), int):
        due = min(due, completions - status.get("succeeded", 0))
    return 0 < due <= exist and at(document.tree, "spec.schedule") is None  # a CronJob's next Job is another one
