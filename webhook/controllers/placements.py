"""Measures how long pods wait for their node, and how long an eviction takes to free one.

It also watches for stuck pods: lower tiers use their GPUs (inversion), or free GPUs are on too many nodes
(fragmentation). The scheduler evicts within seconds. If it does not, it reports the reason, or it is down, has no
preemption, or was configured not to preempt. An inversion is reported only if GPUs, labels, taints and priority leave
no doubt.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from heapq import nsmallest
from typing import Any

import msgspec

from webhook.cluster.listed import GpuNode, gpu_nodes
from webhook.cluster.pod_informer import seen_pod
from webhook.controllers.gpu_seconds import counted_once
from webhook.kube.client import Client, path
from webhook.kube.errors import ApiError, NotFound
from webhook.ledger.protocol import Holding
from webhook.objects.node_fit import obstacle
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused
from webhook.policy.assignment.request import gang_beyond
from webhook.policy.quota.demand import asked_of
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.pod_groups import kueue_group, named_groups
from webhook.report.gpus_now import OnNode, WaitingPod, scattered_gpus
from webhook.report.latest import Preemption
from webhook.report.pending import Asked, GpuHolder, NodeForPod, Waiting, to_evict
from webhook.report.waiting import waits_for_gpus_alone
from webhook.sentences.sentence import problem_text

log = logging.getLogger(__name__)

MOST_REMEMBERED = 1000
"""Pods that are remembered until both their eviction and their node are known."""


class Placements:
    """Measures waits by `note_bound`, for each pod that waited and has a node now, and `note_eviction`.

    `waited` gets the seconds of a wait and the pod's tier. `freed` gets the seconds from an eviction until the
    preemptor had its node, the preemptor's tier and the victim's hook. Only a leader that sees a pod wait counts it, so
    a pod that got its node while nobody led is not counted.
    """

    def __init__(self, waited: Callable[[float, str], None], freed: Callable[[float, str, str], None]) -> None:
        self._waited = waited
        self._freed = freed
        self._bound: OrderedDict[str, str] = OrderedDict()
        self._evicted: OrderedDict[str, list[Preemption]] = OrderedDict()

    def note_bound(self, uid: str, pod: WaitingPod, at: str) -> None:
        """Note that a pod got its node at a time in RFC 3339."""
        if (seconds := seconds_between(pod.since, at)) is not None:
            self._waited(seconds, pod.tier)
        for preemption in self._evicted.pop(uid, ()):
            self._measure(preemption, at)
        self._bound[uid] = at
        _forget_oldest(self._bound)

    def note_eviction(self, preemption: Preemption) -> None:
        """Note a preemption whose victim has ended. Its preemptor may have its node by now, or get it later."""
        if preemption.preemptor is None:
            return
        uid = preemption.preemptor.uid
        if uid in self._bound:
            self._measure(preemption, self._bound[uid])
        else:
            self._evicted.setdefault(uid, []).append(preemption)
            _forget_oldest(self._evicted)

    def _measure(self, preemption: Preemption, at: str) -> None:
        seconds, preemptor = seconds_between(preemption.time, at), preemption.preemptor
        if seconds is not None and preemptor is not None:
            self._freed(seconds, preemptor.tier, preemption.victim.hook)


def _forget_oldest(remembered: OrderedDict[str, Any]) -> None:
    if len(remembered) > MOST_REMEMBERED:
        remembered.popitem(last=False)


def seconds_between(since: str, until: str) -> float | None:
    """Return the seconds from one time in RFC 3339 to another, at least 0; None if one of them is not a time."""
    try:
        return max((datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds(), 0.0)
    except (ValueError, TypeError):
        return None


LOOK = 60.0
"""Seconds between two looks. Each lists all nodes if a pod waits."""
AFTER = 30.0
"""Seconds after which a waiting pod is looked at. Nothing is read before."""
MOST = 10
"""Most pods of a tier that are looked at: those that wait longest for GPUs only, by the scheduler's text."""
NEVER_EVICTED = 2**31
"""The priority of a pod whose priority is not known."""


class Found(msgspec.Struct, frozen=True):
    """The result of a look. `inverted`: the longest wait, by the pod's tier and the tier that it could evict.

    `stranded` are the free GPUs on too many nodes; None if not known.
    """

    inverted: Mapping[tuple[str, str], float] = msgspec.field(default_factory=dict)
    stranded: Decimal | None = None


