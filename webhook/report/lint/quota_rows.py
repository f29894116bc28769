"""Rules about what tenants may hold, what there is, and what of it counts as a GPU."""

from collections import defaultdict
from collections.abc import Iterator
from decimal import Decimal

from webhook.objects.quantities import written
from webhook.policy.quota.charges import demotes_not_there, demotes_nowhere, lent_from, whole_shortfall
from webhook.policy.quota.tenant_status import overlaps, unknown_names
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.weights import IMPLICIT_CLAIM, DeviceClass
from webhook.policy.workloads.claims import drivers_in
from webhook.report.lint.rule import LintRule, Mistake, Severity
from webhook.report.lint.snapshot import ClusterSnapshot, some_of
from webhook.sentences.sentence import sentence


def row_beyond_gpus(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Against all GPUs of the row's flavor."""
    for tenant in snapshot.in_force:
        for row in tenant.rows:
            there = _gpus(snapshot, row.flavor)
            if row.hard > there:
                what = f"{row.subject}: {written(row.hard)} GPUs; {_there(there, row.flavor)}"
                yield Mistake(f"TenantQuota/{tenant.name}", what)


def quotas_beyond_gpus(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Two tenants at least: one alone is told of by the rule on its row."""
    for flavor in (None, *(each.name for each in snapshot.policy.flavors)):
        most = {tenant.name: _most(tenant, flavor) for tenant in snapshot.in_force}
        bounded = {name: gpus for name, gpus in most.items() if gpus}
        total, there = sum(bounded.values(), Decimal(0)), _gpus(snapshot, flavor)
        if len(bounded) > 1 and total > there:
            ranked = sorted(bounded, key=lambda name: -bounded[name])
            shares = some_of(f"{name} {written(bounded[name])}" for name in ranked)
            what = f"may hold {written(total)} GPUs together ({shares}); {_there(there, flavor)}"
            yield Mistake(f"all tenants on {flavor}" if flavor else "all tenants", what)


def quota_below_gang(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Only what could not run in the whole quota: what has no room now is another matter."""
    for gang in snapshot.gangs:
        tenant = gang.tenant
        short = whole_shortfall(gang.charges, tenant, {}) if tenant and not tenant.charged_elsewhere else None
        if tenant is not None and short is not None:
            asked, hard = written(short.charge.gpus), written(short.row.hard)
            what = f"needs {asked} GPUs of {short.row.subject}; tenant {tenant.name} has {hard}"
            yield Mistake(str(gang), what)


def tenant_not_in_force(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Broken, of unknown names, or within an older tenant."""
    lost = overlaps(snapshot.in_force, snapshot.namespaces)
    for each in snapshot.tenants:
        if each.problem is not None:
            yield Mistake(f"TenantQuota/{each.name}", sentence(each.problem))
        elif each.tenant is not None:
            for _, unknown in unknown_names(each.tenant, snapshot.policy):
                yield Mistake(f"TenantQuota/{each.name}", unknown)
        if each.name in lost:
            overlap = lost[each.name]
            what = f"selects {some_of(overlap.namespaces)}, where the older TenantQuota {overlap.older} applies"
            yield Mistake(f"TenantQuota/{each.name}", what)


def demote_without_tier(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """As whoever applies it is warned."""
    for each in snapshot.tenants:
        if each.tenant is not None and demotes_nowhere(each.tenant, snapshot.policy):
            yield Mistake(
                f"TenantQuota/{each.name}", "spec.onExceed: Demote, and no row has an allowed tier below its own"
            )


def demote_without_effect(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """As whoever applies it is warned."""
    for each in snapshot.tenants:
        for field, tier in demotes_not_there(each.tenant, snapshot.policy) if each.tenant is not None else ():
            yield Mistake(f"TenantQuota/{each.name}", f"{field}: {tier} is below the tier of no row")


def lends_to_evictors(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """By the types that the policy gives to the tier of a row; nobody is evicted during adoption."""
    policy = snapshot.policy
    for tenant in snapshot.in_force if not policy.adoption else ():
        rows = dict.fromkeys(policy.tiers.get(row.tier) for row in tenant.rows if row.tier and tenant.demotes)
        for chosen in filter(None, rows):
            for tier in lent_from(chosen, tenant, policy):
                evicted = [each.name for each in policy.tiers if each.value < tier.value]
                if evicted and tier.preemption_policy != "Never":
                    what = f"pods over {chosen.name} run as {tier.name}, which may evict pods of {some_of(evicted)}"
                    yield Mistake(f"TenantQuota/{tenant.name}", what)


def gangs_stranded(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """As whoever leads has written it on the TenantQuota."""
    for each in snapshot.tenants:
        for condition in each.status.get("conditions") or ():
            if condition.get("type") == "GangsWhole" and condition.get("status") == "False":
                yield Mistake(f"TenantQuota/{each.name}", str(condition.get("message", "")))


def _most(tenant: Tenant, flavor: str | None) -> Decimal | None:
    """What a tenant may hold: its total row, else its tiers' rows together; None where no row bounds it."""
    rows = [row for row in tenant.rows if row.flavor == flavor]
    total = [row.hard for row in rows if row.tier is None]
    return min(total) if total else sum((row.hard for row in rows), Decimal(0)) or None


def _gpus(snapshot: ClusterSnapshot, flavor: str | None) -> Decimal:
    return sum((node.gpus for node in snapshot.nodes if flavor in (None, node.flavor)), Decimal(0))


def _there(gpus: Decimal, flavor: str | None) -> str:
    return f"the cluster has {written(gpus)}{f' of {flavor}' if flavor else ''}"


def device_class_counts(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Of every class, whether it is listed or not."""
    weights = snapshot.policy.weights
    for name, each in sorted(snapshot.policy.classes.items()):
        listed = IMPLICIT_CLAIM + name in weights.listed
        why = "the policy lists it" if listed else _why(each)
        asked = f", also as {each.extended_resource_name}" if each.extended_resource_name else ""
        yield Mistake(f"DeviceClass/{name}", f"counts {written(weights.of_devices(name))} GPU a device{asked}: {why}")


def _why(found: DeviceClass) -> str:
    drivers = found.other_drivers or drivers_in(found.selectors)
    if not drivers:
        return "its selectors tell no driver, so a GPU may be among its devices"
    told = f"its driver is {drivers[0]}" if found.may_be_gpus else f"no GPU is known of its driver, {drivers[0]}"
    return f"{told}, its profile {found.profile}" if found.may_be_gpus and found.profile else told


def resource_not_listed(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Of what the device plugins of nodes offer."""
    nodes: defaultdict[str, list[str]] = defaultdict(list)
    for node in snapshot.nodes:
        for name in node.offers:
            if snapshot.policy.weights.is_unlisted(name):
                nodes[name].append(node.name)
    for name, offering in sorted(nodes.items()):
        counts = f"counts {written(snapshot.policy.weights[name])} GPU each"
        yield Mistake(name, f"on {some_of(offering)}, {counts}: it looks like GPUs")


RULES = (
    LintRule(
        "tenant-not-in-force",
        Severity.ERROR,
        ("tenants", "namespaces"),
        tenant_not_in_force,
        "Correct the TenantQuota.",
    ),
    LintRule(
        "gangs-stranded",
        Severity.ERROR,
        ("tenants", "accounts"),
        gangs_stranded,
        "Raise the quota, or delete one of the gangs.",
    ),
    LintRule(
        "demote-without-tier",
        Severity.WARNING,
        ("tenants",),
        demote_without_tier,
        "Allow the tenant a tier below that of a row, or write `onExceed: Deny`.",
    ),
    LintRule(
        "demote-without-effect",
        Severity.WARNING,
        ("tenants",),
        demote_without_effect,
        "Write a tier in `demoteTo` that is lower than that of a row, or remove it.",
    ),
    LintRule(
        "lends-to-evictor",
        Severity.INFO,
        ("tenants",),
        lends_to_evictors,
        "Write `demoteTo` with a tier whose `preemptionPolicy` is Never.",
    ),
    LintRule(
        "quota-below-gang",
        Severity.WARNING,
        ("tenants", "gangs"),
        quota_below_gang,
        "Raise the row in the TenantQuota, or make the workload smaller.",
    ),
    LintRule(
        "row-beyond-gpus",
        Severity.WARNING,
        ("tenants", "nodes", "capacity"),
        row_beyond_gpus,
        "Lower the row to what the cluster has.",
    ),
    LintRule(
        "quotas-beyond-gpus",
        Severity.WARNING,
        ("tenants", "nodes", "capacity"),
        quotas_beyond_gpus,
        "Lower the totals, or bound the highest tiers by rows of their own that fit together.",
    ),
    LintRule(
        "resource-not-listed",
        Severity.WARNING,
        ("nodes",),
        resource_not_listed,
        "List the resource in the policy with its weight, `0` if it is no GPU.",
    ),
    LintRule(
        "device-class-counts",
        Severity.INFO,
        ("device_classes",),
        device_class_counts,
        "Where the number is wrong, list the class in the policy's resources.",
    ),
)
