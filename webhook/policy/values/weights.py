"""Converts requests of a pod to GPUs: by the policy's list, or by the name of the resource or its DeviceClass.

The table in accelerators.yaml distinguishes accelerators, parts of one and other devices by their names.
"""

import functools
import re
from collections.abc import Callable, Collection, Mapping
from decimal import Decimal

import msgspec

from webhook.objects.data_files import data_file
from webhook.objects.quantities import gpus
from webhook.policy.workloads.claims import drivers_in, profile_in

_QUALIFIED = re.compile(r"[^/]{1,253}/[^/]{1,63}")
"""A resource's name, within the limits of pod validation. Custom resources have longer names, but become no pods. The
table's patterns would take minutes on a name with many slashes."""

VARIES, SAME, HUNDRED = Decimal(0), Decimal(1), Decimal(100)
"""The units of a resource per accelerator: any amount is a part of one; each is one; a percentage."""


class AcceleratorNames(msgspec.Struct, frozen=True, rename="camel"):
    """The file accelerators.yaml; the comments in it explain each field."""

    domains: frozenset[str]
    with_network_cards: frozenset[str]
    words: str
    others: str
    models: str
    parts: str
    percentages: str
    schedulers: frozenset[str]
    units: Mapping[str, Decimal]
    drivers: frozenset[str]
    other_drivers: frozenset[str]


@functools.cache
def table() -> AcceleratorNames:
    return msgspec.convert(data_file(__name__, "accelerators.yaml"), AcceleratorNames)


def looks_like_accelerator(name: str) -> bool:
    """Tell whether a resource has an accelerator's name: by its domain, or by a word after the slash."""
    if not _QUALIFIED.fullmatch(name):
        return False
    return (domain_of(name) in table().domains or _found(table().words, name)) and not _found(table().others, name)


def units_of(name: str) -> Decimal | None:
    """Return the units of a resource per accelerator, if it may describe accelerators of another resource.

    None for a resource that stands for accelerators by itself. The name must look like an accelerator's.
    """
    known = table().units.get(name)
    if known is not None:
        return known
    if _found(table().percentages, name):
        return HUNDRED
    if _found(table().parts, name):
        return VARIES
    may_be_card = domain_of(name) in table().with_network_cards and not _found(table().words, name)
    return SAME if may_be_card and not _found(table().models, name) else None


def domain_of(name: str) -> str:
    return name.partition("/")[0]


def family_of(name: str) -> str:
    """Return the domain whose accelerators a resource describes; "" for a scheduler's resource for any vendor."""
    domain = domain_of(name)
    return "" if domain in table().schedulers else domain


def is_accelerator_driver(name: str) -> bool:
    """Tell whether a DRA driver has an accelerator driver's name."""
    return "gpu" in name or name in table().drivers


def _found(pattern: str, name: str) -> bool:
    return re.search(pattern, name) is not None  # re caches the compiled pattern


MIG = "nvidia.com/mig-"
_SLICES = {"1": Decimal("0.25"), "2": Decimal("0.5"), "3": Decimal("0.5"), "4": Decimal(1), "7": Decimal(1)}
"""The largest share of any GPU that so many of NVIDIA's compute slices have."""


class DeviceClass(msgspec.Struct, frozen=True):
    """A DeviceClass, and the extended resource name for its devices, if any.

    `found` are drivers whose devices are GPUs by their attributes, whatever their name. `created` is in RFC 3339.
    """

    name: str
    selectors: tuple[str, ...] = ()
    extended_resource_name: str = ""
    found: frozenset[str] = frozenset()
    created: str = ""

    @property
    def other_drivers(self) -> tuple[str, ...]:
        """Return the drivers that its devices must have and that are no GPU's."""
        drivers = drivers_in(self.selectors)
        return tuple(each for each in drivers if not is_accelerator_driver(each) and each not in self.found)

    @property
    def unknown_drivers(self) -> tuple[str, ...]:
        """Return the drivers that its devices must have and whose names don't show whether they are GPUs."""
        drivers, others = drivers_in(self.selectors), table().other_drivers
        return tuple(each for each in drivers if not (is_accelerator_driver(each) or each in others))

    @property
    def may_be_gpus(self) -> bool:
        """Tell whether a GPU can be among its devices: no selector plainly asks for another driver."""
        return not self.other_drivers

    @property
    def profile(self) -> str:
        """Return the MIG profile of all its devices; "" if unknown."""
        return profile_in(self.selectors)


