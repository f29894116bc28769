"""The parts of the model of Hold: its rules by name, pods, the ledger, leaders, and the charge of a ledger."""

from functools import lru_cache
from typing import NamedTuple, TypeVar

RULES = {
    "gate": "the gate on the pod decides: one without it is booked at its create, one with it counts zero until booked",
    "booked": "a pod is opened only after a write that booked it has won",
    "seen": "a booking goes when the same write counts its pod as open, or saw its end; not because the pod exists",
    "stays": "a booking whose pod exists never expires",
    "term": "a leader writes its term, then lists, then writes, only under its own term",
    "finish": "a leader opens all that is booked and still gated, whoever booked it",
    "version": "an opening carries the pod's resourceVersion",
    "before": "that version was seen before the write of the ledger that showed the booking under the own term",
    "release": "a booking whose opening is refused is released, and its pod passed over for a while",
    "touch": "a booking is released only after the pod was written, so that openings under way conflict",
    "whole": "a gang is booked whole in one write",
    "heirs": "the replacement of a preempted pod takes its slot, before the queue",
    "keep": "the slot of a preempted pod is reserved, after its end, while its controller makes the replacement",
    "missed": "the slot of a pod that was counted and is gone is reserved too, also by the next leader",
    "line": "the ledger has the order of first gates, and reserves a position until nothing is gated there",
    "strict": "nobody passes one before it in the queue that does not fit now",
    "never": "who could not even fit an empty quota is passed over",
    "drain": "the leader opens gated pods whatever onExceed says by now",
    "queue": "a pod without the gate is refused while a pod of its tier or a higher one is in the queue",
}
Pods = frozenset[int]
NONE: Pods = frozenset()
SHOWN = {"h": "h", "o": "o", "t": "t", "x": "e", "e": "e"}
FAULTS = ("claim", "refuse", "edit", "delete", "preempt", "mode", "lower", "raise")


class Pod(NamedTuple):
    """One create, of one GPU. `after`: its controller makes it once that pod is preempted or gone."""

    name: str
    unit: str
    tier: int = 0
    after: int = -1
    gang: int = 0


class Ledger(NamedTuple):
    term: int
    counted: Pods  # open pods, as the leader saw them
    reserved: Pods = NONE  # booked and not counted
    replacements: tuple[int, ...] = ()
    places: Pods = NONE  # preempted pods, terminating or gone, whose slot waits for a replacement
    line: tuple[tuple[str, int], ...] = ()  # workloads with gated pods, the first gated first, and GPUs that wait there
    gangs: frozenset[str] = frozenset()


class View(NamedTuple):
    at: str
    rv: tuple[int, ...]
    news: tuple[tuple[int, str, int], ...] = ()  # what the watch has yet to tell


class Leader(NamedTuple):
    view: View | None = None
    plan: frozenset[tuple[int, int]] = frozenset()  # openings that may be stored at any later time
    refused: Pods = NONE  # another webhook refused the opening
    skip: Pods = NONE  # touched since then: to be released, and passed over


class State(NamedTuple):
    at: str  # n not made yet; under way: g gated, u without gate, y admitted; h gated, o open, t preempted and
    # terminating, x gone after that, e ended, d dead (never stored)
    rv: tuple[int, ...]
    born: tuple[int, ...]  # the order in which pods were stored
    order: tuple[str, ...]  # ghost: workloads by when a leader first wrote that they wait
    ledger: Ledger
    leaders: tuple[Leader, ...]
    hold: bool
    quota: int
    cap: int  # what may be open: the quota, or what was charged already when it was lowered
    left: tuple[int, ...]  # how often each fault may still happen


class Scenario(NamedTuple):
    pods: tuple[Pod, ...]
    start: str  # the pods' first states
    quota: int
    faults: dict[str, int]
    hold: bool = True


@lru_cache(maxsize=1 << 16)
def members(at: str, letters: str) -> Pods:
    return frozenset(i for i, c in enumerate(at) if c in letters)


T = TypeVar("T")


def swap(values: tuple[T, ...], k: int, value: T) -> tuple[T, ...]:
    return (*values[:k], value, *values[k + 1 :])


def caught_up(view: View, events: int) -> View:
    for i, letter, rv in view.news[:events]:
        view = view._replace(at=view.at[:i] + letter + view.at[i + 1 :], rv=swap(view.rv, i, rv))
    return view._replace(news=view.news[events:])


@lru_cache(maxsize=1 << 18)
def charge(pods: tuple[Pod, ...], live: Pods, replacements: tuple[int, ...], gangs: frozenset[str]) -> int:
    """Count the larger of a victim and its replacements, and of what a booked gang declares and its pods use."""
    places, drawn = dict.fromkeys(live, 1), dict.fromkeys(gangs, 0)
    for replacement in [i for i in live if replacements[i] in live]:
        del places[replacement]
    for victim in {replacements[i] for i in live} & live:
        places[victim] = max(1, sum(replacements[i] == victim for i in live))
    for i, gpus in places.items():
        if pods[i].unit in gangs:
            drawn[pods[i].unit] += gpus
    alone = sum(gpus for i, gpus in places.items() if pods[i].unit not in gangs)
    return alone + sum(max(pods_gang(pods, unit), gpus) for unit, gpus in drawn.items())


def pods_gang(pods: tuple[Pod, ...], unit: str) -> int:
    return next(each.gang for each in pods if each.unit == unit)


class Rules:
    """The rules that are on, for some pods."""

    def __init__(self, scenario: Scenario, without: str = "") -> None:
        self.scenario, self.pods, self.off = scenario, scenario.pods, without

    def on(self, rule: str) -> bool:
        return rule != self.off

    def cost(self, ledger: Ledger) -> int:
        return charge(self.pods, ledger.counted | ledger.reserved | ledger.places, ledger.replacements, ledger.gangs)

    def of(self, unit: str, among: Pods) -> list[int]:
        return [i for i in sorted(among) if self.pods[i].unit == unit]

    def is_due(self, s: State, i: int) -> bool:
        return self.pods[i].after >= 0 and s.at[self.pods[i].after] in "txe" and s.at[i] in "ngu"

    def could_fit(self, s: State, unit: str) -> bool:
        return max(1, pods_gang(self.pods, unit)) <= s.quota

    def tier(self, unit: str) -> int:
        return next(each.tier for each in self.pods if each.unit == unit)
