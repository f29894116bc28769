"""What the API server itself holds: ResourceQuotas beside a tenant's quota, that quota rendered as some, and ceilings.

Rendered ones never refuse what the TenantQuota lets in, but while pods are ending. What they can't say is left out: a
namespace has its own, each resource name is counted alone, and a node's model is no scope of a ResourceQuota.

Sources: the scopes as the in-tree quota matches them (podMatchesSelector in pkg/quota/v1/evaluator/core/pods.go), and
the names there and in resource_claims.go.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from urllib.parse import quote

import msgspec

from webhook.objects.pods import Pod
from webhook.objects.quantities import MOST_GPUS, written
from webhook.objects.view import Tree
from webhook.policy.quota.demand import asked_of
from webhook.policy.values.tenants import Requirement, Tenant, by_age
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import PriorityClass, Tiers, active_class, class_names

PRIORITY_CLASS = "PriorityClass"
"""The scope that tells pods by their class; also the key of its lines."""
REQUESTS = "requests."
"""Starts the name under which a ResourceQuota counts an extended resource."""

TOTAL = "gpu-tiers"
"""The name of the ResourceQuota of the total; that of a tier ends with the tier's name."""
DEVICES = ".deviceclass.resource.k8s.io/devices"
"""Ends the name under which it counts the devices of claims. They have no class, so only a total counts them."""
NO_CEILING = "none"


class NativeQuota(msgspec.Struct, frozen=True):
    """A ResourceQuota: the classes whose pods it counts, and how much of each resource name it has left."""

    name: str
    classes: tuple[Requirement, ...]
    free: Mapping[str, Decimal]

    def counts(self, class_name: str) -> bool:
        """Tells whether pods of that class draw on it."""
        return all(line.matches({PRIORITY_CLASS: class_name}) for line in self.classes)


class NativeRoom(msgspec.Struct, frozen=True):
    """The GPUs that a pod may hold at most, by the ResourceQuota that leaves least."""

    left: Decimal
    quota: str


def native_rooms(
    pod: Pod, gpus: Decimal, quotas: Iterable[NativeQuota], policy: TierPolicy
) -> Mapping[str, NativeRoom]:
    """The room for a pod that holds so many GPUs, by tier; a tier that no ResourceQuota counts is missing."""
    asked, rooms = asked_of(pod, policy), dict[str, NativeRoom]()
    for quota in quotas:
        for name in asked.keys() & quota.free.keys():
            left = gpus + (quota.free[name] - asked[name]) * policy.weights[name]
            for tier in policy.tiers:
                least = rooms.get(tier.name)
                counted = quota.counts(active_class(tier, adoption=policy.adoption))
                if counted and (least is None or left < least.left):
                    rooms[tier.name] = NativeRoom(left, quota.name)
    return rooms


def backstop(tenant: Tenant, policy: TierPolicy) -> Mapping[str, Tree]:
    """The specs of the ResourceQuotas that each of the tenant's namespaces gets, by name."""
    specs: dict[str, Tree] = {}
    for row in (each for each in tenant.rows if tenant.backstop and each.flavor is None):
        tier, most = policy.tiers.get(row.tier or ""), min(row.hard, Decimal(MOST_GPUS))
        # How many of each resource the row allows, if nothing else is held.
        hard = {REQUESTS + name: written(most // each) for name, each in policy.weights.listed.items() if each}
        if row.tier is None:
            classes = ((name, weight) for name, weight in policy.device_classes.items() if weight)
            specs[TOTAL] = {"hard": hard | {name + DEVICES: written(most // weight) for name, weight in classes}}
        elif tier is not None:
            counted = {"scopeName": PRIORITY_CLASS, "operator": "In", "values": list(class_names(tier))}
            specs[f"{TOTAL}-{tier.name}"] = {"hard": hard, "scopeSelector": {"matchExpressions": [counted]}}
    return specs


def ceilings(tenants: Iterable[Tenant], tiers: Tiers, classes: Iterable[PriorityClass]) -> dict[str, str]:
    """The data of the ConfigMap that the chart's ValidatingAdmissionPolicy reads.

    A line for each tenant, the oldest first, has its name, ceiling and selector. The API server holds the ceilings by
    itself, so a webhook that is busy or down opens nothing. Its CEL knows one object beside the pod: so tenants stand
    there in the order in which they win, and the cluster's default class, which is nobody's choice, by its name.
    """
    lines = []
    for tenant in by_age(tenants):
        ceiling = tenant.ceiling(tiers)
        # `key:In:a,b`. What no label may have is escaped, and so matches none.
        selector = (
            f"{quote(each.key)}:{each.operator}:{','.join(map(quote, each.values))}" for each in tenant.selector
        )
        lines.append(" ".join((tenant.name, NO_CEILING if ceiling is None else str(ceiling), *selector)))
    default_classes = sorted(each.name for each in classes if each.global_default)
    return {"tenants": "\n".join(lines), "defaultClasses": " ".join(default_classes)}
