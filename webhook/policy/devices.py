"""The devices of DRA: whether one fits a request, which claim uses it, and for which requests nobody is evicted.

The inventory is read from objects of the API, so the scheduler may know more: what it allocates at this moment. A
selector is evaluated if it is a list of plain comparisons. For any other selector, a device fits if the request that it
is allocated to now has the same DeviceClass with at least the same selectors. Source: KEP-4381, KEP-5055 (taints);
pkg/scheduler/framework/plugins/dynamicresources in kubernetes.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from webhook.objects.node_fit import Taint, Toleration
from webhook.objects.pods import Metadata, Pod
from webhook.objects.refusal import Phrase
from webhook.objects.view import View
from webhook.policy.quota.demand import asked_of
from webhook.policy.values.facts import Facts
from webhook.policy.values.gpu_supply import EvictionScope
from webhook.policy.values.tier_policy import EVICTED_BY_NOBODY, TierPolicy
from webhook.policy.values.tiers import PriorityClass, Tier
from webhook.policy.values.weights import IMPLICIT_CLAIM, DeviceClass
from webhook.policy.workloads.claims import ClaimSpec, terms_of
from webhook.policy.workloads.workload import Devices


class DeviceKey(NamedTuple):
    """A device's name, which is unique within a driver's pool."""

    driver: str
    pool: str
    device: str


class Attribute(View, frozen=True):
    """An attribute's value; a version or a list is not read."""

    text: str | None = msgspec.field(default=None, name="string")
    whole: int | None = msgspec.field(default=None, name="int")
    truth: bool | None = msgspec.field(default=None, name="bool")

    @property
    def plain(self) -> object:
        """Return the value that a selector compares with a literal; None for another type."""
        return next((each for each in (self.text, self.whole, self.truth) if each is not None), None)


class _Unread(View, frozen=True):
    """A value that is not read, because only its name counts."""


class OfferedDevice(View, frozen=True):
    """The attributes and the capacities of a device."""

    attributes: dict[str, Attribute] = msgspec.field(default_factory=dict)
    capacity: dict[str, _Unread] = msgspec.field(default_factory=dict)


class SlicedDevice(OfferedDevice, frozen=True):
    """A device of a ResourceSlice. v1beta1 has its attributes under `basic`."""

    name: str = ""
    taints: tuple[Taint, ...] = ()
    basic: OfferedDevice = OfferedDevice()
    consumes_counters: tuple[Any, ...] = ()
    allow_multiple_allocations: bool = False


