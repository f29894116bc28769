"""A node as preemption knows it: what it offers, and whether it takes a pod, however free it is."""

from collections.abc import Mapping
from decimal import Decimal

import msgspec

from webhook.objects.node_fit import Taint
from webhook.objects.pods import Metadata, Quantity
from webhook.objects.quantities import quantity
from webhook.objects.view import View

Amounts = Mapping[str, Decimal]
"""Amounts of resources by name."""
RESERVED = "gpu-tiers.dev/reserved"
"""The key of the taint of a reserved node, and of its label. Their value is the tier that the node is reserved for."""
RESERVATION = "gpu-tiers.dev/reservation"
"""The node's annotation with its reservation."""
FAILURES = "gpu-tiers.dev/failed-preemptions"
"""The node's annotation with the preemptions that failed there."""


class _Condition(View, frozen=True):
    type: str = ""
    status: str = ""


class _Status(View, frozen=True):
    allocatable: dict[str, Quantity] = msgspec.field(default_factory=dict)
    conditions: tuple[_Condition, ...] = ()


class _Spec(View, frozen=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class SchedulableNode(View, frozen=True):
    """A node with the fields that the scheduler reads."""

    metadata: Metadata = Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class NodeState(msgspec.Struct, frozen=True):
    """A node. `is_open`: it is ready and not cordoned. `reservation` and `failures` are our annotations."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    allocatable: Amounts
    is_open: bool
    reservation: str = ""
    failures: str = ""

    def plugs(self, resource: str) -> bool:
        """Tell whether a device plugin has a resource: with 0 of it, as a plugin leaves it behind, DRA serves it."""
        return self.allocatable.get(resource, Decimal(0)) > 0

    @property
    def reserved_for(self) -> str:
        """The tier in our taint; "" where it bears none."""
        return next((each.value for each in self.taints if each.key == RESERVED), "")

    @property
    def is_marked(self) -> bool:
        """Tell whether it bears our taint, label or annotation, of a reservation that may be over."""
        return bool(self.reserved_for or self.reservation) or RESERVED in self.labels


def node_state(found: SchedulableNode) -> NodeState:
    """Reduce a node. Raises Refused for a quantity that is none."""
    ready = any((each.type, each.status) == ("Ready", "True") for each in found.status.conditions)
    return NodeState(
        found.metadata.name,
        found.metadata.labels,
        found.spec.taints,
        {name: quantity(value, name) for name, value in found.status.allocatable.items()},
        ready and not found.spec.unschedulable,
        found.metadata.annotations.get(RESERVATION, ""),
        found.metadata.annotations.get(FAILURES, ""),
    )
