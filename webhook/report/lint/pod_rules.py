"""Rules about pods: what they save before an eviction, which GPUs nobody can use, and gangs that lose pods."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import groupby

from msgspec.structs import replace

from webhook.cluster.listed import GpuNode, PodSummary
from webhook.objects.quantities import written
from webhook.policy.checkpoint.hook_plan import longest_save
from webhook.policy.checkpoint.work_lost import room_between
from webhook.policy.placement import UNNAMED
from webhook.policy.values.tier_policy import Hook
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.report.lint.rule import Mistake, Severity, rule
from webhook.report.lint.snapshot import ClusterSnapshot, Taken, number_of, some_of

AUTOSCALER_SECONDS = 600
"""Cluster Autoscaler's --max-graceful-termination-sec by default."""
LEAST_SHARE = Decimal("0.1")
"""A GPU can't be used with less than this part of its even share of the node's CPU and memory."""
BREAKS_GANGS = (1, 36)
"""The Kubernetes version whose scheduler heeds disruptionMode only for preemptors that are in a PodGroup."""
_BY_KUEUE = frozenset({"kueue.x-k8s.io/podset", "kueue.x-k8s.io/managed"})
_GIB = Decimal(1024) ** 3


@rule("bound-unheard", Severity.WARNING, "pods")
def bound_unheard(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find training pods with a bound of work at risk that can't report, so that nobody asks them to save."""
    for tier, seconds in snapshot.policy.saves.max_at_risk.items():
        of_tier = (pod for pod in snapshot.pods if pod.tier == tier and pod.work_to_lose is not None)
        if silent := [pod for pod in of_tier if not pod.reports]:
            what = f"can't report, so {seconds:,} s of saves.maxAtRiskSeconds do nothing for them"
            yield Mistake(
                f"tier {tier}",
                f"{number_of(len(silent), 'training pod')} {what}: {some_of(pod.made_by for pod in silent)}",
            )


@rule("training-without-hook", Severity.WARNING, "pods")
def training_without_hook(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find training pods without the policy's hook or its grace period, unless an annotation names a hook, or none."""
    bare = []
    for pod in (each for each in _training(snapshot) if not each.hook_asked):
        hook = _hook_of(pod.tier, snapshot)
        if pod.grace < hook.seconds if hook.kind == "sigterm" else hook.kind != "none" and not pod.hook:
            bare.append(pod)
    for made_by, pods in _by_maker(bare):
        hook = _hook_of(pods[0].tier, snapshot)
        lacks = f"no grace for a save of {hook.seconds} s" if hook.kind == "sigterm" else "no preStop"
        yield Mistake(made_by, f"{number_of(len(pods), 'training pod')} of tier {pods[0].tier or 'none'} with {lacks}")


@rule("training-saves-nothing", Severity.WARNING)
def training_saves_nothing(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find a policy that gives training a tier and no hook."""
    name = snapshot.policy.tier_of_type.get(WorkloadType.TRAINING)
    if name is not None and _hook_of(name, snapshot).kind == "none":
        yield Mistake(f"tier {name}", "training gets it, and the policy has no checkpoint hook for training")


@rule("training-unprotected", Severity.INFO, "autoscalers")
def training_unprotected(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find a tier of training about which the policy tells the cluster's autoscalers nothing."""
    name = snapshot.policy.tier_of_type.get(WorkloadType.TRAINING)
    if snapshot.autoscalers and name is not None and name not in snapshot.policy.autoscaler:
        what = f"training gets it, and {' and '.join(snapshot.autoscalers)} may remove its nodes to save costs"
        yield Mistake(f"tier {name}", what)


@rule("listeners-unseen", Severity.INFO, "pods")
def listeners_unseen(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Report pods with the file hook, which does nothing for a program that does not listen."""
    hooked = [p for p in _training(snapshot) if p.hook and (p.hook_asked or _hook_of(p.tier, snapshot).kind) == "file"]
    if hooked:
        what = f"{number_of(len(hooked), 'training pod')} with the file hook ({some_of(p.made_by for p in hooked)})"
        yield Mistake("cluster", f"{what}: it is not visible whether their programs listen")


@rule("hook-failed", Severity.WARNING, "failed_hooks")
def hook_failed(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Report the kubelet's events about hooks that failed; a cluster keeps them for an hour."""
    for (namespace, pod), count in snapshot.failed_hooks.items():
        times = "" if count == 1 else f", {count} times"
        yield Mistake(f"Pod/{pod} in {namespace}", f"the kubelet reported FailedPreStopHook{times}")


@rule("pod-on-lost-node", Severity.WARNING, "pods", "nodes", "lost_pods")
def pods_on_lost_nodes(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find pods that end on a lost node, a line for each, because each may be on another node."""
    for pod in snapshot.lost_pods:
        what = f"Pod/{pod.name} ends on node {pod.node}, which is not Ready; its Job waits for the end"
        yield Mistake(f"Job/{pod.job} in {pod.namespace}", what)


@rule("grace-beyond-autoscaler", Severity.WARNING, "pods")
def grace_beyond_autoscaler(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find grace periods that an autoscaler cuts off, once for each workload."""
    for made_by, pods in _by_maker(pod for pod in snapshot.pods if pod.grace > AUTOSCALER_SECONDS):
        longest = max(pod.grace for pod in pods)
        yield Mistake(made_by, f"{number_of(len(pods), 'pod')} with terminationGracePeriodSeconds {longest}")


@rule("cap-beyond-autoscaler", Severity.WARNING)
def cap_beyond_autoscaler(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find a policy whose hooks may have a grace period that an autoscaler cuts off."""
    cap = snapshot.policy.checkpoint.max_grace_period
    if cap > AUTOSCALER_SECONDS:
        yield Mistake("checkpoint.maxGracePeriodSeconds", f"{cap} is above the {AUTOSCALER_SECONDS} s of autoscalers")


@rule("budget-shields-tier", Severity.WARNING, "pods", "budgets")
def budget_shields_tier(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find budgets that allow no disruption now and cover pods that a tier may evict."""
    top = next(iter(snapshot.policy.tiers)).name
    for where, covered in _spent_budgets(snapshot):
        shielded = [pod for pod in covered if pod.node and pod.tier != top]
        if shielded:
            tiers = some_of(sorted({pod.tier or "no tier" for pod in shielded}))
            yield Mistake(where, f"allows no disruption of {number_of(len(shielded), 'pod')} with GPUs, of {tiers}")


@rule("gated-counts-as-down", Severity.WARNING, "pods", "budgets")
def gated_counts_as_down(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find budgets under which gated pods count as down, so that running pods can't be evicted."""
    for where, covered in _spent_budgets(snapshot):
        queued, running = sum(pod.queued for pod in covered), sum(bool(pod.node) for pod in covered)
        if queued and running:
            what = f"counts {number_of(queued, 'pod')} that wait{'s' if queued == 1 else ''} for quota as unavailable"
            yield Mistake(where, f"{what}, so it allows no disruption of {number_of(running, 'running pod')}")


def _spent_budgets(snapshot: ClusterSnapshot) -> Iterator[tuple[str, list[PodSummary]]]:
    """Yield the budgets that allow no disruption now, with the pods that each covers."""
    by_namespace = snapshot.pods_by_namespace
    for budget in (each for each in snapshot.budgets if not each.allowed):
        pods = by_namespace.get(budget.namespace, ())
        covered = [pod for pod in pods if budget.covers(pod.namespace, pod.labels)]
        yield f"PodDisruptionBudget/{budget.name} in {budget.namespace}", covered


@rule("evicted-by-age", Severity.INFO, "pods")
def evicted_by_age(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find tiers among whose training workloads only kube-scheduler chooses the victim: the pod that started last."""
    for tier in snapshot.policy.tiers:
        of_tier = (pod for pod in _training(snapshot) if pod.tier == tier.name and pod.scheduler in UNNAMED)
        makers = {pod.made_by for pod in of_tier if not _BY_KUEUE & pod.labels.keys()}
        if len(makers) > 1 and snapshot.policy.evicted_by(tier).get("tiers"):
            what = f"among {some_of(sorted(makers))} kube-scheduler evicts the pod that started last"
            yield Mistake(f"tier {tier.name}", what)


@rule("no-room-for-costs", Severity.WARNING)
def no_room_for_costs(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find tiers whose values leave no room for a boost: a boost that reaches the next tier has no effect."""
    policy = snapshot.policy
    if policy.eviction_cost.get("Kueue") == "Write" and not room_between(tier.value for tier in policy.tiers):
        yield Mistake("evictionCost.kueue", "two tiers have values that follow one another, so no boost is written")


@rule("boost-ignored", Severity.INFO, "preemption_configs")
def boost_ignored(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find rules of PreemptionConfigs by which Kueue compares workloads without the boost."""
    if snapshot.policy.eviction_cost.get("Kueue") != "Write":
        return
    for found in snapshot.preemption_rules:
        unlike = dict.fromkeys(f"priority.mode {mode}" if mode else "no priority" for mode in found.modes)
        unlike.pop("priority.mode Boosted", None)
        if unlike:
            where = f"PreemptionConfig/{found.config}"
            yield Mistake(where, f"rule {found.name} compares {' and '.join(unlike)}, so it ignores the boost")


def _training(snapshot: ClusterSnapshot) -> Iterator[PodSummary]:
    return (pod for pod in snapshot.pods if pod.workload_type is WorkloadType.TRAINING)


def _hook_of(tier: str | None, snapshot: ClusterSnapshot) -> Hook:
    """Return the hook that the policy gives to training of a tier."""
    given = snapshot.policy.checkpoint
    hook = given.tiers.get(tier or "") or given.hooks.get(WorkloadType.TRAINING) or Hook()
    return replace(hook, seconds=min(hook.seconds, longest_save(given, tier)))


def _by_maker(pods: Iterable[PodSummary]) -> Iterator[tuple[str, list[PodSummary]]]:
    ordered = sorted(pods, key=lambda pod: (pod.made_by, pod.tier or ""))
    yield from ((made_by, list(each)) for made_by, each in groupby(ordered, key=lambda pod: pod.made_by))


@rule("gpus-without-room", Severity.WARNING, "nodes", "pods")
def gpus_without_room(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find open nodes with free GPUs and too little CPU or memory left for them."""
    for node in snapshot.nodes:
        taken = snapshot.taken.get(node.name, Taken())
        free = node.gpus - taken.gpus
        short = list(_short(node, taken)) if node.open and free >= 1 else []
        if short:
            what = f"{written(free)} of {written(node.gpus)} GPUs free, with {some_of(short)}"
            yield Mistake(f"Node/{node.name}", what)


@rule("gpus-in-pieces", Severity.WARNING, "nodes", "pods")
def gpus_in_pieces(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find pods that would fit if the free GPUs of their flavor were on one node."""
    waiting = [pod for pod in snapshot.pods if not pod.node and not pod.gated]
    for flavor in dict.fromkeys(pod.flavor for pod in waiting):
        nodes = [node for node in snapshot.nodes if node.open and flavor in (None, node.flavor)]
        free = [max(node.gpus - snapshot.taken.get(node.name, Taken()).gpus, Decimal(0)) for node in nodes]
        largest, total = max(free, default=Decimal(0)), sum(free, Decimal(0))
        short = [pod for pod in waiting if pod.flavor == flavor and largest < pod.gpus <= total]
        if short:
            there = f"{written(total)} GPUs are free, at most {written(largest)} on a node"
            asked = f"{number_of(len(short), 'pod')} of up to {written(max(pod.gpus for pod in short))} wait"
            yield Mistake(f"nodes of {flavor}" if flavor else "all nodes", f"{there}; {asked}: {_makers(short)}")


@rule("gang-broken-by-pods", Severity.WARNING, "version", "pods", "pod_groups")
def gang_broken_by_pods(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find PodGroups that pods outside any group may evict in part."""
    if snapshot.version != BREAKS_GANGS:
        return
    of_pods: defaultdict[tuple[str, str], int] = defaultdict(int)
    for pod in snapshot.pods:
        key = pod.namespace, pod.group
        of_pods[key] = max(of_pods[key], pod.priority)
    # Kubernetes 1.36 stores no priority on a group without a gate: then it is the highest of its pods'.
    groups = ((each.metadata, each.spec.priority) for each in snapshot.pod_groups if each.goes_whole)
    whole = [(found, priority or of_pods[found.namespace, found.name]) for found, priority in groups]
    alone = [pod for pod in snapshot.pods if not pod.group and pod.preempts]
    above = {rank: [pod for pod in alone if pod.priority > rank] for rank in {rank for _, rank in whole}}
    for group, rank in whole:
        if above[rank]:
            what = f"{number_of(len(above[rank]), 'pod')} outside any PodGroup may evict it: {_makers(above[rank])}"
            yield Mistake(f"PodGroup/{group.name} in {group.namespace}", what)


def _short(node: GpuNode, taken: Taken) -> Iterator[str]:
    cpu, memory = node.cpu - taken.cpu, node.memory - taken.memory
    if cpu < LEAST_SHARE * node.cpu / node.gpus:
        yield f"{_rounded(cpu)} of {_rounded(node.cpu)} CPU cores left"
    if memory < LEAST_SHARE * node.memory / node.gpus:
        yield f"{_rounded(memory / _GIB)} of {_rounded(node.memory / _GIB)} GiB of memory left"


def _rounded(number: Decimal) -> str:
    return written(round(max(number, Decimal(0)), 1))


def _makers(pods: Iterable[PodSummary]) -> str:
    return some_of(pod.made_by for pod in pods)
