"""The sentences about a whole workload and its tenant's quota."""

from decimal import Decimal

import pytest
from msgspec.structs import replace

from tests.builders.words import sentence
from webhook.policy.quota.charges import Charge, GangDemand, GangPart, Shortfall
from webhook.policy.quota.refusals import Applied, growth_warnings, no_room_for_gang, pod_fit, whole_fit
from webhook.policy.values.tenants import QuotaRow, Tenant

ROW = QuotaRow(Decimal(6), "gpu-training")
HOLDS = Tenant("alpha", rows=(ROW,), on_exceed="Hold")
USED = {ROW: Decimal(5)}
IF = "If there is no more room when a run begins,"


def asking(gpus: int) -> list[Charge]:
    return [Charge(Decimal(gpus), "gpu-training")]


def test_pods_without_room_wait_where_the_tenant_holds():
    fit = whole_fit(asking(4), HOLDS, Applied(what="this Deployment", usage=USED), at_once=True)
    assert fit.refusal is None
    (warning,) = fit.warnings
    assert sentence(warning) == (
        "tenant alpha: gpu-training is at 5 of 6 GPUs; this Deployment asks for 4 in all, so those of its pods that "
        "have no room are queued (Hold)"
    )
    (more,) = growth_warnings(asking(4), asking(2), HOLDS, Applied(what="this Deployment", usage=USED))
    assert sentence(more).endswith("asks for 2 more, so those of its pods that have no room are queued (Hold)")


def test_what_can_never_fit_is_refused_where_the_tenant_holds():
    never = whole_fit(asking(7), HOLDS, Applied(what="this Job", usage=USED), at_once=True)
    assert never.refusal is not None
    assert never.refused == 7
    wished = whole_fit(asking(7), HOLDS, Applied(what="this Job", usage=USED), at_once=True, strict=False)
    assert wished.refusal is None, "it runs with fewer"
    assert not whole_fit(
        asking(7), replace(HOLDS, on_exceed="Warn"), Applied(what="this Job", usage=USED), at_once=True
    ).refusal


def test_what_is_reserved_for_the_queue_is_reported():
    applied = Applied(what="this Job", usage=USED, reserved={ROW: Decimal(3)})
    fit = whole_fit(asking(2), HOLDS, applied, at_once=True)
    (warning,) = fit.warnings
    assert sentence(warning) == (
        "tenant alpha: gpu-training is at 2 of 6 GPUs, plus 3 reserved for pods queued earlier; this Job asks for 2 in "
        "all, so those of its pods that have no room are queued (Hold)"
    )
    assert not whole_fit(asking(1), HOLDS, applied, at_once=True).warnings
    (more,) = growth_warnings(asking(4), asking(2), HOLDS, applied)
    assert sentence(more).startswith(
        "tenant alpha: gpu-training is at 2 of 6 GPUs, plus 3 reserved for pods queued earlier"
    )


def test_a_gang_without_room_reads_what_is_reserved_for_the_queue():
    part = GangPart(2, Decimal(2), Charge(Decimal(4), "gpu-training"))
    short = Shortfall(part.charge, ROW, USED, {ROW: Decimal(3)})
    refusal = no_room_for_gang(GangDemand((part,)), short, HOLDS, (), "Job a", floor=False)
    assert sentence(refusal).startswith(
        "exceeded quota: Job a asks for 4 GPUs (2 x 2); tenant alpha has 1 of gpu-training left, plus 3 reserved for "
        "pods queued earlier. "
    )


def test_a_row_that_stands_in_the_way_of_a_tenant_that_demotes_says_what_is_reserved_too():
    total = QuotaRow(Decimal(6))
    tenant = Tenant("alpha", rows=(ROW, total), on_exceed="Demote")
    usage = {ROW: Decimal(5), total: Decimal(6)}
    short = Shortfall(Charge(Decimal(2), "gpu-training"), ROW, usage, {total: Decimal(3)})
    assert sentence(pod_fit(short, tenant, (), what="this pod").refusal).startswith(
        "exceeded quota: tenant alpha: the total is at 3 of 6 GPUs, plus 3 reserved for pods queued earlier; "
    )


@pytest.mark.parametrize(
    ("tenant", "then"),
    [
        (HOLDS, "those of its pods that have no room are queued (Hold)"),
        (replace(HOLDS, on_exceed="Deny"), "its pods are refused until there is room"),
    ],
)
def test_what_runs_later_reads_of_its_runs(tenant: Tenant, then: str):
    applied = Applied(what="this CronJob", usage=USED, recurs=True)
    message = f"tenant alpha: gpu-training is at 5 of 6 GPUs; each run of this CronJob asks for 4 in all. {IF} {then}"
    (now,) = whole_fit(asking(4), tenant, applied, at_once=True).warnings
    (more,) = growth_warnings(asking(4), asking(2), tenant, applied)
    assert (sentence(now), sentence(more)) == (message, message)
