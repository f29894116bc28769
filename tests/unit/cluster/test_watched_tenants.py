"""A TenantQuota that breaks while it is in force."""

from decimal import Decimal
from typing import Any

import msgspec

from webhook.kube.informer import TenantInformer
from webhook.kube.reflector import Source
from webhook.policy.quota.tenant_quotas import TenantQuota, read_tenant_quota
from webhook.policy.values.tenants import QuotaRow


def quota(**spec: Any) -> TenantQuota:
    metadata = {"name": "alpha", "generation": 1}
    selector = {"matchLabels": {"team": "a"}}
    return read_tenant_quota(
        msgspec.json.encode({"metadata": metadata, "spec": {"namespaceSelector": selector, **spec}}),
    )


def watched() -> TenantInformer:
    nobody: Any = None  # nothing is asked of the API server here
    return TenantInformer(nobody, Source("/apis/gpu-tiers.dev/v1alpha1/tenantquotas"), lambda: None)


GOOD, BROKEN = quota(quotas=[{"gpus": "4"}]), quota(quotas=[{"gpus": "many"}])


def test_the_last_good_one_stays_in_force_also_over_a_new_list():
    tenants = watched()
    tenants._change("alpha", GOOD)
    tenants._change("alpha", BROKEN)
    tenants._replace({"alpha": BROKEN})
    kept = tenants.objects["alpha"]
    assert kept.tenant is not None
    assert kept.tenant.rows == (QuotaRow(Decimal(4)),)
    assert kept.problem == BROKEN.problem


def test_one_that_was_never_good_is_not_in_force():
    tenants = watched()
    tenants._change("alpha", BROKEN)
    assert tenants.objects["alpha"].tenant is None


def test_one_that_is_deleted_and_made_anew_is_another():
    tenants = watched()
    tenants._change("alpha", GOOD)
    tenants._change("alpha", None)
    tenants._change("alpha", BROKEN)
    assert tenants.objects["alpha"].tenant is None
