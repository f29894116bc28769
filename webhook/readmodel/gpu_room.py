"""What is asked of GPU nodes and what they hold, as values: a pod that waits, nodes, pods on them, and the room."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

import msgspec

from webhook.objects.refusal import first_of
from webhook.readmodel.shown import Gpus, Shown

Asked = Mapping[str, Decimal]
"""GPUs by the name of their resource."""

MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod that waits for GPUs. `evicts`: by priority, nobody ("never"), or nobody until adoption ends."""

    asks: Asked
    priority: int
    tier: str = ""
    evicts: Literal["lower", "never", "adoption"] = "lower"
    nominated: str = ""


@dataclass(frozen=True, slots=True)
class NodeForPod:
    """A node with GPUs. `obstacle` says why it does not take the pod, whatever room it has; "" where it does."""

    name: str
    gpus: Asked
    obstacle: str = ""


@dataclass(frozen=True, slots=True)
class GpuHolder:
    """A pod on a node, with its GPUs. `ends_in`: it is being deleted, and this is what is left of its grace period."""

    name: str
    node: str
    gpus: Asked
    priority: int
    tier: str = ""
    tenant: str = ""
    ends_in: float | None = None


class Holders(Shown, frozen=True):
    """Pods that hold GPUs on nodes that would take the waiting one, and why it can't take theirs."""

    tier: str
    tenant: str
    gpus: Gpus
    pods: tuple[str, ...]
    why: str

    @property
    def names(self) -> str:
        """Some of the pods by name."""
        return first_of(self.pods, MOST_NAMED)


class Room(Shown, frozen=True):
    """What there is for a pod that waits for GPUs. `free` is by node, of those that would take it."""

    asks: str
    sentences: tuple[str, ...]
    free: dict[str, Gpus] = msgspec.field(default_factory=dict)
    holders: tuple[Holders, ...] = ()


@dataclass(slots=True)
class NodeRoom:
    """A node with the pods on it."""

    node: NodeForPod
    holders: list[GpuHolder] = field(default_factory=list)

    def left(self, name: str, *, without: Iterable[GpuHolder] = ()) -> Decimal:
        """The GPUs of that name that nobody holds."""
        gone = {id(each) for each in without}
        held = sum((each.gpus.get(name, Decimal(0)) for each in self.holders if id(each) not in gone), Decimal(0))
        return max(self.node.gpus.get(name, Decimal(0)) - held, Decimal(0))

    def has_room(self, asks: Asked, *, without: Iterable[GpuHolder] = ()) -> bool:
        """Whether so many are left."""
        gone = list(without)
        return all(self.left(name, without=gone) >= gpus for name, gpus in asks.items())