@dataclass(eq=False)
class StuckPods:
    """Looks for stuck pods on the leader, since only it knows `waiting` and `running` pods. Run `run` as a task."""

    client: Client
    policy: Callable[[], TierPolicy]
    waiting: Callable[[], Iterable[WaitingPod]]
    running: Callable[[], Iterable[tuple[str, Holding]]]
    _found: Found = field(default_factory=Found)
    _problem: str = ""

    def inversions(self) -> Iterator[tuple[tuple[str, str], float]]:
        yield from self._found.inverted.items()

    def stranded(self) -> Iterator[tuple[tuple[()], float]]:
        if self._found.stranded is not None:
            yield (), float(self._found.stranded)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            try:
                self._found, self._problem = await self._look(), ""
            except (ApiError, Refused) as error:
                before, self._found, self._problem = self._problem, Found(), problem_text(error)
                if self._problem != before:  # logged once, because a missing right to list nodes stays missing
                    log.warning("waits not looked at", {"error": self._problem})
            except Exception:
                self._found = Found()
                log.exception("waits not looked at")

    async def _look(self) -> Found:
        """Look once. No nodes are read while no pod waits."""
        # 1. The pods that wait longer than the scheduler needs.
        policy, now = self.policy(), datetime.now(UTC).isoformat()
        ungated = (each for each in self.waiting() if not each.gated)
        waiting = [each for each in ungated if (seconds_between(each.since, now) or 0.0) > AFTER]
        if not waiting:
            return Found()

        # 2. The GPUs that are free on too many nodes.
        nodes = await gpu_nodes(self.client, policy)
        used = [*counted_once(self.running())]
        stranded = scattered_gpus(nodes, used, [each.holding.charge.gpus for each in waiting])

        # 3. The pods that wait longest, and the pods that each could evict; in a thread, so that reviews go on.
        holders = cache(lambda name: [*_holders(used, name, policy)])
        evicting = [tier.name for tier in policy.tiers if tier.preemption_policy != "Never" and not policy.adoption]
        inverted: dict[tuple[str, str], float] = {}
        for tier in evicting:
            of_tier = (each for each in waiting if each.tier == tier and waits_for_gpus_alone(each.why))
            for each in nsmallest(MOST, of_tier, key=lambda each: each.since):
                pod = await self._unscheduled(each)
                lower = await asyncio.to_thread(_lower, pod, nodes, holders, policy) if pod else ""
                if lower:
                    seconds = seconds_between(each.since, datetime.now(UTC).isoformat()) or 0.0
                    inverted[tier, lower] = max(seconds, inverted.get((tier, lower), 0.0))
        return Found(inverted, stranded)

    async def _unscheduled(self, waiting: WaitingPod) -> Pod | None:
        """Return the pod if it still waits, the scheduler has given no other reason, and has evicted no pod for it."""
        try:
            tree = await self.client.get(path("v1", "pods", waiting.holding.namespace, waiting.holding.name))
        except NotFound:
            return None
        seen = seen_pod(msgspec.json.encode(tree))
        nominated = (tree.get("status") or {}).get("nominatedNodeName")
        elsewhere = nominated or seen.spec.node_name or seen.metadata.deletion_timestamp
        return seen if not elsewhere and waits_for_gpus_alone(seen.unscheduled) else None


def _lower(
    pod: Pod, nodes: Iterable[GpuNode], holders: Callable[[str], Iterable[GpuHolder]], policy: TierPolicy
) -> str:
    """Return the tier of a pod that it could evict; "" if there is none, or if that can't be known.

    It can't be known for a gang, because room for one pod is not enough, for claims, and for two kinds of GPU.
    """
    metadata, spec = pod.metadata, pod.spec
    asks = {name: gpus for name, gpus in asked_of(pod, policy).items() if gpus}
    together = spec.scheduling_group or gang_beyond(metadata) or any(named_groups(metadata))
    if len(asks) != 1 or spec.resource_claims or together or kueue_group(metadata):
        return ""
    (name,) = asks
    waiting = Waiting(asks, spec.priority or 0, evicts="never" if spec.preemption_policy == "Never" else "lower")
    alike = [each for each in nodes if each.open and [*each.offers] == [name]]
    obstacles = (obstacle(spec, each.name, each.labels, each.taints) for each in alike)
    fitting = [NodeForPod(each.name, each.offers, why) for each, why in zip(alike, obstacles, strict=True)]
    victim = to_evict(waiting, fitting, holders(name))
    return victim.tier if victim else ""


def _holders(used: Iterable[OnNode], name: str, policy: TierPolicy) -> Iterator[GpuHolder]:
    """Yield all pods on nodes, as if each used only this resource: true on nodes that offer no other one."""
    weight, priorities = policy.weights[name], {tier.name: tier.value for tier in policy.tiers}
    counts: dict[Decimal, Asked] = {}
    for node, holding, gpus in used:
        tier = holding.charge.tier or ""
        count = counts.get(gpus) or counts.setdefault(gpus, {name: gpus / weight})
        yield GpuHolder(holding.name, node, count, priorities.get(tier, NEVER_EVICTED), tier, ends_in=holding.ends_in)
