"""Follows DeviceClasses, or lists them once, reduced to the fields that show whether their devices are GPUs.

If a class names an unknown driver, the devices in that driver's ResourceSlices decide, by attributes that the DRA
drivers of NVIDIA, AMD and Intel publish.
"""

import re
from collections.abc import Callable, Collection, Mapping

import msgspec
from msgspec.structs import replace

from webhook.kube.client import Client, listed_objects, path
from webhook.kube.discovery import served_version, server_version
from webhook.kube.reflector import Reflectors, Source, Store, storing
from webhook.objects.pods import Metadata
from webhook.objects.view import View, read, view
from webhook.policy.devices import OfferedDevice, ResourceSlice
from webhook.policy.values.gpu_supply import Version
from webhook.policy.values.weights import DeviceClass
from webhook.policy.workloads.claims import GROUP, Selector

Classes = Mapping[str, DeviceClass]

_CLASSES, _SLICES = "deviceclasses", "resourceslices"


class _Spec(View, frozen=True):
    selectors: tuple[Selector, ...] = ()
    extended_resource_name: str = ""


class _DeviceClass(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: _Spec = _Spec()


class DeviceClassInformer(Reflectors):
    """Watches all DeviceClasses. Nothing is watched until `follow`, and ResourceSlices only if a class needs them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._on_change: Callable[[Classes], None] = lambda _: None
        self._classes: Store[DeviceClass] = Store(self._changed)
        self._slices: Store[str] = Store(self._changed)
        self._of_slices = Reflectors()
        self._drivers: set[str] = set()
        self.cluster_version: Version = (0, 0)
        super().__init__()

    async def follow(self, on_change: Callable[[Classes], None]) -> None:
        """Call a function with all classes once they are listed, and after each change. Raises ApiError.

        If the cluster does not serve DeviceClasses, nothing is called.
        """
        version = await served_version(self._client, GROUP, _CLASSES)
        if version is None:
            return
        self._on_change, self.cluster_version = on_change, await server_version(self._client)
        source, slices = Source(path(version, _CLASSES)), Source(path(version, _SLICES))
        self._reflectors = (storing(self._client, source, _read, self._classes),)
        self._of_slices = Reflectors(storing(self._client, slices, gpu_driver, self._slices))
        self.start()

    async def stop(self) -> None:
        await super().stop()
        await self._of_slices.stop()

    def problems(self) -> list[str]:
        return [*super().problems(), *self._of_slices.problems()]

    @property
    def silent_seconds(self) -> float:
        return max(super().silent_seconds, self._of_slices.silent_seconds)

    def _changed(self) -> None:
        classes = self._classes.objects
        if not self._of_slices.started and any(each.unknown_drivers for each in classes.values()):
            self._of_slices.start()
        self._drivers.update(self._slices.objects.values())  # a driver that is restarted has no slices for a while
        self._on_change(_with_slices(classes, self._drivers))


async def device_classes(client: Client) -> Classes:
    """Return the DeviceClasses by name; none if the cluster does not serve them. Raises ApiError."""
    version = await served_version(client, GROUP, _CLASSES)
    if version is None:
        return {}
    found = [_read(raw) async for raw in listed_objects(client.list_pages(path(version, _CLASSES)))]
    drivers: list[str | None] = []
    if any(each.unknown_drivers for each in found):
        drivers = [gpu_driver(raw) async for raw in listed_objects(client.list_pages(path(version, _SLICES)))]
    return _with_slices({each.name: each for each in found}, [each for each in drivers if each is not None])


def device_class(tree: object) -> DeviceClass:
    """Return a DeviceClass from its decoded JSON. Raises Refused with the field's path on a wrong type."""
    found = view(tree, _DeviceClass)
    expressions = tuple(each.cel.expression for each in found.spec.selectors)
    name, made = found.metadata.name, found.metadata.creation_timestamp or ""
    return DeviceClass(name, expressions, found.spec.extended_resource_name, created=made)


def _read(raw: msgspec.Raw) -> DeviceClass:
    return device_class(msgspec.json.decode(raw))


def _with_slices(classes: Classes, drivers: Collection[str]) -> Classes:
    found = frozenset(drivers)
    return {name: replace(each, found=found.intersection(each.unknown_drivers)) for name, each in classes.items()}


_OF_GPUS = re.compile(r"(?:.*/)?(?:.*gpu.*|.*cuda.*|vram.*)", re.IGNORECASE)
"""Names of attributes and capacities that GPUs have."""
_TYPES = ("gpu", "vgpu", "mig")
"""Values of an attribute `type` of GPUs."""


def gpu_driver(raw: msgspec.Raw) -> str | None:
    """Return the driver of a slice with GPUs; None for any other slice."""
    spec = read(raw, ResourceSlice).spec
    return spec.driver if any(_is_gpu(each) or _is_gpu(each.basic) for each in spec.devices) else None


def _is_gpu(offered: OfferedDevice) -> bool:
    typed = (each.text for name, each in offered.attributes.items() if name.rpartition("/")[2] == "type")
    named = any(_OF_GPUS.fullmatch(name) for name in (*offered.attributes, *offered.capacity))
    return named or any(each in _TYPES for each in typed)
