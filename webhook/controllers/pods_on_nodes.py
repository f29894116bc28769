"""Counts a pod on the flavor of the node that it runs on, and anew when that node's labels change."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import structs
from msgspec.structs import replace

from webhook.controllers.observed_pod import ObservedPod
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.protocol import Holding
from webhook.policy.values.tenants import is_maybe
from webhook.report.gpus_now import WaitingPod

NO_FLAVOR = ""
"""That of a node which has none."""


Bound = Callable[[str, WaitingPod, str], None]
"""Is told of each pod that was seen to wait, once it has a node: its uid, how it waited, and when it got it."""


class PodsOnNodes:
    """Stands between the pods that are seen and their observer.

    `flavor_on` tells the flavor of a node by its name; None where no node of that name is known. A pod whose node has
    no flavor, or is not known, counts on the flavor that the pod names.
    """

    def __init__(
        self, observer: PodView, flavor_on: Callable[[str], str | None], bound: Bound = lambda *_: None
    ) -> None:
        self._observer = observer
        self._flavor_on = flavor_on
        self._bound = bound
        self._nodes: dict[str, str] = {}
        self._pods: defaultdict[str, dict[str, Holding]] = defaultdict(dict)
        self._waiting: dict[str, WaitingPod] = {}
        self._working: dict[str, float] = {}

    def pod_changed(self, uid: str, found: ObservedPod | None) -> None:
        self._keep(uid, found)
        if found is None or found.holding is None:
            self._observer.release(uid)
        else:
            self._observer.observe(uid, counted(found.holding, self._flavor_on(found.node)))

    def pods_listed(self, found: Mapping[str, ObservedPod]) -> None:
        self._nodes.clear()
        self._pods.clear()
        self._working.clear()
        self._waiting = {uid: each for uid, each in self._waiting.items() if uid in found}
        for uid, each in found.items():
            self._keep(uid, each)
        self._observer.observe_all(
            {uid: counted(each.holding, self._flavor_on(each.node)) for uid, each in found.items() if each.holding}
        )

    def node_changed(self, node: str) -> None:
        for uid, holding in self._pods.get(node, {}).items():
            self._observer.observe(uid, counted(holding, self._flavor_on(node)))

    def running(self) -> Iterator[tuple[str, Holding]]:
        """Nodes with what a pod holds there, each on that node's flavor."""
        for node, pods in self._pods.items():
            flavor = self._flavor_on(node)
            yield from ((node, counted(holding, flavor)) for holding in pods.values())

    def working(self) -> Iterator[tuple[str, Holding, float]]:
        """The pods with work to lose by their uids, what each holds, and since when it works."""
        for uid, since in self._working.items():
            yield uid, self._pods[self._nodes[uid]][uid], since

    def waiting(self) -> Iterable[WaitingPod]:
        return self._waiting.values()

    def unplaced(self) -> Iterator[tuple[str, Holding]]:
        """The pods that hold GPUs and have no node yet, by their uids. Those behind our gate hold none."""
        for uid in self._waiting:
            if (holding := self._observer.get(uid)) is not None:
                yield uid, holding

    def workload_of(self, uid: str) -> str:
        """What made a pod that waits, as kind/name, else the pod; "" where no such pod waits."""
        found = self._waiting.get(uid)
        return found.workload if found else ""

    def _keep(self, uid: str, found: ObservedPod | None) -> None:
        before = self._nodes.pop(uid, "")
        if before:
            del self._pods[before][uid]
            if not self._pods[before]:
                del self._pods[before]
        self._working.pop(uid, None)
        waited = self._waiting.pop(uid, None)
        if found is not None and found.waits is not None:
            self._waiting[uid] = found.waits
        if found is not None and found.node and found.holding is not None:
            self._nodes[uid] = found.node
            self._pods[found.node][uid] = found.holding
            if found.work_since is not None:
                self._working[uid] = found.work_since
            if waited is not None:
                self._bound(uid, waited, found.bound)


def counted(holding: Holding, flavor: str | None) -> Holding:
    """What a pod holds on a node of that flavor, or of NO_FLAVOR; None: on none, or on one that is not known."""
    named = holding.charge.flavor
    if flavor in (None, named) or (flavor == NO_FLAVOR and not is_maybe(named)):
        return holding
    return replace(holding, charge=structs.replace(holding.charge, flavor=flavor or None))
