"""Tells which pods may be evicted for a preemptor, one by one or as a whole group, and which budgets that breaks."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from webhook.policy.preemption.cluster_state import ClusterState, Rules
from webhook.policy.preemption.disruption_budget import DisruptionBudget
from webhook.policy.preemption.pod_state import PodState
from webhook.policy.preemption.preemptor import Preemptor
from webhook.policy.preemption.room import Unit


def evictable_units(preemptor: Preemptor, state: ClusterState, rules: Rules) -> dict[str, list[Unit]]:
    """Return by node what may be evicted for a preemptor, the most important first."""
    # 1. Pods of lower tiers, and of a lower priority: the scheduler goes by that.
    tiers = rules.policy.tiers
    ranks = {
        pod.uid: tier.value
        for pod in state.pods.values()
        if pod.node and pod.ends_at is None and not pod.is_static and pod.namespace not in rules.exempt
        if (tier := tiers.of_class(pod.class_name)) is not None
        and (tier.value < preemptor.tier.value and pod.priority < preemptor.priority)
    }

    # 2. A PodGroup that goes as a whole does so on all of its nodes.
    units: defaultdict[str, list[Unit]] = defaultdict(list)
    groups = {name for name, group in state.groups.items() if group.goes_whole}
    for name in groups:
        pods = tuple(pod for pod in state.members.get(name, ()) if pod.node and pod.ends_at is None)
        if pods and all(pod.uid in ranks for pod in pods):
            unit = _unit(pods, state, ranks)
            for node in {pod.node for pod in pods}:
                units[node].append(unit)
    for uid in ranks:
        pod = state.pods[uid]
        if pod.pod_group not in groups:
            units[pod.node].append(_unit((pod,), state, ranks))

    # 3. Those come last that a budget keeps, then by tier, by what they would lose, and small ones go first.
    devices = Counter(user.uid for claim, _ in state.inventory.holders.values() for user in claim.status.reserved_for)
    for found in units.values():
        found.sort(
            key=lambda unit: (-unit.tier, -unit.at_risk, sum(devices[uid] for uid in unit.uids), unit.started_at)
        )
        pods_in_order = [pod for unit in found for pod in unit.pods]
        guarded = over_budget(pods_in_order, state.budgets)
        found.sort(key=lambda unit: not any(pod.uid in guarded for pod in unit.pods))
    return units


def _unit(pods: tuple[PodState, ...], state: ClusterState, ranks: Mapping[str, int]) -> Unit:
    return Unit(pods, max(ranks[pod.uid] for pod in pods), sum(state.at_risk.get(pod.uid, 0.0) for pod in pods))


def over_budget(pods: Iterable[PodState], budgets: Mapping[str, Sequence[DisruptionBudget]]) -> Counter[str]:
    """Return the uids of pods whose eviction breaks a budget, after those before them, with how many it breaks."""
    gone, broken = Counter[tuple[str, str]](), Counter[str]()
    for pod in pods:
        for budget in budgets.get(pod.namespace, ()):
            if budget.covers(pod.namespace, pod.labels):
                gone[budget.namespace, budget.name] += 1
                broken[pod.uid] += gone[budget.namespace, budget.name] > budget.allowed
    return +broken
