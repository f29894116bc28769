"""Rules about who ranks above whom."""

from collections.abc import Iterator

from webhook.policy.devices.without_eviction import evicts_others
from webhook.policy.values.tiers import PriorityClass, Tier, class_in_force, disagreements
from webhook.policy.workloads.workload_types import WorkloadType
from webhook.report.lint.rule import LintRule, Mistake, Severity
from webhook.report.lint.snapshot import ClusterSnapshot, number_of, some_of
from webhook.report.posture import dra_posture, posture_of

NEVER = "Never"


def serving_below_others(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Serving answers people, the others can wait."""
    policy = snapshot.policy
    serving = _tier_of(WorkloadType.SERVING, snapshot)
    if serving is None:
        return
    others = {kind: _tier_of(kind, snapshot) for kind in (WorkloadType.TRAINING, WorkloadType.BATCH)}
    above = [f"{kind} ({tier.name})" for kind, tier in others.items() if tier and tier.value > serving.value]
    if above:
        evicted = "" if policy.adoption else ", and evicts it"
        yield Mistake(f"tier {serving.name}", f"serving gets it; {some_of(above)} ranks above{evicted}")


def never_for_training(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """During adoption no tier evicts anybody, and that is known."""
    tier = _tier_of(WorkloadType.TRAINING, snapshot)
    if tier is not None and tier.preemption_policy == NEVER:
        yield Mistake(f"tier {tier.name}", "training gets it, and its preemptionPolicy is Never")


def never_holds_gangs(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """A gang whose pods share a PodGroup waits whole, and holds nothing meanwhile; shards wait for no other."""
    grouped = {uid for pod in snapshot.pods if pod.group for uid in (pod.gang, pod.owner.uid if pod.owner else "")}
    for tier in snapshot.policy.tiers:
        held = [
            str(gang)
            for gang in snapshot.gangs
            if gang.uid not in grouped and not gang.shards and any(each.tier == tier.name for each in gang.charges)
        ]
        if held and tier.preemption_policy == NEVER:
            yield Mistake(
                f"tier {tier.name}", f"evicts nobody, and holds {number_of(len(held), 'gang')}: {some_of(held)}"
            )


def tiers_without_eviction(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find DeviceClasses whose GPUs come by DRA, where some tier counts on eviction."""
    policy, live = snapshot.policy, snapshot.classes
    tiers = [
        each.name
        for each in policy.tiers
        if evicts_others(each, live.get(class_in_force(each, adoption=policy.adoption)), policy)
    ]
    for each in dra_posture(policy, snapshot.supply) if tiers else ():
        yield Mistake(f"DeviceClass/{each.device_class}", f"{each.said}; {some_of(tiers)} count on eviction")


def class_above_tiers(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Kubernetes' own two are meant to; the default class and that of a former tier have rules of their own."""
    for name, evicts in _foreign(snapshot):
        live = snapshot.classes[name]
        if not live.global_default and not live.ours:
            yield Mistake(f"PriorityClass/{name}", f"{_value(live)} evicts {', '.join(evicts)}{_borne(name, snapshot)}")


def class_of_former_tier(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """The chart leaves the class of a tier that goes, for pods that exist still name it.

    While the policy file is not in force a class may be of a tier that comes with it.
    """
    evicts = {each.name: each.evicts for each in posture_of(snapshot.policy, classes=snapshot.classes).classes}
    for name, live in sorted(snapshot.classes.items()) if snapshot.running.installed.taken else ():
        if live.ours and snapshot.policy.tiers.of_class(name) is None:
            whom = ", ".join(evicts.get(name, ())) or "no tier"
            what = f"{_value(live)}, of a tier that the policy no longer has: evicts {whom}{_borne(name, snapshot)}"
            yield Mistake(f"PriorityClass/{name}", what)


def default_class_above_tiers(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """A default below all tiers harms nobody."""
    for name, evicts in _foreign(snapshot):
        if snapshot.classes[name].global_default:
            what = f"{_value(snapshot.classes[name])} is the default of all pods, and evicts {', '.join(evicts)}"
            yield Mistake(f"PriorityClass/{name}", what)


def tier_class_missing(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Of a tier's two classes the one in force must be there."""
    for tier in snapshot.policy.tiers:
        name = class_in_force(tier, adoption=snapshot.policy.adoption)
        if name not in snapshot.classes:
            yield Mistake(f"PriorityClass/{name}", f"does not exist, so pods of tier {tier.name} are refused")


def tier_class_differs(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """In value or policy, or it is the default of all pods."""
    for problem in disagreements(snapshot.policy.tiers, snapshot.classes):
        yield Mistake(problem.field, problem.what)


def _tier_of(kind: WorkloadType, snapshot: ClusterSnapshot) -> Tier | None:
    return snapshot.policy.tiers.get(snapshot.policy.tier_of_type.get(kind, ""))


def _foreign(snapshot: ClusterSnapshot) -> Iterator[tuple[str, tuple[str, ...]]]:
    for each in posture_of(snapshot.policy, classes=snapshot.classes).classes:
        if not each.name.startswith("system-"):
            yield each.name, each.evicts


def _borne(name: str, snapshot: ClusterSnapshot) -> str:
    using = [pod for pod in snapshot.pods if pod.class_name == name]
    return f"; {number_of(len(using), 'pod')} with GPUs bear{'s' if len(using) == 1 else ''} it" if using else ""


def _value(live: PriorityClass) -> str:
    return f"value {live.value}"


RULES = (
    LintRule(
        "serving-below-others",
        Severity.INFO,
        (),
        serving_below_others,
        "When GPUs are short, models that answer people are evicted for work that could wait. The preset four-tier "
        "ranks so on purpose: there serving runs on GPUs that training lends out.",
        "If people wait for what you serve, choose the preset three-tier or inference-first, or give serving the "
        "highest value under `tiers`.",
    ),
    LintRule(
        "never-for-training",
        Severity.WARNING,
        (),
        never_for_training,
        "Training mostly runs as gangs. In a tier that evicts nobody, a gang that got some of its GPUs waits for the "
        "others for ever, and holds those that it has.",
        "Under `workloadTypes` give training a tier with PreemptLowerPriority, or let its operator schedule gangs "
        "whole (PodGroup, Volcano, Kueue).",
    ),
    LintRule(
        "never-holds-gangs",
        Severity.WARNING,
        ("gangs", "pods"),
        never_holds_gangs,
        "A tier with preemptionPolicy Never takes only what is free. A gang that got some of its GPUs waits for the "
        "others for ever, and holds those that it has.",
        "Label these workloads with a tier that may evict, or have them scheduled whole (PodGroup, Volcano, Kueue).",
    ),
    LintRule(
        "tiers-without-eviction",
        Severity.WARNING,
        ("classes", "device_classes", "slices", "nodes", "version"),
        tiers_without_eviction,
        "kube-scheduler evicts nobody for devices of DRA, up to Kubernetes 1.38. A pod of the highest tier waits there "
        "until GPUs are free, and a pod of a lower tier that waits too may get them first. So GPUs that a tenant lends "
        "out by `Demote` do not come back by eviction.",
        "Where tiers must evict, serve the GPUs by a device plugin: then nodes have them in `allocatable`. Leave "
        "`extendedResourceName` out of the DeviceClass, so that no unchanged manifest gets GPUs by DRA.",
    ),
    LintRule(
        "class-above-tiers",
        Severity.WARNING,
        ("classes",),
        class_above_tiers,
        "A pod of this class evicts GPU pods of those tiers, also a pod that needs only their CPU. No ceiling of a "
        "tenant holds outside its namespaces.",
        "Make the class again with a value below the lowest tier or with `preemptionPolicy: Never`. For GPU pods "
        "`unmanagedClasses: Replace` or `Deny` in the policy is enough.",
    ),
    LintRule(
        "class-of-former-tier",
        Severity.WARNING,
        ("classes", "policy_in_force"),
        class_of_former_tier,
        "A pod that names it still gets its priority, and goes before the pods of the tiers below it.",
        "Once no pod bears it: `kubectl delete priorityclass NAME`.",
    ),
    LintRule(
        "default-class-above-tiers",
        Severity.ERROR,
        ("classes",),
        default_class_above_tiers,
        "Each pod of the cluster that names no class may evict GPU pods of those tiers: a web server that needs CPU "
        "ends somebody's training.",
        "Make another class the default, with a value below the lowest tier or with `preemptionPolicy: Never`.",
    ),
    LintRule(
        "tier-class-missing",
        Severity.ERROR,
        ("classes",),
        tier_class_missing,
        "gpu-tiers refuses a pod whose tier it can't give.",
        "Run `helm upgrade` with the values of the release: the chart restores the class.",
    ),
    LintRule(
        "tier-class-differs",
        Severity.ERROR,
        ("classes",),
        tier_class_differs,
        "gpu-tiers gives a class only as the policy has it: pods of this tier are refused.",
        "Bring policy and class together. Value and preemptionPolicy are immutable: delete the class and run "
        "`helm upgrade`, or give the tier another name.",
    ),
)
