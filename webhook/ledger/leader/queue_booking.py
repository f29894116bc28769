"""Books who is next in the queue of a tenant whose quota holds. Pure: from a view and an account.

What is let in stands in the account as any other booking: a gang as a whole, a pod by its reservation. So a gate may be
opened whenever its pod has one, by this leader or the next. What the first of the queue reserves is an entry too.
"""

from collections.abc import Iterator
from decimal import Decimal

from msgspec.structs import replace

from webhook.ledger.account import Account, Entry
from webhook.ledger.draft import NotNow
from webhook.ledger.leader.adoption import book_with_its_pods
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.queue import Queued, Waiting, booking_of, queue_of
from webhook.ledger.protocol import Booked, Booking, GangBooking
from webhook.ledger.versions import WorkingCopy
from webhook.policy.quota.charges import Shortfall, whole_shortfall
from webhook.policy.values.tenants import QuotaRow

NOTHING = Decimal(0)


def book_queue(copy: WorkingCopy, view: PodView) -> list[Queued]:
    """Book all that have room, in the order of their turns; who waits on, in that order."""
    # 1. Begin with what is booked. What a pod asks for no more is booked anew, and so is what the queue reserves.
    before = copy.account
    copy.put(replace(before, entries=tuple(each for each in before.entries if _stays(each, view))))
    queue = _Queue(copy, view, before)

    # 2. What adds nothing to a row never waits for that row. What grows waits with its gang.
    found = [each for each in queue_of(copy.account, view, copy.version.in_force) if not queue.adds_nothing(each)]

    # 3. Then all others, in turn.
    waiting = [queued for each in found if not each.grows for queued in queue.book(each)]

    # 4. Where all is as it was nothing is written.
    if copy.account.entries == before.entries:
        copy.put(before)
    return waiting


def _stays(entry: Entry, view: PodView) -> bool:
    pod = view.gated.get(entry.uid) if entry.state == "Reserved" else None
    return entry.state != "Kept" and (pod is None or pod.asks_for(entry))


