"""Requests: the GPUs asked for, the user, and the rows of a quota that count them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from tests.honest.objects import Tree

Flavors = tuple[str, ...]


@dataclass(frozen=True)
class Ask:
    """GPUs of a tier, on one of these flavors. `claim`: whoever shares it asks for the same GPUs."""

    tier: str
    flavors: Flavors
    gpus: int
    claim: str = ""


@dataclass(frozen=True)
class Part:
    """Pods of one template."""

    each: Ask
    count: int

    @property
    def whole(self) -> Ask:
        gpus = self.each.gpus * (1 if self.each.claim else self.count)
        return Ask(self.each.tier, self.each.flavors, gpus, self.each.claim)


@dataclass(frozen=True)
class Row:
    """A row of a TenantQuota; `has_queue`: what is over it waits, whatever the tenant says."""

    tier: str | None
    flavor: str | None
    hard: int
    has_queue: bool

    @property
    def label(self) -> str:
        return " on ".join(each for each in (self.tier, self.flavor) if each) or "total"

    def counts(self, ask: Ask) -> bool:
        return self.tier in (None, ask.tier) and (self.flavor is None or self.flavor in ask.flavors)

    def sum(self, asks: Iterable[Ask]) -> int:
        counted = [each for each in asks if self.counts(each)]
        claims = {each.claim: each.gpus for each in counted if each.claim}
        return sum(each.gpus for each in counted if not each.claim) + sum(claims.values())


@dataclass(frozen=True)
class Bounds:
    """The least and the most GPUs that a row may count as used.

    `slots`: the most, where pods whose create was refused after us hold no more than their controller wants, and those
    that are gone hold nothing.
    """

    low: int
    high: int
    slots: int


@dataclass(frozen=True)
class Lost:
    """A create that we admitted and that was refused after us: its reservation stands `until` then.

    `controller`: the reference to what made the pod. `is_over`: it was stored, and is gone again.
    """

    until: float
    namespace: str
    ask: Ask
    controller: Tree | None = None
    is_over: bool = False


def job_pods(spec: Tree, succeeded: int = 0) -> int:
    parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
    return int(parallelism if completions is None else min(parallelism, completions - succeeded))


def missing(asked: Iterable[Ask], has: Iterable[Ask]) -> list[Ask]:
    """Return what is asked for beyond what is there, by tier."""
    left: list[list[Any]] = [[each.tier, each.gpus] for each in has]
    found = []
    for ask in asked:
        gpus = ask.gpus
        for each in left:
            if each[0] == ask.tier:
                taken = min(gpus, int(each[1]))
                gpus, each[1] = gpus - taken, int(each[1]) - taken
        if gpus > 0:
            found.append(replace(ask, gpus=gpus))
    return found
