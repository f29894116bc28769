"""Finds out why the scheduler has no node for a pod: its volumes, its group, the GPUs of nodes, or devices of DRA."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal

import msgspec
from msgspec.structs import replace

from webhook.cli.cluster.one_object import AskedCluster, events_about
from webhook.cli.manifests.documents import Document
from webhook.cluster.listed import (
    GpuNode,
    PodSummary,
    all_nodes,
    dra_objects,
    listed_namespaces,
    no_claims,
    pods_with_json,
)
from webhook.cluster.scheduling_view import listed_state
from webhook.cluster.webhook_configurations import exempt_namespaces, webhook_configurations
from webhook.kube.client import RFC_3339, path
from webhook.kube.discovery import server_version
from webhook.kube.errors import Forbidden, NotFound
from webhook.objects.node_fit import obstacle
from webhook.objects.pods import Pod
from webhook.objects.quantities import written
from webhook.objects.refusal import Phrase, Refused, Unreadable
from webhook.objects.view import Tree, all_at, at, view
from webhook.policy.checkpoint.work_lost import work_since
from webhook.policy.devices import DeviceClaim, DeviceTaintRule, ResourceSlice, WantedDevices, inventory
from webhook.policy.preemption.cluster_state import ClusterState, Rules
from webhook.policy.preemption.decide_preemption import decide_preemption
from webhook.policy.preemption.failures import MOST_FAILURES, NO_FAILURES, failures, next_try, paused_until
from webhook.policy.preemption.pod_state import PodState, SchedulablePod, pod_state
from webhook.policy.preemption.preemptor import EvictionPlan
from webhook.policy.preemption.reservation import Reservation, reservations
from webhook.policy.quota.demand import asked_of
from webhook.policy.values.gpu_supply import evicts_for_devices
from webhook.policy.values.tiers import NONPREEMPTING
from webhook.policy.workloads.pod_groups import kueue_group, named_groups
from webhook.report.device_room import EVICTS_NOBODY, DeviceUse, room_by_devices
from webhook.report.pending import GpuHolder, NodeForPod, Room, Waiting, merged, room_by_own_pods, room_for
from webhook.report.posture import NodeReservation, reservations_shown
from webhook.report.waiting import WhyPending, lacks_a_volume, lacks_of, scheduler_says
from webhook.sentences.sentence import problem_text, sentence


async def unscheduled(
    asked: AskedCluster, document: Document, pod: Pod, found: WhyPending, now: datetime
) -> WhyPending:
    nominated = str((document.tree.get("status") or {}).get("nominatedNodeName") or "")
    events = await events_about(asked, document.namespace, document.uid)
    words = scheduler_says(document.tree, events or ())
    volumes = await volumes_awaited(asked, document, words)
    group = await waits_for_group(asked, pod, document.namespace)
    first = bool(volumes) or len(group) > 1  # the scheduler looks for no GPUs before that
    there = None if first else await room(asked, pod, document.tree, nominated, now)
    silent = not words and not nominated and events is not None
    unseen = [f"Its scheduler, {pod.spec.scheduler_name or 'default-scheduler'}, has not reported on it yet."] * silent
    lacks = () if nominated or first or (there and there.sentences) else _insufficient(asked, pod, words)
    sentences = [*volumes, *unseen, *lacks, *group, *(there.sentences if there else ())]
    return replace(found, sentences=tuple(sentences) or (() if words else found.sentences), room=there, scheduler=words)


def _insufficient(asked: AskedCluster, pod: Pod, scheduler: str) -> tuple[str, ...]:
    """Return what a pod waits for, only by the scheduler's words, for a person who may not read nodes and pods."""
    asks = _waiting(asked, pod, "").asks
    lacks = [f"{written(gpus)} free {name}" for name, gpus in asks.items() if lacks_of(scheduler, name)]
    text = f"It waits for {' and '.join(lacks)} on one node; it starts by itself when there is room."
    return (text,) if lacks else ()


async def volumes_awaited(asked: AskedCluster, document: Document, scheduler: str) -> list[str]:
    """Return sentences on the pod's missing, lost or unbound volumes, without which it can't be scheduled."""
    problems = list[str]()
    for _, name in all_at(document.tree, "spec.volumes.*.persistentVolumeClaim.claimName"):
        where = path("v1", "persistentvolumeclaims", document.namespace, str(name))
        try:
            phase = at(await asked.reader.client.get(where), "status.phase")
        except NotFound:
            problems.append(f"It waits for its volume: PersistentVolumeClaim {name} does not exist. Create it.")
        except Forbidden:
            continue
        else:
            if phase == "Lost" or (phase == "Pending" and lacks_a_volume(scheduler)):
                problems.append(f"It waits for its volume: PersistentVolumeClaim {name} is {phase}.")
    return problems


