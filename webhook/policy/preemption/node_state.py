"""A node as preemption knows it: what it offers, and which pods may run on it while it is reserved for a tier.

Pods of this tier and of higher ones may. For others the taint closes it, by the tolerations that pods get. A pod whose
author tolerates every taint, as many do to run on GPU nodes at all, gets a required node affinity: a reserved node has
a label of the taint's name too.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from webhook.objects.node_fit import Taint
from webhook.objects.pods import Metadata, Pod, Quantity
from webhook.objects.quantities import quantity
from webhook.objects.view import View, listed, mapped
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier

Amounts = Mapping[str, Decimal]
"""Amounts of resources by name."""
RESERVED = "gpu-tiers.dev/reserved"
"""The key of the taint of a reserved node, and of its label. Their value is the tier that the node is reserved for."""
RESERVATION = "gpu-tiers.dev/reservation"
"""The node's annotation with its reservation."""
FAILURES = "gpu-tiers.dev/failed-preemptions"
"""The node's annotation with the preemptions that failed there."""


class StatusCondition(View, frozen=True):
    """A condition of a node or of a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    last_transition_time: str | None = None


class _Status(View, frozen=True):
    allocatable: dict[str, Quantity] = msgspec.field(default_factory=dict)
    conditions: tuple[StatusCondition, ...] = ()


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
        """Tell whether a device plugin has a resource here. A plugin that is gone leaves 0 of it, and DRA serves it."""
        return self.allocatable.get(resource, Decimal(0)) > 0

    @property
    def reserved_for(self) -> str:
        """The tier in our taint; "" without one."""
        return next((each.value for each in self.taints if each.key == RESERVED), "")

    @property
    def is_marked(self) -> bool:
        """Tell whether the node has our taint, label or annotation of a reservation, which may be over."""
        return bool(self.reserved_for or self.reservation) or RESERVED in self.labels


def node_state(found: SchedulableNode) -> NodeState:
    """Return a node's state. Raises Refused for an amount that is no quantity."""
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


Tolerations = tuple[Mapping[str, Any], ...]


class ReservedNodesAccess(NamedTuple):
    """The reserved nodes that a pod may use: all its tolerations of our taint, and the tiers whose nodes it avoids."""

    tolerations: Tolerations
    avoided: tuple[str, ...]

    @property
    def expression(self) -> dict[str, Any]:
        """The expression of a node affinity that avoids them."""
        return {"key": RESERVED, "operator": "NotIn", "values": list(self.avoided)}

    def needs_affinity(self, pod: Pod) -> bool:
        """Tell whether a pod tolerates every taint of our effect, so that only an affinity avoids these nodes.

        False if it avoids none.
        """
        tolerations = (mapped(each) for each in listed(pod.spec.tolerations))
        any_taint = any(not each.get("key") and each.get("effect") in (None, "", "NoSchedule") for each in tolerations)
        return bool(self.avoided) and any_taint


def reserved_nodes_access(tier: Tier | None, policy: TierPolicy) -> ReservedNodesAccess:
    """Return the access to reserved nodes of a pod of that tier: to nodes of its own and of lower tiers.

    A pod without a tier, or below all tiers that evict, avoids all reserved nodes.
    """
    evicting = [each for each in policy.tiers if each.preemption_policy != "Never"]
    borne = [each.name for each in evicting if tier is not None and each.value <= tier.value]
    tolerations = ({"key": RESERVED, "operator": "Equal", "value": name, "effect": "NoSchedule"} for name in borne)
    return ReservedNodesAccess(tuple(tolerations), tuple(each.name for each in evicting if each.name not in borne))


def undue(pod: Pod, due: Tolerations) -> Iterator[int]:
    """Yield the indices of a pod's tolerations of our taint that are not in `due`, the last first."""
    there = listed(pod.spec.tolerations)
    for place in reversed(range(len(there))):
        if mapped(there[place]).get("key") == RESERVED and there[place] not in due:
            yield place
