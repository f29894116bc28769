"""The leader's view of workloads that are charged as a whole, from lists and from its watches since then."""

import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from webhook.ledger.protocol import Declared

MOST_ENDED = 50_000
"""Workloads whose end is remembered. The reservation of a forgotten one goes only by its age."""

ORPHANED_SECONDS = 60.0
"""Seconds after which pods without their workload are orphans. The garbage collector has deleted all others by then."""


def _workload(uid: str) -> str:
    """Return the uid of the workload that has this uid or this group: a further group is called <uid>/<number>."""
    return uid.partition("/")[0]


class WorkloadView:
    """Workloads that exist and have not ended, by uid. `changed` is called with the namespace of each change."""

    def __init__(self, changed: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._changed = changed
        self._clock = clock
        self._expected: set[str] = set()
        self._missing_since: OrderedDict[str, float] = OrderedDict()
        self._declared: dict[str, Declared] = {}
        self._in: defaultdict[str, set[str]] = defaultdict(set)
        self._listed: set[str] = set()
        self._ended: OrderedDict[str, None] = OrderedDict()

    def get(self, uid: str) -> Declared | None:
        """Return a workload by its uid, or by that of one of its groups."""
        return self._declared.get(_workload(uid))

    def lists(self, kind: str) -> bool:
        return kind in self._listed

    def has_ended(self, uid: str) -> bool:
        uid = _workload(uid)
        return uid not in self._declared and uid in self._ended

    def expect(self, kinds: Iterable[str]) -> None:
        """Note the kinds that will be listed. No workload is gone before all of them are."""
        self._expected = set(kinds)

    def is_gone(self, uid: str) -> bool:
        """Tell whether no workload of any kind has had this uid for ORPHANED_SECONDS, since that was asked first."""
        uid = _workload(uid)
        if uid in self._declared or not self._expected <= self._listed:
            return False
        now = self._clock()
        since = self._missing_since.setdefault(uid, now)
        if len(self._missing_since) > MOST_ENDED:
            self._missing_since.popitem(last=False)
        return now - since >= ORPHANED_SECONDS

    def found_in(self, namespaces: Collection[str]) -> Iterator[tuple[str, Declared]]:
        for namespace in namespaces:
            yield from ((uid, self._declared[uid]) for uid in self._in.get(namespace, ()))

    def observe(self, uid: str, declared: Declared) -> None:
        before = self._declared.get(uid)
        self._missing_since.pop(uid, None)
        if before != declared and uid not in self._ended:
            self._declared[uid] = declared
            self._in[declared.namespace].add(uid)
            self._changed(declared.namespace)

    def release(self, uid: str) -> None:
        """Note a workload that is gone or has ended."""
        before = self._declared.pop(uid, None)
        self._ended[uid] = None
        if len(self._ended) > MOST_ENDED:
            self._ended.popitem(last=False)
        if before is not None:
            self._in[before.namespace].discard(uid)
            self._changed(before.namespace)

    def observe_all(self, kind: str, declared: Mapping[str, Declared]) -> None:
        """Note a list: these workloads of that kind exist and no others."""
        self._listed.add(kind)
        for uid in declared:
            self._ended.pop(uid, None)
        for uid in [uid for uid, each in self._declared.items() if each.kind == kind and uid not in declared]:
            self.release(uid)
        for uid, each in declared.items():
            self.observe(uid, each)
