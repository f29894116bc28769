"""Tiers: their definition, their ranks, and their PriorityClasses."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

import msgspec

from webhook.objects.refusal import Reason, Refused

PreemptionPolicy = Literal["PreemptLowerPriority", "Never"]

NONPREEMPTING = "-nonpreempting"
"""The suffix of a tier's second PriorityClass, the active one during adoption."""


class Tier(msgspec.Struct, frozen=True):
    """A named rank. `value` is the PriorityClass value, 1 to 1,000,000,000. `by_right`: naming it needs a right."""

    name: str
    value: int
    preemption_policy: PreemptionPolicy = "PreemptLowerPriority"
    description: str = ""
    by_right: bool = False


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
        """Return the highest tier that a priority value reaches; None below all tiers.

        A class outside the tiers counts as that tier.
        """
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
    """Return the live PriorityClass of a tier's new pods. Raises Refused if it is missing or differs from the tier."""
    name = active_class(tier, adoption=adoption)
    live = classes.get(name)
    if live is None:
        raise Refused(Reason.PRIORITY_CLASS, "class-missing", name=name, tier=tier.name)
    own, calm = classes_of(tier)
    for field, there, due in _differences(live, own if name == own.name else calm):
        raise Refused(
            Reason.PRIORITY_CLASS, "class-differs", name=name, attribute=field, there=there, due=due, tier=tier.name
        )
    return live


def _differences(live: PriorityClass, wanted: PriorityClass) -> Iterator[tuple[str, int | str, int | str]]:
    """Yield each immutable field of a class that differs from the tier's: its name, and what is there and is due."""
    if live.value != wanted.value:
        yield "value", live.value, wanted.value
    if live.preemption_policy != wanted.preemption_policy:
        yield "preemptionPolicy", live.preemption_policy, wanted.preemption_policy


class Disagreement(NamedTuple):
    """The reason why a tier and a live PriorityClass conflict: the policy's field, and the mistake."""

    field: str
    what: str

    def __str__(self) -> str:
        return f"{self.field}: {self.what}"


def disagreements(tiers: Tiers, classes: Mapping[str, PriorityClass]) -> list[Disagreement]:
    """Return why tiers and live PriorityClasses conflict; a missing class is no conflict."""

    def remedy(_: Tier, __: str, attribute: str) -> str:
        instead = "use that value or" if attribute == "value" else "delete the class, or use"
        return f"; a PriorityClass's {attribute} is immutable: {instead} another tier name"

    return [*_conflicts(tiers, classes, remedy)]


def _conflicts(
    tiers: Tiers, classes: Mapping[str, PriorityClass], remedy: Callable[[Tier, str, str], str]
) -> Iterator[Disagreement]:
    """Yield the conflicts. `remedy` ends one about a field, by the tier, the class and the field."""
    pairs = ((tier, wanted, classes.get(wanted.name)) for tier in tiers for wanted in classes_of(tier))
    for tier, wanted, live in pairs:
        if live is None:
            continue
        for attribute, there, due in _differences(live, wanted):
            what = f"{due}, but PriorityClass/{live.name} exists with {there}{remedy(tier, live.name, attribute)}"
            yield Disagreement(f"tiers.{tier.name}.{attribute}", what)
        if live.global_default:
            what = (
                f"PriorityClass/{live.name} is globalDefault, so every pod of the cluster would carry it; make another "
            )
            yield Disagreement(f"tiers.{tier.name}", what + "class the default")


def obstacles(tiers: Tiers, classes: Mapping[str, PriorityClass], *, adoption: bool) -> list[Disagreement]:
    """Return what is wrong with the classes of the active policy: one differs, is the default, or is gone.

    A tier's pods are refused if its active class differs or is gone. A class that is not active may be gone.
    The policy is right and the class is wrong, so the remedy is to have the chart make the class again.
    """
    due = {tier.name: active_class(tier, adoption=adoption) for tier in tiers}

    def remedy(tier: Tier, name: str, _: str) -> str:
        refused = f", so pods of tier {tier.name} are refused" if name == due[tier.name] else ""
        return f"{refused}: run kubectl delete priorityclass {name}, then helm upgrade with the values of the release"

    gone = [
        Disagreement(f"tiers.{tier}", f"PriorityClass/{name} does not exist, so its pods are refused")
        for tier, name in due.items()
        if name not in classes
    ]
    return [*_conflicts(tiers, classes, remedy), *gone]
