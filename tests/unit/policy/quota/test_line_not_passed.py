"""Pods that stand in no line take nothing that it keeps for others of their tier or a higher one."""

from decimal import Decimal

import pytest

from tests.builders.policies import a_policy
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.held import HeldLine, HeldPlace, row_before, rows_kept
from webhook.policy.values.tenants import QuotaRow, Tenant

TOTAL = QuotaRow(Decimal(8))
BATCH, TRAINING = (QuotaRow(Decimal(8), tier=tier) for tier in ("gpu-batch", "gpu-training"))


def a_place(name: str, tier: str, *keeps: str) -> HeldPlace:
    return HeldPlace("lab", f"Job/{name}", name, tier, 1, Decimal(8), "2026-11-26T17:00:00Z", keeps=keeps)


@pytest.mark.parametrize(
    ("kept", "rows", "before"),
    [
        ({"total": "gpu-batch"}, (TOTAL,), TOTAL),
        ({"total": "gpu-training"}, (TOTAL,), TOTAL),
        ({"total": "gpu-interactive"}, (TOTAL,), None),
        ({"gpu-batch": "gpu-batch"}, (BATCH, TRAINING), BATCH),
        ({"gpu-training": "gpu-training"}, (BATCH, TRAINING), None),
        ({}, (TOTAL, BATCH), None),
    ],
)
def test_a_row_counts_that_it_would_take_and_that_is_kept_for_nobody_below(
    kept: dict[str, str], rows: tuple[QuotaRow, ...], before: QuotaRow | None
) -> None:
    tenant = Tenant("alpha", rows=rows, on_exceed="Hold")
    assert row_before(Charge(Decimal(1), "gpu-batch"), kept, tenant, a_policy().tiers) == before


def test_a_line_tells_what_it_keeps_and_for_whom() -> None:
    line = HeldLine.of([a_place("a", "gpu-training", "total"), a_place("b", "gpu-batch", "gpu-batch", "total")])
    assert rows_kept({"held": line.status()}) == {"total": "gpu-training", "gpu-batch": "gpu-batch"}


@pytest.mark.parametrize("told", [None, "x", {}, {"kept": None}, {"kept": "x"}, {"kept": ["x", 1]}])
def test_a_status_that_tells_of_no_line_keeps_nothing(told: object) -> None:
    assert rows_kept({"held": told} if told is not None else {}) == {}