async def waits_for_group(asked: AskedCluster, pod: Pod, namespace: str) -> list[str]:
    """Return a sentence on the pod's group, and a second one if it lacks pods; none without a group of several pods."""
    try:
        return [each async for each in _groups(asked, pod, namespace)]
    except (Refused, Unreadable) as problem:
        return [f"Its group can't be read: {problem_text(problem)}."]


async def _groups(asked: AskedCluster, pod: Pod, namespace: str) -> AsyncIterator[str]:
    metadata, scheduled, groups = pod.metadata, pod.spec.scheduling_group, asked.cluster.lookups
    if scheduled:
        name, needed = scheduled.pod_group_name, (await groups.pod_group(namespace, scheduled.pod_group_name)).pods
    elif named := next(named_groups(metadata), None):
        name, needed = named[1], (await groups.schedulers_group(namespace, *named)).pods
    elif group := kueue_group(metadata):
        name, needed = group.name, group.count
    else:
        return
    if needed > 1:
        yield f"It is of PodGroup {name}, whose pods start only when {needed} of them have room at once."
    lost = "whether its group is whole"
    pods = await asked.reader.objects("pods", namespace, path("v1", "pods", namespace), lost)
    there = sum(_group_name(view(each, Pod)) == name for each in pods or ())
    if needed > there > 0:
        yield f"{there} of these {needed} pods exist: the scheduler waits for the others."


def _group_name(pod: Pod) -> str:
    scheduled, group = pod.spec.scheduling_group, kueue_group(pod.metadata)
    named = next(named_groups(pod.metadata), None)
    return scheduled.pod_group_name if scheduled else named[1] if named else group.name if group else ""


async def room(asked: AskedCluster, pod: Pod, tree: Tree, nominated: str, now: datetime) -> Room | None:
    """Return the room for a pod, as far as the user may read it; None if it asks for no GPU, or nothing is known.

    A resource that a DeviceClass serves comes by DRA on each node whose device plugin doesn't have it. Only the
    scheduler knows how much of a shared GPU is free.
    """
    # 1. Read the nodes, and find which of the pod's resources their device plugins have.
    waiting, weights = _waiting(asked, pod, nominated), asked.policy.weights
    by_class = [name for name in waiting.asks if weights.has_class(name)]
    if not waiting.asks and not pod.spec.resource_claims:
        return None
    lost = "where it could run, and who holds the GPUs there"
    nodes = await asked.reader.part("nodes", all_nodes(asked.reader.client, asked.policy), None, lost)
    plugged = {name for each in nodes or () for name in each.offers}
    by_plugin = {name: gpus for name, gpus in waiting.asks.items() if name not in by_class or name in plugged}

    # 2. Read the pods, and their tenants, only if the nodes alone are not enough.
    asks_plugins = replace(waiting, asks=by_plugin)
    with_gpus = None if nodes is None else [_node_for(pod, each) for each in nodes if each.gpus]
    by_nodes_alone = room_for(asks_plugins, with_gpus, None) if by_plugin else None
    by_dra = bool(by_class or pod.spec.resource_claims)
    asks_pods = by_nodes_alone is not None and with_gpus is not None and not by_nodes_alone.sentences
    lost, pods, holders = "which GPUs are free, and who holds the others", None, None
    if asks_pods or by_dra:
        pods = await asked.reader.part("pods", _pods_on_nodes(asked), None)
    if pods is not None:
        tenant_of = await _tenants(asked)
        holders = [_holder(each, asked, tenant_of, now) for each in pods]

    # 3. The scheduler evicts for GPUs of a device plugin.
    rooms: list[Room] = []
    if by_nodes_alone is not None and not asks_pods:
        rooms.append(by_nodes_alone)
    elif by_nodes_alone is not None and holders is not None:
        rooms.append(room_for(asks_plugins, with_gpus, holders))
    elif by_nodes_alone is not None:
        mine = await asked.reader.part("pods", _pods_on_nodes(asked, pod.metadata.namespace), [])
        own = [_holder(each, asked, lambda _: None, now) for each in mine]
        rooms.append(room_by_own_pods(by_nodes_alone.asks, asks_plugins, with_gpus or (), own))

    if by_dra or any(each.free is None for each in rooms):
        asked.reader.without(lost, "pods")

    # 4. The scheduler evicts nobody for GPUs by DRA. Claims get them on every node, resources where no plugin has them.
    if by_dra:
        by_uid = {each.uid: holder for each, holder in zip(pods or (), holders or (), strict=True)}

        def nodes_of(name: str) -> list[NodeForPod]:
            return [_node_for(pod, each) for each in nodes or () if name not in each.offers]

        asks = {name: waiting.asks[name] for name in by_class}
        rooms += await rooms_by_devices(asked, pod, tree, waiting, asks, nodes_of, by_uid)
    return merged(rooms) if rooms else None


