"""Pods that stand in no line take nothing that it keeps for others of their tier or a higher one."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.builders import a_pod, a_policy, some_facts
from webhook.objects.group_kind import POD_GROUP
from webhook.policy.decide import decide_pod, pod_before_line
from webhook.policy.quota.charges import Charge
from webhook.policy.quota.held import ALL, HeldLine, HeldPlace, KeptRow, row_before, rows_kept
from webhook.policy.values.tenants import QuotaRow, Tenant
from webhook.policy.workloads.pod_groups import PodsTogether
from webhook.sentences.sentence import sentence

TOTAL = QuotaRow(Decimal(8))
BATCH, TRAINING = (QuotaRow(Decimal(8), tier=tier) for tier in ("gpu-batch", "gpu-training"))


ALPHA = Tenant("alpha", rows=(TOTAL, BATCH), on_exceed="Hold")


def a_place(name: str, tier: str, **keeps: Decimal) -> HeldPlace:
    """Of the row `batch` and of the `total`."""
    kept = {"gpu-batch" if row == "batch" else row: gpus for row, gpus in keeps.items()}
    return HeldPlace("lab", f"Job/{name}", name, tier, 1, Decimal(8), "2026-11-26T17:00:00Z", keeps=kept)


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
    told = {row: KeptRow(tier) for row, tier in kept.items()}
    assert row_before(Charge(Decimal(1), "gpu-batch"), told, tenant, a_policy().tiers) == before


@pytest.mark.parametrize(("gpus", "before"), [(2, None), (3, TOTAL)])
def test_of_a_row_that_is_kept_in_part_it_may_take_the_rest(gpus: int, before: QuotaRow | None) -> None:
    kept = {"total": KeptRow("gpu-training", Decimal(2))}
    assert row_before(Charge(Decimal(gpus), "gpu-batch"), kept, ALPHA, a_policy().tiers) == before


def test_who_gets_another_flavor_takes_nothing_of_a_row_on_which_it_is_counted_already() -> None:
    kept, charge = {"total": KeptRow("gpu-training")}, Charge(Decimal(1), "gpu-training")
    assert row_before(charge, kept, ALPHA, a_policy().tiers) == TOTAL
    assert row_before(charge, kept, ALPHA, a_policy().tiers, counted=[TOTAL]) is None


def test_a_line_tells_what_it_keeps_and_for_whom() -> None:
    line = HeldLine.of(
        [a_place("a", "gpu-training", total=ALL), a_place("b", "gpu-batch", batch=ALL, total=Decimal(1))]
    )
    assert rows_kept({"held": line.status()}, ALPHA, lambda: {TOTAL: Decimal(2)}) == {
        "total": KeptRow("gpu-training"),
        "gpu-batch": KeptRow("gpu-batch"),
    }


def test_a_line_tells_how_much_it_keeps_of_a_row_that_has_room() -> None:
    line = HeldLine.of([a_place("a", "gpu-training", total=Decimal(1)), a_place("b", "gpu-batch", total=Decimal(3))])
    assert line.status()["kept"] == [{"row": "total", "tier": "gpu-training", "gpus": "4"}]
    assert rows_kept({"held": line.status()}, ALPHA, lambda: {TOTAL: Decimal(2)}) == {
        "total": KeptRow("gpu-training", Decimal(2))
    }
    forged = {"held": {"kept": [{"row": "total", "gpus": "many"}, {"row": "gone", "gpus": "1"}]}}
    assert set(rows_kept(forged, ALPHA, dict).values()) == {KeptRow("")}


@pytest.mark.parametrize("told", [None, "x", {}, {"kept": None}, {"kept": "x"}, {"kept": ["x", 1]}])
def test_a_status_that_tells_of_no_line_keeps_nothing(told: object) -> None:
    assert rows_kept({"held": told} if told is not None else {}, ALPHA, dict) == {}


def test_who_names_its_node_is_told_how_to_wait() -> None:
    tenant = Tenant("alpha", rows=(TOTAL,), on_exceed="Hold")
    known = replace(some_facts(), tenant=tenant)
    pod = a_pod().asking().of_tier("gpu-batch").having("spec.nodeName", "gpu-7").view()
    decision = decide_pod(pod, known, a_policy())
    assert decision is not None
    assert not pod_before_line(decision, {}).refusal
    refusal = pod_before_line(decision, {"total": KeptRow("gpu-batch")}).refusal
    assert refusal is not None
    assert sentence(refusal) == (
        "spec.nodeName: exceeded quota: tenant alpha: what gets free of the total is kept for pods that wait before "
        "this pod, which names its node and can't wait; leave the field out, and write nodeSelector: "
        "{kubernetes.io/hostname: gpu-7}"
    )


def test_of_a_claim_that_a_group_shares_it_would_take_the_gpus_once() -> None:
    group = PodsTogether(POD_GROUP, "four", 4)
    known = replace(some_facts(), tenant=Tenant("alpha", rows=(TOTAL,), on_exceed="Hold"), together=group)
    decision = decide_pod(a_pod().asking().of_tier("gpu-batch").view(), known, a_policy())
    assert decision is not None
    sharing = replace(decision, charge=Charge(Decimal(4), "gpu-batch", shared={"team-alpha/claim": Decimal(4)}))
    assert not pod_before_line(sharing, {"total": KeptRow("gpu-batch", Decimal(4))}).refusal
    assert pod_before_line(sharing, {"total": KeptRow("gpu-batch", Decimal(3))}).refusal
