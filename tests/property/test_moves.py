"""No run of lifted gates overdraws a flavor's row, however late the watch brings the pods."""

import asyncio
from collections.abc import Callable
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.builders import a_tenant
from tests.builders.counted_ledger import RESERVATION_SECONDS, CountedLedger
from webhook.ledger.protocol import Booked, Booking, Holding
from webhook.policy.quota.charges import Charge

ALPHA = a_tenant().allowing("3").allowing("1", flavor="h100").view()
TOTAL, H100 = ALPHA.rows


class Cluster:
    """Pods as the API server has stored them, and what the ledger's watch is still to bring of them, in order."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ledger = CountedLedger(lambda: self.now, lambda _: "alpha", patience=0)
        self.stored: dict[str, Charge] = {}
        self.coming: list[tuple[str, Charge | None]] = []

    def create(self, uid: str) -> None:
        charge = Charge(Decimal(1), "gpu-batch")
        if uid not in self.stored and self._booked(asyncio.run(self.ledger.book(booking(uid, charge)))):
            self._store(uid, charge)

    def lift(self, uid: str) -> None:
        if self._lifted(uid):
            self._store(uid, Charge(Decimal(1), "gpu-batch", "h100"))

    def lift_in_vain(self, uid: str) -> None:
        """Let somebody else change the pod between our yes and the write: a conflict."""
        self._lifted(uid)

    def delete(self, uid: str) -> None:
        if self.stored.pop(uid, None):
            self.coming.append((uid, None))

    def watch(self, _: str) -> None:
        """One event arrives."""
        for uid, charge in self.coming[:1]:
            if charge is None:
                self.ledger.release(uid)
            else:
                self.ledger.observe(uid, Holding("team-alpha", charge))
        del self.coming[:1]

    def wait(self, _: str) -> None:
        """Let all that is stored be seen before a reservation lapses."""
        while self.coming:
            self.watch("")
        self.now += RESERVATION_SECONDS

    def check(self) -> None:
        usage = self.ledger.usage(ALPHA)
        for row in ALPHA.rows:
            total = sum(charge.gpus for charge in self.stored.values() if row in charge.rows(ALPHA))
            assert total <= usage[row] <= row.hard

    def _lifted(self, uid: str) -> bool:
        if uid not in self.stored:
            return False
        moved = replace(booking(uid, Charge(Decimal(1), "gpu-batch", "h100")), moved_from=self.stored[uid])
        return self._booked(asyncio.run(self.ledger.book(moved)))

    def _store(self, uid: str, charge: Charge) -> None:
        self.stored[uid] = charge
        self.coming.append((uid, charge))

    @staticmethod
    def _booked(answer: object) -> bool:
        return isinstance(answer, Booked)


def booking(uid: str, charge: Charge) -> Booking:
    return Booking(uid, "team-alpha", ALPHA, (charge,))


STEPS = st.sampled_from(
    [
        Cluster.create,
        Cluster.create,
        Cluster.lift,
        Cluster.lift,
        Cluster.lift_in_vain,
        Cluster.delete,
        Cluster.watch,
        Cluster.wait,
    ]
)


@given(st.lists(st.tuples(STEPS, st.integers(0, 2)), min_size=15, max_size=40))
def test_no_run_of_lifted_gates_overdraws_a_row(steps: list[tuple[Callable[[Cluster, str], None], int]]) -> None:
    cluster = Cluster()
    for number, (step, pod) in enumerate(steps):
        # A uid is never used twice: a pod that was deleted comes again as another.
        uid = next((each for each in cluster.stored if each.startswith(f"{pod}-")), f"{pod}-{number}")
        step(cluster, uid)
        cluster.check()
    cluster.wait("")
    usage = cluster.ledger.usage(ALPHA)
    assert usage[TOTAL] == len(cluster.stored)
    assert usage[H100] == sum(charge.flavor == "h100" for charge in cluster.stored.values())