class _Queue:
    """One tenant's, as it is booked from its first on into a copy of its account."""

    def __init__(self, copy: WorkingCopy, view: PodView, before: Account) -> None:
        self._copy = copy
        self._view = view
        self._tenant = copy.version.in_force
        self._heads = {each.uid: each for each in before.entries if each.state == "Kept"}
        self._reserved = set[QuotaRow]()
        self._overstayed = set[QuotaRow]()
        self._rows_of = dict[tuple[int, ...], set[QuotaRow]]()
        self._full = dict[int, Shortfall]()

    def adds_nothing(self, waiting: Waiting) -> bool:
        """Book a pod by itself if it adds to no row, and tell whether it did."""
        booking = booking_of(waiting.first, self._tenant)
        alone = waiting.gang is None and waiting.first.asks_for_gpus
        return alone and self._copy.draft.adds_nothing(booking) and isinstance(self._copy.book(booking), Booked)

    def book(self, waiting: Waiting) -> Iterator[Queued]:
        """Book it if it has room, and return what of it waits on. A gang has no turn without a pod that waits."""
        # 1. Nobody passes one who waits for room on a row that both draw on.
        if waiting.gang is not None:
            let_in = {each.uid for each in self._copy.account.reserved}
            waiting = replace(waiting, pods=tuple(each for each in waiting.pods if each.uid not in let_in))
            if not waiting.pods:
                return
        rows = self._rows(waiting)
        if rows & self._reserved:
            yield Queued(waiting)
            return

        # 2. It is booked if it has room. Thousands of pods ask for the same, which none finds where one did not.
        charge = id(waiting.first.holding.charge) if waiting.gang is None else 0
        booking = waiting.gang or booking_of(waiting.first, self._tenant)
        answer = self._full.get(charge) or self._booked(waiting, booking)
        if isinstance(answer, Booked):
            yield from self._surplus(waiting)
            return
        if charge and isinstance(answer, Shortfall) and not waiting.first.holding.charge.shared:
            self._full[charge] = answer

        # 3. Who can never fit blocks nobody. The first that waits for a row reserves it.
        short = answer if isinstance(answer, Shortfall) else None
        passes = isinstance(answer, NotNow) and not answer.soon
        never = passes or whole_shortfall(waiting.charges, self._tenant, {}) is not None
        if self._tenant.hold_order == "Strict" and not never:
            self._reserve(waiting, booking, rows, short)
        yield Queued(waiting, short, in_vain=never)

    def _surplus(self, gang: Waiting) -> Iterator[Queued]:
        """Book the pods beyond what a gang can't do without, each by itself, in the turn of their gang."""
        let_in = {each.uid for each in self._copy.account.reserved} if gang.gang is not None else set[str]()
        for pod in gang.pods if gang.gang is not None else ():
            if pod.asks_for_gpus and pod.uid not in let_in:
                yield from self.book(Waiting((pod,), gang.turn))

    def _booked(self, waiting: Waiting, booking: Booking | GangBooking) -> Booked | Shortfall | NotNow:
        """Book a gang as a whole, and then those of its pods that draw on that."""
        if not isinstance(booking, GangBooking):
            return self._copy.book(booking)
        answer = book_with_its_pods(self._copy, self._view, booking)
        if isinstance(answer, Booked):
            for pod in waiting.pods:
                self.adds_nothing(Waiting((pod,), waiting.turn))
        return answer

    def _reserve(
        self, waiting: Waiting, booking: Booking | GangBooking, rows: set[QuotaRow], short: Shortfall | None
    ) -> None:
        """Reserve all that it asks for on rows that are short, on others what it needs beyond what will end on those.

        Else somebody of another tier fills the total meanwhile, and it never has room on both rows at once. Whose time
        is over reserves nothing more, and nobody reserves those rows after it until it is let in.
        """
        # 1. What it adds to each row, and where that is too much. Where too many are under way it is asked again soon.
        if short is None:
            self._reserved |= rows
            return
        usage, adds = self._copy.usage, self._copy.draft.added_by(booking)
        missing = {row: usage[row] + gpus - row.hard for row, gpus in adds.items() if gpus > 0}
        lacking = {row for row, gpus in missing.items() if gpus > 0}
        if lacking & self._overstayed:
            return

        # 2. It has so much time from when it was first.
        until, keeps = self._until(waiting.uid), dict[str, Decimal]()
        if until and until <= self._view.ended.now():
            self._overstayed |= lacking
        else:
            self._reserved |= lacking
            for row in missing:
                ends = max((missing[each] for each in lacking if _is_part_of(each, row)), default=NOTHING)
                kept = adds[row] if row in lacking else max(adds[row] - ends, NOTHING)
                keeps |= {row.label: kept} if kept else {}
        first = waiting.first
        self._copy.draft.keep(
            Entry(
                uid=waiting.uid,
                namespace=first.holding.namespace,
                state="Kept",
                keeps=keeps,
                rank=first.priority,
                until=until,
            )
        )

    def _until(self, uid: str) -> int:
        """When its time is over, in seconds since 1970; 0 for never. An account says since when it is first."""
        before, limit = self._heads.get(uid), self._tenant.reserve_seconds
        if before is not None:
            return before.until
        return 0 if limit is None else int(self._view.ended.now()) + limit

    def _rows(self, waiting: Waiting) -> set[QuotaRow]:
        """Those on which it draws. Thousands of pods share a charge."""
        same = tuple(map(id, waiting.charges))
        if same not in self._rows_of:
            self._rows_of[same] = {row for charge in waiting.charges for row in charge.rows(self._tenant)}
        return self._rows_of[same]


def _is_part_of(row: QuotaRow, whole: QuotaRow) -> bool:
    """Whether all that counts on a row counts on the other too."""
    return whole.tier in (None, row.tier) and whole.flavor in (None, row.flavor)
