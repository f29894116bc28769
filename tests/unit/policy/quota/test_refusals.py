"""What a whole workload is told of its tenant's quota."""

from decimal import Decimal

from msgspec.structs import replace

from webhook.policy.quota.charges import Charge
from webhook.policy.quota.refusals import growth_warnings, whole_fit
from webhook.policy.values.tenants import QuotaRow, Tenant
from webhook.sentences.sentence import sentence

ROW = QuotaRow(Decimal(6), "gpu-training")
HOLDS = Tenant("alpha", rows=(ROW,), on_exceed="Hold")
USED = {ROW: Decimal(5)}


def asking(gpus: int) -> list[Charge]:
    return [Charge(Decimal(gpus), "gpu-training")]


def test_pods_without_room_wait_where_the_tenant_holds():
    fit = whole_fit(asking(4), HOLDS, (), "this Deployment", at_once=True, usage=USED)
    assert fit.refusal is None
    (warning,) = fit.warnings
    assert sentence(warning) == (
        "tenant alpha: gpu-training is at 5 of 6 GPUs; this Deployment asks for 4 in all, so its pods wait for their "
        "turn (onExceed: Hold)"
    )
    (more,) = growth_warnings(asking(4), asking(2), HOLDS, USED, "this Deployment", can_wait=True)
    assert sentence(more).endswith("asks for 2 more, so those pods wait for their turn (onExceed: Hold)")


def test_what_can_never_fit_is_refused_where_the_tenant_holds():
    never = whole_fit(asking(7), HOLDS, (), "this Job", at_once=True, usage=USED)
    assert never.refusal is not None
    assert never.refused == 7
    wished = whole_fit(asking(7), HOLDS, (), "this Job", at_once=True, usage=USED, strict=False)
    assert wished.refusal is None, "it runs with fewer"
    assert not whole_fit(asking(7), replace(HOLDS, on_exceed="Warn"), (), "this Job", at_once=True, usage=USED).refusal
