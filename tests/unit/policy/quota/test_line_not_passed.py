"""Pods that stand in no line take nothing that others of their tier or a higher one wait for."""

from decimal import Decimal

import pytest

from tests.builders.policies import a_policy
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.held import waiting_before, waiting_by_tier
from webhook.policy.values.tenants import QuotaRow, Tenant

TOTAL = QuotaRow(Decimal(8))
BATCH, TRAINING = (QuotaRow(Decimal(8), tier=tier) for tier in ("gpu-batch", "gpu-training"))


@pytest.mark.parametrize(
    ("waits", "rows", "before"),
    [
        ("gpu-batch", (TOTAL,), 3),
        ("gpu-training", (TOTAL,), 3),
        ("gpu-interactive", (TOTAL,), 0),
        ("gpu-batch", (BATCH, TRAINING), 3),
        ("gpu-training", (BATCH, TRAINING), 0),
    ],
)
def test_those_count_that_wait_for_the_same_row_and_rank_no_lower(
    waits: str, rows: tuple[QuotaRow, ...], before: int
) -> None:
    tenant, tiers = Tenant("alpha", rows=rows, on_exceed="Hold"), a_policy().tiers
    assert waiting_before(Charge(Decimal(1), "gpu-batch"), {waits: 3}, tenant, tiers) == before


def test_where_whoever_has_room_passes_nobody_is_before_another() -> None:
    tenant = Tenant("alpha", rows=(TOTAL,), on_exceed="Hold", hold_order="BestEffort")
    assert waiting_before(Charge(Decimal(1), "gpu-batch"), {"gpu-training": 3}, tenant, a_policy().tiers) == 0


@pytest.mark.parametrize("told", [None, "x", {}, {"tiers": None}, {"tiers": ["x", {"tier": "a"}, {"pods": "x"}]}])
def test_a_status_that_tells_of_no_line_has_none(told: object) -> None:
    assert waiting_by_tier({"held": told} if told is not None else {}) == {}
