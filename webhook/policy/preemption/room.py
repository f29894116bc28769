"""The room on one node: whether pods fit there once others are gone, and which pods may or must be evicted for that.

Pods are evicted one by one or as a whole group.
A set of requests can be met if each of its subsets finds enough devices that fit one of its requests (Hall's theorem).
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Self

import msgspec

from webhook.policy.devices import DeviceClaim, WantedDevices
from webhook.policy.preemption.cluster_state import ClusterState, DisruptionBudget, Rules
from webhook.policy.preemption.node_state import NodeState
from webhook.policy.preemption.pod_state import PodState, Port
from webhook.policy.preemption.preemptor import Preemptor
from webhook.policy.quota.demand import NOTHING

Wishes = Sequence[WantedDevices]
"""The different requests for devices, regardless of count. A set of them is an int with a bit for each index."""


class Demand(msgspec.Struct, frozen=True):
    """The needs of `pods` on a node, together: devices by the index of their wish, resources by name, and ports."""

    devices: Mapping[int, int]
    amounts: Mapping[str, Decimal]
    ports: frozenset[Port] = frozenset()
    pods: int = 1

    def __add__(self, other: Self) -> "Demand":
        names = self.amounts.keys() | other.amounts.keys()
        return Demand(
            Counter(self.devices) + Counter(other.devices),
            {name: self.amounts.get(name, NOTHING) + other.amounts.get(name, NOTHING) for name in names},
            self.ports | other.ports,
            self.pods + other.pods,
        )


NO_DEMAND = Demand({}, {}, pods=0)


class Unit(msgspec.Struct, frozen=True, eq=False):
    """Pods that are evicted together: one pod, or a whole PodGroup. `tier` is the value of the highest of their tiers.

    `at_risk` is what they would lose, in GPU-seconds.
    """

    pods: tuple[PodState, ...]
    tier: int
    at_risk: float

    @property
    def uids(self) -> frozenset[str]:
        return frozenset(each.uid for each in self.pods)

    @property
    def started_at(self) -> float:
        return min(each.started_at for each in self.pods)


def evictable_units(preemptor: Preemptor, state: ClusterState, rules: Rules) -> dict[str, list[Unit]]:
    """Return by node the units that may be evicted for a preemptor. Units at the front are spared first.

    Pods may be evicted if their tier and their priority are lower, and a PodGroup as a whole only if all of its pods
    may be. Pods that end already, static pods and pods of exempt namespaces are left out.
    """
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
    whole = ([pod for pod in state.gangs.get(name, ()) if pod.pod_group] for name in groups)
    together = [tuple(pod for pod in pods if pod.node and pod.ends_at is None) for pods in whole]
    together += [(state.pods[uid],) for uid in ranks if state.pods[uid].pod_group not in groups]
    for pods in together:
        if pods and all(pod.uid in ranks for pod in pods):
            at_risk = sum(state.at_risk.get(pod.uid, 0.0) for pod in pods)
            unit = Unit(pods, max(ranks[pod.uid] for pod in pods), at_risk)
            for node in {pod.node for pod in pods}:
                units[node].append(unit)

    # 3. Units that a budget protects are spared first, then high tiers, much work at risk, few devices and old pods.
    #    Because small pods are spared, fewer pods have to be evicted.
    devices = Counter(user.uid for claim, _ in state.inventory.holders.values() for user in claim.status.reserved_for)
    for found in units.values():
        found.sort(
            key=lambda unit: (-unit.tier, -unit.at_risk, sum(devices[uid] for uid in unit.uids), unit.started_at)
        )
        pods_in_order = [pod for unit in found for pod in unit.pods]
        guarded = over_budget(pods_in_order, state.budgets)
        found.sort(key=lambda unit: not any(pod.uid in guarded for pod in unit.pods))
    return units


def over_budget(pods: Iterable[PodState], budgets: Mapping[str, Sequence[DisruptionBudget]]) -> Counter[str]:
    """Return how many budgets each eviction breaks, by uid, if the pods are evicted in this order."""
    gone, broken = Counter[tuple[str, str]](), Counter[str]()
    for pod in pods:
        for budget in budgets.get(pod.namespace, ()):
            if budget.covers(pod.namespace, pod.labels):
                gone[budget.namespace, budget.name] += 1
                broken[pod.uid] += gone[budget.namespace, budget.name] > budget.allowed
    return +broken


class NodeCapacity:
    """The capacity of a node: what its devices, resources and ports leave for pods once others are gone.

    `demand` is that of the pods that were chosen for the node so far. `has_unknown`: it is unknown whether one of its
    devices passes the selectors of a wish.
    """

    def __init__(self, node: NodeState, state: ClusterState, wishes: Wishes, drivers: Iterable[str]) -> None:
        self.node, self.demand = node, NO_DEMAND
        self._pods = state.pods_on.get(node.name, [])
        self._allocatable = {**node.allocatable, **state.storage.attachable(node.name, drivers, self._pods)}
        self._used = {name: _sum_of(self._pods, name) for name in node.allocatable}
        self.has_unknown = False
        free: Counter[int] = Counter()
        used: dict[str, tuple[DeviceClaim, Counter[int]]] = {}
        for key in state.devices_on.get(node.name, []):
            does = [state.inventory.does(key, wish) for wish in wishes]
            self.has_unknown |= None in does
            bits = sum(
                1 << number
                for number, wish in enumerate(wishes)
                if does[number] and state.inventory.untolerated(key, wish) is None
            )
            device, holder = state.inventory.devices[key], state.inventory.holders.get(key)
            if not bits or device.shareable:
                continue
            if holder is not None:
                used.setdefault(holder[0].key, (holder[0], Counter()))[1][bits] += 1
            elif device.whole:  # only the counters show whether a free partition is available
                free[bits] += 1
        self._free = free
        # No pod's end frees a claim without users, and a PodGroup's claim is freed when the group is deleted.
        self._claimed = [
            (frozenset(user.uid for user in claim.status.reserved_for), devices)
            for claim, devices in used.values()
            if claim.status.reserved_for and all(user.resource == "pods" for user in claim.status.reserved_for)
        ]

    def fits(self, more: Demand, gone: Collection[str], without: Collection[str] | None = None) -> bool:
        """Tell whether the pods chosen so far and `more` fit once the pods with uids in `gone` have left the node.

        `without` are the uids of the pods that have left CPU, memory and ports; None if these are `gone` too.
        """
        demand = self.demand + more
        if _collide(self.demand.ports, more.ports):
            return False
        devices = self._free.copy()
        for users, claimed in self._claimed:
            if all(uid in gone for uid in users):
                devices.update(claimed)
        if not _is_met(demand.devices, devices):
            return False
        left = [each for each in self._pods if each.uid in (gone if without is None else without)]
        stay = [each for each in self._pods if each.ports and each not in left] if demand.ports else ()
        if any(_collide(demand.ports, each.ports) for each in stay):
            return False
        if len(self._pods) - len(left) + demand.pods > self._allocatable.get("pods", NOTHING):
            return False
        return all(
            self._used.get(name, NOTHING) - _sum_of(left, name) + amount <= self._allocatable.get(name, NOTHING)
            for name, amount in demand.amounts.items()
            if amount
        )

    def lacking(self, amounts: Mapping[str, Decimal]) -> str | None:
        """Return a resource of which the node has too little even without pods; None if it has enough.

        The volumes of its pods stay attached, so they count as taken.
        """
        return next((name for name, amount in amounts.items() if amount > self._allocatable.get(name, NOTHING)), None)

    def has_enough(self, more: Demand) -> bool:
        """Tell whether the node has enough devices that are free, or that pods use."""
        return _is_met(more.devices, sum((each for _, each in self._claimed), self._free.copy()))

    def victims(self, more: Demand, gone: frozenset[str], units: Iterable[Unit]) -> list[Unit] | None:
        """Return the units to evict so that `more` fits once `gone` are gone; None if it can't.

        Units at the front are spared first.
        """
        chosen = [each for each in units if not each.uids <= gone]
        if not self.fits(more, gone.union(*(each.uids for each in chosen))):
            return None
        return needed(chosen, gone, lambda others: self.fits(more, others))


def needed(units: list[Unit], gone: frozenset[str], fits: Callable[[frozenset[str]], bool]) -> list[Unit]:
    """Return the units that have to be evicted so that `fits` is true. Units at the front are spared first."""
    for unit in list(units):
        others = [each for each in units if each is not unit]
        if fits(gone.union(*(each.uids for each in others))):
            units = others
    return units


def _sum_of(pods: Iterable[PodState], name: str) -> Decimal:
    return sum((each.requests.get(name, NOTHING) for each in pods), NOTHING)


def _collide(one: Collection[Port], other: Collection[Port]) -> bool:
    return any(
        (protocol, number) == (theirs, taken) and ("0.0.0.0" in (address, at) or address == at)
        for address, protocol, number in one
        for at, theirs, taken in other
    )


def _is_met(wanted: Mapping[int, int], there: Mapping[int, int]) -> bool:
    return all(
        sum(count for bits, count in there.items() if bits & part) >= sum(wanted[each] for each in numbers)
        for part, numbers in _parts(tuple(sorted(wanted)))
    )


@cache
def _parts(numbers: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
    """Return all subsets of a set of wishes without the empty one, each as bits and as indices."""
    found: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    for number in numbers:
        found += [(bits | 1 << number, (*part, number)) for bits, part in found]
    return found[1:]
