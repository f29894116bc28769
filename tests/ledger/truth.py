"""The truth: the stored pods, the reserved pods that may still come, and the GPUs of both together.

No ledger may hold less than this. It is counted here by itself, from the tests' own steps.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum, auto


class State(Enum):
    """The progress of a create."""

    ASKED = auto()
    GATED = auto()
    RESERVED = auto()
    STORED = auto()
    PREEMPTED = auto()
    ENDED = auto()
    NEVER = auto()


UNDER_WAY = (State.RESERVED,)
THERE = (State.STORED, State.PREEMPTED)


@dataclass(frozen=True)
class Create:
    """One create of a pod, or of a `workload`. `place`: its name, where another create bears the same.

    `gang` is the workload that a pod is of, `priority` that of its tier, and `growing` the GPUs of a workload's change
    that is under way.
    """

    name: str
    namespace: str
    gpus: int = 1
    place: str = ""
    controller: str = ""
    state: State = State.ASKED
    replaces: str = ""
    gang: str = ""
    workload: bool = False
    growing: int = 0
    priority: int = 0


class Truth:
    """The creates of a story, by name."""

    def __init__(self) -> None:
        self.creates: dict[str, Create] = {}
        self.forgotten: set[str] = set()
        """Workloads whose charge as a whole was forgotten by a rebuild: only what their pods hold counts."""

    def add(self, create: Create) -> None:
        self.creates[create.name] = create

    def become(self, name: str, state: State, replaces: str = "") -> None:
        """A create has come so far. One that replaces a preempted pod does so only where no other does already."""
        rivals = [each for each in self._in(THERE + UNDER_WAY) if each.replaces == replaces and each.name != name]
        changes = {} if not replaces or rivals else {"replaces": replaces}
        self.creates[name] = replace(self.creates[name], state=state, **changes)

    def named(self, *states: State) -> list[Create]:
        """The creates in one of these states."""
        return list(self._in(states))

    def workloads(self, namespaces: Collection[str]) -> list[Create]:
        """Return the workloads that exist or may still be stored."""
        return [each for each in self._in(THERE + UNDER_WAY) if each.workload and each.namespace in namespaces]

    def stored(self, namespaces: Collection[str]) -> Decimal:
        """GPUs that stored pods of these namespaces hold."""
        return self._gpus(namespaces, THERE)

    def potential(self, namespaces: Collection[str]) -> Decimal:
        """The same, and all that may still be stored: reservations that have not ended."""
        return self._gpus(namespaces, THERE + UNDER_WAY)

    def _in(self, states: Collection[State]) -> Iterable[Create]:
        return (each for each in self.creates.values() if each.state in states)

    def _gpus(self, namespaces: Collection[str], states: Collection[State]) -> Decimal:
        live = {each.name: each for each in self._in(states) if each.namespace in namespaces}
        inherited = {each.replaces for each in live.values() if each.replaces in live}
        gangs = {each.name: max(each.gpus, each.growing) for each in live.values() if each.workload}
        gangs = {name: 0 if name in self.forgotten else gpus for name, gpus in gangs.items()}
        places = defaultdict[tuple[str, str], list[int]](list)
        for each in live.values():
            if not each.workload:
                places[each.gang if each.gang in gangs else "", _place(each, inherited)].append(each.gpus)
        drawn = Counter[str]()
        for (gang, _), gpus in places.items():
            drawn[gang] += max(gpus)
        return Decimal(drawn[""] + sum(_of_one_name(names, gangs, drawn) for names in self._namesakes(gangs)))

    def _namesakes(self, gangs: Iterable[str]) -> Iterable[list[str]]:
        """Workloads that bear one namespace and name: one of them at most is stored."""
        places = defaultdict[tuple[str, str], list[str]](list)
        for each in (self.creates[gang] for gang in gangs):
            places[each.namespace, each.place or each.name].append(each.name)
        return places.values()


def _of_one_name(names: Collection[str], gangs: Mapping[str, int], drawn: Mapping[str, int]) -> int:
    return max(*(gangs[name] for name in names), sum(drawn[name] for name in names))


def _place(create: Create, inherited: Collection[str]) -> str:
    """Two share a slot where only one can run: a victim and its replacement, and all of one namespace and name."""
    if create.replaces in inherited:
        return create.replaces
    if create.name in inherited or not create.place:
        return create.name
    return f"{create.namespace}/{create.place}"
