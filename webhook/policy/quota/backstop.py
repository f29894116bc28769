"""A tenant's quota as ResourceQuotas, which the API server itself enforces, in each namespace by itself.

They never refuse what the TenantQuota lets in, but while pods are ending. What they can't say is left out: a namespace
has its own, each resource name is counted alone, and a node's model is no scope of a ResourceQuota.

Source of the names: pkg/quota/v1/evaluator/core/pods.go and resource_claims.go in kubernetes.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from webhook.objects.quantities import MOST_GPUS, written
from webhook.policy.quota.native_quotas import PRIORITY_CLASS, REQUESTS
from webhook.policy.values.tenants import QuotaRow, Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import class_names

Tree = dict[str, Any]

TOTAL = "gpu-tiers"
"""The name of the ResourceQuota of the total; that of a tier ends with the tier's name."""
DEVICES = ".deviceclass.resource.k8s.io/devices"
"""Ends the name under which it counts the devices of claims. They have no class, so only a total counts them."""


def backstop(tenant: Tenant, policy: TierPolicy) -> Mapping[str, Tree]:
    """The specs of the ResourceQuotas that each of the tenant's namespaces gets, by name."""
    return dict(_rendered(tenant, policy)) if tenant.backstop else {}


def _rendered(tenant: Tenant, policy: TierPolicy) -> Iterator[tuple[str, Tree]]:
    for row in tenant.rows:
        tier = policy.tiers.get(row.tier or "")
        if row.flavor is not None:
            continue
        if row.tier is None:
            yield TOTAL, {"hard": _hard(row, policy) | _claimed(row, policy)}
        elif tier is not None:
            counted = {"scopeName": PRIORITY_CLASS, "operator": "In", "values": list(class_names(tier))}
            scope = {"matchExpressions": [counted]}
            yield f"{TOTAL}-{tier.name}", {"hard": _hard(row, policy), "scopeSelector": scope}


def _hard(row: QuotaRow, policy: TierPolicy) -> dict[str, str]:
    return {REQUESTS + name: _units(row, weight) for name, weight in policy.weights.items()}


def _claimed(row: QuotaRow, policy: TierPolicy) -> dict[str, str]:
    return {each.name + DEVICES: _units(row, each.weight) for each in policy.device_classes}


def _units(row: QuotaRow, weight: Decimal) -> str:
    """How many of a resource the row allows, if nothing else is held."""
    return written(min(row.hard, Decimal(MOST_GPUS)) // weight)
