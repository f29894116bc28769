"""The reason why a pod finds no GPU: the nodes that would accept it, and the pods that use their GPUs.

kube-scheduler decides. This module shows its choices, by GPUs, labels, affinity, taints and priority. Source:
https://kubernetes.io/docs/concepts/scheduling-eviction/pod-priority-preemption/
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

import msgspec

from webhook.objects.quantities import written
from webhook.objects.refusal import first_of
from webhook.policy.checkpoint.work_lost import Work, summed
from webhook.report.shown import Gpus, Shown, as_number

Asked = Mapping[str, Decimal]
"""GPUs by the name of their resource."""

MOST_NAMED = 3


class Waiting(msgspec.Struct, frozen=True):
    """A pod that waits for GPUs. `evicts`: pods of a lower priority, nobody, or nobody until adoption ends.

    `nominated` is the node on which the scheduler makes room for it, "" for none.
    """

    asks: Asked
    priority: int
    tier: str = ""
    evicts: Literal["lower", "never", "adoption"] = "lower"
    nominated: str = ""


class NodeForPod(msgspec.Struct, frozen=True):
    """A node with GPUs. `obstacle` says why it would not accept the pod even with free GPUs; "" if it would."""

    name: str
    gpus: Asked
    obstacle: str = ""


class GpuHolder(msgspec.Struct, frozen=True):
    """A pod on a node, with its GPUs. `tenant` is "" for none, and None if unknown.

    `ends_in` are the seconds left of its grace period if it is terminating. `work` is the work that it would lose now,
    None without any. `created` is in RFC 3339; among pods of one priority the younger is evicted first.
    """

    name: str
    node: str
    gpus: Asked
    priority: int
    tier: str = ""
    tenant: str | None = ""
    ends_in: float | None = None
    work: Work | None = None
    created: str = ""


class Holders(Shown, frozen=True):
    """Pods that use GPUs on nodes that would accept the waiting pod, and why it may or may not evict them."""

    tier: str
    tenant: str
    gpus: Gpus
    pods: tuple[str, ...]
    why: str

    @property
    def names(self) -> str:
        return first_of(self.pods, MOST_NAMED)


class Room(Shown, frozen=True):
    """The room for a pod that waits for GPUs.

    `free` are the unused GPUs of each node that would accept it; None if these nodes or the pods on them are unknown.
    """

    asks: str
    sentences: tuple[str, ...]
    free: dict[str, Gpus] | None = msgspec.field(default_factory=dict)
    holders: tuple[Holders, ...] = ()


def merged(rooms: Sequence[Room]) -> Room:
    """Return the rooms for the parts of a pod's request as one."""
    free: dict[str, Gpus] = {}
    for each in rooms:
        for node, gpus in (each.free or {}).items():
            free[node] = free.get(node, 0) + gpus
    return Room(
        " and ".join(dict.fromkeys(each.asks for each in rooms)),
        tuple(dict.fromkeys(sentence for each in rooms for sentence in each.sentences)),
        None if all(each.free is None for each in rooms) else free,
        tuple(holders for each in rooms for holders in each.holders),
    )


def total_of(name: str, those: Iterable[NodeForPod | GpuHolder]) -> Decimal:
    """Return the GPUs of that name of nodes or of pods."""
    return sum((each.gpus.get(name, Decimal(0)) for each in those), Decimal(0))


@dataclass(slots=True)
class NodeRoom:
    """A node with the pods on it, for a waiting pod."""

    node: NodeForPod
    waiting: Waiting
    holders: list[GpuHolder] = field(default_factory=list)

    @property
    def ending(self) -> list[GpuHolder]:
        return [each for each in self.holders if each.ends_in is not None]

    @property
    def lower(self) -> list[GpuHolder]:
        """Return the pods of a lower priority."""
        return [each for each in self.holders if each.priority < self.waiting.priority]

    def left(self, name: str, *, without: Iterable[GpuHolder] = ()) -> Decimal:
        """Return the GPUs of that name that are unused, or would be `without` these pods."""
        gone = {id(each) for each in without}
        in_use = total_of(name, (each for each in self.holders if id(each) not in gone))
        return max(self.node.gpus.get(name, Decimal(0)) - in_use, Decimal(0))

    def has_room(self, *, without: Sequence[GpuHolder] = ()) -> bool:
        return all(self.left(name, without=without) >= gpus for name, gpus in self.waiting.asks.items())


