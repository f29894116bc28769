"""Tiers: what they are, how they rank, and the PriorityClasses that carry them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from webhook.objects.refusal import Reason, Refused

PreemptionPolicy = Literal["PreemptLowerPriority", "Never"]

NONPREEMPTING = "-nonpreempting"
"""Ends the name of a tier's second PriorityClass, the one in force during adoption."""


@dataclass(frozen=True, slots=True)
class Tier:
    """A named rank. `value` is the PriorityClass value, 1 to 1,000,000,000."""

    name: str
    value: int
    preemption_policy: PreemptionPolicy = "PreemptLowerPriority"
    description: str = ""


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """A live PriorityClass; `value` and `preemption_policy` are what pods of it get."""

    name: str
    value: int
    preemption_policy: str = "PreemptLowerPriority"
    global_default: bool = False


class Tiers:
    """The tiers of a policy, the highest first."""

    def __init__(self, tiers: Iterable[Tier]) -> None:
        self._ranked = sorted(tiers, key=lambda tier: -tier.value)
        self._by_name = {tier.name: tier for tier in self._ranked}
        self._by_class = {name: tier for tier in self._ranked for name in class_names(tier)}

    def __iter__(self) -> Iterator[Tier]:
        return iter(self._ranked)

    def get(self, name: str) -> Tier | None:
        """The tier of that name."""
        return self._by_name.get(name)

    def of_class(self, class_name: str) -> Tier | None:
        """The tier whose PriorityClass this is, its non-preempting one included."""
        return self._by_class.get(class_name)

    def reached_by(self, value: int) -> Tier | None:
        """The highest tier that a priority value reaches: as that tier a class outside the tiers is counted."""
        return next((tier for tier in self._ranked if tier.value <= value), None)

    def names(self) -> str:
        """All tiers, the highest first, as a refusal lists them."""
        return ", ".join(self._by_name)


def class_names(tier: Tier) -> tuple[str, str]:
    """A tier's PriorityClass and its non-preempting twin."""
    return tier.name, tier.name + NONPREEMPTING


def classes_of(tier: Tier) -> tuple[PriorityClass, PriorityClass]:
    """A tier's PriorityClass and its non-preempting twin, as they should be."""
    own, calm = class_names(tier)
    return PriorityClass(own, tier.value, tier.preemption_policy), PriorityClass(calm, tier.value, "Never")


def class_in_force(tier: Tier, *, adoption: bool) -> str:
    """The PriorityClass that pods of a tier get now."""
    return tier.name + NONPREEMPTING if adoption else tier.name


def live_class(tier: Tier, classes: Mapping[str, PriorityClass], *, adoption: bool) -> PriorityClass:
    """The PriorityClass that pods of a tier get now, as the cluster has it. Raises Refused where it can't be given."""
    name = class_in_force(tier, adoption=adoption)
    live = classes.get(name)
    if live is None:
        raise Refused(
            f"PriorityClass/{name} of tier {tier.name} does not exist; "
            "your platform team restores it with helm upgrade",
            Reason.PRIORITY_CLASS,
        )
    wanted = next(each for each in classes_of(tier) if each.name == name)
    for field, there, due in (
        ("value", live.value, wanted.value),
        ("preemptionPolicy", live.preemption_policy, wanted.preemption_policy),
    ):
        if there != due:
            raise Refused(
                f"PriorityClass/{name} has {field} {there}, but the policy says {due} for tier {tier.name}; "
                "your platform team has to bring the two together",
                Reason.PRIORITY_CLASS,
            )
    return live


def disagreements(tiers: Tiers, classes: Mapping[str, PriorityClass]) -> list[str]:
    """Why tiers and live PriorityClasses can't work together, a sentence each; a missing class is no such reason."""
    problems: list[str] = []
    for tier in tiers:
        for wanted in classes_of(tier):
            live = classes.get(wanted.name)
            if live is not None:
                problems += _differences(tier, wanted, live)
    return problems


def _differences(tier: Tier, wanted: PriorityClass, live: PriorityClass) -> Iterator[str]:
    there = f"PriorityClass/{live.name} exists with"
    if live.value != wanted.value:
        yield (
            f"tiers.{tier.name}.value: {wanted.value}, but {there} {live.value}; "
            "a PriorityClass's value is immutable: use that value or another tier name"
        )
    if live.preemption_policy != wanted.preemption_policy:
        yield (
            f"tiers.{tier.name}.preemptionPolicy: {wanted.preemption_policy}, but {there} {live.preemption_policy}; "
            "a PriorityClass's preemptionPolicy is immutable: delete the class, or use another tier name"
        )
    if live.global_default:
        yield (
            f"tiers.{tier.name}: PriorityClass/{live.name} is globalDefault, so every pod of the cluster would "
            "carry it; make another class the default"
        )
