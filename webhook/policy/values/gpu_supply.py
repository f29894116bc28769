"""The supply of GPUs on each node, by a device plugin or by DRA, and for which of them kube-scheduler evicts pods.

kube-scheduler evicts for a resource that the node's device plugin has. It evicts nobody for devices of DRA, whether a
pod asks by a claim or by the extended resource of a DeviceClass (KEP-5690 is open).
"""

from collections.abc import Collection, Iterable, Mapping

import msgspec

from webhook.policy.values.weights import IMPLICIT_CLAIM, DeviceClass, Weights, is_accelerator_driver
from webhook.policy.workloads.claims import drivers_in

Version = tuple[int, int]
"""Major and minor of a cluster; (0, 0) if unknown."""

LAST_WITHOUT_EVICTION: Version = (1, 38)
"""The newest Kubernetes whose scheduler is known to evict nobody for devices."""


def evicts_for_devices(version: Version) -> bool:
    """Tell whether kube-scheduler may evict pods for devices of DRA. No released version does."""
    return version > LAST_WITHOUT_EVICTION


class EvictionScope(msgspec.Struct, frozen=True):
    """The resources and devices that kube-scheduler evicts pods for.

    `plugins` are the resources that a device plugin has on some node; None if the nodes are unknown. `devices`: it
    evicts for devices of DRA too.
    """

    plugins: frozenset[str] | None = None
    devices: bool = False

    def has(self, name: str, weights: Weights) -> bool:
        """Tell whether kube-scheduler evicts for a resource on some node.

        True if no DeviceClass may serve the resource. If the nodes are unknown, True too, except for the implicit name
        of a DeviceClass.
        """
        if self.devices or not weights.has_class(name):
            return True
        if name.startswith(IMPLICIT_CLAIM):
            return False
        return self.plugins is None or name in self.plugins


class NodeSupply(msgspec.Struct, frozen=True):
    """The supply of one node: the resources of its device plugins, and the DRA drivers that have devices there."""

    name: str
    plugins: frozenset[str] = frozenset()
    drivers: frozenset[str] = frozenset()


class ServedClass(msgspec.Struct, frozen=True):
    """The nodes that serve the GPUs of a DeviceClass: by DRA `by_devices`, its extended resource `by_plugin`."""

    name: str
    resource: str
    by_devices: tuple[str, ...]
    by_plugin: tuple[str, ...]


class GpuSupply(msgspec.Struct, frozen=True):
    """The supply of each node, in a cluster of that version."""

    nodes: tuple[NodeSupply, ...] = ()
    version: Version = (0, 0)

    @property
    def scope(self) -> EvictionScope:
        return EvictionScope(
            frozenset(name for node in self.nodes for name in node.plugins), evicts_for_devices(self.version)
        )

    def with_plugin(self, name: str) -> tuple[str, ...]:
        """Return the nodes whose device plugin has a resource."""
        return tuple(node.name for node in self.nodes if name in node.plugins)

    def served(self, classes: Mapping[str, DeviceClass], weights: Weights) -> tuple[ServedClass, ...]:
        """Return the DeviceClasses of GPUs that nodes serve by DRA."""
        gpus = (each for each in classes.values() if weights.of_devices(each.name) > 0)
        found: list[ServedClass] = []
        for each in sorted(gpus, key=lambda each: each.name):
            resource, drivers = each.extended_resource_name, drivers_in(each.selectors)
            by_plugin = self.with_plugin(resource) if resource else ()
            # DRA serves it where its driver is, unless a device plugin has its resource there.
            others = [node for node in self.nodes if not resource or resource not in node.plugins]
            by_devices = tuple(node.name for node in others if _has_driver(node, drivers))
            if by_devices:
                found.append(ServedClass(each.name, resource, by_devices, by_plugin))
        return tuple(found)


NO_SUPPLY = GpuSupply()
"""A supply without any nodes."""


def resources_of_classes(classes: Iterable[DeviceClass]) -> frozenset[str]:
    """Return the extended resources of DeviceClasses whose devices may be GPUs."""
    return frozenset(
        each.extended_resource_name for each in classes if each.extended_resource_name and each.may_be_gpus
    )


def _has_driver(node: NodeSupply, wanted: Collection[str]) -> bool:
    return bool(node.drivers.intersection(wanted)) if wanted else any(map(is_accelerator_driver, node.drivers))