def room_for(waiting: Waiting, nodes: Sequence[NodeForPod] | None, holders: Iterable[GpuHolder] | None) -> Room:
    """Return the room for a pod on nodes, by all pods on them. `nodes` and `holders` are None if they were not read.

    Without `holders`, say only what the nodes show, such as that no node is large enough.
    """
    asks = " and ".join(f"{written(gpus)} {name}" for name, gpus in waiting.asks.items())
    if nodes is None:
        return Room(asks, (), None)
    with_gpus = [each for each in nodes if all(each.gpus.get(name, 0) > 0 for name in waiting.asks)]
    if not with_gpus:
        return Room(asks, (f"No node has {' and '.join(waiting.asks)}.",))
    fitting = [each for each in with_gpus if not each.obstacle]
    if not fitting:
        reasons = Counter(each.obstacle for each in with_gpus)
        obstacles = "; ".join(
            f"{count} of {len(with_gpus)} {'is' if count == 1 else 'are'} {reason}"
            for reason, count in reasons.most_common(MOST_NAMED)
        )
        return Room(asks, (f"No node with {' and '.join(waiting.asks)} accepts it, whatever is free: {obstacles}.",))
    large = _large_nodes(waiting, fitting, holders or ())
    if not large:
        (name, gpus), *_ = waiting.asks.items()
        most = max(total_of(name, [each]) for each in fitting)
        too_large = (
            f"It can never run: it asks for {written(gpus)} {name}, and the largest node that accepts it has "
            f"{written(most)}. Ask for fewer in each pod."
        )
        return Room(asks, (too_large,))
    if holders is None:
        return Room(asks, (), None)
    free = {name: as_number(sum((each.left(gpu) for gpu in waiting.asks), Decimal(0))) for name, each in large.items()}
    holding = (
        (each, _why(each, node), id(each), sum((total_of(name, [each]) for name in waiting.asks), Decimal(0)))
        for node in large.values()
        for each in node.holders
    )
    return Room(asks, tuple(_sentences(waiting, large)), free, grouped(each for each in holding if each[3]))


def room_by_own_pods(asks: str, waiting: Waiting, nodes: Sequence[NodeForPod], own: Iterable[GpuHolder]) -> Room:
    """Return what nodes and the pods of its own namespace show, for a user who may not read other namespaces' pods.

    Some nodes have to be large enough and accept the pod. `free` is known only if its namespace's pods use all GPUs.
    """
    large = _large_nodes(waiting, (each for each in nodes if not each.obstacle), own)
    (name, gpus), *_ = waiting.asks.items()
    there = f"{len(large)} nodes accept it" if len(large) > 1 else f"only {next(iter(large))} accepts it"
    sentences = [f"It waits for {written(gpus)} free {name} on one node: {there}."]
    holding = [each for node in large.values() for each in node.holders if each.gpus.get(name)]
    free: dict[str, Gpus] | None = None
    if holding:
        used, most = total_of(name, holding), total_of(name, (each.node for each in large.values()))
        names = first_of([each.name for each in holding], MOST_NAMED)
        free = dict[str, Gpus].fromkeys(large, 0) if used >= most else None
        sentences.append(f"Pods of its namespace use {written(used)} of the {written(most)} GPUs there: {names}.")
    if waiting.evicts != "lower":
        sentences += _evictions(waiting, large)
    return Room(asks, tuple(sentences), free)


def to_evict(waiting: Waiting, nodes: Sequence[NodeForPod], holders: Iterable[GpuHolder]) -> GpuHolder | None:
    """Return the pod of the lowest priority that the waiting one could evict to have room; None for none.

    None too if a node has room already, or after terminating pods end: then the pod waits for something else.
    """
    large = _large_nodes(waiting, (each for each in nodes if not each.obstacle), holders)
    if waiting.evicts != "lower" or any(each.has_room(without=each.ending) for each in large.values()):
        return None
    lower = (each for node in large.values() if node.has_room(without=node.lower) for each in node.lower)
    return min(lower, key=lambda each: each.priority, default=None)


def _large_nodes(waiting: Waiting, nodes: Iterable[NodeForPod], holders: Iterable[GpuHolder]) -> dict[str, NodeRoom]:
    """Return the nodes that would have enough GPUs for the pod if they were empty, with the pods on them."""
    every = {each.name: NodeRoom(each, waiting) for each in nodes}
    large = {name: each for name, each in every.items() if each.has_room()}
    for holder in holders:
        if holder.node in large:
            large[holder.node].holders.append(holder)
    return large


