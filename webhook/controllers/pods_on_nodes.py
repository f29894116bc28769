"""Counts a pod on the flavor of its node, and counts it again when the labels of that node change."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.protocol import Holding
from webhook.objects.times import unix_seconds
from webhook.policy.values.tenants import is_maybe
from webhook.policy.workloads.workload import Devices
from webhook.report.gpus_now import WaitingPod


class Claimed(msgspec.Struct, frozen=True):
    """The counted devices of a pod's claims, and of each ResourceClaim that it names, by namespace/name.

    `unread`: the devices of a claim were never known. `passing`: that is because a claim can't be read now. Otherwise
    the claim does not exist, and the pod uses nothing by it.
    """

    devices: tuple[Devices, ...] = ()
    claims: Mapping[str, tuple[Devices, ...]] = msgspec.field(default_factory=dict)
    unread: bool = False
    passing: bool = False


NO_CLAIMS = Claimed()


class PodWork(msgspec.Struct, frozen=True):
    """The work that a pod may lose, and when it should save. Times are in seconds since 1970.

    `max_at_risk` are the seconds of work that its annotation lets it lose at most, and `save_requested` is when a
    person asked it to save. `volume_claims` are the names of its PersistentVolumeClaims.
    """

    since: float
    max_at_risk: int | None = None
    save_requested: float | None = None
    volume_claims: tuple[str, ...] = ()


class WorkingPod(NamedTuple):
    """A pod with work to lose, on its node."""

    uid: str
    holding: Holding
    node: str
    work: PodWork


class ObservedPod(msgspec.Struct, frozen=True):
    """A pod that counts or has resource claims, as an event or a read showed it.

    `holding` is on the flavor that the pod names, and None while the pod does not count. `node` is "" until the pod is
    `bound`, at that time in RFC 3339; until then it `waits`. `work` is None while it has none to lose.
    """

    namespace: str
    name: str
    claimed: Claimed = NO_CLAIMS
    holding: Holding | None = None
    node: str = ""
    waits: WaitingPod | None = None
    work: PodWork | None = None
    bound: str = ""


class Placed(msgspec.Struct, frozen=True):
    """A pod on a node, with its GPUs there, from when it was bound until it ended, in seconds since 1970."""

    holding: Holding
    bound: float
    ended: float | None = None


WITHIN_A_SECOND = 0.5
"""Seconds that a time of an object is earlier than what it tells of, on average: such times have whole seconds."""
NO_FLAVOR = ""
"""The flavor of a node without one."""


Bound = Callable[[str, WaitingPod, str], None]
"""Gets each pod that was seen to wait when it has a node: its uid, how it waited, and the time of its binding."""


@dataclass(eq=False)
class PodsOnNodes:
    """Passes pods on to their observer, with the flavors of their nodes.

    `flavor_on` returns the flavor of a node by its name; None if no such node is known. A pod on a node without a
    flavor, or on an unknown node, counts on the flavor that the pod names. `on_node` gets each change of a pod on a
    node, None once it is there no more, and `all_listed` is called when all pods were listed again.
    """

    observer: PodView
    flavor_on: Callable[[str], str | None]
    bound: Bound = lambda *_: None
    on_node: Callable[[str, Placed | None], None] = lambda *_: None
    all_listed: Callable[[], None] = lambda: None
    now: Callable[[], float] = time.time
    _nodes: dict[str, tuple[str, float]] = field(default_factory=dict)
    """The node of each pod on one, and when the pod was bound."""
    _pods: defaultdict[str, dict[str, Holding]] = field(default_factory=lambda: defaultdict(dict))
    _waiting: dict[str, WaitingPod] = field(default_factory=dict)
    _working: dict[str, WorkingPod] = field(default_factory=dict)

    def begin(self, observer: PodView) -> None:
        """Begin for another observer, with no pod known yet."""
        self.observer = observer
        for each in (self._nodes, self._pods, self._waiting, self._working):
            each.clear()

    def pod_changed(self, uid: str, found: ObservedPod | None) -> None:
        self._keep(uid, found)
        if found is None or found.holding is None:
            self.observer.release(uid)
        else:
            self.observer.observe(uid, counted(found.holding, self.flavor_on(found.node)))
        self.on_node(uid, self._placed(uid))

    def pods_listed(self, found: Mapping[str, ObservedPod]) -> None:
        for known in (self._nodes, self._pods, self._working):
            known.clear()
        self._waiting = {uid: each for uid, each in self._waiting.items() if uid in found}
        for uid, each in found.items():
            self._keep(uid, each)
        using = ((uid, each.holding, each.node) for uid, each in found.items() if each.holding)
        self.observer.observe_all({uid: counted(holding, self.flavor_on(node)) for uid, holding, node in using})
        self.all_listed()

    def node_changed(self, node: str) -> None:
        for uid, holding in self._pods.get(node, {}).items():
            self.observer.observe(uid, counted(holding, self.flavor_on(node)))
            self.on_node(uid, self._placed(uid))

    def placed(self) -> Iterator[tuple[str, Placed]]:
        """Yield each pod on a node, by uid."""
        yield from ((uid, found) for uid in self._nodes if (found := self._placed(uid)))

    def _placed(self, uid: str) -> Placed | None:
        if uid not in self._nodes:
            return None
        node, bound = self._nodes[uid]
        return Placed(counted(self._pods[node][uid], self.flavor_on(node)), bound)

    def running(self) -> Iterator[tuple[str, Holding]]:
        """Yield each pod on a node: the node's name and the pod's GPUs on the node's flavor."""
        for node, pods in self._pods.items():
            flavor = self.flavor_on(node)
            yield from ((node, counted(holding, flavor)) for holding in pods.values())

    def working(self) -> Iterable[WorkingPod]:
        return self._working.values()

    def waiting(self) -> Iterable[WaitingPod]:
        return self._waiting.values()

    def unplaced(self) -> Iterator[tuple[str, Holding]]:
        """Yield the GPU pods without a node, by uid, except those behind our gate, which use none."""
        found = ((uid, self.observer.get(uid)) for uid in self._waiting)
        yield from ((uid, holding) for uid, holding in found if holding is not None)

    def workload_of(self, uid: str) -> str:
        """Return the workload of a waiting pod as kind/name, or the pod itself; "" if no such pod waits."""
        found = self._waiting.get(uid)
        return found.workload if found else ""

    def _keep(self, uid: str, found: ObservedPod | None) -> None:
        before, _ = self._nodes.pop(uid, ("", 0.0))
        if before:
            del self._pods[before][uid]
            if not self._pods[before]:
                del self._pods[before]
        self._working.pop(uid, None)
        waited = self._waiting.pop(uid, None)
        if found is not None and found.waits is not None:
            self._waiting[uid] = found.waits
        if found is not None and found.node and found.holding is not None:
            self._nodes[uid] = found.node, (unix_seconds(found.bound) or self.now()) + WITHIN_A_SECOND
            self._pods[found.node][uid] = found.holding
            if found.work is not None:
                self._working[uid] = WorkingPod(uid, found.holding, found.node, found.work)
            if waited is not None:
                self.bound(uid, waited, found.bound)


def counted(holding: Holding, flavor: str | None) -> Holding:
    """Return a pod's holding on its node's flavor. `flavor` is None for no node or an unknown node."""
    named = holding.charge.flavor
    if flavor in (None, named) or (flavor == NO_FLAVOR and not is_maybe(named)):
        return holding
    return replace(holding, charge=replace(holding.charge, flavor=flavor or None))