def _node_for(pod: Pod, node: GpuNode) -> NodeForPod:
    return NodeForPod(node.name, node.offers, obstacle(pod.spec, node.name, node.labels, node.taints))


def _waiting(asked: AskedCluster, pod: Pod, nominated: str) -> Waiting:
    spec, tier = pod.spec, asked.policy.tiers.of_class(pod.spec.priority_class_name)
    calm = "adoption" if spec.priority_class_name.endswith(NONPREEMPTING) else "never"
    return Waiting(
        {
            name: gpus
            for name, gpus in asked_of(pod, asked.policy).items()
            if gpus and asked.policy.weights.is_whole(name)
        },
        spec.priority or 0,
        tier.name if tier else "",
        evicts="lower" if spec.preemption_policy != "Never" else "adoption" if calm == "adoption" else "never",
        nominated=nominated,
    )


async def _pods_on_nodes(asked: AskedCluster, namespace: str | None = None) -> list[PodSummary]:
    found: list[PodSummary] = []
    async for _, pod in pods_with_json(asked.reader.client, asked.policy, no_claims, namespace):
        asked.reader.steps.done()
        if pod.node:
            found.append(pod)
    return found


def _holder(pod: PodSummary, asked: AskedCluster, tenant_of: Callable[[str], str | None], now: datetime) -> GpuHolder:
    tier = asked.policy.tiers.of_class(pod.class_name)
    return GpuHolder(
        f"{pod.namespace}/{pod.name}",
        pod.node,
        pod.asks,
        pod.priority,
        tier.name if tier else pod.class_name,
        tenant_of(pod.namespace),
        # the API server writes as a pod's deletionTimestamp when its grace period ends
        max((datetime.fromisoformat(pod.ends) - now).total_seconds(), 0.0) if pod.ends else None,
        work_since(pod.gpus, now.timestamp(), None, pod.work_to_lose),
        pod.created,
    )


async def _tenants(asked: AskedCluster) -> Callable[[str], str | None]:
    """Return a function that returns a namespace's tenant, "" for none; None if namespaces or tenants can't be read."""
    reader = asked.reader
    found = await reader.part("namespaces", listed_namespaces(reader.client), (), "the tenants of the holders")
    known = {each.name: each for each in found}

    def tenant_of(namespace: str) -> str | None:
        home = known.get(namespace)
        if home is None or "tenants" in reader.unread:
            return None
        tenant = asked.cluster.known.tenant(home)
        return tenant.name if tenant else ""

    return tenant_of


NodesOf = Callable[[str], list[NodeForPod]]
"""Returns the nodes on which DRA serves a resource; for "" those on which it serves claims."""


async def rooms_by_devices(
    asked: AskedCluster,
    pod: Pod,
    tree: Tree,
    waiting: Waiting,
    by_class: Mapping[str, Decimal],
    nodes_of: NodesOf,
    pods: Mapping[str, GpuHolder],
) -> list[Room]:
    """Return the room for each DRA request of a pod; `by_class` are its resources that DeviceClasses serve.

    `pods` are those on nodes, by uid. Return nothing for a version whose scheduler may evict for devices.
    """
    reader, classes = asked.reader, asked.policy.classes
    if evicts_for_devices(await reader.part("version", server_version(reader.client), (0, 0))):
        return []
    lost = "which devices are free, and who holds the others"
    slices = await reader.part("slices", dra_objects(reader.client, ResourceSlice), None, lost)
    claims = await reader.part("allocations", dra_objects(reader.client, DeviceClaim), None, lost)
    if slices is None or claims is None:
        names = [*by_class, *(each.source for each in pod.spec.resource_claims)]
        return [Room(" and ".join(names), (EVICTS_NOBODY,), None)]
    tainted = dra_objects(reader.client, DeviceTaintRule)
    rules = await reader.part("device_taints", tainted, (), "which devices are tainted")
    evictions = await device_evictions(asked, tree, datetime.now(UTC))
    use = DeviceUse(inventory(slices, rules, claims, classes), pods, evictions.sentences)
    if asked.policy.device_preemption == "On":
        use = replace(use, lower="lower priority: the first lines say whether it is evicted", exempt=evictions.exempt)
    weights = asked.policy.weights
    rooms = [
        replace(
            room_by_devices(waiting, WantedDevices(device_class, int(count)), nodes_of(name), use),
            asks=f"{written(count)} {name}",
        )
        for name, count in by_class.items()
        if (device_class := weights.class_of(name))
    ]
    for found in _own_claims(pod, tree, claims):
        rooms += [found] if isinstance(found, Room) else _rooms_of(found, waiting, nodes_of(""), use)
    return rooms


