"""What is said of nodes that several pods share."""

from msgspec.structs import replace

from webhook.policy.preemption.reservation import Reservation
from webhook.report.posture import NodeReservation

ALONE = Reservation("gang", "lab/first", ("a",), "gpu-training", ("node-1",), since=0.0, until=60.0)
UNTIL = "(gpu-training) until 1970-01-01T00:01:00Z: node-1. "


def test_a_pod_that_has_them_alone() -> None:
    assert NodeReservation.of(ALONE).said == f"reserved for lab/first {UNTIL}No pod of a lower tier starts there"


def test_pods_that_share_them_are_counted_and_one_who_asks_reads_its_own_name() -> None:
    shared = replace(ALONE, pods=("a", "b", "c"))
    assert NodeReservation.of(shared).said.startswith(f"reserved for lab/first and 2 other pods {UNTIL}")
    asked = NodeReservation.of(replace(ALONE, pods=("a", "b")), "lab/second")
    assert asked.said_to_its_pod.startswith(f"reserved for lab/second and 1 other pod {UNTIL}")
