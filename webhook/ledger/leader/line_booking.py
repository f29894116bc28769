"""Books who is next in the line of a tenant whose quota holds. Pure: from a view and an account.

What is let in stands in the account as any other booking: a gang as a whole, a pod by its reservation. So a gate may be
opened whenever its pod has one, by this leader or the next.
"""

from msgspec.structs import replace

from webhook.ledger.account import Account
from webhook.ledger.draft import NotNow, gang_to_book
from webhook.ledger.leader.gated_pods import GatedPod
from webhook.ledger.leader.kept_free import KeptFree, places_kept
from webhook.ledger.leader.line import line_of
from webhook.ledger.leader.line_entry import InLine, LineEntry
from webhook.ledger.leader.pod_view import PodView
from webhook.ledger.leader.rewrite import rewritten
from webhook.ledger.protocol import Booked, Booking, GangBooking
from webhook.ledger.versions import WorkingCopy
from webhook.policy.quota.charges import Shortfall, whole_shortfall
from webhook.policy.quota.held import ALL
from webhook.policy.values.tenants import QuotaRow, Tenant


def book_line(copy: WorkingCopy, view: PodView, *, strict: bool) -> list[InLine]:
    """Book all that have room, in the order of their turns; who waits on, in that order.

    `strict`: nobody passes one who waits for room on a row that both draw on. A row that has room for that one is free
    for others, but for what that one will need there beyond what ends on the short row.
    """
    line = line_of(_without_changed(copy, view), view, copy.version.in_force)
    booked = LineBooking(copy, view, strict=strict)
    return [each for each in map(booked.book, line) if each is not None]


class LineBooking:
    """Books a line into a copy of its account, from its head on."""

    def __init__(self, copy: WorkingCopy, view: PodView, *, strict: bool) -> None:
        self._copy = copy
        self._view = view
        self._tenant = copy.version.in_force
        self._strict = strict
        self._kept = KeptFree(tuple(places_kept(copy.account, view)))
        self._reserved = set[QuotaRow]()
        self._rows_of = dict[tuple[int, ...], set[QuotaRow]]()

    def book(self, waiting: LineEntry) -> InLine | None:
        """Who waits on; None for one who is booked."""
        if not waiting.entitled and self._rows(waiting) & self._reserved:
            return InLine(waiting)
        others = self._kept.used_by_others(self._copy, waiting) if not waiting.draws else {}
        short = whole_shortfall(waiting.charges, self._tenant, others) if others else None
        answer = short or _book(self._copy, waiting, self._tenant, self._view)
        return None if isinstance(answer, Booked) else self._waits_on(waiting, answer)

    def _waits_on(self, waiting: LineEntry, answer: Shortfall | NotNow) -> InLine:
        """It keeps the rows that are short, or all of its rows.

        One whose quota was lowered below it blocks nobody, nor does a gang beyond the most that an account has.
        """
        short, rows = answer if isinstance(answer, Shortfall) else None, self._rows(waiting)
        passes = isinstance(answer, NotNow) and not answer.soon
        never = passes or whole_shortfall(waiting.charges, self._tenant, {}) is not None
        if not self._strict or waiting.entitled or never:
            return InLine(waiting, short, in_vain=never)
        keeps = self._kept.keep(rows, waiting, short.usage) if short else dict.fromkeys(rows, ALL)
        self._reserved |= {row for row, gpus in keeps.items() if gpus == ALL}
        return InLine(waiting, short, keeps)

    def _rows(self, waiting: LineEntry) -> set[QuotaRow]:
        """Those on which it draws. Thousands of pods share a charge."""
        same = tuple(map(id, waiting.charges))
        if same not in self._rows_of:
            self._rows_of[same] = {row for charge in waiting.charges for row in charge.rows(self._tenant)}
        return self._rows_of[same]


def _without_changed(copy: WorkingCopy, view: PodView) -> Account:
    """The account without reservations of gated pods that have got a node selector since: they are booked anew."""
    gated = ((each, view.gated.get(each.uid)) for each in copy.account.reservations)
    kept = tuple(each for each, pod in gated if pod is None or pod.asks_for(each))
    if len(kept) != len(copy.account.reservations):
        copy.put(replace(copy.account, reservations=kept))
    return copy.account


def _book(copy: WorkingCopy, waiting: LineEntry, tenant: Tenant, view: PodView) -> Booked | Shortfall | NotNow:
    """Book a gang as a whole, and then its pods, each that can: they draw on that. The first answer that is a no."""
    whole = _book_whole(copy, waiting.gang, view) if waiting.gang else Booked()
    if not isinstance(whole, Booked):
        return whole
    within = waiting.pods[: len(waiting.pods) - waiting.beyond]
    answers = [copy.book(_of(pod, tenant)) for pod in within if pod.asks_for_gpus]
    return next((each for each in answers if not isinstance(each, Booked)), Booked())


def _book_whole(copy: WorkingCopy, booking: GangBooking, view: PodView) -> Booked | Shortfall | NotNow:
    """Those of its pods that count alone so far hold a part of it: a Job of one pod may grow to four."""
    key = booking.namespace, booking.uid
    if any(each.key == key for each in copy.account.gangs) or not view.held_by(gang_to_book(booking), ()):
        return copy.book(booking)
    trial = WorkingCopy(copy.version)
    trial.put(rewritten(copy.account, view, part=key))
    answer = trial.book(booking)
    if isinstance(answer, Booked):
        copy.put(trial.account)
    return answer


def _of(pod: GatedPod, tenant: Tenant) -> Booking:
    holding = pod.holding
    return Booking(
        pod.uid, holding.namespace, tenant, (holding.charge,), holding.controller, holding.name, gang=holding.gang
    )