IMPLICIT_CLAIM = "deviceclass.resource.kubernetes.io/"
"""The prefix of the resource name that asks for a device class without a claim (KEP-5004)."""

NOTHING, WHOLE = Decimal(0), Decimal(1)


class Weights:
    """GPUs per unit, by resource name. `name in weights` tells whether the resource counts.

    `listed` are those of the policy, device classes by their implicit names; `classes` are those of the cluster. An
    unknown class counts whole, because it may be a GPU's once it exists. If `unlisted` resources count, those with
    GPU-like names have a weight too: whole, or less for a MIG slice.
    """

    def __init__(self, listed: Mapping[str, Decimal], classes: Mapping[str, DeviceClass], *, unlisted: bool) -> None:
        self.listed = listed
        self._classes = classes
        self._unlisted = unlisted
        self._by_resource: dict[str, list[str]] = {}
        for each in (found for found in classes.values() if found.extended_resource_name):
            self._by_resource.setdefault(each.extended_resource_name, []).append(each.name)

    def __contains__(self, name: str) -> bool:
        return ("/" in name or name in self.listed) and self[name] > 0

    def __getitem__(self, name: str) -> Decimal:
        found = self.listed.get(name)
        if found is not None:
            return found
        if "/" not in name:  # cpu, memory: nearly all
            return NOTHING
        counts = list(map(self.of_devices, self._by_resource.get(name, ())))
        if name.startswith(IMPLICIT_CLAIM):
            counts.append(self.of_devices(name.removeprefix(IMPLICIT_CLAIM)))
        if self._unlisted and self.is_unlisted(name):
            profile = name.removeprefix(MIG).removesuffix(".shared") if name.startswith(MIG) else ""
            counts.append(self._of_profile(profile))
        return max(counts, default=NOTHING)

    def of_devices(self, device_class: str, profile: str = "") -> Decimal:
        """Return the GPUs per device of a class; a request may name the MIG profile."""
        listed = self.listed.get(IMPLICIT_CLAIM + device_class)
        if listed is not None:
            return listed
        found = self._classes.get(device_class) or DeviceClass(device_class)
        return self._of_profile(profile or found.profile) if found.may_be_gpus else NOTHING

    def of_container(self, amounts: Mapping[str, Decimal]) -> dict[str, Decimal]:
        """Return the counted resources of a container, each GPU once except for possible network cards.

        Resources of one domain may describe the same GPUs, so parts add nothing to a whole resource. The larger sum
        counts, for example a scheduler's description or the vendors' resources.
        """
        if len(amounts) <= 1:  # nearly always
            return dict(amounts)
        families = self._families({name: count for name, count in amounts.items() if not self._may_be_a_card(name)})
        most = {family: self._most(names, self.is_part) for family, names in families.items()}
        described = most.pop("", {})
        vendors = {name: count for names in most.values() for name, count in names.items()}
        cards = {name: count for name, count in amounts.items() if self._may_be_a_card(name)}
        return {**(described if self._sum(described) > self._sum(vendors) else vendors), **cards}

    def without_cards(self, amounts: Mapping[str, Decimal]) -> dict[str, Decimal]:
        """Return the counted resources of all containers. Possible network cards count only beyond the GPUs.

        The cards may be in another container than the GPUs.
        """
        if len(amounts) <= 1:
            return dict(amounts)
        families = self._families(amounts).values()
        most = (self._most(names, self._may_be_a_card) for names in families)
        return {name: count for names in most for name, count in names.items()}

    def _families(self, amounts: Mapping[str, Decimal]) -> dict[str, dict[str, Decimal]]:
        families: dict[str, dict[str, Decimal]] = {}
        for name in sorted(amounts):
            families.setdefault(family_of(name), {})[name] = amounts[name]
        return families

    def _most(self, amounts: Mapping[str, Decimal], describes: Callable[[str], bool]) -> dict[str, Decimal]:
        """Return the resources that stand for GPUs by themselves in one domain, or a single larger description."""
        counts = {name: count for name, count in amounts.items() if not describes(name)}
        others = ({name: count} for name, count in amounts.items() if describes(name))
        return max((counts, *others), key=self._sum)

    def _sum(self, amounts: Mapping[str, Decimal]) -> Decimal:
        return sum((count * self[name] for name, count in amounts.items()), NOTHING)

    def gpus(self, name: str, value: object, field: str) -> Decimal:
        """Return the factor of the weight: the amount of a resource, or the GPUs that a part amounts to.

        Raises Refused naming the field if the value is no amount.
        """
        return gpus(value, field, None if name in self.listed else self._units(name))

    def is_part(self, name: str) -> bool:
        """Tell whether a resource may describe GPUs of another one, and the policy does not weigh it."""
        return self._units(name) is not None

    def is_whole(self, name: str) -> bool:
        """Tell whether one unit of a resource is a whole GPU or more, not a part."""
        return self._units(name) in (None, SAME)

    def is_described_by_another(self, name: str, asked: Collection[str]) -> bool:
        """Tell whether a resource only says how much of a GPU is asked for, while another of `asked` says how many."""
        units = self._units(name)
        if units is None or units == SAME:
            return False
        others = (each for each in asked if self.is_accelerator(each) and family_of(name) in ("", family_of(each)))
        return any(self._units(each) is None or (units == VARIES and self._units(each)) for each in others)

    def is_accelerator(self, name: str) -> bool:
        """Tell whether the policy counts a resource; if not listed, whether it has a DeviceClass or a GPU's name."""
        listed = self.listed.get(name)
        return self.is_of_class(name) or looks_like_accelerator(name) if listed is None else listed > 0

    def _may_be_a_card(self, name: str) -> bool:
        return self.is_unlisted(name) and (units_of(name) == SAME and name not in table().units)

    def _units(self, name: str) -> Decimal | None:
        return units_of(name) if self.is_unlisted(name) else None

    def has_class(self, name: str) -> bool:
        """Tell whether a DeviceClass may serve a resource, so that nodes need not list it."""
        return name.startswith(IMPLICIT_CLAIM) or name in self._by_resource

    def class_of(self, name: str) -> str:
        """Return the DeviceClass that serves a resource: the newest, then the first by name; "" for none."""
        if name.startswith(IMPLICIT_CLAIM):
            return name.removeprefix(IMPLICIT_CLAIM)
        named = sorted(self._by_resource.get(name, ()))
        return max(named, key=lambda each: self._classes[each].created, default="")

    def is_of_class(self, name: str) -> bool:
        """Tell whether a DeviceClass may serve a resource and gives its weight, because the policy does not list it."""
        return self.has_class(name) and name not in self.listed

    def is_unlisted(self, name: str) -> bool:
        """Tell whether a resource has a GPU's name, but no weight of the policy or of a DeviceClass."""
        return not (name in self.listed or self.is_of_class(name)) and looks_like_accelerator(name)

    def _of_profile(self, profile: str) -> Decimal:
        """Return the GPUs of a MIG slice by the policy's list, or the most on any GPU; "" is a whole GPU."""
        # DRA writes 1g.10gb+me, a device plugin 1g.10gb.me.
        listed = self.listed.get(MIG + profile.replace("+", ".")) if profile else None
        if listed is not None:
            return listed
        found = re.fullmatch(r"(?:[0-9]c\.)?([1-7])g\..+", profile)
        return _SLICES.get(found[1], WHOLE) if found else WHOLE
