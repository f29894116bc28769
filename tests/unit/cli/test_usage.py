"""The columns of `gpu-tiers usage` for a row: running, without a node, reserved."""

import pytest

from tests.builders import a_tenant
from webhook.cli.usage import bar, usage_answer
from webhook.policy.quota.tenant_quotas import tenant_quota_of
from webhook.report.tenants import QueuedShown, QueueShown, RowShown, TenantShown, tenant_shown


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
    assert {each: named[each] for each in ("Used", "Pending", "Reserved", "For queue", "Hard", "Quota left")} == {
        "Used": "4",
        "Pending": "3",
        "Reserved": "1",
        "For queue": "2",
        "Hard": "8",
        "Quota left": "1",
    }
    assert [*answer.notes] == ["Used includes Pending: pods without a node count too."]


def test_quota_of_a_tenant_that_is_not_ready_is_not_promised() -> None:
    unknown = {"type": "Ready", "status": "False", "reason": "UnknownTier", "message": "no tier is allowed"}
    status = {"conditions": [unknown], "usage": [{"hard": "4", "used": "0"}]}
    answer = usage_answer([tenant_shown(tenant_quota_of(a_tenant("beta").json() | {"status": status}))])
    assert answer.tables[0].rows[0][-1] == "4 (not Ready)"
    assert "beta: UnknownTier: no tier is allowed" in answer.notes


def test_a_tenant_that_may_use_no_tier_and_one_without_a_row_are_not_left_out() -> None:
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    closed = a_tenant("closed").json() | {"status": ready}
    closed["spec"] |= {"allowedTiers": []}
    closed["spec"].pop("maxTier", None)
    free = a_tenant("free").json() | {"status": ready}
    answer = usage_answer([tenant_shown(tenant_quota_of(each)) for each in (closed, free)])
    assert "closed: NoTier: allowedTiers is empty, so pods that would get a tier are refused" in answer.notes
    assert "free: no row limits its GPUs" in answer.notes


def test_a_queue_is_shown_with_its_order() -> None:
    entry = QueuedShown(1, "lab", "Job/train", "uid", "gpu-training", 4, 4, "2026-11-26T17:00:00Z", "gpu-training")
    tenant = TenantShown("alpha", (), "Hold", queue=QueueShown(4, 4, 1, (entry,)), queue_order="The order is Strict")
    (table,) = usage_answer([tenant]).tables
    assert table.title == "The queue of tenant alpha: 4 pods wait, for 4 GPUs in all. The order is Strict"
