"""Rules about saving before an eviction: hooks, grace periods, and budgets that turn evictions aside."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from msgspec.structs import replace

from webhook.cluster.pod_listing import PodSummary
from webhook.policy.checkpoint.hook_request import longest_save
from webhook.policy.checkpoint.work_lost import room_between
from webhook.policy.placement import UNNAMED
from webhook.policy.values.tier_policy import Hook
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.report.lint.rule import LintRule, Mistake, Severity
from webhook.report.lint.snapshot import ClusterSnapshot, number_of, some_of

AUTOSCALER_SECONDS = 600
"""Cluster Autoscaler's --max-graceful-termination-sec, unless it is told otherwise."""


def training_saves_nothing(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """By the policy, without annotations."""
    name = snapshot.policy.tier_of_type.get(WorkloadType.TRAINING)
    if name is not None and _hook_of(name, snapshot).kind == "none":
        yield Mistake(f"tier {name}", "training gets it, and the policy has no checkpoint hook for training")


def training_without_hook(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """A pod whose annotation names a hook, or none, has what its owner wants."""
    bare = [pod for pod in _training(snapshot) if not pod.hook_asked and _lacks_its_hook(pod, snapshot)]
    for made_by, pods in _by_maker(bare):
        hook = _hook_of(pods[0].tier, snapshot)
        lacks = f"no grace for a save of {hook.seconds} s" if hook.kind == "sigterm" else "no preStop"
        yield Mistake(made_by, f"{number_of(len(pods), 'training pod')} of tier {pods[0].tier or 'none'} with {lacks}")


def listeners_unseen(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """The hook of the file protocol does nothing for a program that has not announced itself."""
    hooked = [p for p in _training(snapshot) if p.hook and (p.hook_asked or _hook_of(p.tier, snapshot).kind) == "file"]
    if hooked:
        what = f"{number_of(len(hooked), 'training pod')} with the file hook ({some_of(p.made_by for p in hooked)})"
        yield Mistake("cluster", f"{what}: if their programs listen can't be seen from outside")


def hook_failed(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """By the kubelet's events, which a cluster keeps for an hour."""
    for failed in snapshot.failed_hooks:
        times = "" if failed.times == 1 else f", {failed.times} times"
        yield Mistake(f"Pod/{failed.pod} in {failed.namespace}", f"the kubelet reported FailedPreStopHook{times}")


def pods_on_lost_nodes(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """One line for each pod, because each may be on a node of its own."""
    for pod in snapshot.lost_pods:
        what = f"Pod/{pod.name} ends on node {pod.node}, which is not Ready; its Job waits for the end"
        yield Mistake(f"Job/{pod.job} in {pod.namespace}", what)


def grace_beyond_autoscaler(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """The pods of one workload are told of once."""
    for made_by, pods in _by_maker(pod for pod in snapshot.pods if pod.grace > AUTOSCALER_SECONDS):
        longest = max(pod.grace for pod in pods)
        yield Mistake(made_by, f"{number_of(len(pods), 'pod')} with terminationGracePeriodSeconds {longest}")


def cap_beyond_autoscaler(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """What a hook may add to a grace period."""
    cap = snapshot.policy.checkpoint.max_grace_period
    if cap > AUTOSCALER_SECONDS:
        yield Mistake("checkpoint.maxGracePeriodSeconds", f"{cap} is above the {AUTOSCALER_SECONDS} s of autoscalers")


def budget_shields_tier(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Only a budget that lets nobody go now, and pods that somebody may evict."""
    top = next(iter(snapshot.policy.tiers)).name
    by_namespace = snapshot.pods_by_namespace
    for budget in (each for each in snapshot.budgets if not each.allowed):
        lower = (pod for pod in by_namespace.get(budget.namespace, ()) if pod.node and pod.tier != top)
        shielded = [pod for pod in lower if budget.covers(pod.namespace, pod.labels)]
        if shielded:
            tiers = some_of(sorted({pod.tier or "no tier" for pod in shielded}))
            what = f"lets none of {number_of(len(shielded), 'pod')} with GPUs go, of {tiers}"
            yield Mistake(f"PodDisruptionBudget/{budget.name} in {budget.namespace}", what)


def held_counts_as_down(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Only where some of its pods run that can't be evicted meanwhile."""
    for budget in (each for each in snapshot.budgets if not each.allowed):
        pods = snapshot.pods_by_namespace.get(budget.namespace, ())
        covered = [pod for pod in pods if budget.covers(pod.namespace, pod.labels)]
        held, running = sum(pod.held for pod in covered), sum(bool(pod.node) for pod in covered)
        if held and running:
            what = f"{number_of(held, 'pod')} that wait{'s' if held == 1 else ''} for quota"
            spared = f"{number_of(running, 'pod')} that run{'s' if running == 1 else ''}"
            yield Mistake(f"PodDisruptionBudget/{budget.name} in {budget.namespace}", f"{what}, so it spares {spared}")


def evicted_by_age(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Trainings of a tier that another one evicts, where neither Kueue nor another scheduler chooses among them."""
    for tier in snapshot.policy.tiers:
        of_tier = (pod for pod in _training(snapshot) if pod.tier == tier.name and pod.scheduler in UNNAMED)
        makers = {pod.made_by for pod in of_tier if not _BY_KUEUE & pod.labels.keys()}
        if len(makers) > 1 and snapshot.policy.evicted_by(tier).get("tiers"):
            yield Mistake(f"tier {tier.name}", f"of {some_of(sorted(makers))} kube-scheduler evicts what started last")


_BY_KUEUE = frozenset({"kueue.x-k8s.io/podset", "kueue.x-k8s.io/managed"})


def no_room_for_costs(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """A boost that reaches the next tier is none."""
    policy = snapshot.policy
    if policy.eviction_cost.get("Kueue") == "Write" and not room_between(tier.value for tier in policy.tiers):
        yield Mistake("evictionCost.kueue", "two tiers have values that follow one another, so no boost is written")


def boost_ignored(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find rules by which Kueue chooses among workloads without the boost."""
    if snapshot.policy.eviction_cost.get("Kueue") != "Write":
        return
    for rule in snapshot.preemption_rules:
        unlike = dict.fromkeys(f"priority.mode {mode}" if mode else "no priority" for mode in rule.modes)
        unlike.pop("priority.mode Boosted", None)
        if unlike:
            where = f"PreemptionConfig/{rule.config}"
            yield Mistake(where, f"rule {rule.name} compares {' and '.join(unlike)}, so it ignores the boost")


def _training(snapshot: ClusterSnapshot) -> Iterator[PodSummary]:
    return (pod for pod in snapshot.pods if pod.workload_type is WorkloadType.TRAINING)


def _hook_of(tier: str | None, snapshot: ClusterSnapshot) -> Hook:
    """What the policy gives to training of a tier."""
    given = snapshot.policy.checkpoint
    hook = given.tiers.get(tier or "") or given.hooks.get(WorkloadType.TRAINING) or Hook()
    return replace(hook, seconds=min(hook.seconds, longest_save(given, tier)))


def _lacks_its_hook(pod: PodSummary, snapshot: ClusterSnapshot) -> bool:
    hook = _hook_of(pod.tier, snapshot)
    if hook.kind == "sigterm":
        return pod.grace < hook.seconds
    return hook.kind != "none" and not pod.hook


def _by_maker(pods: Iterable[PodSummary]) -> Iterator[tuple[str, list[PodSummary]]]:
    ordered = sorted(pods, key=lambda pod: (pod.made_by, pod.tier or ""))
    yield from ((made_by, list(each)) for made_by, each in groupby(ordered, key=lambda pod: pod.made_by))


RULES = (
    LintRule(
        "training-without-hook",
        Severity.WARNING,
        ("pods",),
        training_without_hook,
        "Start these pods again so that they get the hook.",
    ),
    LintRule(
        "training-saves-nothing",
        Severity.WARNING,
        (),
        training_saves_nothing,
        "Write a hook for training under `checkpoint` in the policy.",
    ),
    LintRule(
        "listeners-unseen",
        Severity.INFO,
        ("pods",),
        listeners_unseen,
        "Look for one pod of each workload: `kubectl exec POD -- ls /run/gpu-tiers/listening`.",
    ),
    LintRule(
        "hook-failed",
        Severity.WARNING,
        ("failed_hooks",),
        hook_failed,
        "Read the event with `kubectl describe pod` and the program's log.",
    ),
    LintRule(
        "pod-on-lost-node",
        Severity.WARNING,
        ("pods", "nodes", "lost_pods"),
        pods_on_lost_nodes,
        "If the node is off and stays so, taint it out-of-service or delete the Node.",
    ),
    LintRule(
        "grace-beyond-autoscaler",
        Severity.WARNING,
        ("pods",),
        grace_beyond_autoscaler,
        "Save in less time, or raise the autoscaler's `--max-graceful-termination-sec`.",
    ),
    LintRule(
        "cap-beyond-autoscaler",
        Severity.WARNING,
        (),
        cap_beyond_autoscaler,
        "Set `checkpoint.maxGracePeriodSeconds` to 600 at most.",
    ),
    LintRule(
        "budget-shields-tier",
        Severity.WARNING,
        ("pods", "budgets"),
        budget_shields_tier,
        "Let the budget allow a disruption (`maxUnavailable: 1`).",
    ),
    LintRule(
        "held-counts-as-down",
        Severity.WARNING,
        ("pods", "budgets"),
        held_counts_as_down,
        "Let the budget allow as many more (`maxUnavailable`).",
    ),
    LintRule(
        "evicted-by-age",
        Severity.INFO,
        ("pods",),
        evicted_by_age,
        "Queue training with Kueue, and write `evictionCost: {kueue: Write}` in the policy.",
    ),
    LintRule(
        "no-room-for-costs",
        Severity.WARNING,
        (),
        no_room_for_costs,
        "Give the tiers values that are 17 or more apart: then there is room for all boosts.",
    ),
    LintRule(
        "boost-ignored",
        Severity.INFO,
        ("preemption_configs",),
        boost_ignored,
        "Set `priority.mode: Boosted` in the rule's candidateSelectors.",
    ),
)
