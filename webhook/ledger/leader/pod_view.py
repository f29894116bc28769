"""The leader's view of pods and workloads, from a list and from its watch since then.

The view may lag behind the cluster, but never goes back: a pod that is gone stays gone until the next list. GPUs are
summed for each namespace and each gang as pods come and go, so that no reader has to visit all pods.
"""

import time
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import chain

from msgspec.structs import replace

from webhook.ledger.account import Account, GangKey, PodCount
from webhook.ledger.leader.gated_pods import GatedPods
from webhook.ledger.leader.vacant_slots import VacantSlots
from webhook.ledger.leader.workload_view import WorkloadView
from webhook.ledger.protocol import Holding
from webhook.policy.quota.charges import Charge

MOST_ENDED = 50_000
"""Pods whose end is remembered. The reservation of a forgotten one goes only by its age."""

MOST_COUNTED = 300
"""Most counts of pods in an account. Each takes some 120 bytes of every write."""

MOST_LATE = 1000
"""Pods whose GPUs are remembered after their end."""


class PodView:
    """Pods that use GPUs, by uid. `changed` is called with the namespace of each change; it must be quick.

    Pods behind our gate use no GPUs, and are only in `gated`.
    """

    def __init__(
        self,
        changed: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._changed = changed
        self._clock = clock
        self._pods: dict[str, Holding] = {}
        self._uids: defaultdict[str, dict[str, str]] = defaultdict(dict)
        self._sums = HoldingSums()
        self._counts: dict[str, Counter[_Alike]] = {}
        self._preempted_or_sharing: defaultdict[str, dict[str, Holding]] = defaultdict(dict)
        self._ends: dict[str, float] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._late: OrderedDict[str, Holding] = OrderedDict()
        self._over: set[str] = set()
        self._listings: list[set[str]] = []
        self.workloads = WorkloadView(changed, clock)
        self.gated = GatedPods()
        self.vacant = VacantSlots(wall)

    def get(self, uid: str) -> Holding | None:
        return self._pods.get(uid)

    def last_used(self, uid: str) -> Holding | None:
        """Return the GPUs of a pod, also after its end for a while."""
        return self._pods.get(uid) or self._late.get(uid)

    def has_ended(self, uid: str) -> bool:
        """Tell whether the end of that pod was seen or proved."""
        return uid not in self._pods and uid not in self.gated and (uid in self._ended or uid in self._over)

    def named(self, namespace: str, name: str) -> str | None:
        return self._uids[namespace].get(name) if namespace in self._uids else None

    def namespaces(self) -> Collection[str]:
        """Return the namespaces where pods are or were."""
        return self._sums.namespaces()

    def preempted(self, namespaces: Iterable[str]) -> Iterator[str]:
        """Yield the preempted pods of these namespaces, which end now."""
        for namespace in namespaces:
            yield from (uid for uid, each in self._preempted_or_sharing.get(namespace, {}).items() if each.preempted)

    def used(self, namespaces: Iterable[str], but: Collection[str], gangs: Collection[GangKey]) -> tuple[Charge, ...]:
        """Return the GPUs of pods in these namespaces, summed by tier and flavor.

        They are without those of pods `but`, of `gangs`, and that pods share by claims.
        """
        return self._sums.of_namespaces(namespaces, [self._pods[uid] for uid in but], gangs)

    def used_without_claims(self, gang: GangKey, but: Collection[str]) -> tuple[Charge, ...]:
        """Return the GPUs of a gang's pods except `but`, without those that they share by claims."""
        return self._sums.of_gang(gang, [self._pods[uid] for uid in but])

    def claims(self, namespaces: Iterable[str], but: Collection[str]) -> tuple[Charge, ...]:
        """Return the GPUs that pods in these namespaces share, except `but`: one for each claim, tier and flavor."""
        pods = (
            each.charge
            for namespace in namespaces
            for uid, each in self._preempted_or_sharing.get(namespace, {}).items()
            if uid not in but
        )
        return _shared_by(pods)

    def used_by(self, gang: GangKey) -> tuple[Charge, ...]:
        """Return the GPUs of a gang's pods, with those that they share."""
        here = self._preempted_or_sharing.get(gang[0], {}).values()
        return *self.used_without_claims(gang, ()), *_shared_by(each.charge for each in here if each.draws_on == gang)

    def counts(self, namespaces: Iterable[str], gangs: Container[GangKey]) -> tuple[PodCount, ...]:
        """Return how many pods each maker has, without those of `gangs` and preempted ones; MOST_COUNTED at most."""
        found = sorted(self._alike_in(namespaces, gangs).items(), key=str)
        return tuple(
            PodCount(namespace=namespace, maker=maker, pods=pods, each=Charge(gpus=gpus, tier=tier, flavor=flavor))
            for (namespace, maker, (tier, flavor), gpus), pods in found[:MOST_COUNTED]
        )

    def _alike_in(
        self, namespaces: Iterable[str], gangs: Container[GangKey]
    ) -> Counter[tuple[str, str, "Bucket", Decimal]]:
        """Return how many pods have the same namespace, maker and GPUs, of all makers."""
        found = Counter[tuple[str, str, Bucket, Decimal]]()
        for namespace in namespaces:
            for (maker, of, bucket, gpus), pods in self._counts_in(namespace).items():
                if (namespace, of) not in gangs:
                    found[namespace, maker, bucket, gpus] += pods
        return found

    def _counts_in(self, namespace: str) -> Counter["_Alike"]:
        """Return the pods of each maker, counted at the first call and from then on as they come and go.

        Only tenants with a queue are asked. For each pod of the others a count would take 200 bytes.
        """
        if namespace not in self._counts:
            pods = (each for each in self._pods.values() if each.namespace == namespace)
            self._counts[namespace] = Counter(_alike(each) for each in pods if _is_counted(each))
        return self._counts[namespace]

    def inherit(self, account: Account) -> None:
        """Reserve the slots of pods that the last leader has counted, and that ended while nobody led.

        One that has a replacement has left no slot.
        """
        preempted = (each for each in account.entries if each.is_pod and each.preempted and each.uid not in self._pods)
        now, missing = Counter[tuple[str, str]](), list[PodCount]()
        counted = {each.namespace for each in account.pod_counts}
        for (namespace, maker, *_), pods in self._alike_in(counted, account.gangs).items():
            now[namespace, maker] += pods
        for entry in account.reserved:
            now[entry.namespace, entry.maker] += entry.is_pod and entry.uid not in self._pods
        for each in account.pod_counts:
            key = each.namespace, each.maker
            ended, now[key] = max(each.pods - now[key], 0), max(now[key] - each.pods, 0)
            missing.append(replace(each, pods=ended))
        self.vacant.put_missed(preempted, missing)

    def observe(self, holder: str, holding: Holding) -> None:
        """Note an existing pod. It is charged even if there was no room, unless it is gated, overdue or proved over."""
        self._note_in_lists(holder)
        # A pod that should have ended by now counts as ended, by our own clock since its deletion was first seen.
        over = holder in self._over
        if holding.ends_in is not None and not over:
            now = self._clock()
            self._ends[holder] = min(self._ends.get(holder, now + holding.ends_in), now + holding.ends_in)
            over = self._ends[holder] <= now
        if over:
            self._end(holder)
            return
        if holding.gated is not None:
            self.gated.put(holder, holding)
        else:
            self._take_out(holder)
            self._put(holder, holding)
        self._changed(holding.namespace)

    def release(self, holder: str) -> None:
        """Note a pod that is gone, has succeeded or failed, or uses no GPU."""
        self._note_in_lists(holder)
        self._ends.pop(holder, None)
        self._end(holder)

    def observe_all(self, holdings: Mapping[str, Holding]) -> None:
        """Note a list: these pods exist and no others."""
        self._over.clear()
        for uid in [uid for uid in chain(self._pods, self.gated) if uid not in holdings]:
            self.release(uid)
        self._ends = {uid: end for uid, end in self._ends.items() if uid in holdings}
        for uid, holding in holdings.items():
            self.observe(uid, holding)

    def begin_list(self) -> set[str]:
        """Begin to list a namespace. The returned set collects the uids that the watch shows until `end_list`."""
        self._listings.append(set())
        return self._listings[-1]

    def end_list(self, seen: set[str]) -> None:
        """End a list that was read, or could not be read."""
        self._listings = [each for each in self._listings if each is not seen]

    def merge(self, namespace: str, found: Mapping[str, Holding], seen: set[str]) -> None:
        """Merge a list of the pods of one namespace. The watch is newer for pods `seen` by it since."""
        here = (uid for uid, each in self._pods.items() if each.namespace == namespace)
        for uid in [*here, *self.gated.uids_in(namespace)]:
            if uid not in found and uid not in seen:
                self.prove_over(uid)
        for uid, holding in found.items():
            if uid not in seen:
                self.observe(uid, holding)

    def prove_over(self, uid: str) -> None:
        """Note that a pod does not exist. Until the next list ignore the watch on it, which may lag."""
        self._over.add(uid)
        self._end(uid)

    def drop_overdue(self) -> None:
        now = self._clock()
        for uid in [uid for uid, end in self._ends.items() if end <= now and uid in self._pods]:
            self._end(uid)

    def next_end(self) -> float | None:
        return min((end for uid, end in self._ends.items() if uid in self._pods), default=None)

    def _note_in_lists(self, uid: str) -> None:
        for seen in self._listings:
            seen.add(uid)

    def _end(self, uid: str) -> None:
        self._ended[uid] = None
        if len(self._ended) > MOST_ENDED:
            self._ended.popitem(last=False)
        holding = self._take_out(uid)
        if holding is not None and holding.gated is None:
            self.vacant.put(uid, holding)
            self._late[uid] = holding
            if len(self._late) > MOST_LATE:
                self._late.popitem(last=False)
        if holding is not None:
            self._changed(holding.namespace)

    def _put(self, uid: str, holding: Holding) -> None:
        self._pods[uid] = holding
        self._uids[holding.namespace][holding.name] = uid
        self._sums.count(holding, 1)
        self._count(holding, 1)
        if holding.preempted or holding.charge.shared:
            self._preempted_or_sharing[holding.namespace][uid] = holding

    def _take_out(self, uid: str) -> Holding | None:
        holding = self._pods.pop(uid, None)
        if holding is None:
            return self.gated.take_out(uid)
        if self.named(holding.namespace, holding.name) == uid:
            del self._uids[holding.namespace][holding.name]
        self._sums.count(holding, -1)
        self._count(holding, -1)
        self._preempted_or_sharing[holding.namespace].pop(uid, None)
        return holding

    def _count(self, holding: Holding, pods: int) -> None:
        counts = self._counts.get(holding.namespace)
        if counts is not None and _is_counted(holding):
            alike = _alike(holding)
            counts[alike] += pods
            if not counts[alike]:
                del counts[alike]


Bucket = tuple[str | None, str | None]
Sums = defaultdict[Bucket, Decimal]
_Alike = tuple[str, str, Bucket, Decimal]
"""The maker of a pod, its gang or controller, and its GPUs."""


def _alike(holding: Holding) -> _Alike:
    return holding.made_by[1], holding.draws_on[1], _bucket(holding), holding.charge.gpus


def _is_counted(holding: Holding) -> bool:
    return bool(holding.controller) and not holding.preempted and not holding.charge.shared


class HoldingSums:
    """The GPUs of pods by tier and flavor, for each namespace and each gang, without what they share by a claim."""

    def __init__(self) -> None:
        self._by_namespace: defaultdict[str, Sums] = defaultdict(lambda: defaultdict(Decimal))
        self._by_gang: defaultdict[GangKey, Sums] = defaultdict(lambda: defaultdict(Decimal))

    def namespaces(self) -> Collection[str]:
        return self._by_namespace.keys()

    def of_namespaces(
        self, namespaces: Iterable[str], but: Iterable[Holding], gangs: Collection[GangKey]
    ) -> tuple[Charge, ...]:
        """Return the GPUs of the pods of these namespaces, except `but` and those of `gangs`."""
        sums: Sums = defaultdict(Decimal)
        for namespace in namespaces:
            _add(sums, self._by_namespace.get(namespace, {}))
        for gang in gangs:
            _add(sums, self._by_gang.get(gang, {}), -1)
        return _drawn(sums, (each for each in but if each.draws_on not in gangs))

    def of_gang(self, gang: GangKey, but: Iterable[Holding]) -> tuple[Charge, ...]:
        """Return the GPUs of a gang's pods, except `but`."""
        sums: Sums = defaultdict(Decimal, self._by_gang.get(gang, {}))
        return _drawn(sums, (each for each in but if each.draws_on == gang))

    def count(self, holding: Holding, times: int) -> None:
        """Add a pod, or take it out with -1."""
        bucket, own = _bucket(holding), times * holding.charge.own
        self._by_namespace[holding.namespace][bucket] += own
        mates = self._by_gang[holding.draws_on]
        mates[bucket] += own
        if not any(mates.values()):
            del self._by_gang[holding.draws_on]


def _shared_by(charges: Iterable[Charge]) -> tuple[Charge, ...]:
    """Return an entry for each ResourceClaim on each tier and flavor."""
    found: dict[str, Charge] = {}
    for each in charges:
        for claim, gpus in each.shared.items():
            drawn = Charge(gpus=gpus, tier=each.tier, flavor=each.flavor, shared={claim: gpus})
            found[repr(drawn)] = drawn
    return tuple(found[key] for key in sorted(found))


def _add(sums: Sums, others: Mapping[Bucket, Decimal], times: int = 1) -> None:
    for bucket, gpus in others.items():
        sums[bucket] += times * gpus


def _drawn(sums: Sums, without: Iterable[Holding]) -> tuple[Charge, ...]:
    for each in without:
        sums[_bucket(each)] -= each.charge.own
    ordered = sorted(sums.items(), key=str)
    return tuple(Charge(gpus=gpus, tier=tier, flavor=flavor) for (tier, flavor), gpus in ordered if gpus)


def _bucket(holding: Holding) -> Bucket:
    return holding.charge.tier, holding.charge.flavor
