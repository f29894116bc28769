"""The requests that fit a tenant's rows, and the sentence if one does not."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.builders import a_pod, a_policy, a_tenant
from tests.builders.words import sentence
from webhook.policy.quota.charges import (
    Charge,
    alternatives,
    charge_of,
    never_fits,
    shortfall,
    tier_counted,
)
from webhook.policy.quota.refusals import pod_fit, too_large
from webhook.policy.values.tenants import QuotaRow, SpentBudget, Tenant

TIERS = a_policy().tiers
ALPHA = (
    a_tenant()
    .allowing("16")
    .allowing("6", tier="gpu-training")
    .allowing("4", flavor="h100")
    .allowing("2", tier="gpu-serving", flavor="h100")
    .allowing("3", tier="gpu-batch")
    .view()
)
TOTAL, TRAINING, H100, SERVING_H100, BATCH = ALPHA.rows


def gpus(number: str, tier: str | None = "gpu-training", flavor: str | None = None) -> Charge:
    return Charge(Decimal(number), tier, flavor)


def used(**rows: str) -> dict[QuotaRow, Decimal]:
    names = {"total": TOTAL, "training": TRAINING, "h100": H100, "serving_h100": SERVING_H100, "batch": BATCH}
    return {names[name]: Decimal(number) for name, number in rows.items()}


def test_the_sentence_that_a_person_over_quota_reads() -> None:
    usage, charge = used(total="6", training="6"), gpus("2")
    short = shortfall([charge], ALPHA, usage)
    assert short
    interesting = [tier for tier in TIERS if tier.name in ("gpu-training", "gpu-batch")]
    assert sentence(pod_fit(short, ALPHA, interesting, what="this pod").refusal) == (
        "exceeded quota: tenant alpha: gpu-training is at 6 of 6 GPUs; this pod asks for 2. "
        "Would fit: gpu-batch (3 left). See TenantQuota/alpha."
    )


@pytest.mark.parametrize(
    ("charge", "usage", "says"),
    [
        (
            gpus("2"),
            used(total="16", training="6"),
            "gpu-training is at 6 of 6 GPUs; this pod asks for 2. Would fit: no tier now.",
        ),
        (gpus("2"), used(total="15"), "the total is at 15 of 16 GPUs; this pod asks for 2. Would fit: no tier now."),
        (
            gpus("1", flavor="h100"),
            used(h100="4"),
            "h100 is at 4 of 4 GPUs; this pod asks for 1. Would fit: no tier now.",
        ),
        (
            gpus("1", "gpu-serving", "h100"),
            used(serving_h100="2", h100="2", training="5", batch="2", total="5"),
            (
                "gpu-serving on h100 is at 2 of 2 GPUs; this pod asks for 1. "
                "Would fit: gpu-training (1 left), gpu-batch (1 left), gpu-interactive (2 left)."
            ),
        ),
        (
            gpus("0.5"),
            used(training="5.875"),
            (
                "gpu-training is at 5.875 of 6 GPUs; this pod asks for 0.5. "
                "Would fit: gpu-serving (16 left), gpu-batch (3 left), gpu-interactive (16 left)."
            ),
        ),
    ],
)
def test_it_names_the_row_that_is_short(charge: Charge, usage: dict[QuotaRow, Decimal], says: str) -> None:
    short = shortfall([charge], ALPHA, usage)
    assert short
    refusal = pod_fit(short, ALPHA, TIERS, what="this pod").refusal
    assert sentence(refusal) == f"exceeded quota: tenant alpha: {says} See TenantQuota/alpha."


FITS = [
    (gpus("6"), {}, True),
    (gpus("6.125"), {}, False),
    (gpus("1"), used(training="5"), True),
    (gpus("1"), used(training="5.5"), False),
    (gpus("4", flavor="h100"), {}, True),
    (gpus("5", flavor="h100"), {}, False),
    (gpus("16", "gpu-interactive"), {}, True),
    (gpus("17", "gpu-interactive"), {}, False),
    (gpus("16", None), {}, True),
    (gpus("1", None), used(training="6"), True),
    (gpus("0"), used(training="9", total="20"), True),
]


@pytest.mark.parametrize(("charge", "usage", "fits"), FITS)
def test_a_charge_fits_where_every_row_it_draws_on_has_room(
    charge: Charge, usage: dict[QuotaRow, Decimal], fits: bool
) -> None:
    assert (shortfall([charge], ALPHA, usage) is None) is fits


def test_what_is_over_already_has_nothing_free() -> None:
    fits = [tier.name for tier, _ in alternatives(gpus("1", "gpu-batch"), ALPHA, used(training="9"), TIERS)]
    assert "gpu-training" not in fits


def test_several_charges_that_fall_short_together_are_reported_together() -> None:
    short = shortfall([gpus("4"), gpus("4")], ALPHA, {})
    assert short
    assert sentence(pod_fit(short, ALPHA, [], what="this gang").refusal) == (
        "tenant alpha: gpu-training allows 6 GPUs; this gang asks for 8 in all. Would fit: no tier. "
        "See TenantQuota/alpha."
    )


def test_a_tenant_without_rows_is_bounded_by_none() -> None:
    tenant: Tenant = a_tenant().view()
    assert shortfall([gpus("100")], tenant, {}) is None
    assert [(tier.name, left) for tier, left in alternatives(gpus("1"), tenant, {}, TIERS)] == [
        ("gpu-serving", None),
        ("gpu-batch", None),
        ("gpu-interactive", None),
    ]


def test_what_no_wait_would_make_fit_says_so() -> None:
    charge = gpus("8")
    assert never_fits(charge, ALPHA) == TRAINING
    assert sentence(too_large(TRAINING, charge, ALPHA, TIERS, "this PyTorchJob")) == (
        "tenant alpha: gpu-training allows 6 GPUs; this PyTorchJob asks for 8 in all. "
        "Would fit: gpu-serving, gpu-interactive. See TenantQuota/alpha."
    )
    assert sentence(too_large(TOTAL, gpus("17"), ALPHA, TIERS, "this Job")) == (
        "tenant alpha: the total allows 16 GPUs; this Job asks for 17 in all. "
        "Would fit: no tier. See TenantQuota/alpha."
    )


@pytest.mark.parametrize(
    ("class_name", "priority", "tier"),
    [
        ("gpu-batch", 400, "gpu-batch"),
        ("gpu-batch-nonpreempting", 400, "gpu-batch"),
        ("house", 900, "gpu-serving"),
        ("system-node-critical", 2_000_001_000, "gpu-training"),
        ("", 0, None),
        ("", None, None),
    ],
)
def test_a_pod_counts_in_the_tier_that_its_priority_reaches(
    class_name: str, priority: int | None, tier: str | None
) -> None:
    assert tier_counted(class_name, priority, TIERS) == tier


def test_a_deleted_pod_is_charged_until_it_has_ended_unless_the_policy_says_at_once() -> None:
    pod = a_pod().asking(2).having("metadata.deletionTimestamp", "2026-11-21T12:02:00Z").view()
    at_once = a_policy(quotaReleaseStrategy="Terminating")
    assert charge_of(pod, (), a_policy()) == charge_of(pod, (), a_policy(quotaReleaseStrategy="Terminal"))
    assert charge_of(pod, (), a_policy()) is not None
    assert charge_of(pod, (), at_once) is None
    assert charge_of(a_pod().asking(2).view(), (), at_once) is not None


def test_of_used_up_budgets_the_one_that_refuses_comes_first_and_then_the_last_to_have_new_hours() -> None:
    hours = SpentBudget(Decimal(5), Decimal(5), "1 December 2026")
    by_week = QuotaRow(Decimal(0), on_exceed="Hold", spent=hours)
    by_day, refusing = replace(by_week, tier="gpu-training"), replace(by_week, on_exceed="Deny")
    assert gpus("1").rows(replace(ALPHA, spent=(by_week, by_day)))[:3] == [by_week, by_day, TRAINING]
    assert gpus("1").rows(replace(ALPHA, spent=(by_day, refusing)))[:2] == [refusing, by_day]
