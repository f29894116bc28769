"""No run of bookings overdraws a tenant."""

import asyncio
import itertools
from collections.abc import Callable
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_tenant
from tests.builders.counted_ledger import RESERVATION_SECONDS, CountedLedger
from webhook.ledger.protocol import Booked, Booking, Holding
from webhook.policy.quota.charges import Charge


class Book:
    """A ledger of one tenant beside a plain account of what each pod holds and until when."""

    def __init__(self) -> None:
        self.tenant = a_tenant().allowing("8").allowing("4", tier="gpu-training").view()
        self.now = 0.0
        self.entries: dict[str, tuple[Charge, float]] = {}
        self.preempted: set[str] = set()
        self.over: set[str] = set()
        self.ledger = CountedLedger(lambda: self.now, lambda _: "alpha", patience=0)

    def book(self, uid: str, charge: Charge) -> None:
        if uid in self.entries and self.entries[uid][1] == float("inf"):
            return  # it is stored, so its create is over: a webhook is asked before that, and once
        before = self.ledger.usage(self.tenant)
        answer = asyncio.run(self.ledger.book(Booking(uid, "team-alpha", self.tenant, (charge,), "rs", uid)))
        if isinstance(answer, Booked):
            usage = self.ledger.usage(self.tenant)
            rows = charge.rows(self.tenant)
            assert all(usage[row] <= max(row.hard, before[row]) for row in rows), "no booking overdraws a row"
            # who asks again is the same request, whose time runs from when it was asked first
            self.entries.setdefault(uid, (charge, self.now + RESERVATION_SECONDS))

    def saw(self, uid: str, charge: Charge) -> None:
        self.ledger.observe(uid, Holding("team-alpha", charge, None, "rs", uid in self.preempted, uid))
        self.entries[uid] = (charge, float("inf"))

    def preempt(self, uid: str, charge: Charge) -> None:
        self.preempted.add(uid)
        self.saw(uid, charge)

    def ended(self, uid: str, _: Charge) -> None:
        self.ledger.release(uid)
        self.entries.pop(uid, None)
        self.preempted.discard(uid)
        self.over.add(uid)

    def wait(self, _: str, __: Charge) -> None:
        self.now += RESERVATION_SECONDS / 2
        self.entries = {uid: entry for uid, entry in self.entries.items() if entry[1] > self.now}
        self.ledger.usage(self.tenant)

    def relist(self, _: str, __: Charge) -> None:
        """The pods that were seen are gone; bookings whose pods are still to come stay."""
        self.ledger.observe_all({})
        self.preempted.clear()
        self.over |= {uid for uid, (_, until) in self.entries.items() if until == float("inf")}
        self.entries = {uid: each for uid, each in self.entries.items() if uid not in self.over}

    def uid(self, pod: int) -> str:
        """One that is never used again once its pod has ended."""
        return next(uid for uid in (f"{pod}-{life}" for life in itertools.count()) if uid not in self.over)

    def balance(self) -> None:
        """Check that each pod is charged, and each claim once. A preempted pod's replacement may share its slot."""
        for row, used in self.ledger.usage(self.tenant).items():
            drawing = {uid: each for uid, (each, _) in self.entries.items() if row in each.rows(self.tenant)}
            claims = {claim: gpus for each in drawing.values() for claim, gpus in each.shared.items()}
            own = {uid: each.gpus - sum(each.shared.values()) for uid, each in drawing.items()}
            ending = sum((gpus for uid, gpus in own.items() if uid in self.preempted), Decimal(0))
            both = sum(own.values(), sum(claims.values(), Decimal(0)))
            assert both - ending <= used <= both

    def end_all(self) -> None:
        for uid in list(self.entries):
            self.ended(uid, Charge(Decimal(0), None))
        assert set(self.ledger.usage(self.tenant).values()) == {0}


CLAIM = {"team-alpha/a": Decimal(2)}
MOVES = st.lists(
    st.tuples(
        st.sampled_from([Book.book, Book.book, Book.saw, Book.preempt, Book.ended, Book.wait, Book.relist]),
        st.integers(0, 9),
        st.sampled_from([Decimal("0.125"), Decimal(1), Decimal(3), Decimal(8)]),
        st.sampled_from(["gpu-training", "gpu-batch", None]),
        st.sampled_from(
            [{}, {}, {"team-alpha/a": Decimal(2)}, {"team-alpha/a": Decimal(2), "team-alpha/b": Decimal(1)}]
        ),
    ),
    max_size=40,
)


@given(MOVES)
def test_no_run_of_bookings_overdraws_a_row(
    moves: list[tuple[Callable[[Book, str, Charge], None], int, Decimal, str | None, dict[str, Decimal]]],
) -> None:
    """A pod that is there is charged whether or not there was room: then nothing more is booked."""
    book = Book()
    for move, pod, own, tier, shared in moves:
        move(book, book.uid(pod), Charge(own + sum(shared.values()), tier, shared=shared))
        book.balance()
    book.end_all()
