"""Decides which pods are evicted so that a pod or a gang gets its devices of DRA, or why nobody is.

1. Read the preemptor, and what it needs (preemptor.py).
2. Evict nobody while its devices are free, or while the pods that use them end.
3. Evict nobody if kube-scheduler would make room by itself.
4. Choose a node for each pod, with the pods to evict there. A gang gets all of its nodes, or nobody is evicted. Evict
   nobody if a chosen node is reserved for others and can't be shared.
5. Spare each chosen pod that need not be evicted after all.

The order of nodes and of pods is kube-scheduler's, with the work that would be lost before the number of pods.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import product
from math import inf

import msgspec
from msgspec.structs import replace

from webhook.objects.node_fit import obstacle
from webhook.objects.refusal import Phrase
from webhook.policy.preemption.cluster_state import ClusterState, Rules
from webhook.policy.preemption.node_state import RESERVED, NodeState
from webhook.policy.preemption.preemptor import Choice, EvictionPlan, Need, NobodyEvicted, Preemptor, preemptor_of
from webhook.policy.preemption.reservation import is_shareable, reservations, waiting_gangs
from webhook.policy.preemption.room import NO_DEMAND, Demand, NodeCapacity, Unit, evictable_units, needed, over_budget

MOST_TRIES = 2000
"""Placements of one pod on one node that are tried before the search gives up, for pods with different needs."""
MOST_PROBLEMS = 3
"""Reasons of nodes that a sentence names."""


Cost = tuple[float, ...]
"""The price of a choice: the lower, the better."""
Known = dict[object, Phrase]
WORTH_WAITING = 4
"""The number of parts of a Cost up to the highest evicted tier. The preemptor waits for a node that is reserved for
others only if these parts are lower there than on any other node."""


def decide_preemption(
    gang: str, state: ClusterState, rules: Rules, within: frozenset[str] | None = None, known: Known | None = None
) -> EvictionPlan | Phrase:
    """Return the plan of evictions for a gang, or the words for why nobody is evicted.

    `gang` is as in PodState, the uid of a pod that has no gang. `within` are the only nodes where pods may be evicted,
    None for all nodes. `known` caches the words, because in one state they are the same for all gangs of a tier that
    need the same.
    """
    alike: object = None
    try:
        preemptor = preemptor_of(gang, state, rules)
        alike = preemptor.tier.name, preemptor.priority, tuple(map(_same, preemptor.needs))
        return (known or {}).get(alike) or _Search(preemptor, state, rules).plan(within)
    except NobodyEvicted as nobody:
        if known is not None and alike:
            known[alike] = nobody.why
        return nobody.why


class _Shape(msgspec.Struct, eq=False):
    """The pods of a preemptor that need the same, and the nodes that take them.

    `taking` nodes serve the devices by DRA, `plugged` ones by a device plugin. `shared` ones are reserved for other
    preemptors, which may leave some room.
    """

    need: Need
    demands: tuple[Demand, ...]
    taking: list[NodeCapacity]
    plugged: list[NodeCapacity]
    shared: list[NodeCapacity]

    @property
    def rooms(self) -> list[NodeCapacity]:
        return [*self.shared, *self.taking]


class _Search:
    """Looks for a node for each pod of a preemptor, and for pods to evict there."""

    def __init__(self, preemptor: Preemptor, state: ClusterState, rules: Rules) -> None:
        self._preemptor, self._state, self._rules = preemptor, state, rules
        self._chosen: list[Unit] = []

        # 1. The needs of the pods that wait for a reserved node, because what the victims there leave is theirs.
        #    kube-scheduler counts so by nominated nodes. A gang's pods may go to any of its nodes, so it is left out.
        others, there = defaultdict[str, tuple[Need, ...]](tuple), reservations(state)
        for each in there:
            for other in waiting_gangs(each, state):
                if other != preemptor.gang and each.victims and len(each.nodes) == 1:
                    with suppress(NobodyEvicted):
                        others[each.nodes[0]] += preemptor_of(other, state, rules).needs

        # 2. The reserved nodes where pods are evicted for it, and those where it may join for what is left. Only single
        #    pods join. Those of a lower tier evict nobody there, because the taint keeps them off until the others have
        #    their devices.
        joins, left = set[str](), set[str]()
        for each in there:
            if any(need.pod.uid in each.pods for need in preemptor.needs):
                joins.update(each.nodes)
            elif len(preemptor.needs) == 1 and is_shareable(each, state):
                left.update(each.nodes)
                joins.update(each.nodes if preemptor.tier.value >= rules.policy.tiers.rank(each.tier) else ())

        # 3. The demands of all of them.
        needs = (*preemptor.needs, *(need for other in others.values() for need in other))
        every = (wanted for need in needs for choice in need.choices for wanted in choice)
        self._wishes = tuple(dict.fromkeys(replace(wanted, count=1) for wanted in every))
        self._taken = {
            node: sum((self._demand(each, each.choices[0]) for each in other), NO_DEMAND)
            for node, other in others.items()
        }
        self._joins, self._left, self._closed = joins, left, (self._taken.keys() | left) - joins
        self._drivers = frozenset[str]().union(*(need.drivers for need in needs))

        # 4. The nodes that take its pods.
        self._rooms: dict[str, NodeCapacity] = {}
        shapes: dict[object, _Shape] = {}
        keys = [_same(need) for need in preemptor.needs]
        for key, need in zip(keys, preemptor.needs, strict=True):
            if key not in shapes:
                shapes[key] = self._shape(need)
        self._shapes, self._pods = tuple(shapes.values()), [shapes[key] for key in keys]

    def plan(self, within: frozenset[str] | None) -> EvictionPlan:
        """Return which pods are evicted on which nodes, none of them on other nodes than `within`.

        A plan without victims shares a reserved node on which devices are free or become free. Raises NobodyEvicted.
        """
        # 1. Devices that are free, or become free.
        preemptor, ending = self._preemptor, self._state.ending(self._rules.longest_grace)
        for gone, answer in ((frozenset[str](), "preemption-devices-free"), (ending, "preemption-holders-ending")):
            if (node := self._room_without_eviction(gone)) is not None:
                if node in self._left:  # it may join those for which the node is reserved
                    return EvictionPlan(preemptor, (node,), ())
                raise NobodyEvicted(answer, pod=preemptor.shown, node=node)

        # 2. Devices for which the scheduler evicts.
        if (node := self._made_by_scheduler(ending)) is not None:
            raise NobodyEvicted("preemption-by-scheduler", pod=preemptor.shown, node=node)

        # 3. Pods that could be evicted. A node that is reserved for others and can't be shared is waited for.
        units = evictable_units(preemptor, self._state, self._rules)
        if within is not None:
            units = {node: found for node, found in units.items() if node in within}
        if not self._place(ending, units):
            raise self._reason()
        nodes = self._nodes
        if (node := next((each for each in nodes if each in self._closed), None)) is not None:
            raise NobodyEvicted("preemption-after-another", pod=preemptor.shown, node=node)

        # 4. Pods that can stay. A group that goes as a whole may have made room on a second node.
        chosen = sorted(self._chosen, key=lambda unit: (-unit.tier, -unit.at_risk))
        rooms = [self._rooms[name] for name in nodes]
        chosen = needed(chosen, ending, lambda gone: all(room.fits(NO_DEMAND, gone) for room in rooms))
        victims = sorted((pod for unit in chosen for pod in unit.pods), key=lambda pod: (-pod.grace, pod.shown))
        return EvictionPlan(preemptor, nodes, tuple(victims))

    @property
    def _nodes(self) -> tuple[str, ...]:
        placed = (name for name, room in self._rooms.items() if room.demand is not self._taken.get(name, NO_DEMAND))
        return tuple(sorted(placed))

    def _shape(self, need: Need) -> _Shape:
        demands = tuple(self._demand(need, each) for each in need.choices)
        shape, problems = _Shape(need, demands, [], [], []), Counter[str]()
        for name, node in self._state.nodes.items():
            if problem := self._problem(need, node):
                problems[problem] += 1
                continue
            if name not in self._rooms:
                self._rooms[name] = NodeCapacity(node, self._state, self._wishes, self._drivers)
            if lacking := self._rooms[name].lacking(need.amounts):
                problems[f"short of {lacking}"] += 1
                continue
            plugged = any(node.plugs(resource) for resource in need.by_class)
            rooms = shape.shared if name in self._taken else shape.plugged if plugged else shape.taking
            rooms.append(self._rooms[name])
        if not shape.rooms:
            reasons = tuple(f"{text} ({count})" for text, count in problems.most_common(MOST_PROBLEMS))
            raise NobodyEvicted("preemption-no-node", pod=need.pod.shown, problems=reasons)
        return shape

    def _demand(self, need: Need, choice: Choice) -> Demand:
        devices: Counter[int] = Counter()
        for each in choice:
            devices[self._wishes.index(replace(each, count=1))] += each.count
        return Demand(devices, need.amounts, need.pod.ports)

    def _problem(self, need: Need, node: NodeState) -> str:
        """Return why a node does not take a pod, however free it is; "" where it does."""
        if not node.is_open:
            return "not ready or cordoned"
        if node.reserved_for and node.name not in self._joins | self._closed:
            return "reserved for another pod"
        if any(node.labels.get(key) in values for key, values in need.repelled_from.items()):
            return "closed to it by the anti-affinity of a pod"
        if not all(any(term.matches(node.name, node.labels) for term in terms) for terms in need.terms):
            return "out of reach of its volumes"
        taints = tuple(each for each in node.taints if each.key != RESERVED)
        return obstacle(need.spec, node.name, node.labels, taints)

    def _room_without_eviction(self, gone: frozenset[str]) -> str | None:
        """Find room for all pods once the pods of these uids are `gone`; return the first such node by name.

        None if there is no room. Raises NobodyEvicted if the search takes too long.
        """
        self._begin()
        fitting = {
            each: [room for room in each.rooms if any(room.fits(demand, gone) for demand in each.demands)]
            for each in self._shapes
        }
        # Pods that need the same may go wherever the first of them fit: nothing else has to be tried for them.
        for shape in self._shapes:
            if len(shape.demands) == 1:
                self._begin()
                alike = [each for each in self._pods if each is shape]
                if not self._placed(alike, fitting, gone, len(alike)):
                    return None
                if len(self._shapes) == 1:
                    return self._nodes[0]
        self._begin()
        return self._nodes[0] if self._placed(self._pods, fitting, gone, MOST_TRIES) else None

    def _placed(
        self, pods: Sequence[_Shape], fitting: Mapping[_Shape, list[NodeCapacity]], gone: frozenset[str], tries: int
    ) -> bool:
        """Tell whether each of these pods finds a node, with at most so many `tries`, and book the pods on the nodes.

        With as many tries as pods, only the first node that fits each pod is tried. Raises NobodyEvicted when a search
        has used up its tries.
        """
        only_first, left = tries == len(pods), tries

        def rest_fits(index: int) -> bool:
            nonlocal left
            if index == len(pods):
                return True
            for room, demand in product(fitting[pods[index]], pods[index].demands):
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
        self._chosen = []
        for name, room in self._rooms.items():
            room.demand = self._taken.get(name, NO_DEMAND)

    def _place(self, gone: frozenset[str], units: Mapping[str, list[Unit]]) -> bool:
        """Choose the cheapest node for each pod once these uids are `gone`, and the units to evict.

        False if a pod finds no node.
        """
        self._begin()
        known: dict[tuple[_Shape, int], dict[str, tuple[Cost, list[Unit]]]] = {}
        for shape in self._pods:
            # 1. The cheapest node for the first of its choices that some node has.
            for number, demand in enumerate(shape.demands):
                if (shape, number) not in known:
                    weighed = ((room.node.name, self._weighed(room, demand, gone, units)) for room in shape.rooms)
                    known[shape, number] = {name: found for name, found in weighed if found}
                costs = known[shape, number]
                if costs:
                    break
            else:
                return False
            best = min(costs, key=lambda name: (costs[name][0], name))

            # 2. Less of that node is left for the others, so it is weighed again.
            room, victims = self._rooms[best], costs[best][1]
            self._chosen += victims
            gone = gone.union(*(each.uids for each in victims))
            room.demand += demand
            for other in self._shapes:
                for number, again in enumerate(other.demands):
                    costs = known.get((other, number), {})
                    if costs.pop(best, None) and (found := self._weighed(room, again, gone, units)):
                        costs[best] = found
        return True

    def _weighed(
        self, room: NodeCapacity, demand: Demand, gone: frozenset[str], units: Mapping[str, list[Unit]]
    ) -> tuple[Cost, list[Unit]] | None:
        """Return the cost of choosing a node, and the units to evict there; None if no eviction makes room."""
        victims = room.victims(demand, gone, units.get(room.node.name, ()))
        if victims is None:
            return None
        cost: Cost = (0.0,)
        pods = [pod for unit in victims for pod in unit.pods]
        if victims:
            cost = (
                1.0,
                sum(pod.grace > self._rules.longest_grace for pod in pods),  # such an eviction would not help in time
                sum(over_budget(pods, self._state.budgets).values()),
                max(unit.tier for unit in victims),
                sum(unit.at_risk for unit in victims),
                len(pods),
                -min(unit.started_at for unit in victims),
            )
        # A node that is reserved for another pod is waited for only where higher tiers would be evicted elsewhere.
        waits = room.node.name in self._closed
        return (*cost[:WORTH_WAITING], inf) if waits else cost, victims

    def _made_by_scheduler(self, ending: frozenset[str]) -> str | None:
        """Return a node where kube-scheduler evicts by itself: devices of DRA are free there, or a plugin has them.

        None without such a node.
        """
        priority, pods = self._preemptor.priority, self._state.pods.values()
        lower = ending.union(pod.uid for pod in pods if pod.node and pod.priority < priority)
        self._begin()
        for shape in self._shapes:
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

    def _reason(self) -> NobodyEvicted:
        """Return why no eviction makes room."""
        for shape in self._shapes:
            there = [room for room in shape.rooms if any(map(room.has_enough, shape.demands))]
            if not there:
                break
        else:
            return NobodyEvicted("preemption-nobody-lower", pod=self._preemptor.shown)
        if any(room.has_unknown for room in shape.rooms):
            return NobodyEvicted("preemption-not-judged", pod=shape.need.pod.shown, what=Phrase("unjudged-selector"))
        return NobodyEvicted("preemption-too-few-devices", pod=shape.need.pod.shown)


def _same(need: Need) -> object:
    """Return a key that is equal for pods that need the same."""
    spec = need.spec
    selected = tuple(sorted(spec.node_selector.items())), spec.node_terms, repr(spec.tolerations)
    repelled_from = tuple(sorted((key, tuple(sorted(values))) for key, values in need.repelled_from.items()))
    reached = need.terms, repelled_from
    by_class = tuple(sorted(need.by_class.items())), bool(need.pod.claims)
    return need.choices, tuple(sorted(need.amounts.items())), by_class, need.pod.ports, selected, reached
