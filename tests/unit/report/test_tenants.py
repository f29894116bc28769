"""A tenant as its TenantQuota shows it, whatever stands there."""

from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from tests.builders import a_tenant
from webhook.ledger.account import Account, Entry
from webhook.ledger.kubernetes_store import count_of
from webhook.ledger.slot_sums import booked_of, left_of
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.tenant_quotas import tenant_quota_of
from webhook.policy.quota.tenant_status import usage_status
from webhook.policy.values.tenants import QuotaRow, Tenant
from webhook.report.tenants import TenantShown, above_quota, tenant_shown


def shown(status: dict[str, Any], **spec: object) -> TenantShown:
    tree = {**a_tenant(**spec).allowing("8").json(), "status": status}
    tree["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    return tenant_shown(tenant_quota_of(tree))


def condition(kind: str, status: str, reason: str, message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def test_each_row_says_what_is_free() -> None:
    row = {"tier": "gpu-training", "resourceFlavor": "h100", "hard": "6", "used": "4.5", "reserved": "1"}
    (found,) = shown({"usage": [row]}).rows
    assert (found.subject, found.used, found.reserved, found.left) == ("gpu-training on h100", 4.5, 1, 0.5)
    assert found.shares == (0.75, 0.0, 1 / 6, 0.0)


def test_what_is_reserved_for_the_queue_is_not_free() -> None:
    (found,) = shown({"usage": [{"hard": "8", "used": "4", "reserved": "1", "reservedForQueue": "2"}]}).rows
    assert (found.reserved, found.reserved_for_queue, found.left) == (1, 2, 1)
    assert found.shares == (0.5, 0.0, 1 / 8, 1 / 4)
    assert found.numbers == ("4", "1", "2", "8", "1")


def test_of_a_tier_no_more_is_left_than_of_the_total() -> None:
    usage = [
        {"hard": "12", "used": "11"},
        {"tier": "gpu-batch", "hard": "8", "used": "4"},
        {"tier": "gpu-batch", "resourceFlavor": "h100", "hard": "4", "used": "4"},
        {"tier": "gone", "hard": "0", "used": "0", "active": False},
    ]
    assert [each.left for each in shown({"usage": usage}).rows[:3]] == [1, 1, 0]


def test_what_a_lower_tier_reserves_of_the_total_is_left_to_a_higher_one() -> None:
    entries = (
        Entry(wants=(Charge(gpus=Decimal(3), tier="gpu-batch"),)),
        Entry(state="ForQueue", rank=400, reserves={"total": Decimal(4), "gpu-batch": Decimal(4)}),
    )
    rows = (QuotaRow(Decimal(6)), QuotaRow(Decimal(6), "gpu-batch"), QuotaRow(Decimal(4), "gpu-training"))
    tenant, ranks = Tenant("alpha", rows=rows), {"gpu-batch": 400, "gpu-training": 1000}
    count = count_of(Account(entries=entries), tenant)
    left = left_of(booked_of(Account(entries=entries), tenant), entries, tenant, lambda tier: ranks.get(tier or "", 0))
    found = shown(usage_status(tenant, replace(count, left=left), {})).rows
    assert [(each.reserved_for_queue, each.left) for each in found] == [(3, 0), (3, 0), (0, 3)]


def test_what_has_no_node_is_distinguished_from_what_runs() -> None:
    usage = [{"tier": "gpu-training", "hard": "6", "used": "4", "reserved": "1"}, {"hard": "8", "used": "4"}]
    rows = [{"row": "gpu-training", "gpus": "3"}, {"row": "gone", "gpus": "1"}, "what"]
    training, total = shown({"usage": usage, "pending": {"pods": 2, "gpus": "3", "rows": rows}}).rows
    assert (training.pending, training.shares) == (3, (1 / 6, 0.5, 1 / 6, 0.0))
    assert total.pending == 0
    (older,) = shown({"usage": [{"hard": "6", "used": "1"}], "pending": {"rows": [{"row": "total", "gpus": "3"}]}}).rows
    assert older.shares == (0.0, 1 / 6, 0.0, 0.0), "two numbers of different ages add up to what is used"


def test_a_row_that_holds_says_so_where_its_tenant_refuses() -> None:
    rows = [{"tier": "gpu-batch", "gpus": 2, "onExceed": "Hold"}]
    found = shown({"usage": [{"tier": "gpu-batch", "hard": "2"}, {"hard": "8"}]}, quotas=rows)
    assert [row.on_exceed for row in found.rows] == ["Hold", ""]
    assert above_quota(found.on_exceed, found.rows) == "Deny, for gpu-batch Hold"


def test_a_row_that_limits_nothing_has_no_limit_and_nothing_left() -> None:
    (found,) = shown({"usage": [{"tier": "gone", "hard": "2", "used": "0", "reserved": "0", "active": False}]}).rows
    assert found.numbers == ("0", "0", "0", "-", "-")
    assert (found.is_full, sum(found.shares)) == (False, 0)


def test_a_row_above_its_quota_has_nothing_free() -> None:
    (found,) = shown({"usage": [{"hard": "6", "used": "10"}]}).rows
    assert (found.subject, found.left) == ("total", 0)


def test_a_row_that_somebody_wrote_by_hand_breaks_nothing() -> None:
    rows = shown({"usage": [{"hard": "many", "used": None, "reserved": "NaN"}, "what", {}]}).rows
    assert [(row.hard, row.used, row.reserved, row.shares) for row in rows] == [(0, 0, 0, (0.0, 0.0, 0.0, 0.0))] * 2


def test_what_two_conditions_say_alike_is_reported_once() -> None:
    repairing = {"status": "False", "reason": "Repairing", "message": "the ledger is being rebuilt"}
    conditions = [{"type": each, **repairing} for each in ("Ready", "Exact", "GangsWhole")]
    assert shown({"conditions": conditions}).problems == ("Repairing: the ledger is being rebuilt",)


def test_problems_are_what_the_conditions_say() -> None:
    conditions = [
        condition("Ready", "True", "OverQuota", "the total is at 10 of 6"),
        condition("Exact", "False", "Stale", "pods can't be watched"),
        condition("GangsWhole", "True", "Whole"),
    ]
    assert shown({"conditions": conditions}).problems == (
        "OverQuota: the total is at 10 of 6",
        "Stale: pods can't be watched",
    )
    assert shown({}).problems == ("NotCounted: no replica of gpu-tiers that leads has looked at it yet",)


def test_a_tenant_that_kueue_counts() -> None:
    assert shown({}, quotaAuthority="Kueue").on_exceed == "charged elsewhere"


def test_a_line_is_shown_place_by_place() -> None:
    place = {"namespace": "lab", "workload": "Job/train", "uid": "u", "tier": "gpu-training", "pods": 4, "gpus": "4"}
    line = [{**place, "since": "2026-11-26T17:00:00Z", "short": "gpu-training"}, place, "what"]
    queue = shown({"queue": {"pods": 30, "workloads": 25, "tiers": [{"gpus": "29.5"}], "entries": line}}).queue
    assert queue.sentence == ("30 pods wait, for 29.5 GPUs in all; 23 more workloads come after those that are shown")
    assert [(each.nth, each.gpus, each.waits_for) for each in queue.entries] == [
        (1, 4, "room in gpu-training"),
        (2, 4, "the queue"),
    ]


def test_a_line_that_somebody_wrote_by_hand_breaks_nothing() -> None:
    assert shown({"queue": "what"}).queue.entries == ()
    assert shown({"queue": {"pods": "many", "tiers": {}, "line": [None]}}).queue.pods == 0
