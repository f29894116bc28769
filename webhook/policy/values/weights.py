"""Weighs whatever a pod can ask for in GPUs: by the policy's list, else by the name or the DeviceClass that it has."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from webhook.policy.values.gpu_names import (
    NO_GPU_DRIVERS,
    PARTS,
    is_gpu_driver,
    looks_like_gpu,
    mig_name,
    mig_profile,
    share_of_profile,
    whole_gpus,
    whole_of,
)
from webhook.policy.workloads.claims import drivers_in, profile_in


@dataclass(frozen=True, slots=True)
class DeviceClass:
    """A DeviceClass, and the name under which a pod may ask for its devices as for a resource, if it has one.

    `found` are drivers of its devices that are a GPU's by what they offer, whatever their name.
    """

    name: str
    selectors: tuple[str, ...] = ()
    extended_resource_name: str = ""
    found: frozenset[str] = frozenset()

    @property
    def other_drivers(self) -> tuple[str, ...]:
        """The drivers that its devices must have and that are no GPU's."""
        return tuple(each for each in drivers_in(self.selectors) if not is_gpu_driver(each) and each not in self.found)

    @property
    def unknown_drivers(self) -> tuple[str, ...]:
        """The drivers that its devices must have and of which only what they offer can tell whether it is GPUs."""
        return tuple(each for each in drivers_in(self.selectors) if not (is_gpu_driver(each) or each in NO_GPU_DRIVERS))

    @property
    def may_be_gpus(self) -> bool:
        """Tells whether a GPU can be among its devices: no selector plainly asks for a driver of something else."""
        return not self.other_drivers

    @property
    def profile(self) -> str:
        """The MIG profile that all of its devices have; "" where that isn't told."""
        return profile_in(self.selectors)


IMPLICIT_CLAIM = "deviceclass.resource.kubernetes.io/"
"""Starts the resource name under which a device class is asked for without a claim (KEP-5004)."""

NOTHING, WHOLE = Decimal(0), Decimal(1)


class Weights:
    """GPUs per unit, by resource name. `name in weights` tells whether it counts.

    `listed` are those of the policy, device classes by their implicit names; `classes` are those of the cluster. A
    class of which neither tells counts whole, as it may be a GPU's once it is there; so do resources that are called as
    GPUs are, if `unlisted` ones count.
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
        return max(self._by_what_it_is(name), default=NOTHING)

    def of_devices(self, device_class: str, profile: str = "") -> Decimal:
        """GPUs that a device of a class is, of which a request may tell the MIG profile."""
        listed = self.listed.get(IMPLICIT_CLAIM + device_class)
        if listed is not None:
            return listed
        found = self._classes.get(device_class) or DeviceClass(device_class)
        return self._of_profile(profile or found.profile) if found.may_be_gpus else NOTHING

    def each_once(self, held: Mapping[str, Decimal]) -> dict[str, Decimal]:
        """The resources that a pod holds and that count, each GPU once: of it and its parts whichever comes to most."""
        if len(held) == 1:  # nearly always
            return dict(held)
        most: dict[str, str] = {}
        for name in sorted(held, key=lambda name: (self.is_part(name), name)):
            whole = whole_of(name) if self.is_part(name) else name
            if whole not in most or held[name] * self[name] > held[most[whole]] * self[most[whole]]:
                most[whole] = name
        return {name: held[name] for name in most.values()}

    def gpus(self, name: str, amount: Decimal) -> Decimal:
        """The factor of the weight: the amount of a resource, or the GPUs that a part comes up to."""
        return whole_gpus(name, amount) if self.is_part(name) else amount

    def is_part(self, name: str) -> bool:
        """Tells whether it says how much of a GPU is asked for, and the policy does not say how that counts."""
        return name in PARTS and name not in self.listed

    def is_of_class(self, name: str) -> bool:
        """Tells whether it is asked of a DeviceClass: no node has it among its resources."""
        return name.startswith(IMPLICIT_CLAIM) or (name in self._by_resource and name not in self.listed)

    def is_unlisted(self, name: str) -> bool:
        """Tells whether it looks like GPUs, and nobody says how many it is."""
        return not (name in self.listed or self.is_of_class(name)) and looks_like_gpu(name)

    def _by_what_it_is(self, name: str) -> Iterator[Decimal]:
        if name.startswith(IMPLICIT_CLAIM):
            yield self.of_devices(name.removeprefix(IMPLICIT_CLAIM))
        yield from map(self.of_devices, self._by_resource.get(name, ()))
        if self._unlisted and self.is_unlisted(name):
            yield self._of_profile(mig_profile(name))

    def _of_profile(self, profile: str) -> Decimal:
        if not profile:
            return WHOLE
        found = self.listed.get(mig_name(profile))
        return share_of_profile(profile) if found is None else found
