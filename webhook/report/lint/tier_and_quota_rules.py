"""Rules about tiers and quotas: pods without a tier, ranks, tenants' limits, existing GPUs, and quota without work."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from msgspec.structs import replace

from webhook.cluster.listed import PodSummary
from webhook.cluster.webhook_configurations import leaves_out
from webhook.objects.quantities import written, written_gpus
from webhook.policy.assignment.request import TIER_LABEL
from webhook.policy.devices import evicts_others
from webhook.policy.metadata_keys import is_unknown, likely_key, namespace_warnings
from webhook.policy.quota.charges import Charge, lent_from, shortfall
from webhook.policy.quota.tenant_status import overlaps, tenant_warnings, unknown_and_effect, unknown_names
from webhook.policy.values.facts import NAME_LABEL
from webhook.policy.values.tenants import QuotaRow, Tenant, by_age, tenant_among
from webhook.policy.values.tier_policy import Mode
from webhook.policy.values.tiers import PriorityClass, Tier, active_class, disagreements
from webhook.policy.values.weights import IMPLICIT_CLAIM, DeviceClass
from webhook.policy.workloads.claims import drivers_in
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.report.lint.rule import Mistake, Severity, rule
from webhook.report.lint.snapshot import MOST_NAMED, ClusterSnapshot, number_of, some_of
from webhook.report.posture import dra_posture, posture_of
from webhook.report.waiting import long_time
from webhook.sentences.sentence import sentence, warning_words

LONG = timedelta(hours=2)
"""A time longer than an autoscaler needs to add a node, or a driver to be installed on it."""


@rule("gpus-in-exempt-namespace", Severity.WARNING, "configurations", "namespaces", "pods")
def gpus_in_exempt_namespace(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find GPU pods in namespaces that the webhook's entries for pods leave out."""
    for name, pods in snapshot.pods_by_namespace.items():
        if _is_exempt(name, snapshot):
            yield Mistake(f"Namespace/{name}", f"is exempt, and has {number_of(len(pods), 'pod')} with GPUs")


