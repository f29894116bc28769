"""Rules about GPUs that nobody can use, and gangs that lose pods."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal

from webhook.cluster.gpu_nodes import GpuNode
from webhook.cluster.pod_listing import PodSummary
from webhook.objects.quantities import written
from webhook.report.lint.rule import LintRule, Mistake, Severity
from webhook.report.lint.snapshot import ClusterSnapshot, PodGroupSeen, Taken, number_of, some_of

LEAST_SHARE = Decimal("0.1")
"""A GPU can't be used with less than this part of its even share of the node's CPU and memory."""
BREAKS_GANGS = (1, 36)
"""The version whose scheduler heeds disruptionMode only for preemptors that are in a PodGroup."""
_GIB = Decimal(1024) ** 3


def gpus_without_room(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """On nodes that take pods."""
    for node in snapshot.nodes:
        taken = snapshot.taken.get(node.name, Taken())
        free = node.gpus - taken.gpus
        short = list(_short(node, taken)) if node.open and free >= 1 else []
        if short:
            yield Mistake(
                f"Node/{node.name}", f"{written(free)} of {written(node.gpus)} GPUs free, with {some_of(short)}"
            )


def gpus_in_pieces(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """A pod that would fit if what is free lay on one node: of its flavor, if it is bound to one."""
    waiting = [pod for pod in snapshot.pods if not pod.node and not pod.gated]
    for flavor in dict.fromkeys(pod.flavor for pod in waiting):
        free = [_free(node, snapshot) for node in snapshot.nodes if node.open and flavor in (None, node.flavor)]
        largest, total = max(free, default=Decimal(0)), sum(free, Decimal(0))
        short = [pod for pod in waiting if pod.flavor == flavor and largest < pod.gpus <= total]
        if short:
            there = f"{written(total)} GPUs are free, at most {written(largest)} on a node"
            asked = f"{number_of(len(short), 'pod')} of up to {written(max(pod.gpus for pod in short))} wait"
            yield Mistake(f"nodes of {flavor}" if flavor else "all nodes", f"{there}; {asked}: {_makers(short)}")


def gang_broken_by_pods(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Pods outside any group that rank above a group and may evict."""
    if snapshot.version != BREAKS_GANGS:
        return
    ranks = _ranks(snapshot)
    alone = [pod for pod in snapshot.pods if not pod.group and pod.preempts]
    told = {rank: _may_evict([pod for pod in alone if pod.priority > rank]) for rank in set(ranks.values())}
    for group, rank in ranks.items():
        if told[rank]:
            yield Mistake(f"PodGroup/{group.name} in {group.namespace}", told[rank])


def _may_evict(pods: list[PodSummary]) -> str:
    """Empty where there is none."""
    return f"{number_of(len(pods), 'pod')} outside any PodGroup may evict it: {_makers(pods)}" if pods else ""


def _short(node: GpuNode, taken: Taken) -> Iterator[str]:
    cpu, memory = node.cpu - taken.cpu, node.memory - taken.memory
    if cpu < LEAST_SHARE * node.cpu / node.gpus:
        yield f"{_rounded(cpu)} of {_rounded(node.cpu)} CPU cores left"
    if memory < LEAST_SHARE * node.memory / node.gpus:
        yield f"{_rounded(memory / _GIB)} of {_rounded(node.memory / _GIB)} GiB of memory left"


def _rounded(number: Decimal) -> str:
    return written(round(max(number, Decimal(0)), 1))


def _ranks(snapshot: ClusterSnapshot) -> dict[PodGroupSeen, int]:
    """The priorities of groups that go whole. 1.36 keeps none on them unless a gate is on: then it is their pods'."""
    of_pods: defaultdict[tuple[str, str], int] = defaultdict(int)
    for pod in snapshot.pods:
        key = pod.namespace, pod.group
        of_pods[key] = max(of_pods[key], pod.priority)
    whole = (group for group in snapshot.pod_groups if group.whole)
    return {group: group.priority or of_pods[group.namespace, group.name] for group in whole}


def _free(node: GpuNode, snapshot: ClusterSnapshot) -> Decimal:
    return max(node.gpus - snapshot.taken.get(node.name, Taken()).gpus, Decimal(0))


def _makers(pods: Iterable[PodSummary]) -> str:
    return some_of(pod.made_by for pod in pods)


RULES = (
    LintRule(
        "gpus-without-room",
        Severity.WARNING,
        ("nodes", "pods"),
        gpus_without_room,
        "Move pods without GPUs to other nodes, or let GPU pods ask for less CPU and memory.",
    ),
    LintRule(
        "gpus-in-pieces",
        Severity.WARNING,
        ("nodes", "pods"),
        gpus_in_pieces,
        "Pack small pods closely: `placement` in the policy.",
    ),
    LintRule(
        "gang-broken-by-pods",
        Severity.WARNING,
        ("version", "pods", "pod_groups"),
        gang_broken_by_pods,
        "Upgrade to 1.37, or let what may evict run in PodGroups too.",
    ),
)