class _Pool(View, frozen=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class _SliceSpec(View, frozen=True):
    driver: str = ""
    node_name: str = ""
    pool: _Pool = _Pool()
    devices: tuple[SlicedDevice, ...] = ()


class ResourceSlice(View, frozen=True):
    """A ResourceSlice, with all or some of the devices of a driver's pool."""

    spec: _SliceSpec = _SliceSpec()


class _RuleSelector(View, frozen=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class _RuleSpec(View, frozen=True):
    device_selector: _RuleSelector = _RuleSelector()
    taint: Taint = Taint()


class DeviceTaintRule(View, frozen=True):
    """A taint on all devices that it selects."""

    spec: _RuleSpec = _RuleSpec()

    def selects(self, key: DeviceKey) -> bool:
        selector = self.spec.device_selector
        wanted = selector.driver, selector.pool, selector.device
        return all(each in (None, own) for each, own in zip(wanted, key, strict=True))


class Device(msgspec.Struct, frozen=True):
    """A device of one node, with the taints of its slice and of rules.

    `whole`: no other allocation uses a part of it. It is not a partition and not `shareable`.
    """

    key: DeviceKey
    node: str
    attributes: Mapping[str, object]
    taints: tuple[Taint, ...] = ()
    whole: bool = True
    shareable: bool = False


class WantedDevices(msgspec.Struct, frozen=True):
    """The devices that a request wants: so many of a class that pass `selectors` and those of the class.

    `plain`: any such devices fit together. The request has no constraints, no capacity, no adminAccess and no
    allocationMode All.
    """

    device_class: str
    count: int
    selectors: tuple[str, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    plain: bool = True


class ClaimUser(View, frozen=True):
    """The pod or PodGroup that a claim is reserved for."""

    resource: str = ""
    name: str = ""
    uid: str = ""


class _Result(View, frozen=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False


class _Results(View, frozen=True):
    results: tuple[_Result, ...] = ()


class _Allocation(View, frozen=True):
    devices: _Results = _Results()


class _ClaimStatus(View, frozen=True):
    allocation: _Allocation | None = None
    reserved_for: tuple[ClaimUser, ...] = ()


class DeviceClaim(View, frozen=True):
    """A ResourceClaim with the devices that are allocated to it."""

    metadata: Metadata = Metadata()
    spec: ClaimSpec = ClaimSpec()
    status: _ClaimStatus = _ClaimStatus()

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def is_named(self) -> bool:
        """Tell whether it outlives its pods: no pod owns it, unlike a claim made from a template."""
        return not any(owner.kind == "Pod" for owner in self.metadata.owner_references)

    @property
    def is_allocated(self) -> bool:
        return self.status.allocation is not None

    def allocated_devices(self) -> Iterator[tuple[DeviceKey, str]]:
        """Yield the devices that it uses, each with the name of its request. A result with adminAccess uses none."""
        for each in self.status.allocation.devices.results if self.status.allocation else ():
            if not each.admin_access:
                yield DeviceKey(each.driver, each.pool, each.device), each.request

    def wanted(self) -> Iterator[tuple[str, WantedDevices]]:
        """Yield the devices that each request and alternative wants, by the name that results use."""
        return (each for request in self.requests() for each in request)

    def requests(self) -> Iterator[list[tuple[str, WantedDevices]]]:
        """Yield each request with its alternatives in order, by the name that results give them."""
        bound = bool(self.spec.devices.constraints)
        for request in self.spec.devices.requests:
            alternatives: list[tuple[str, WantedDevices]] = []
            for each in request.first_available or (request.exactly or request,):
                name = f"{request.name}/{each.name}" if request.first_available else request.name
                selectors = tuple(selector.cel.expression for selector in each.selectors)
                plain = each.allocation_mode == "ExactCount" and not (bound or each.capacity or each.admin_access)
                wanted = WantedDevices(each.device_class_name, each.count or 1, selectors, each.tolerations, plain)
                alternatives.append((name, wanted))
            yield alternatives


class Inventory(msgspec.Struct, frozen=True):
    """The devices of all nodes, the DeviceClasses, and for each allocated device its claim and the claim's request.

    The request is None if it is unknown.
    """

    devices: Mapping[DeviceKey, Device]
    holders: Mapping[DeviceKey, tuple[DeviceClaim, WantedDevices | None]]
    classes: Mapping[str, DeviceClass]

    def does(self, key: DeviceKey, wanted: WantedDevices) -> bool | None:
        """Tell whether a device passes the selectors of a request, free or not, tainted or not; None if unknown."""
        device = self.devices[key]
        of_class = self.classes[wanted.device_class].selectors if wanted.device_class in self.classes else ()
        selectors = (*of_class, *wanted.selectors)
        answers = {_holds(each, device) for selector in selectors for each in _comparisons(selector)}
        if None not in answers or False in answers:
            return False not in answers
        _, alike = self.holders.get(key, (None, None))
        if alike is None or alike.device_class != wanted.device_class:
            return None
        return True if set(wanted.selectors) <= set(alike.selectors) else None

    def untolerated(self, key: DeviceKey, wanted: WantedDevices) -> Taint | None:
        """Return the first taint of a device that a request doesn't tolerate."""
        taints = (each for each in self.devices[key].taints if each.effect in ("NoSchedule", "NoExecute"))
        return next((each for each in taints if not any(own.tolerates(each) for own in wanted.tolerations)), None)


def inventory(
    slices: Collection[ResourceSlice],
    rules: Collection[DeviceTaintRule],
    claims: Iterable[DeviceClaim],
    classes: Mapping[str, DeviceClass],
) -> Inventory:
    """Return the devices that nodes have now, and the claims that use them.

    Only the newest generation of a pool counts, and only if all of its slices are there. A slice that names no node is
    left out.
    """
    pools: defaultdict[tuple[str, str], list[_SliceSpec]] = defaultdict(list)
    for each in slices:
        pools[each.spec.driver, each.spec.pool.name].append(each.spec)
    devices: dict[DeviceKey, Device] = {}
    for (driver, pool), specs in pools.items():
        newest = max(spec.pool.generation for spec in specs)
        current = [spec for spec in specs if spec.pool.generation == newest]
        if len(current) != current[0].pool.resource_slice_count:
            continue
        for spec, found in [(each, found) for each in current if each.node_name for found in each.devices]:
            key = DeviceKey(driver, pool, found.name)
            offered = {**found.attributes, **found.basic.attributes}
            attributes = {name if "/" in name else f"{driver}/{name}": value.plain for name, value in offered.items()}
            taints = (*found.taints, *(rule.spec.taint for rule in rules if rule.selects(key)))
            shareable = found.allow_multiple_allocations
            whole = not (found.consumes_counters or shareable)
            devices[key] = Device(key, spec.node_name, attributes, taints, whole, shareable)
    holders: dict[DeviceKey, tuple[DeviceClaim, WantedDevices | None]] = {}
    for claim in claims:
        wanted = dict(claim.wanted())
        for key, request in claim.allocated_devices():
            if key in devices:
                holders[key] = (claim, wanted.get(request))
    return Inventory(devices, holders, classes)


_LITERAL = r"""('[^'\n\\]*'|"[^"\n\\]*"|-?\d+|true|false)"""
_DRIVER = re.compile(rf"\s*device\.driver\s*==\s*{_LITERAL}\s*")
_ATTRIBUTE = re.compile(
    rf"""\s*device\.attributes\[(?:'([^'\n\\]+)'|"([^"\n\\]+)")\]\.([A-Za-z_]\w*)\s*==\s*{_LITERAL}\s*"""
)


@lru_cache(maxsize=256)
def _comparisons(selector: str) -> tuple[tuple[str, object] | None, ...]:
    """Return the attribute and the literal of each term of a selector, "" for the driver; None for any other term.

    A selector that isn't a list of plain comparisons tells nothing: it is one such term.
    """
    found: list[tuple[str, object] | None] = []
    for term in terms_of(selector):
        if driver := _DRIVER.fullmatch(term):
            found.append(("", _value(driver[1])))
        elif named := _ATTRIBUTE.fullmatch(term):
            found.append((f"{named[1] or named[2]}/{named[3]}", _value(named[4])))
        else:
            found.append(None)
    return tuple(found) or (None,)


def _holds(comparison: tuple[str, object] | None, device: Device) -> bool | None:
    if comparison is None:
        return None
    attribute, wanted = comparison
    there = device.attributes.get(attribute) if attribute else device.key.driver
    return type(there) is type(wanted) and there == wanted


def _value(literal: str) -> str | int | bool:
    if literal in ("true", "false"):
        return literal == "true"
    return literal[1:-1] if literal[0] in "'\"" else int(literal)


def without_eviction(
    pod: Pod, devices: Collection[Devices], scope: EvictionScope, policy: TierPolicy
) -> tuple[str, ...]:
    """Return the resources and DeviceClasses of GPUs that a pod asks for and for which nobody is evicted on any node.

    One is enough to keep the scheduler from making room for the pod, because the pod needs all of them. With
    `preemption.dra: On` there are none, because gpu-tiers evicts pods for them.
    """
    weights = policy.weights
    if scope.devices or policy.device_preemption == "On":
        return ()
    claimed = (each.device_class for each in devices if weights.of_devices(each.device_class, each.profile) > 0)
    named = (name for name, amount in asked_of(pod, policy).items() if amount and not scope.has(name, weights))
    return tuple(dict.fromkeys(name.removeprefix(IMPLICIT_CLAIM) for name in (*named, *claimed)))


def evicted_by(tier: Tier, pod: Pod, facts: Facts, policy: TierPolicy) -> Phrase:
    """Return the words for the tiers that may evict a pod for its GPUs; nobody if `without_eviction` has any."""
    by_dra = without_eviction(pod, facts.devices, facts.eviction, policy)
    return EVICTED_BY_NOBODY if by_dra else policy.evicted_by(tier)


def evicts_others(tier: Tier | None, live: PriorityClass | None, policy: TierPolicy) -> bool:
    """Tell whether a tier relies on eviction: it may evict, and some tier is below it."""
    if tier is None or live is None or live.preemption_policy == "Never":
        return False
    return any(other.value < tier.value for other in policy.tiers)