@rule("pods-without-tier", Severity.WARNING, "pods")
def pods_without_tier(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find GPU pods without a tier. In Audit no pod gets one; another rule reports exempt namespaces."""
    tiers, policy = snapshot.policy.tiers, snapshot.policy
    modes = {each.name: policy.mode_in(each.labels) for each in snapshot.namespaces}
    for name, pods in snapshot.pods_by_namespace.items():
        if modes.get(name, policy.mode) is Mode.Audit:
            continue
        bare = [pod for pod in pods if tiers.of_class(pod.class_name) is None]
        if bare and not _is_exempt(name, snapshot):
            labelled = sum(1 for pod in bare if pod.tier_label)
            noted = f", {labelled} of them with the label {TIER_LABEL}" if labelled else ""
            what = f"{number_of(len(bare), 'pod')} with GPUs and no tier's class{noted}"
            yield Mistake(f"Namespace/{name}", f"{what}: {some_of(pod.made_by for pod in bare)}")


@rule("unknown-label", Severity.WARNING, "pods")
def unknown_label(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find keys of gpu-tiers without a meaning, also on pods from before the installation, which had no warning."""
    bearers: dict[str, list[PodSummary]] = {}
    for pod in snapshot.pods:
        for key in filter(is_unknown, pod.labels):
            bearers.setdefault(key, []).append(pod)
    for key, pods in bearers.items():
        who = f"{number_of(len(pods), 'pod')} with GPUs: {some_of(pod.made_by for pod in pods)}"
        yield Mistake(f"label {key}", f"means nothing, and is on {who}; did you mean {likely_key(key)}?")


@rule("namespace-label", Severity.WARNING, "namespaces", "tenants")
def namespace_label(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find labels of gpu-tiers on namespaces without a meaning, also from before the installation."""
    tenants = [each.tenant for each in snapshot.tenants if each.tenant]
    for each in snapshot.namespaces:
        for warning in namespace_warnings(each.labels, snapshot.policy, tenants):
            yield Mistake(f"Namespace/{each.name}", warning_words(warning))


def _is_exempt(namespace: str, snapshot: ClusterSnapshot) -> bool:
    """Tell whether the API server asks gpu-tiers about no pod of a namespace."""
    labels = next((each.labels for each in snapshot.namespaces if each.name == namespace), {NAME_LABEL: namespace})
    return leaves_out(snapshot.configurations, labels)


NEVER = "Never"


@rule("serving-below-others", Severity.INFO)
def serving_below_others(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find training or batch in a tier above that of serving, although people wait for serving."""
    policy = snapshot.policy
    serving = _tier_of(WorkloadType.SERVING, snapshot)
    if serving is None:
        return
    others = {kind: _tier_of(kind, snapshot) for kind in (WorkloadType.TRAINING, WorkloadType.BATCH)}
    above = [f"{kind} ({tier.name})" for kind, tier in others.items() if tier and tier.value > serving.value]
    if above:
        evicted = "" if policy.adoption else ", and evicts serving"
        yield Mistake(f"tier {serving.name}", f"serving gets it; {some_of(above)} ranks above it{evicted}")


@rule("never-for-training", Severity.WARNING)
def never_for_training(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find training in a tier whose preemptionPolicy is Never. Adoption, by which no tier evicts, is no mistake."""
    tier = _tier_of(WorkloadType.TRAINING, snapshot)
    if tier is not None and tier.preemption_policy == NEVER:
        yield Mistake(f"tier {tier.name}", "training gets it, and its preemptionPolicy is Never")


@rule("never-holds-gangs", Severity.WARNING, "gangs", "pods")
def never_holds_gangs(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find gangs in a tier that evicts nobody, because their pods use GPUs while the gang waits.

    A gang whose pods share a PodGroup waits whole, and uses nothing meanwhile. Shards wait for no other shard.
    """
    grouped = {uid for pod in snapshot.pods if pod.group for uid in (pod.gang, pod.owner.uid if pod.owner else "")}
    gangs = [gang for gang in snapshot.gangs if gang.uid not in grouped and not gang.shards]
    for tier in snapshot.policy.tiers:
        tier_gangs = [str(gang) for gang in gangs if any(each.tier == tier.name for each in gang.charges)]
        if tier_gangs and tier.preemption_policy == NEVER:
            what = f"evicts nobody, and holds {number_of(len(tier_gangs), 'gang')}: {some_of(tier_gangs)}"
            yield Mistake(f"tier {tier.name}", what)


@rule("tiers-without-eviction", Severity.WARNING, "classes", "device_classes", "slices", "nodes", "version")
def tiers_without_eviction(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find DeviceClasses whose GPUs come by DRA, if some tier relies on eviction."""
    policy, live = snapshot.policy, snapshot.classes
    active = ((each, live.get(active_class(each, adoption=policy.adoption))) for each in policy.tiers)
    tiers = [tier.name for tier, own in active if evicts_others(tier, own, policy)]
    for each in dra_posture(policy, snapshot.supply) if tiers else ():
        yield Mistake(f"DeviceClass/{each.device_class}", f"{each.said}; {some_of(tiers)} count on eviction")


@rule("class-above-tiers", Severity.WARNING, "classes")
def class_above_tiers(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find PriorityClasses above a tier, except Kubernetes' own, which are meant to be there.

    Other rules report the default class and classes of former tiers.
    """
    for live, evicts in _foreign(snapshot):
        if not live.global_default and not live.ours:
            what = f"value {live.value} evicts {', '.join(evicts)}{_borne(live.name, snapshot)}"
            yield Mistake(f"PriorityClass/{live.name}", what)


@rule("class-of-former-tier", Severity.WARNING, "classes", "read_active_policy")
def class_of_former_tier(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find the class of a tier that is gone. The chart leaves it, because existing pods still name it.

    While the policy file is not active, the class may belong to a tier that comes with it.
    """
    evicts = {each.name: each.evicts for each in posture_of(snapshot.policy, classes=snapshot.classes).classes}
    for name, live in sorted(snapshot.classes.items()) if snapshot.installed.taken else ():
        if live.ours and snapshot.policy.tiers.of_class(name) is None:
            tiers = ", ".join(evicts.get(name, ())) or "no tier"
            what = f"value {live.value}, of a tier that the policy has dropped: evicts {tiers}{_borne(name, snapshot)}"
            yield Mistake(f"PriorityClass/{name}", what)


@rule("default-class-above-tiers", Severity.ERROR, "classes")
def default_class_above_tiers(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find a default class that ranks above a tier."""
    for live, evicts in _foreign(snapshot):
        if live.global_default:
            what = f"value {live.value} is the default of all pods, and evicts {', '.join(evicts)}"
            yield Mistake(f"PriorityClass/{live.name}", what)


@rule("tier-class-missing", Severity.ERROR, "classes")
def tier_class_missing(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find tiers whose active PriorityClass does not exist; adoption decides which of two is active."""
    for tier in snapshot.policy.tiers:
        name = active_class(tier, adoption=snapshot.policy.adoption)
        if name not in snapshot.classes:
            yield Mistake(f"PriorityClass/{name}", f"does not exist, so pods of tier {tier.name} are refused")


@rule("tier-class-differs", Severity.ERROR, "classes")
def tier_class_differs(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find tiers whose PriorityClass has another value or policy, or is the default of all pods."""
    for problem in disagreements(snapshot.policy.tiers, snapshot.classes):
        yield Mistake(problem.field, problem.what)


def _tier_of(kind: WorkloadType, snapshot: ClusterSnapshot) -> Tier | None:
    return snapshot.policy.tiers.get(snapshot.policy.tier_of_type.get(kind, ""))


def _foreign(snapshot: ClusterSnapshot) -> Iterator[tuple[PriorityClass, tuple[str, ...]]]:
    for each in posture_of(snapshot.policy, classes=snapshot.classes).classes:
        if not each.name.startswith("system-"):
            yield snapshot.classes[each.name], each.evicts


def _borne(name: str, snapshot: ClusterSnapshot) -> str:
    using = [pod for pod in snapshot.pods if pod.class_name == name]
    return f"; {number_of(len(using), 'pod')} with GPUs bear{'s' if len(using) == 1 else ''} it" if using else ""


@rule("tenant-not-active", Severity.ERROR, "tenants", "namespaces", line="tenants")
def tenant_not_active(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find TenantQuotas that are broken, name something unknown, or select namespaces of an older tenant."""
    lost = overlaps(snapshot.active, snapshot.namespaces)
    for each in snapshot.tenants:
        if each.problem is not None:
            yield Mistake(f"TenantQuota/{each.name}", sentence(each.problem))
        elif each.tenant is not None:
            for unknown in unknown_names(each.tenant, snapshot.policy):
                yield Mistake(f"TenantQuota/{each.name}", unknown_and_effect(unknown))
        if each.name in lost:
            yield Mistake(f"TenantQuota/{each.name}", warning_words(lost[each.name].warning(MOST_NAMED)))


@rule("gangs-stranded", Severity.ERROR, "tenants", "accounts")
def gangs_stranded(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Report gangs without room for all their pods, which the leader writes on the TenantQuota."""
    for each in snapshot.tenants:
        for condition in each.status.get("conditions") or ():
            if condition.get("type") == "GangsWhole" and condition.get("status") == "False":
                yield Mistake(f"TenantQuota/{each.name}", str(condition.get("message", "")))


@rule("quota-without-effect", Severity.WARNING, "tenants")
def quota_without_effect(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find the mistakes of which the webhook warns when a TenantQuota is applied.

    Other rules report unknown names and overlaps. A row that the backstop can't have is left out: nobody can change it.
    """
    for tenant in (each.tenant for each in snapshot.tenants if each.tenant is not None):
        for warning in tenant_warnings(tenant, (), snapshot.namespaces, lambda _: {}, snapshot.policy):
            if warning.get("unknown") is None and warning.id != "not-rendered":
                yield Mistake(f"TenantQuota/{tenant.name}", warning_words(warning))


@rule("lends-to-evictor", Severity.INFO, "tenants")
def lends_to_evictors(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find rows with onExceed Demote whose pods may run in a lower tier that evicts. During adoption no tier evicts."""
    policy = snapshot.policy
    for tenant in snapshot.active if not policy.adoption else ():
        rows = dict.fromkeys(
            policy.tiers.get(row.tier) for row in tenant.rows if row.tier and tenant.on_exceed == "Demote"
        )
        for chosen in filter(None, rows):
            for tier in lent_from(chosen, tenant, policy):
                evicted = [each.name for each in policy.tiers if each.value < tier.value]
                if evicted and tier.preemption_policy != "Never":
                    what = f"pods over {chosen.name} run as {tier.name}, which may evict pods of {some_of(evicted)}"
                    yield Mistake(f"TenantQuota/{tenant.name}", what)


@rule("quota-below-gang", Severity.WARNING, "tenants", "gangs")
def quota_below_gang(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find gangs that need more GPUs than a row allows. Used up GPU-hours are no mistake, because they come again."""
    for gang in snapshot.gangs:
        tenant = gang.tenant and replace(gang.tenant, spent=())
        short = shortfall(gang.charges, tenant, {}) if tenant and not tenant.charged_elsewhere else None
        if tenant is not None and short is not None:
            asked, hard = written(short.charge.gpus), written(short.row.hard)
            what = f"needs {asked} GPUs of {short.row.subject}; tenant {tenant.name} has {hard}"
            yield Mistake(str(gang), what)


@rule("row-beyond-gpus", Severity.WARNING, "tenants", "nodes", "capacity")
def row_beyond_gpus(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find rows that allow more GPUs than the cluster has of their flavor."""
    for tenant in snapshot.active:
        for row in tenant.rows:
            there = _gpus(snapshot, row.flavor)
            if row.hard > there:
                what = f"{row.subject}: {written(row.hard)} GPUs; {_there(there, row.flavor)}"
                yield Mistake(f"TenantQuota/{tenant.name}", what)


@rule("quotas-beyond-gpus", Severity.WARNING, "tenants", "nodes", "capacity")
def quotas_beyond_gpus(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find quotas that allow more GPUs of the highest tier together than the cluster has.

    Nobody is evicted for a pod that finds all GPUs used by its own tier. Lower tiers share what is idle, so their
    quotas may exceed the cluster. The rule on rows reports a single tenant.
    """
    highest = next(iter(snapshot.policy.tiers))
    for flavor in (None, *(each.name for each in snapshot.policy.flavors)):
        using = (each for each in snapshot.active if each.may_use(highest, snapshot.policy.tiers))
        most = {each.name: _most(each, highest.name, flavor) for each in using}
        bounded = {name: gpus for name, gpus in most.items() if gpus}
        total, there = sum(bounded.values(), Decimal(0)), _gpus(snapshot, flavor)
        if len(bounded) > 1 and total > there:
            ranked = sorted(bounded, key=lambda name: -bounded[name])
            shares = some_of(f"{name} {written(bounded[name])}" for name in ranked)
            what = f"all tenants together may use {written(total)} GPUs of it ({shares}); {_there(there, flavor)}"
            yield Mistake(f"tier {highest.name} on {flavor}" if flavor else f"tier {highest.name}", what)


def _most(tenant: Tenant, tier: str, flavor: str | None) -> Decimal | None:
    """Return a tenant's limit for a tier: the smaller of its own row and the total; None if no row bounds it."""
    return min((row.hard for row in tenant.rows if row.flavor == flavor and row.tier in (None, tier)), default=None)


def _gpus(snapshot: ClusterSnapshot, flavor: str | None) -> Decimal:
    return sum((node.gpus for node in snapshot.nodes if flavor in (None, node.flavor)), Decimal(0))


def _there(gpus: Decimal, flavor: str | None) -> str:
    return f"the cluster has {written(gpus)}{f' of {flavor}' if flavor else ''}"


@rule("resource-not-listed", Severity.WARNING, "nodes")
def resource_not_listed(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find resources of device plugins that look like GPUs and are not in the policy."""
    nodes: defaultdict[str, list[str]] = defaultdict(list)
    for node in snapshot.nodes:
        for name in node.offers:
            if snapshot.policy.weights.is_unlisted(name):
                nodes[name].append(node.name)
    for name, offering in sorted(nodes.items()):
        counts = f"counts {written(snapshot.policy.weights[name])} GPU each"
        yield Mistake(name, f"on {some_of(offering)}, {counts}: it looks like GPUs")


@rule("device-class-counts", Severity.INFO, "device_classes")
def device_class_counts(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Report the GPUs per device of each DeviceClass, listed or not."""
    weights = snapshot.policy.weights
    for name, each in sorted(snapshot.policy.classes.items()):
        listed = IMPLICIT_CLAIM + name in weights.listed
        why = "the policy lists it" if listed else _why(each)
        asked = f", also as {each.extended_resource_name}" if each.extended_resource_name else ""
        yield Mistake(f"DeviceClass/{name}", f"counts {written(weights.of_devices(name))} GPU a device{asked}: {why}")


def _why(found: DeviceClass) -> str:
    drivers = found.other_drivers or drivers_in(found.selectors)
    if not drivers:
        return "its selectors name no driver, so a GPU may be among its devices"
    known = f"its driver is {drivers[0]}" if found.may_be_gpus else f"no GPU is known of its driver, {drivers[0]}"
    return f"{known}, its profile {found.profile}" if found.may_be_gpus and found.profile else known


@rule("pending-for-hours", Severity.WARNING, "tenants", "namespaces", "pods")
def pending_for_hours(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find workloads with pods that have used quota without a node for longer than LONG.

    The finding has the scheduler's message on the oldest of these pods.
    """
    ranked, labels = by_age(snapshot.active), {each.name: each.labels for each in snapshot.namespaces}
    tenants = {namespace: tenant_among(ranked, labels.get(namespace, {})) for namespace in snapshot.pods_by_namespace}

    # 1. The pods that use quota, with the rows that count each, the narrowest first. Gated pods use nothing, and
    #    terminating pods soon nothing.
    by_workload = defaultdict[str, list[tuple[PodSummary, str, QuotaRow]]](list)
    asked, running = defaultdict[tuple[str, QuotaRow], Decimal](Decimal), set[tuple[str, QuotaRow]]()
    for pod in snapshot.pods:
        tenant = tenants[pod.namespace]
        if tenant is None or not pod.gpus or pod.queued or pod.ends:
            continue
        rows = Charge(pod.gpus, pod.tier, pod.flavor).rows(tenant)
        if rows:
            by_workload[pod.made_by].append((pod, tenant.name, rows[0]))
        for row in rows:
            asked[tenant.name, row] += pod.gpus
            if pod.node:
                running.add((tenant.name, row))

    # 2. The rows that are full and on which no pod has a node.
    idle = {key for key, gpus in asked.items() if gpus >= key[1].hard and key not in running}

    # 3. The workloads.
    for workload, its in by_workload.items():
        waiting = [each for each in its if not each[0].node and _age(each[0], snapshot.now) > LONG]
        if not waiting:
            continue
        pod, tenant_name, row = min(waiting, key=lambda each: each[0].created)
        those = "its pod has" if len(its) == 1 else f"{len(waiting)} of its {len(its)} pods have"
        gpus = written_gpus(sum((each[0].gpus for each in waiting), Decimal(0)))
        full = f"; {row.subject} is full, and nothing runs on it" if (tenant_name, row) in idle else ""
        used = f"using {gpus} of {row.subject} of tenant {tenant_name}{full}"
        unasked = f"nothing yet (schedulerName: {pod.scheduler or 'default-scheduler'})"
        why = " ".join(pod.unscheduled.split()) or unasked
        age = long_time(_age(pod, snapshot.now))
        yield Mistake(workload, f"{those} had no node for {age}, {used}. The scheduler says: {why}")


def _age(pod: PodSummary, now: datetime) -> timedelta:
    try:
        return now - datetime.fromisoformat(pod.created)
    except ValueError:
        return timedelta(0)
