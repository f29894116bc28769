"""What the leader knows of the workloads that hold a charge as a whole: by lists, and by its watches since then."""

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping

from webhook.ledger.protocol import Declared

MOST_ENDED = 50_000
"""Workloads whose end is remembered. One that is forgotten costs time: its promise goes by its age."""


class WorkloadView:
    """Workloads that exist and have not ended, by uid. `changed` is called with the namespace of each change."""

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._declared: dict[str, Declared] = {}
        self._in: defaultdict[str, set[str]] = defaultdict(set)
        self._listed: set[str] = set()
        self._ended: OrderedDict[str, None] = OrderedDict()

    def get(self, uid: str) -> Declared | None:
        return self._declared.get(uid)

    def lists(self, kind: str) -> bool:
        return kind in self._listed

    def has_ended(self, uid: str) -> bool:
        return uid not in self._declared and uid in self._ended

    def found_in(self, namespaces: Collection[str]) -> Iterator[tuple[str, Declared]]:
        for namespace in namespaces:
            yield from ((uid, self._declared[uid]) for uid in self._in.get(namespace, ()))

    def observe(self, uid: str, declared: Declared) -> None:
        before = self._declared.get(uid)
        if before != declared and uid not in self._ended:
            self._declared[uid] = declared
            self._in[declared.namespace].add(uid)
            self._changed(declared.namespace)

    def release(self, uid: str) -> None:
        """A workload is gone, or has ended."""
        before = self._declared.pop(uid, None)
        self._ended[uid] = None
        if len(self._ended) > MOST_ENDED:
            self._ended.popitem(last=False)
        if before is not None:
            self._in[before.namespace].discard(uid)
            self._changed(before.namespace)

    def observe_all(self, kind: str, declared: Mapping[str, Declared]) -> None:
        """These workloads of that kind exist and no others: a list."""
        self._listed.add(kind)
        for uid in declared:
            self._ended.pop(uid, None)
        for uid in [uid for uid, each in self._declared.items() if each.kind == kind and uid not in declared]:
            self.release(uid)
        for uid, each in declared.items():
            self.observe(uid, each)