def _own_claims(pod: Pod, tree: Tree, claims: tuple[DeviceClaim, ...]) -> Iterator[DeviceClaim | Room]:
    """Yield each ResourceClaim of a pod; if it does not exist yet, a Room that says so."""
    by_key, namespace = {each.key: each for each in claims}, pod.metadata.namespace
    statuses = (each for _, each in all_at(tree, "status.resourceClaimStatuses.*"))
    made = {at(each, "name"): at(each, "resourceClaimName") for each in statuses}
    for entry in pod.spec.resource_claims:
        name = entry.resource_claim_name or made.get(entry.name)
        found = by_key.get(f"{namespace}/{name}")
        if found is None:
            source = entry.source
            lacks = (
                f"{source} does not exist" if entry.resource_claim_name else f"no ResourceClaim was made from {source}"
            )
            yield Room(source, (f"It waits for its claim {entry.name}: {lacks} yet.",), None)
        else:
            yield found


def _rooms_of(claim: DeviceClaim, waiting: Waiting, nodes: list[NodeForPod], use: DeviceUse) -> Iterator[Room]:
    node_names = [use.there.devices[key].node for key, _ in claim.allocated_devices() if key in use.there.devices]
    if node_names:
        asks = f"ResourceClaim {claim.key}"
        yield Room(asks, (f"{asks} holds its devices on {node_names[0]} already, so it can start only there.",), None)
    elif not claim.is_allocated:
        yield from (room_by_devices(waiting, wanted, nodes, use) for _, wanted in claim.wanted())


class DeviceEvictions(msgspec.Struct, frozen=True):
    """The sentences on who is evicted for a pod and which nodes are reserved, and the namespaces that are exempt."""

    sentences: tuple[str, ...] = ()
    exempt: frozenset[str] = frozenset()


async def device_evictions(asked: AskedCluster, tree: Tree, now: datetime) -> DeviceEvictions:
    policy, reader = asked.policy, asked.reader
    if policy.device_preemption != "On":
        return DeviceEvictions((EVICTS_NOBODY,))
    reading = listed_state(reader.client, policy, now.timestamp())
    state = await reader.part("evictions", reading, None, "who may be evicted for it")
    if state is None:
        return DeviceEvictions()
    lost = "which namespaces are exempt from eviction"
    exempt = exempt_namespaces(await reader.part("configurations", webhook_configurations(reader.client), (), lost))
    pod, there = pod_state(view(tree, SchedulablePod), policy), reservations(state)
    known = asked.cluster.known
    tenant = known.tenant(await known.namespace(pod.namespace))
    elsewhere = frozenset({pod.namespace} if tenant is not None and tenant.charged_elsewhere else ())
    own = _own(pod, state, Rules(policy, exempt, elsewhere), there)
    others = reservations_shown(each for each in there if pod.uid not in each.pods)
    return DeviceEvictions((own, *(f"{_capital(each.said)}." for each in others)), exempt)


def _own(pod: PodState, state: ClusterState, rules: Rules, there: Iterable[Reservation]) -> str:
    if (own := next((each for each in there if pod.uid in each.pods), None)) is not None:
        return f"{_capital(NodeReservation.of(own, pod.shown).said_to_its_pod)}."
    known = failures(state)
    if state.now < (again := max(next_try(pod.gang, known), paused_until(pod.namespace, known))):
        if (times := known.get(pod.gang, NO_FAILURES).count) >= MOST_FAILURES:
            why = Phrase("preemption-failed-before", times=times)
        else:
            why = Phrase("preemption-paused", until=datetime.fromtimestamp(again, UTC).strftime(RFC_3339))
        return f"{_capital(sentence(why))}."
    answer = decide_preemption(pod.gang, state, rules)
    if isinstance(answer, EvictionPlan) and answer.victims:
        victims = tuple(each.shown for each in answer.victims)
        answer = Phrase("nodes-to-reserve", nodes=answer.nodes, pods=victims)
    elif isinstance(answer, EvictionPlan):
        answer = Phrase("preemption-holders-ending", node=answer.nodes[0], pod=pod.shown)
    return f"gpu-tiers: {sentence(answer)}."


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"
