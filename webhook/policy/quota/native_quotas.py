"""The API server's own limits: ResourceQuotas, a tenant's quota rendered as ResourceQuotas, and ceilings.

Rendered ResourceQuotas never refuse what the TenantQuota admits, except while pods are ending. They leave out what they
can't express: a namespace has its own, each resource name is counted alone, and a node's model is no scope of a
ResourceQuota.

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
"""The scope that selects pods by their class; also the key of its lines."""
REQUESTS = "requests."
"""The prefix of the name by which a ResourceQuota counts an extended resource."""

TOTAL = "gpu-tiers"
"""The name of the total's ResourceQuota; a tier's ends with the tier's name."""
DEVICES = ".deviceclass.resource.k8s.io/devices"
"""The suffix of the name for devices of claims in a ResourceQuota. They have no class, so only a total counts them."""
NO_CEILING = "none"


class NativeQuota(msgspec.Struct, frozen=True):
    """A ResourceQuota: the classes whose pods it counts, and the amount of each resource name that is left."""

    name: str
    classes: tuple[Requirement, ...]
    free: Mapping[str, Decimal]

    def counts(self, class_name: str) -> bool:
        """Tell whether it counts pods of that class."""
        return all(line.matches({PRIORITY_CLASS: class_name}) for line in self.classes)


_ONE = Decimal(1)


class NativeRoom(msgspec.Struct, frozen=True):
    """The GPUs that pods may hold at most, by the ResourceQuota that leaves least."""

    left: Decimal
    quota: str


def native_rooms(
    pod: Pod, gpus: Decimal, quotas: Iterable[NativeQuota], policy: TierPolicy, count: Decimal = _ONE
) -> Mapping[str, NativeRoom]:
    """Return the GPUs that so many pods like this one may hold at most, by tier; together they ask for `gpus`.

    A tier is missing if no ResourceQuota counts its pods and a resource that they ask for.
    """
    asked, rooms = asked_of(pod, policy), dict[str, NativeRoom]()
    for quota in quotas:
        for name in asked.keys() & quota.free.keys():
            left = gpus + (quota.free[name] - asked[name] * count) * policy.weights[name]
            for tier in policy.tiers:
                least = rooms.get(tier.name)
                counted = quota.counts(active_class(tier, adoption=policy.adoption))
                if counted and (least is None or left < least.left):
                    rooms[tier.name] = NativeRoom(left, quota.name)
    return rooms


def backstop(tenant: Tenant, policy: TierPolicy) -> Mapping[str, Tree]:
    """Return the specs of the ResourceQuotas for each of the tenant's namespaces, by name; none without `backstop`.

    A row of a flavor has none, and neither has a row of an unknown tier.
    """
    specs: dict[str, Tree] = {}
    for row in (each for each in tenant.rows if tenant.backstop and each.flavor is None):
        tier, most = policy.tiers.get(row.tier or ""), min(row.hard, Decimal(MOST_GPUS))
        # The amount of each resource that the row allows, if nothing else is used.
        hard = {REQUESTS + name: written(most // each) for name, each in policy.weights.listed.items() if each}
        if row.tier is None:
            classes = ((name, weight) for name, weight in policy.device_classes.items() if weight)
            specs[TOTAL] = {"hard": hard | {name + DEVICES: written(most // weight) for name, weight in classes}}
        elif tier is not None:
            counted = {"scopeName": PRIORITY_CLASS, "operator": "In", "values": list(class_names(tier))}
            specs[f"{TOTAL}-{tier.name}"] = {"hard": hard, "scopeSelector": {"matchExpressions": [counted]}}
    return specs


def ceilings(tenants: Iterable[Tenant], tiers: Tiers, classes: Iterable[PriorityClass]) -> dict[str, str]:
    """Return the data of the ConfigMap that the chart's ValidatingAdmissionPolicy reads.

    A line for each tenant, the oldest first, has its name, ceiling and selector. The API server enforces the ceilings
    by itself, so they hold while the webhook is busy or down. Its CEL sees only one object in addition to the pod. So
    tenants are in the order in which they win, with the name of the cluster's default class, which nobody chooses.
    """
    lines = []
    for tenant in by_age(tenants):
        ceiling = tenant.ceiling(tiers)
        # `key:In:a,b`. Characters that no label may have are escaped, so they match none.
        selector = (
            f"{quote(each.key)}:{each.operator}:{','.join(map(quote, each.values))}" for each in tenant.selector
        )
        lines.append(" ".join((tenant.name, NO_CEILING if ceiling is None else str(ceiling), *selector)))
    default_classes = sorted(each.name for each in classes if each.global_default)
    return {"tenants": "\n".join(lines), "defaultClasses": " ".join(default_classes)}
