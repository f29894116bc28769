"""The columns of `gpu-tiers usage` for a row: running, without a node, reserved."""

import pytest

from webhook.cli.usage import bar, usage_answer
from webhook.report.tenants import RowShown, TenantShown


@pytest.mark.parametrize(
    ("row", "drawn"),
    [
        (RowShown("total", 20, 10, 5, 5), "█" * 10 + "▒" * 5 + "░" * 5),
        (RowShown("total", 20, 10, 5, 5, pending=4), "█" * 6 + "▓" * 4 + "▒" * 5 + "░" * 5),
        (RowShown("total", 20, 10, 2, 3, reserved_for_queue=5), "█" * 10 + "▒" * 2 + "▚" * 5 + "░" * 3),
        (RowShown("total", 20, 10, 0, 10, pending=10), "▓" * 10 + "░" * 10),
        (RowShown("total", 4, 8, 0, 0, pending=6), "█" * 10 + "▓" * 10),
        (RowShown("total", 0, 8, 0, 0, pending=6), "░" * 20),
    ],
    ids=[
        "all runs",
        "some has no node",
        "some is for the queue",
        "nothing runs",
        "above the quota",
        "a quota of nothing",
    ],
)
def test_a_bar_has_a_part_for_each(row: RowShown, drawn: str) -> None:
    assert bar(row) == drawn


def test_the_table_says_how_many_have_no_node_and_what_is_reserved() -> None:
    row = RowShown("gpu-training", 8, 4, 1, 1, pending=3, reserved_for_queue=2)
    answer = usage_answer([TenantShown("alpha", (row,), "Deny")])
    (table,) = answer.tables
    (shown,) = table.rows
    named = dict(zip(table.columns, shown, strict=True))
    assert {each: named[each] for each in ("Used", "Pending", "Reserved", "For queue", "Hard", "Free")} == {
        "Used": "4",
        "Pending": "3",
        "Reserved": "1",
        "For queue": "2",
        "Hard": "8",
        "Free": "1",
    }
