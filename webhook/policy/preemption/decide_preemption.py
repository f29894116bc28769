"""Decides which pods are evicted so that a pod or a gang gets its devices of DRA, or why nobody is.

1. Who waits, and what it needs (preemptor.py).
2. Nothing may be had already: nobody is evicted while devices are free, or while their holders end.
3. Nobody is evicted where kube-scheduler would make room by itself.
4. A node for each pod, with the pods to evict there. A gang gets all of its nodes, or nobody is evicted.
5. Whoever can stay after all does.

The order of nodes and of pods is kube-scheduler's, with the work that would be lost before the number of pods.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import inf

import msgspec
from msgspec.structs import replace

from webhook.objects.node_fit import obstacle
from webhook.objects.refusal import Phrase
from webhook.policy.preemption.cluster_state import ClusterState, Rules
from webhook.policy.preemption.disruption_budget import DisruptionBudget
from webhook.policy.preemption.node_state import RESERVED, NodeState
from webhook.policy.preemption.pod_state import PodState
from webhook.policy.preemption.preemptor import Choice, EvictionPlan, Need, NobodyEvicted, Preemptor, preemptor_of
from webhook.policy.preemption.reservation import reservation_on, reservations
from webhook.policy.preemption.room import NO_DEMAND, Demand, NodeCapacity, Unit, Wishes

MOST_TRIES = 2000
"""Placements of a gang of different pods that are tried before the search gives up."""
MOST_PROBLEMS = 3
"""Reasons of nodes that a sentence names."""


Cost = tuple[float, ...]
"""The price of a choice: the lower, the better."""
WORTH_WAITING = 4
"""The parts of it that are worth to wait for another preemptor: those up to the highest tier that is evicted."""


def decide_preemption(
    gang: str, state: ClusterState, rules: Rules, within: frozenset[str] | None = None
) -> EvictionPlan | Phrase:
    """Decide for a gang, or for a pod by its uid. `within`: nobody is evicted on other nodes than these."""
    try:
        return _plan(gang, state, rules, within)
    except NobodyEvicted as nobody:
        return nobody.why


def _plan(gang: str, state: ClusterState, rules: Rules, within: frozenset[str] | None) -> EvictionPlan:
    # 1. Who waits, and on which nodes it could run.
    preemptor = preemptor_of(gang, state, rules)
    search = _Search(preemptor, state, rules)

    # 2. What is free, or comes free.
    ending = state.ending(rules.longest_grace)
    if (node := search.room_without_eviction(frozenset())) is not None:
        raise NobodyEvicted("preemption-devices-free", pod=preemptor.shown, node=node)
    if (node := search.room_without_eviction(ending)) is not None:
        raise NobodyEvicted("preemption-holders-ending", pod=preemptor.shown, node=node)

    # 3. What the scheduler evicts for.
    if (node := search.made_by_scheduler(ending)) is not None:
        raise NobodyEvicted("preemption-by-scheduler", pod=preemptor.shown, node=node)

    # 4. Who could be evicted.
    units = _units(preemptor, state, rules)
    if within is not None:
        units = {node: found for node, found in units.items() if node in within}
    if not search.place(ending, units):
        raise search.reason()
    if (node := search.first_reserved) is not None:
        raise NobodyEvicted("preemption-after-another", pod=preemptor.shown, node=node)

    # 5. Who can stay. A group that goes as a whole may have made room on a second node.
    chosen = sorted(search.chosen, key=lambda unit: (-unit.tier, -unit.at_risk))
    for unit in list(chosen):
        others = [each for each in chosen if each is not unit]
        if search.is_placed(ending.union(*(each.uids for each in others))):
            chosen = others
    victims = sorted((pod for unit in chosen for pod in unit.pods), key=lambda pod: (-pod.grace, pod.shown))
    return EvictionPlan(preemptor, search.nodes, tuple(victims))


class _Shape(msgspec.Struct, eq=False):
    """The pods of a preemptor that need the same, and the rooms that take them: by DRA, and by a device plugin.

    `shared` are reserved for another preemptor, which may leave some of their room.
    """

    need: Need
    demands: tuple[Demand, ...]
    taking: list[NodeCapacity]
    plugged: list[NodeCapacity]
    shared: list[NodeCapacity]


class _Search:
    """Looks for a node for each pod of a preemptor. `place` leaves the `nodes`, and the units `chosen` for eviction."""

    def __init__(self, preemptor: Preemptor, state: ClusterState, rules: Rules) -> None:
        self._preemptor, self._state, self._rules = preemptor, state, rules
        others = _preemptors_on(preemptor.gang, state, rules)
        needs = (*preemptor.needs, *(need for other in others.values() for need in other))
        every = (wanted for need in needs for choice in need.choices for wanted in choice)
        self._wishes: Wishes = tuple(dict.fromkeys(replace(wanted, count=1) for wanted in every))
        self._taken = {
            node: sum(
                (Demand(self._numbered(each.choices[0]), each.amounts, each.pod.ports) for each in other), NO_DEMAND
            )
            for node, other in others.items()
        }
        self._rooms: dict[str, NodeCapacity] = {}
        self.chosen: list[Unit] = []
        self._shapes: list[_Shape] = []
        known: dict[object, _Shape] = {}
        for need in preemptor.needs:
            key = _same(need)
            if key not in known:
                known[key] = self._shape(need)
            self._shapes.append(known[key])

    @property
    def nodes(self) -> tuple[str, ...]:
        placed = (name for name, room in self._rooms.items() if room.demand is not self._taken.get(name, NO_DEMAND))
        return tuple(sorted(placed))

    def _shape(self, need: Need) -> _Shape:
        demands = tuple(Demand(self._numbered(each), need.amounts, need.pod.ports) for each in need.choices)
        shape, problems = _Shape(need, demands, [], [], []), Counter[str]()
        for name, node in self._state.nodes.items():
            if problem := self._problem(need, node):
                problems[problem] += 1
                continue
            if name not in self._rooms:
                self._rooms[name] = NodeCapacity(node, self._state, self._wishes)
            plugged = any(node.plugs(resource) for resource in need.by_class)
            rooms = shape.shared if name in self._taken else shape.plugged if plugged else shape.taking
            rooms.append(self._rooms[name])
        if not shape.taking and not shape.shared:
            reasons = tuple(f"{text} ({count})" for text, count in problems.most_common(MOST_PROBLEMS))
            raise NobodyEvicted("preemption-no-node", pod=need.pod.shown, problems=reasons)
        return shape

    def _numbered(self, choice: Choice) -> Counter[int]:
        devices: Counter[int] = Counter()
        for each in choice:
            devices[self._wishes.index(replace(each, count=1))] += each.count
        return devices

    def _problem(self, need: Need, node: NodeState) -> str:
        """Return why a node does not take a pod, however free it is; "" where it does."""
        reservation, taints = reservation_on(node), node.taints
        if not node.is_open:
            return "not ready or cordoned"
        if node.name in self._taken:
            taints = tuple(each for each in taints if each.key != RESERVED)
        elif node.reserved_for and (reservation is None or reservation.gang != self._preemptor.gang):
            return "reserved for another pod"
        return obstacle(need.spec, node.name, node.labels, taints)

    def room_without_eviction(self, gone: frozenset[str]) -> str | None:
        """Find room for all pods once the pods of these uids are `gone`; return the node of the first, None without.

        Raises NobodyEvicted where that takes too long to tell.
        """
        self._begin()
        shapes = {id(each): each for each in self._shapes}
        fitting = {
            key: [room for room in (*each.taking, *each.shared) if room.has_any(each.demands, gone)]
            for key, each in shapes.items()
        }
        # Pods that need the same may go wherever the first of them fit: nothing else has to be tried for them.
        for shape in shapes.values():
            if len(shape.demands) == 1:
                self._begin()
                alike = [each for each in self._shapes if each is shape]
                if not self._placed(alike, fitting, gone, len(alike)):
                    return None
                if len(shapes) == 1:
                    return self.nodes[0]
        self._begin()
        return self.nodes[0] if self._placed(self._shapes, fitting, gone, MOST_TRIES) else None

    def _placed(
        self, shapes: Sequence[_Shape], fitting: Mapping[int, list[NodeCapacity]], gone: frozenset[str], tries: int
    ) -> bool:
        """Try all placements of these pods. With as many `tries` as pods, only the first that offers itself."""
        only_first, left = tries == len(shapes), tries

        def rest_fits(index: int) -> bool:
            nonlocal left
            if index == len(shapes):
                return True
            for room, demand in product(fitting[id(shapes[index])], shapes[index].demands):
                if not room.fits(demand, gone):
                    continue
                if not left:
                    what = Phrase("unjudged-gang")
                    raise NobodyEvicted("preemption-not-judged", pod=self._preemptor.shown, what=what)
                before, left = room.demand, left - 1
                room.demand = before + demand
                if rest_fits(index + 1):
                    return True
                if only_first:
                    return False
                room.demand = before
            return False

        return rest_fits(0)

    def _begin(self) -> None:
        self.chosen = []
        for name, room in self._rooms.items():
            room.demand = self._taken.get(name, NO_DEMAND)

    def place(self, gone: frozenset[str], units: Mapping[str, list[Unit]]) -> bool:
        """Find the cheapest node for each pod once the pods of these uids are `gone`, and evicted units with them."""
        self._begin()
        known: dict[tuple[int, int], dict[str, tuple[Cost, list[Unit]]]] = {}
        for shape in self._shapes:
            # 1. The cheapest node for the first of its choices that some node has.
            for number, demand in enumerate(shape.demands):
                if (id(shape), number) not in known:
                    rooms = (*shape.taking, *shape.shared)
                    weighed = ((room.node.name, self._weighed(room, demand, gone, units)) for room in rooms)
                    known[id(shape), number] = {name: found for name, found in weighed if found}
                costs = known[id(shape), number]
                if costs:
                    break
            else:
                return False
            best = min(costs, key=lambda name: (costs[name][0], name))

            # 2. Of that node less is left for the others.
            room, victims = self._rooms[best], costs[best][1]
            self.chosen += victims
            gone = gone.union(*(each.uids for each in victims))
            room.demand += demand
            for other in {id(each): each for each in self._shapes}.values():
                for number, again in enumerate(other.demands):
                    costs = known.get((id(other), number), {})
                    if costs.pop(best, None) and (found := self._weighed(room, again, gone, units)):
                        costs[best] = found
        return True

    def _weighed(
        self, room: NodeCapacity, demand: Demand, gone: frozenset[str], units: Mapping[str, list[Unit]]
    ) -> tuple[Cost, list[Unit]] | None:
        victims = room.victims(demand, gone, units.get(room.node.name, ()))
        if victims is None:
            return None
        cost = self._cost(victims)
        # A node that is reserved for another pod is waited for only where higher tiers would be evicted elsewhere.
        return (*cost[:WORTH_WAITING], inf) if room.node.name in self._taken else cost, victims

    def _cost(self, victims: list[Unit]) -> Cost:
        """Return what the choice of a node costs. The eviction of a pod that does not end in time would not help."""
        if not victims:
            return (0.0,)
        pods = [pod for unit in victims for pod in unit.pods]
        return (
            1.0,
            sum(pod.grace > self._rules.longest_grace for pod in pods),
            sum(_over_budget(pods, self._state.budgets).values()),
            max(unit.tier for unit in victims),
            sum(unit.at_risk for unit in victims),
            len(pods),
            -min(unit.started_at for unit in victims),
        )

    @property
    def first_reserved(self) -> str | None:
        """The first of its nodes that is reserved for another preemptor."""
        return next((each for each in self.nodes if each in self._taken), None)

    def is_placed(self, gone: frozenset[str]) -> bool:
        """Tell whether the pods that were placed still fit once these pods are gone."""
        return all(room.fits(NO_DEMAND, gone) for room in self._rooms.values() if room.demand.pods)

    def made_by_scheduler(self, ending: frozenset[str]) -> str | None:
        """Return a node where kube-scheduler evicts by itself: no devices of DRA are missing there."""
        priority, pods = self._preemptor.priority, self._state.pods.values()
        lower = ending.union(pod.uid for pod in pods if pod.node and pod.priority < priority)
        self._begin()
        for shape in {id(each): each for each in self._shapes}.values():
            for room in shape.taking:
                if any(
                    room.fits(each, ending, without=lower) and not room.fits(each, ending) for each in shape.demands
                ):
                    return room.node.name
            need = shape.need
            by_plugin = Demand({}, {**need.amounts, **need.by_class}, need.pod.ports)
            for room in shape.plugged if not need.pod.claims else ():
                if room.fits(by_plugin, lower):
                    return room.node.name
        return None

    def reason(self) -> NobodyEvicted:
        """Return why no eviction makes room."""
        for shape in self._shapes:
            there = [room for room in shape.taking if any(map(room.has_enough, shape.demands))]
            if not there:
                break
        else:
            return NobodyEvicted("preemption-nobody-lower", pod=self._preemptor.shown)
        if any(room.has_unknown for room in shape.taking):
            return NobodyEvicted("preemption-not-judged", pod=shape.need.pod.shown, what=Phrase("unjudged-selector"))
        return NobodyEvicted("preemption-too-few-devices", pod=shape.need.pod.shown)


def _preemptors_on(gang: str, state: ClusterState, rules: Rules) -> dict[str, tuple[Need, ...]]:
    """Return what pods need that wait for a node which is reserved for them, by node: what they leave is had already.

    kube-scheduler counts so by nominated nodes. A gang's pods may go to any of its nodes, so of these nothing is left.
    """
    found: dict[str, tuple[Need, ...]] = {}
    for reservation in reservations(state).values():
        if reservation.gang != gang and reservation.victims and len(reservation.nodes) == 1:
            try:
                found[reservation.nodes[0]] = preemptor_of(reservation.gang, state, rules).needs
            except NobodyEvicted:
                continue
    return found


def _same(need: Need) -> object:
    """Return what two pods have in common that need the same."""
    spec = need.spec
    selected = tuple(sorted(spec.node_selector.items())), spec.node_terms, repr(spec.tolerations)
    return need.choices, tuple(sorted(need.amounts.items())), need.pod.ports, selected


def _units(preemptor: Preemptor, state: ClusterState, rules: Rules) -> dict[str, list[Unit]]:
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
        guarded = _over_budget(pods_in_order, state.budgets)
        found.sort(key=lambda unit: not any(pod.uid in guarded for pod in unit.pods))
    return units


def _unit(pods: tuple[PodState, ...], state: ClusterState, ranks: Mapping[str, int]) -> Unit:
    return Unit(pods, max(ranks[pod.uid] for pod in pods), sum(state.at_risk.get(pod.uid, 0.0) for pod in pods))


def _over_budget(pods: Iterable[PodState], budgets: Mapping[str, Sequence[DisruptionBudget]]) -> Counter[str]:
    """Return the uids of pods whose eviction breaks a budget, after those before them, with how many it breaks."""
    gone, broken = Counter[tuple[str, str]](), Counter[str]()
    for pod in pods:
        for budget in budgets.get(pod.namespace, ()):
            if budget.covers(pod.namespace, pod.labels):
                gone[budget.namespace, budget.name] += 1
                broken[pod.uid] += gone[budget.namespace, budget.name] > budget.allowed
    return +broken
