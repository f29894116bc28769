"""The turn of a pod that waits for quota: what is told of its place, and when it has room."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from msgspec.structs import replace

from webhook.cli.why_pending.queue_position import Use, in_queue, position_of, room_at_latest, said_at_latest
from webhook.cluster.listed import PodSummary
from webhook.policy.values.tenants import QuotaRow, Tenant
from webhook.report.tenants import QueuedShown, QueueShown, RowShown, TenantShown


def a_place(nth: int, **said: str | int) -> QueuedShown:
    found = QueuedShown(nth, "lab", f"Job/j{nth}", f"uid-{nth}", "gpu-training", 2, 2, "2026-11-26T17:00:00Z", "")
    return replace(found, **said)


def a_line(*places: QueuedShown, workloads: int = 0) -> TenantShown:
    row = RowShown("gpu-training", 6, 4, 2, 0)
    return TenantShown("alpha", (row,), "Hold", queue=QueueShown(9, 9, workloads or len(places), places))


def test_a_place_in_line_says_what_is_short_and_who_is_before_it() -> None:
    third = a_place(3, namespace="other", behind=1)
    line = a_line(a_place(1, short="gpu-training"), a_place(2, behind=1), third, workloads=7)
    assert [*in_queue(line, position_of(line, "lab", frozenset({"uid-1"})))] == [
        "It waits for 2 GPUs: tenant alpha uses 6 of 6 of gpu-training; position 1 of 7. It starts by itself."
    ]
    assert [*in_queue(line, position_of(line, "other", frozenset({"uid-of-pod", "uid-3"})))] == [
        (
            "It waits for 2 GPUs behind Job/j1 in lab (needs 2 GPUs), which comes before it in the queue of tenant "
            "alpha; position 3 of 7. It starts by itself."
        ),
        "Before it: Job/j1 in lab (2 GPUs, gpu-training), Job/j2 in lab (2 GPUs, gpu-training); 4 GPUs in all.",
    ]


def test_pods_of_one_owner_have_their_own_positions() -> None:
    """The one that was scaled later stands behind the pod of another one that came between."""
    later = a_place(3, uid="uid-1", since="2026-11-26T18:00:00Z")
    line = a_line(a_place(1), a_place(2), later)
    own = frozenset({"uid-1"})
    found = [position_of(line, "lab", own, f"2026-11-26T{hour}:00:00Z") for hour in (16, 17, 18)]
    assert [each.nth for each in found if each] == [1, 1, 3]


def test_pods_that_start_one_by_one_can_start_although_all_of_them_ask_for_too_much() -> None:
    line = a_line(a_place(1, pods=4, gpus=8, short="gpu-training"))
    one_by_one = [next(in_queue(line, line.queue.entries[0], one_by_one=each)) for each in (True, False)]
    assert ["can never start" in each for each in one_by_one] == [False, True]


def test_what_is_reserved_for_the_first_is_shown_to_those_behind_it() -> None:
    line = a_line(a_place(1, short="gpu-training"), a_place(2, short="gpu-training"))
    line = replace(line, rows=(RowShown("gpu-training", 6, 3, 1, 0, reserved_for_queue=2),))
    for_others = {}, {"gpu-training": Decimal(2)}
    head, behind = (next(in_queue(line, *each)) for each in zip(line.queue.entries, for_others, strict=True))
    assert (
        head == "It waits for 2 GPUs: tenant alpha uses 4 of 6 of gpu-training; position 1 of 2. It starts by itself."
    )
    assert behind == (
        "It waits for 2 GPUs: tenant alpha uses 4 of 6 of gpu-training, plus 2 reserved for pods queued earlier; "
        "position 2 of 2. It starts by itself."
    )


def test_one_gpu_is_no_gpus() -> None:
    line = a_line(a_place(1, gpus=1), a_place(2))
    lines = [*in_queue(line, line.queue.entries[1])]
    assert lines[1] == "Before it: Job/j1 in lab (1 GPU, gpu-training); 1 GPU in all."


def test_who_is_beyond_what_is_shown_of_a_line_and_who_is_in_none() -> None:
    assert position_of(a_line(a_place(1), workloads=40), "lab", frozenset({"uid-9"})) is None
    assert [*in_queue(a_line(a_place(1), workloads=40), None)] == [
        "It is not among the first 1 of the 40 workloads in the queue of tenant alpha."
    ]
    (lines,) = in_queue(a_line(), None)
    assert lines.startswith("It is not in the queue of tenant alpha")


def test_what_could_not_have_room_even_alone_says_so() -> None:
    line = a_line(a_place(1, short="gpu-training", gpus=7))
    (lines,) = in_queue(line, line.queue.entries[0])
    assert lines == (
        "It waits for 7 GPUs, but tenant alpha may use 6 of gpu-training: it can never start. Ask for less; "
        "position 1 of 1."
    )


NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
ROW, TOTAL, ON_H100 = (
    QuotaRow(Decimal(6), "gpu-training"),
    QuotaRow(Decimal(10)),
    QuotaRow(Decimal(4), "gpu-training", "h100"),
)
FULL = {ROW: Decimal(6), TOTAL: Decimal(9), ON_H100: Decimal(4)}


def use(gpus: int, hour: int, flavor: str | None = None, tier: str = "gpu-training") -> Use:
    pod = PodSummary("lab", "runs", gpus=Decimal(gpus), tier=tier, flavor=flavor)
    return NOON + timedelta(hours=hour), pod


def hours_until_room(
    places: int, *uses: Use, rows: tuple[QuotaRow, ...] = (ROW, TOTAL), flavor: str | None = None
) -> float | None:
    """Return the hours for the last of so many positions of 2 GPUs each."""
    line = [a_place(nth) for nth in range(1, places + 1)]
    found = room_at_latest(line, flavor, Tenant("alpha", rows=rows), FULL, uses)
    return (found - NOON).total_seconds() / 3600 if found else None


def test_declared_run_times_tell_when_there_is_room_at_the_latest() -> None:
    assert hours_until_room(1, use(4, 2), use(2, 3)) == 2
    assert hours_until_room(3, use(4, 2), use(2, 3)) == 3, "those before it need four of them"
    assert said_at_latest(NOON).startswith("It has room by 2026-05-04T12:00:00Z")


def test_without_enough_of_them_nothing_is_reported() -> None:
    assert hours_until_room(1) is None
    assert hours_until_room(3, use(4, 2)) is None
    assert hours_until_room(1, use(4, 2, tier="gpu-batch")) is None, "its row is as short as before"


def test_each_row_that_it_may_draw_on_has_to_have_room() -> None:
    rows = (ROW, TOTAL, ON_H100)
    assert hours_until_room(1, use(2, 1), use(2, 4, "h100"), rows=rows) == 4, "it may come to be an h100"
    assert hours_until_room(1, use(2, 1), use(2, 4, "h100"), rows=rows, flavor="h100") == 4
    assert hours_until_room(1, use(2, 1), use(2, 4, "h100"), rows=rows, flavor="a100") == 1


def test_where_all_have_room_already_there_is_nothing_to_wait_for() -> None:
    line = [a_place(1)]
    assert room_at_latest(line, None, Tenant("alpha", rows=(ROW,)), {}, [use(4, 2)]) is None
