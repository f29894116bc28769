"""Pods that stand in no line take nothing that it keeps for others of their tier or a higher one."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.builders import a_pod, a_policy, some_facts
from webhook.policy.decide import decide_pod, pod_before_line
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.held import HeldLine, HeldPlace, row_before, rows_kept
from webhook.policy.values.tenants import QuotaRow, Tenant
from webhook.sentences.sentence import sentence

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


def test_who_names_its_node_is_told_how_to_wait() -> None:
    tenant = Tenant("alpha", rows=(TOTAL,), on_exceed="Hold")
    known = replace(some_facts(), tenant=tenant)
    pod = a_pod().asking().of_tier("gpu-batch").having("spec.nodeName", "gpu-7").view()
    decision = decide_pod(pod, known, a_policy())
    assert decision is not None
    assert not pod_before_line(decision, {}).refusal
    refusal = pod_before_line(decision, {"total": "gpu-batch"}).refusal
    assert refusal is not None
    assert sentence(refusal) == (
        "spec.nodeName: tenant alpha: what gets free of the total is kept for pods that wait before this pod, which "
        "names its node and can't wait; leave the field out, and write nodeSelector: {kubernetes.io/hostname: gpu-7}"
    )
