"""Tiers: their definition, their ranks, and their PriorityClasses."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

from webhook.objects.refusal import Reason, Refused

PreemptionPolicy = Literal["PreemptLowerPriority", "Never"]

NONPREEMPTING = "-nonpreempting"
"""The suffix of a tier's second PriorityClass, the active one during adoption."""


class Tier(msgspec.Struct, frozen=True):
    """A named rank. `value` is the PriorityClass value, 1 to 1,000,000,000."""

    name: str
    value: int
    preemption_policy: PreemptionPolicy = "PreemptLowerPriority"
    description: str = ""


class PriorityClass(msgspec.Struct, frozen=True):
    """A live PriorityClass; its pods get `value` and `preemption_policy`. `ours`: the chart has made it."""

    name: str
    value: int
    preemption_policy: str = "PreemptLowerPriority"
    global_default: bool = False
    ours: bool = False


class Tiers:
    """The tiers of a policy, the highest first."""

    def __init__(self, tiers: Iterable[Tier]) -> None:
        self._ranked = sorted(tiers, key=lambda tier: -tier.value)
        self._by_name = {tier.name: tier for tier in self._ranked}
        self._by_class = {name: tier for tier in self._ranked for name in class_names(tier)}

    def __iter__(self) -> Iterator[Tier]:
        return iter(self._ranked)

    def get(self, name: str) -> Tier | None:
        return self._by_name.get(name)

    def of_class(self, class_name: str) -> Tier | None:
        """Return the tier with this PriorityClass, which may be the non-preempting one."""
        return self._by_class.get(class_name)

    def reached_by(self, value: int) -> Tier | None:
        """Return the highest tier that a priority value reaches. A class outside the tiers counts as that tier."""
        return next((tier for tier in self._ranked if tier.value <= value), None)

    def rank(self, name: str | None) -> int:
        """Return the value of a tier; 0 below every tier."""
        tier = self.get(name or "")
        return tier.value if tier else 0

    def names(self) -> str:
        return ", ".join(self._by_name)


def class_names(tier: Tier) -> tuple[str, str]:
    """Return a tier's PriorityClass and its non-preempting twin."""
    return tier.name, tier.name + NONPREEMPTING


def classes_of(tier: Tier) -> tuple[PriorityClass, PriorityClass]:
    own, calm = class_names(tier)
    return PriorityClass(own, tier.value, tier.preemption_policy), PriorityClass(calm, tier.value, "Never")


def active_class(tier: Tier, *, adoption: bool) -> str:
    return tier.name + NONPREEMPTING if adoption else tier.name


def live_class(tier: Tier, classes: Mapping[str, PriorityClass], *, adoption: bool) -> PriorityClass:
    """Return the live PriorityClass of a tier's new pods. Raises Refused if there is no such class."""
    name = active_class(tier, adoption=adoption)
    live = classes.get(name)
    if live is None:
        raise Refused(Reason.PRIORITY_CLASS, "class-missing", name=name, tier=tier.name)
    own, calm = classes_of(tier)
    wanted = own if name == own.name else calm
    for field, there, due in (
        ("value", live.value, wanted.value),
        ("preemptionPolicy", live.preemption_policy, wanted.preemption_policy),
    ):
        if there != due:
            raise Refused(
                Reason.PRIORITY_CLASS,
                "class-differs",
                name=name,
                attribute=field,
                there=there,
                due=due,
                tier=tier.name,
            )
    return live


class Disagreement(NamedTuple):
    """The reason why a tier and a live PriorityClass conflict: the policy's field, and the mistake."""

    field: str
    what: str

    def __str__(self) -> str:
        return f"{self.field}: {self.what}"


def disagreements(tiers: Tiers, classes: Mapping[str, PriorityClass]) -> list[Disagreement]:
    """Return why tiers and live PriorityClasses conflict; a missing class is no conflict."""
    problems: list[Disagreement] = []
    pairs = ((tier, wanted, classes.get(wanted.name)) for tier in tiers for wanted in classes_of(tier))
    for tier, wanted, live in pairs:
        if live is None:
            continue
        field, there = f"tiers.{tier.name}", f"PriorityClass/{live.name} exists with"
        if live.value != wanted.value:
            hint = "a PriorityClass's value is immutable: use that value or another tier name"
            problems.append(Disagreement(f"{field}.value", f"{wanted.value}, but {there} {live.value}; {hint}"))
        if live.preemption_policy != wanted.preemption_policy:
            hint = "a PriorityClass's preemptionPolicy is immutable: delete the class, or use another tier name"
            what = f"{wanted.preemption_policy}, but {there} {live.preemption_policy}; {hint}"
            problems.append(Disagreement(f"{field}.preemptionPolicy", what))
        if live.global_default:
            what = (
                f"PriorityClass/{live.name} is globalDefault, so every pod of the cluster would carry it; make another "
            )
            problems.append(Disagreement(field, what + "class the default"))
    return problems


def obstacles(tiers: Tiers, classes: Mapping[str, PriorityClass], *, adoption: bool) -> list[Disagreement]:
    """Return why pods of some tiers are refused: a class differs, or the active one is gone."""
    due = {tier.name: active_class(tier, adoption=adoption) for tier in tiers}
    gone = [
        Disagreement(f"tiers.{tier}", f"PriorityClass/{name} does not exist, so its pods are refused")
        for tier, name in due.items()
        if name not in classes
    ]
    return [*disagreements(tiers, classes), *gone]