def _sentences(waiting: Waiting, nodes: Mapping[str, NodeRoom]) -> Iterator[str]:
    (name, gpus), *_ = waiting.asks.items()
    free = {node: each.left(name) for node, each in nodes.items() if each.left(name)}
    roomy = [node for node, each in nodes.items() if each.has_room()]
    total = sum(free.values(), Decimal(0))
    if waiting.nominated:
        nominated = nodes.get(waiting.nominated)
        ending = nominated.ending if nominated else []
        longest = round(max((each.ends_in or 0.0 for each in ending), default=0.0))
        yield (
            f"The scheduler is evicting {len(ending)} {'pods' if len(ending) > 1 else 'pod'} on {waiting.nominated} "
            f"for it, which may save first: it should start within {longest} s."
            if ending
            else f"The scheduler has made room for it on {waiting.nominated}: it should start there soon."
        )
        return
    if roomy:
        yield f"It does not wait for GPUs: {roomy[0]} has {written(free[roomy[0]])} {name} free."
        return
    if total >= gpus:
        places = ", ".join(f"{node} has {written(left)}" for node, left in free.items())
        yield f"It waits for {written(gpus)} free {name} on one node. {written(total)} are free, apart: {places}."
    else:
        many = len(nodes) > 1
        there = (
            f"the {len(nodes)} nodes that accept it have" if many else f"only {next(iter(nodes))} accepts it, and has"
        )
        yield f"It waits for {written(gpus)} free {name} on one node: {there} {written(total)} free."
    yield from _evictions(waiting, nodes)


def _evictions(waiting: Waiting, nodes: Mapping[str, NodeRoom]) -> Iterator[str]:
    if waiting.evicts == "adoption":
        yield "No tier evicts anybody while adoption is on: it starts when pods there end."
    elif waiting.evicts == "never":
        tier = f"Its tier {waiting.tier}" if waiting.tier else "Its PriorityClass"
        never = f"{tier} evicts nobody (preemptionPolicy Never)"
        yield f"{never}: it starts when pods there end; another tier may evict them."
    elif not any(node.lower for node in nodes.values()):
        own = f"{waiting.tier}'s" if waiting.tier else f"its own, {waiting.priority}"
        yield f"No pod there has a lower priority than {own}: it starts when pods there end."
    elif not any(node.has_room(without=node.lower) for node in nodes.values()):
        yield (
            "Evicting the pods of lower tiers would free too few GPUs on each node: it starts when pods there end. "
            "Or ask for fewer GPUs in each pod."
        )
    else:
        # The scheduler chooses the node, and not by the lost work, so report the largest loss of any node.
        works = [[each.work for each in _victims(node) if each.work] for node in nodes.values()]
        work = max((summed(each) for each in works if each), key=lambda each: each.gpu_seconds, default=None)
        loses = f"; evicting them now loses {work}" if work else ""
        yield f"The scheduler may evict pods of lower tiers for it{loses}. {SOON}"


SOON = "If it does not within seconds, its own words say why."


def _victims(node: NodeRoom) -> list[GpuHolder]:
    """Return the pods that the scheduler would evict on a node; none if that makes no room.

    The most important of the lower pods stay, as many as leave room.
    """
    gone = node.lower
    if not node.has_room(without=gone):
        return []
    for each in sorted(gone, key=lambda holder: (-holder.priority, holder.created)):
        others = [other for other in gone if other is not each]
        if node.has_room(without=others):
            gone = others
    return gone


def grouped(entries: Iterable[tuple[GpuHolder, str, object, Decimal]]) -> tuple[Holders, ...]:
    """Return the pods by tier, tenant and reason, the highest priority first.

    An entry is a pod, the reason, and the GPUs of the pod itself or of a device, with a key by which it counts once.
    """
    groups: dict[tuple[int, str, str, str], tuple[set[str], dict[object, Decimal]]] = {}
    for pod, why, unit, gpus in entries:
        tenant = "not known" if pod.tenant is None else pod.tenant or "-"
        names, units = groups.setdefault((-pod.priority, pod.tier or "no tier", tenant, why), (set(), {}))
        names.add(pod.name)
        units[unit] = gpus
    return tuple(
        Holders(tier, tenant, as_number(sum(units.values(), Decimal(0))), tuple(sorted(names)), why)
        for (_, tier, tenant, why), (names, units) in sorted(groups.items(), key=lambda item: item[0])
    )


def _why(holder: GpuHolder, node: NodeRoom) -> str:
    waiting = node.waiting
    if holder.ends_in is not None:
        return "ending: its GPUs become free when it has saved"
    if holder.priority > waiting.priority:
        return "no: higher priority"
    if holder.priority == waiting.priority:
        return "no: the same priority"
    if waiting.evicts != "lower":
        return "no: lower priority, but the waiting pod evicts nobody"
    fits = node.has_room(without=node.lower)
    return "yes: lower priority" if fits else "no: lower priority, but too few GPUs on its node"
