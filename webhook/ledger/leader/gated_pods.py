"""Pods behind the gate of gpu-tiers. They count nothing until the leader books them and opens the gate."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import count

import msgspec

from webhook.ledger.account import Entry
from webhook.ledger.protocol import Gated, Holding


class GatedPod(msgspec.Struct, frozen=True):
    """A pod behind our gate. `seen` counts the pods in the order in which this leader saw them."""

    uid: str
    holding: Holding
    seen: int = 0

    @property
    def gated(self) -> Gated:
        return self.holding.gated or Gated(0, "", "")

    @property
    def priority(self) -> int:
        return self.gated.priority

    @property
    def asks_for_gpus(self) -> bool:
        """False if it only waits for the other pods of its gang."""
        return self.holding.charge.gpus > 0

    def asks_for(self, reservation: Entry) -> bool:
        """Tell whether it still asks for what was reserved, because its node selector may have changed since.

        A change of flavor reserves only what the pod counts beyond its other entry, so it is not enough for the pod.
        """
        return reservation.instead_of is None and reservation.wants == (self.holding.charge,)


class GatedPods:
    """The gated pods that exist, by namespace (docs/decisions/hold.md)."""

    def __init__(self) -> None:
        self._pods: defaultdict[str, dict[str, GatedPod]] = defaultdict(dict)
        self._namespace_of: dict[str, str] = {}
        self._seen = count()

    def __contains__(self, uid: str) -> bool:
        return uid in self._namespace_of

    def __iter__(self) -> Iterator[str]:
        return iter(self._namespace_of)

    def get(self, uid: str) -> GatedPod | None:
        return self._pods[self._namespace_of[uid]][uid] if uid in self._namespace_of else None

    def of(self, namespaces: Iterable[str]) -> Iterator[GatedPod]:
        for namespace in namespaces:
            yield from self._pods.get(namespace, {}).values()

    def namespaces(self) -> Collection[str]:
        return [namespace for namespace, pods in self._pods.items() if pods]

    def uids_in(self, namespace: str) -> Collection[str]:
        return self._pods.get(namespace, {}).keys()

    def put(self, uid: str, holding: Holding) -> None:
        """Note that a gated pod exists."""
        before = self._pods[holding.namespace].get(uid)
        self._pods[holding.namespace][uid] = GatedPod(uid, holding, before.seen if before else next(self._seen))
        self._namespace_of[uid] = holding.namespace

    def take_out(self, uid: str) -> Holding | None:
        """Remove a pod that is gone or whose gate is open."""
        namespace = self._namespace_of.pop(uid, None)
        return self._pods[namespace].pop(uid).holding if namespace is not None else None
