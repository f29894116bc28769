"""No run of bookings overdraws a tenant."""

import asyncio
from collections.abc import Callable
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_tenant
from webhook.ledger.memory import RESERVATION_SECONDS, MemoryLedger
from webhook.ledger.protocol import Booked, Booking, Holding
from webhook.policy.quota.charges import Charge


class Book:
    """A ledger of one tenant beside a plain account of what each pod holds and until when."""

    def __init__(self) -> None:
        self.tenant = a_tenant().allowing("8").allowing("4", tier="gpu-training").view()
        self.now = 0.0
        self.held: dict[str, tuple[Charge, float]] = {}
        self.ledger = MemoryLedger(lambda: self.now, lambda _: "alpha")

    def book(self, uid: str, charge: Charge) -> None:
        known = uid in self.held
        answer = asyncio.run(self.ledger.book(Booking(uid, "team-alpha", self.tenant, (charge,))))
        if isinstance(answer, Booked) and not known:
            usage = self.ledger.usage(self.tenant)
            assert all(usage[row] <= row.hard for row in charge.rows(self.tenant)), "no booking overdraws a row"
            self.held[uid] = (charge, self.now + RESERVATION_SECONDS)

    def saw(self, uid: str, charge: Charge) -> None:
        self.ledger.observe(uid, Holding("team-alpha", charge))
        self.held[uid] = (charge, float("inf"))

    def ended(self, uid: str, _: Charge) -> None:
        self.ledger.release(uid)
        self.held.pop(uid, None)

    def wait(self, _: str, __: Charge) -> None:
        self.now += RESERVATION_SECONDS / 2
        self.held = {uid: entry for uid, entry in self.held.items() if entry[1] > self.now}
        self.ledger.usage(self.tenant)

    def relist(self, _: str, __: Charge) -> None:
        """The pods that were seen are gone; bookings whose pods are still to come stay."""
        self.ledger.observe_all({})
        self.held = {uid: entry for uid, entry in self.held.items() if entry[1] != float("inf")}

    def balance(self) -> None:
        for row, used in self.ledger.usage(self.tenant).items():
            drawing = [each for each, _ in self.held.values() if row in each.rows(self.tenant)]
            assert used == sum((each.gpus - sum(each.shared.values()) for each in drawing), Decimal(0)) + sum(
                {claim: gpus for each in drawing for claim, gpus in each.shared.items()}.values()
            )


CLAIM = {"team-alpha/a": Decimal(2)}
MOVES = st.lists(
    st.tuples(
        st.sampled_from([Book.book, Book.book, Book.saw, Book.ended, Book.wait, Book.relist]),
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
        move(book, f"uid-{pod}", Charge(own + sum(shared.values()), tier, shared=shared))
        book.balance()
