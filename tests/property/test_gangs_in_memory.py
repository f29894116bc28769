"""No run of gangs and their pods overdraws a tenant, and nothing of them is left once all have ended."""

import asyncio
from collections.abc import Callable
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tests.builders import a_tenant
from tests.builders.counted_ledger import RESERVATION_SECONDS, CountedLedger
from webhook.ledger.protocol import Booked, Booking, Declared, GangBooking, Holding
from webhook.policy.quota.charges import Charge

ALPHA = a_tenant().allowing("8").allowing("4", tier="gpu-training").view()
KIND = "PyTorchJob.kubeflow.org"


class Cluster:
    """Workloads and pods as they are stored, and a ledger that sees them at once, or never."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ledger = CountedLedger(lambda: self.now, lambda _: "alpha", patience=0)
        self.workloads: dict[str, Declared] = {}
        self.pods: dict[str, Charge] = {}
        self.made = 0

    def apply(self, gang: str, charge: Charge) -> None:
        """A create, or a change of what the workload asks for."""
        before = self.workloads.get(gang)
        generation = before.generation + 1 if before else 1
        if self.booked(GangBooking(gang, KIND, "team-alpha", gang, ALPHA, (charge,), generation)):
            self.workloads[gang] = Declared(KIND, "team-alpha", gang, generation, (charge,))
            self.ledger.workloads.observe(gang, self.workloads[gang])

    def apply_in_vain(self, gang: str, charge: Charge) -> None:
        """Another webhook refused it after us; its next try gets another uid."""
        self.made += 1
        self.booked(GangBooking(f"never-{self.made}", KIND, "team-alpha", gang, ALPHA, (charge,)))

    def make_pod(self, gang: str, charge: Charge) -> None:
        self.made += 1
        pod = f"{gang}-{self.made}"
        if self.booked(Booking(pod, "team-alpha", ALPHA, (charge,), gang, pod)):
            self.pods[pod] = charge
            self.ledger.observe(pod, Holding("team-alpha", charge, controller=gang, name=pod))

    def end_pod(self, gang: str, _: Charge) -> None:
        for pod in [pod for pod in self.pods if pod.startswith(f"{gang}-")][:1]:
            del self.pods[pod]
            self.ledger.release(pod)

    def wait(self, _: str, __: Charge) -> None:
        self.now += RESERVATION_SECONDS

    def booked(self, booking: Booking | GangBooking) -> bool:
        before = self.ledger.usage(ALPHA)
        answer = asyncio.run(self.ledger.book(booking))
        after = self.ledger.usage(ALPHA)
        assert all(after[row] <= max(row.hard, before[row]) for row in ALPHA.rows)
        return isinstance(answer, Booked)

    def check(self) -> None:
        """Check that all that is stored is charged: a gang by what it declares, or by its pods if that is more."""
        for row, gpus in self.ledger.usage(ALPHA).items():
            stored = Decimal(0)
            for gang in ("a", "b", "c"):
                pods = [each for pod, each in self.pods.items() if pod.startswith(f"{gang}-")]
                declared = self.workloads[gang].charges if gang in self.workloads else ()
                stored += max(sum(each.gpus for each in of if row in each.rows(ALPHA)) for of in (pods, declared))
            assert gpus >= stored

    def end_all(self) -> None:
        self.now += RESERVATION_SECONDS
        for uid in self.workloads:
            self.ledger.workloads.release(uid)
        for uid in self.pods:
            self.ledger.release(uid)
        assert set(self.ledger.usage(ALPHA).values()) == {0}


STEPS = st.tuples(
    st.sampled_from(
        [Cluster.apply, Cluster.apply_in_vain, Cluster.make_pod, Cluster.make_pod, Cluster.end_pod, Cluster.wait]
    ),
    st.sampled_from(["a", "b", "c"]),
    st.integers(1, 5),
    st.sampled_from(["gpu-training", "gpu-batch"]),
)


@given(st.lists(STEPS, max_size=30))
def test_no_run_of_gangs_overdraws_a_row(
    steps: list[tuple[Callable[[Cluster, str, Charge], None], str, int, str]],
) -> None:
    cluster = Cluster()
    for step, gang, gpus, tier in steps:
        step(cluster, gang, Charge(Decimal(gpus), tier))
        cluster.check()
    cluster.end_all()
