"""The line of a tenant as people are shown it."""

from decimal import Decimal

from msgspec.structs import replace

from tests.builders.words import sentence
from webhook.policy.quota.queue_status import (
    MOST_PLACES,
    NoRoom,
    QueuedWorkload,
    QueueStatus,
    blocked_by,
    why_queued,
    would_be_queued,
)

FULL = NoRoom("gpu-training", Decimal(6), Decimal(6))


def a_place(
    uid: str, *, gpus: int = 1, tier: str = "gpu-training", short: str = "", pods: int = 1, namespace: str = "lab"
) -> QueuedWorkload:
    return QueuedWorkload(namespace, f"Job/{uid}", uid, tier, pods, Decimal(gpus), "2026-11-26T17:00:00Z", short)


def test_a_status_says_how_many_wait_in_each_tier_and_who_is_first() -> None:
    line = QueueStatus.of(
        [a_place("a", gpus=4, pods=4, short="gpu-training"), a_place("b"), a_place("c", tier="gpu-batch", gpus=2)]
    )
    text = line.status()
    assert (text["pods"], text["workloads"]) == (6, 3)
    assert text["tiers"] == [
        {"tier": "gpu-training", "pods": 5, "gpus": "5"},
        {"tier": "gpu-batch", "pods": 1, "gpus": "2"},
    ]
    assert text["entries"][0] == {
        "namespace": "lab",
        "workload": "Job/a",
        "uid": "a",
        "tier": "gpu-training",
        "pods": 4,
        "gpus": "4",
        "since": "2026-11-26T17:00:00Z",
        "short": "gpu-training",
    }
    assert not {"short", "behind"} & text["entries"][1].keys()


def test_pods_of_one_workload_that_follow_one_another_share_a_place() -> None:
    line = QueueStatus.of([a_place("web"), a_place("web", short="total"), a_place("other"), a_place("web")])
    assert [(each.uid, each.pods, each.gpus, each.short) for each in line.places] == [
        ("web", 2, 2, "total"),
        ("other", 1, 1, ""),
        ("web", 1, 1, ""),
    ]


def test_a_long_line_is_shown_in_part() -> None:
    text = QueueStatus.of(a_place(str(number)) for number in range(100)).status()
    assert (text["pods"], text["workloads"], len(text["entries"])) == (100, 100, MOST_PLACES)


def test_nobody_waits() -> None:
    assert QueueStatus().status() == {"pods": 0, "workloads": 0, "tiers": [], "entries": []}


def test_the_first_that_lacks_room_is_named_to_those_behind_it_with_its_namespace_if_that_is_another() -> None:
    line = [a_place("a", gpus=4, short="gpu-training"), a_place("b"), a_place("c", namespace="other")]
    line[1:] = (replace(each, behind=1) for each in line[1:])
    assert QueueStatus.of(line).status()["entries"][1]["behind"] == 1
    assert [blocked_by(line, nth) for nth in (1, 2, 3)] == [
        "",
        "Job/a (needs 4 GPUs)",
        "Job/a in lab (needs 4 GPUs)",
    ]


def test_who_is_behind_nobody_that_is_shown_is_kept_back_by_none() -> None:
    line = [a_place("a", short="gpu-training on h100"), a_place("b", tier="gpu-batch")]
    assert blocked_by(line, 2) == ""
    line[1] = replace(line[1], behind=30)
    assert blocked_by(line, 2) == ""


def test_what_a_pod_reads() -> None:
    text = why_queued(Decimal(4), "alpha", FULL, "", (3, 7))
    assert sentence(text) == "waits for 4 GPUs: tenant alpha uses 6 of 6 of gpu-training; position 3 of 7"
    text = why_queued(Decimal(4), "alpha", FULL, "Job/a", (3, 7))
    assert sentence(text).startswith("waits for 4 GPUs behind Job/a: tenant alpha uses 6 of 6 of gpu-training; ")
    text = why_queued(Decimal(8), "alpha", NoRoom("the total", Decimal(0), Decimal(6), never=True), "", (1, 7))
    assert sentence(text) == (
        "waits for 8 GPUs, but tenant alpha may use 6 of the total: it can never start. Ask for less; position 1 of 7"
    )
    text = why_queued(Decimal(1), "alpha", NoRoom("gpu-training", Decimal(0), Decimal(0), never=True), "", (1, 7))
    assert sentence(text) == (
        "waits for 1 GPU, but tenant alpha may use none of gpu-training: it can never start. Use another tier if one "
        "has room, or ask your platform team; position 1 of 7"
    )
    text = why_queued(Decimal(1), "alpha", None, "Job/a", (3, 7))
    assert sentence(text) == (
        "waits for 1 GPU behind Job/a, which comes before it in the queue of tenant alpha; position 3 of 7"
    )
    text = why_queued(Decimal("0.5"), "alpha", None, "", (1, 7))
    assert sentence(text) == (
        "waits for 0.5 GPUs: there is room in the quota of tenant alpha, and no earlier workload blocks it; "
        "position 1 of 7"
    )


def test_what_a_new_pod_would_wait_for() -> None:
    text = would_be_queued("alpha", FULL, 2)
    assert sentence(text) == ("is queued: tenant alpha uses 6 of 6 of gpu-training, and 2 workloads wait in its queue")
    text = would_be_queued("alpha", replace(FULL, reserved=Decimal(2)), 1)
    assert sentence(text).startswith(
        "is queued: tenant alpha uses 4 of 6 of gpu-training, plus 2 reserved for pods queued earlier, and 1 workload"
    ), "no GPU is counted twice"
