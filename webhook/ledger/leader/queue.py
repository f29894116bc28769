"""Sorts the gated pods of a tenant into its queue, and books from its head on, by a view and an account only.

A pod that adds nothing to a row never waits for that row: a pod of a booked gang, and the replacement of an ended pod.
All others are queued by tier, then by the age of their workload.

A queued unit is booked as a review books it: a gang as a whole, a pod by its reservation. So this leader or the next
one may open the gate of each pod that has a reservation. The reservation for the head of the queue is an entry too.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from decimal import Decimal

import msgspec
from msgspec.structs import replace

from webhook.ledger.account import Account, Entry, GangKey, at_tier
from webhook.ledger.draft import NotNow
from webhook.ledger.leader.gated_pods import GatedPod
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.rewrite import book_with_its_pods
from webhook.ledger.protocol import Booked, Booking, Declared, GangBooking
from webhook.ledger.versions import WorkingCopy
from webhook.policy.quota.charges import Charge, Shortfall, shortfall
from webhook.policy.values.tenants import QuotaRow, Tenant

QueueKey = tuple[int, str, int]


class QueuedUnit(msgspec.Struct, frozen=True):
    """A queued unit: a gang with those of its pods that exist, or a single pod.

    `sort_key` is the negated value of its tier, its creationTimestamp (RFC 3339), and a number in the order in which
    the leader saw units. `grows`: the pod belongs to a booked gang that waits to grow, so alone it may only use what
    the gang has already.
    """

    pods: tuple[GatedPod, ...]
    sort_key: QueueKey
    gang: GangBooking | None = None
    grows: bool = False

    @property
    def first(self) -> GatedPod:
        return self.pods[0]

    @property
    def uid(self) -> str:
        """The uid of the gang, or of the pod."""
        return self.gang.uid if self.gang else self.first.uid

    @property
    def charges(self) -> tuple[Charge, ...]:
        return self.gang.charges if self.gang else tuple(each.holding.charge for each in self.pods)


class Queued(msgspec.Struct, frozen=True):
    """A unit that stays queued, because a row is `short` for it, or `behind` the head with this uid, or for both."""

    unit: QueuedUnit
    short: Shortfall | None = None
    behind: str = ""


def booking_of(pod: GatedPod, tenant: Tenant) -> Booking:
    """Return the booking of a single pod."""
    of = pod.holding
    return Booking(
        pod.uid, of.namespace, tenant, (of.charge,), of.controller, of.name, gang=of.gang, workload=of.workload
    )


def admitted_pods(account: Account, view: PodView) -> Iterator[GatedPod]:
    """Yield the pods whose gates may be opened.

    The account has a reservation for the GPUs that they ask for. A pod without GPUs waits until its gang is booked.
    """
    for each in account.reserved:
        pod = view.gated.get(each.uid)
        if pod is not None and pod.asks_for(each):
            yield pod
    gangs = account.gangs
    for pod in view.gated.of(account.namespaces):
        if not pod.asks_for_gpus and ((key := queued_with(pod, view)) is None or key in gangs):
            yield pod


def queue_of(account: Account, view: PodView, tenant: Tenant) -> list[QueuedUnit]:
    """Return the queue of the open namespaces of an account, in order.

    It leaves out pods that are booked already, gangs whose workload is not seen yet, and namespaces that are moving.
    """
    # 1. Queue a pod alone only if it belongs to no gang for sure, because half a gang would hold GPUs and never run.
    admitted = {each.uid for each in admitted_pods(account, view)}
    gangs, found = defaultdict[GangKey, list[GatedPod]](list), list[QueuedUnit]()
    for pod in view.gated.of(namespace for namespace, state in account.namespaces.items() if state == "open"):
        if pod.uid not in admitted:
            key = queued_with(pod, view)
            if key is None:
                found.append(QueuedUnit((pod,), _sort_key(pod, view.workloads.get(pod.holding.controller))))
            else:
                gangs[key].append(pod)

    # 2. Queue a gang as a whole until it is booked with all that it asks for. Its pods may use what it has at any time,
    #    also while it waits to grow, or while nobody can tell what it asks for.
    booked = account.gangs
    for key, pods in gangs.items():
        declared, entries = view.workloads.get(key[1]), booked.get(key, ())
        asked = _as_its_pods(declared.charges, pods, key, view) if declared and declared.charges else None
        wants = at_tier(asked or (), entries[0].tier if entries else "")
        is_admitted = entries and (not wants or any(each.wants == wants for each in entries))
        waits = declared is not None and bool(asked) and not is_admitted
        if entries:
            found += (QueuedUnit((pod,), _sort_key(pod, declared), grows=waits) for pod in pods)
        if declared is None or not asked or is_admitted:
            continue
        ordered = sorted(pods, key=lambda pod: (-pod.priority, pod.gated.since, pod.seen))
        lowest, since, _ = max(_sort_key(pod, declared) for pod in ordered)  # a gang ranks by the lowest of its tiers
        _, of_pods, number = key[1].partition("/")  # a further group of a workload exists as long as its pods do
        name, generation = f"{declared.name}-{number}" if of_pods else declared.name, declared.generation
        booking = GangBooking(
            key[1], declared.kind, key[0], name, tenant, asked, generation=generation, of_pods=bool(of_pods)
        )
        found.append(QueuedUnit(tuple(ordered), (lowest, since, min(each.seen for each in pods)), booking))
    return sorted(found, key=lambda each: each.sort_key)


def _as_its_pods(
    declared: tuple[Charge, ...], pods: Iterable[GatedPod], key: GangKey, view: PodView
) -> tuple[Charge, ...]:
    """Return what a gang asks for, in the tier of its pods if they have none of the tiers that it declares.

    A pod keeps its class. Once somebody has changed the label of a queued gang, its pods would use the row of one tier,
    and the gang would be booked in that of another.
    """
    tiers, gated = {each.tier for each in declared}, [each for each in pods if each.asks_for_gpus]
    if not gated or any(each.holding.charge.tier in tiers for each in gated):
        return declared
    if any(each.tier in tiers for each in view.used_by(key)):
        return declared
    return at_tier(declared, min(gated, key=lambda pod: pod.priority).holding.charge.tier or "")


def _sort_key(pod: GatedPod, maker: Declared | None) -> QueueKey:
    """Return the sort key of a pod: the age of the Job or gang that makes it, or its own if a workload scales."""
    return -pod.priority, (maker.created if maker else "") or pod.gated.since, pod.seen


def queued_with(pod: GatedPod, view: PodView) -> GangKey | None:
    """Return the gang with which a pod is queued; None for a single pod.

    The view may not show the gang yet, because a Job's first pods are often seen before the Job.
    """
    of, maker = pod.holding, view.workloads.get(pod.holding.controller)
    awaits_controller = maker is not None or pod.gated.awaits_controller
    uid = of.gang or (of.controller if awaits_controller else "")
    if not of.controller or not uid:
        return None  # its workload was deleted without its pods, or is of a kind that is no gang
    found = view.workloads.get(uid)
    if found is None:
        orphaned = maker is not None and bool(maker.charges)  # a JobSet was deleted without its Jobs
        ended = uid == of.controller and view.workloads.has_ended(uid)
        return None if orphaned or ended or view.workloads.is_gone(uid) else (of.namespace, uid)
    if found.namespace != of.namespace:
        return None  # a pod can't belong to a workload of another namespace
    if found.charges == () and not found.stopped:
        return None  # it makes a single pod, or another controller makes its pods
    return of.namespace, uid  # a stopped one makes no pods, so it was resumed and the view lags, or they are deleted


def book_queue(copy: WorkingCopy, view: PodView) -> list[Queued]:
    """Book all units that have room, in order. Return those that stay queued."""
    # 1. Drop the reservations for the queue, and those of gated pods that ask for something else by now.
    before = copy.account
    copy.put(replace(before, entries=tuple(each for each in before.entries if _stays(each, view))))
    queue = _Queue(copy, view, before)

    # 2. Book the pods that add nothing to any row. They never wait.
    units = queue_of(copy.account, view, copy.version.active)
    found = [each for each in units if each.gang is not None or not queue.adds_nothing(each.first)]

    # 3. Book all others in order. Pods of a gang that grows wait with it.
    waiting = [queued for each in found if not each.grows for queued in queue.book(each)]

    # 4. Keep the account as it was if nothing has changed, so that nothing is written.
    if copy.account.entries == before.entries:
        copy.put(before)
    return waiting


def _stays(entry: Entry, view: PodView) -> bool:
    pod = view.gated.get(entry.uid) if entry.state == "Reserved" else None
    return entry.state != "ForQueue" and (pod is None or pod.asks_for(entry))


class _Queue:
    """The queue of one tenant, while it is booked into a copy of the account."""

    def __init__(self, copy: WorkingCopy, view: PodView, before: Account) -> None:
        self._copy = copy
        self._view = view
        self._tenant = copy.version.active
        # 1. The heads before, rows with the head that reserves them by now, and rows whose head's time is over.
        self._heads = {each.uid: each for each in before.entries if each.state == "ForQueue"}
        self._head_of = dict[QuotaRow, str]()
        self._overstayed = set[QuotaRow]()
        # 2. By the identity of charges: the leader's view has one object for equal charges of thousands of pods.
        self._rows_of = dict[tuple[int, ...], set[QuotaRow]]()
        self._full = dict[int, Shortfall]()
        self._lacks = dict[int, Shortfall | None]()

    def adds_nothing(self, pod: GatedPod) -> bool:
        """Book a pod if it adds nothing to any row, and tell whether it was booked."""
        booking = booking_of(pod, self._tenant)
        free = pod.asks_for_gpus and self._copy.draft.adds_nothing(booking)
        return free and isinstance(self._copy.book(booking), Booked)

    def book(self, unit: QueuedUnit) -> Iterator[Queued]:
        """Book a unit if it has room. Yield the part of it that stays queued. Skip a gang whose pods are all booked."""
        # 1. A unit doesn't pass the head of the queue on a row that is short for the head.
        if unit.gang is not None:
            unit = replace(unit, pods=self._not_booked(unit.pods))
            if not unit.pods:
                return
        rows, booking = self._rows(unit), unit.gang or booking_of(unit.first, self._tenant)
        charge = id(unit.first.holding.charge) if unit.gang is None else 0
        if head := next((head for row, head in self._head_of.items() if row in rows), ""):
            if not charge or charge not in self._lacks:
                self._lacks[charge] = self._copy.draft.lacks(booking)
            yield Queued(unit, self._lacks[charge], head)
            return

        # 2. Book it. If one of thousands of equal pods has no room, the others have none either.
        answer = self._full.get(charge) or self._booked(unit, booking)
        if isinstance(answer, Booked):
            # The pods beyond a gang's minimum are booked one by one, at the position of their gang.
            for pod in self._not_booked(unit.pods) if unit.gang is not None else ():
                if pod.asks_for_gpus:
                    yield from self.book(QueuedUnit((pod,), unit.sort_key))
            return
        if charge and isinstance(answer, Shortfall) and not unit.first.holding.charge.shared:
            self._full[charge] = answer

        # 3. A unit that can never fit blocks nobody. The first that waits for a row reserves it.
        short = answer if isinstance(answer, Shortfall) else None
        passes = isinstance(answer, NotNow) and not answer.soon
        never = passes or shortfall(unit.charges, self._tenant, {}) is not None
        if self._tenant.hold_order == "Strict" and not never:
            self._reserve(unit, booking, rows, short)
        yield Queued(unit, short)

    def _not_booked(self, pods: Iterable[GatedPod]) -> tuple[GatedPod, ...]:
        booked = {each.uid for each in self._copy.account.reserved}
        return tuple(each for each in pods if each.uid not in booked)

    def _booked(self, unit: QueuedUnit, booking: Booking | GangBooking) -> Booked | Shortfall | NotNow:
        """Book a gang as a whole, and then its pods inside it."""
        if not isinstance(booking, GangBooking):
            return self._copy.book(booking)
        answer = book_with_its_pods(self._copy, self._view, booking)
        if isinstance(answer, Booked):
            for pod in unit.pods:
                self.adds_nothing(pod)
        return answer

    def _reserve(
        self, unit: QueuedUnit, booking: Booking | GangBooking, rows: set[QuotaRow], short: Shortfall | None
    ) -> None:
        """Reserve GPUs for the head of the queue.

        On rows that are short it reserves all that it asks for. On its other rows it reserves what it needs beyond the
        GPUs that are about to be released, because otherwise another tier fills the total and the head never has room
        on both rows at once. After its time it reserves nothing, and no later unit reserves these rows.
        """
        # 1. What it adds to each row, and which rows are short. If too many creates are under way, none is known.
        if short is None:
            self._head_of |= dict.fromkeys(rows, unit.uid)
            return
        usage, adds = self._copy.usage, self._copy.draft.added_by(booking)
        missing = {row: usage[row] + gpus - row.hard for row, gpus in adds.items() if gpus > 0}
        lacking = {row for row, gpus in missing.items() if gpus > 0}
        lacking = lacking or {row for row in rows if usage[row] > row.hard}  # its vacant slot is not filled there
        if lacking & self._overstayed:
            return

        # 2. Its time began when it became the head.
        until, reserves = self._until(unit.uid), dict[str, Decimal]()
        if until and until <= self._view.vacant.now():
            self._overstayed |= lacking
        else:
            self._head_of |= dict.fromkeys(lacking, unit.uid)
            for row in missing:
                ends = max(
                    (missing[each] for each in lacking if row.counts(each.tier, each.flavor)), default=Decimal(0)
                )
                gpus = adds[row] if row in lacking else max(adds[row] - ends, Decimal(0))
                reserves |= {row.label: gpus} if gpus else {}
        first = unit.first
        self._copy.draft.reserve(
            Entry(
                uid=unit.uid,
                namespace=first.holding.namespace,
                state="ForQueue",
                reserves=reserves,
                rank=first.priority,
                until=until,
            )
        )

    def _until(self, uid: str) -> int:
        """Return when the time of a head is over, in seconds since 1970; 0 for never. The account remembers it."""
        before, limit = self._heads.get(uid), self._tenant.reserve_seconds
        if limit is None:
            return 0
        latest = int(self._view.vacant.now()) + limit  # the clock of another leader may be ahead
        return min(before.until or latest, latest) if before is not None else latest

    def _rows(self, unit: QueuedUnit) -> set[QuotaRow]:
        """Return the rows on which a unit counts. Thousands of pods share a charge."""
        same = tuple(map(id, unit.charges))
        if same not in self._rows_of:
            self._rows_of[same] = {row for charge in unit.charges for row in charge.rows(self._tenant)}
        return self._rows_of[same]
