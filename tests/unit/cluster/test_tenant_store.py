"""A TenantQuota that breaks while it is active."""

from decimal import Decimal
from typing import Any

import msgspec

from webhook.cluster.watched import TenantStore
from webhook.policy.quota.tenant_quotas import TenantQuota, watched_tenant_quota
from webhook.policy.values.tenants import QuotaRow


def quota(status: Any = None, **spec: Any) -> TenantQuota:
    metadata = {"name": "alpha", "generation": 1}
    selector = {"matchLabels": {"team": "a"}}
    tree = {"metadata": metadata, "spec": {"namespaceSelector": selector, **spec}, "status": status}
    return watched_tenant_quota(msgspec.json.encode(tree))


def watched() -> TenantStore:
    return TenantStore(lambda: None)


GOOD, BROKEN = quota(quotas=[{"gpus": "4"}]), quota(quotas=[{"gpus": "many"}])


def test_the_last_good_one_stays_active_also_over_a_new_list():
    tenants = watched()
    tenants.update("alpha", GOOD)
    tenants.update("alpha", BROKEN)
    tenants.replace({"alpha": BROKEN})
    stored = tenants.objects["alpha"]
    assert stored.tenant is not None
    assert stored.tenant.rows == (QuotaRow(Decimal(4)),)
    assert stored.problem == BROKEN.problem


def test_one_that_was_never_good_is_not_active():
    tenants = watched()
    tenants.update("alpha", BROKEN)
    assert tenants.objects["alpha"].tenant is None


def test_one_that_is_deleted_and_made_again_is_another():
    tenants = watched()
    tenants.update("alpha", GOOD)
    tenants.update("alpha", None)
    tenants.update("alpha", BROKEN)
    assert tenants.objects["alpha"].tenant is None


def test_a_first_or_a_last_demoted_gang_is_a_change_and_other_bookings_are_none():
    """A replica that did not know yet that the tenant demotes no more may have booked the first."""

    def booked(*entries: dict[str, str], **spec: Any) -> TenantQuota:
        return quota({"ledger": {"entries": entries}}, onExceed="Hold", **spec)

    changes: list[bool] = []
    tenants = TenantStore(lambda: changes.append(True))
    for found in (
        booked(),
        booked({"tier": "gpu-batch"}),
        booked({"tier": "gpu-batch"}, {"kind": "Job"}),
        booked({"kind": "Job"}),
        booked(),
        booked({"tier": "gpu-batch"}, quotas=[{"gpus": "many"}]),
    ):
        tenants.update("alpha", found)
    assert len(changes) == 3
