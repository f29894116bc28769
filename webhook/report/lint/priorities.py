"""Rules about who ranks above whom."""

from collections.abc import Iterator

from webhook.policy.devices import evicts_others
from webhook.policy.values.tiers import PriorityClass, Tier, class_in_force, disagreements
from webhook.policy.workloads.kind_table import WorkloadType
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
        "If people wait for what you serve, choose another preset or give serving the highest value.",
    ),
    LintRule(
        "never-for-training",
        Severity.WARNING,
        (),
        never_for_training,
        "Under `workloadTypes` give training a tier with PreemptLowerPriority.",
    ),
    LintRule(
        "never-holds-gangs",
        Severity.WARNING,
        ("gangs", "pods"),
        never_holds_gangs,
        "Label these workloads with a tier that may evict, or have them scheduled whole.",
    ),
    LintRule(
        "tiers-without-eviction",
        Severity.WARNING,
        ("classes", "device_classes", "slices", "nodes", "version"),
        tiers_without_eviction,
        "Where tiers must evict, serve the GPUs by a device plugin.",
    ),
    LintRule(
        "class-above-tiers",
        Severity.WARNING,
        ("classes",),
        class_above_tiers,
        "Make the class again with a value below the lowest tier or with `preemptionPolicy: Never`.",
    ),
    LintRule(
        "class-of-former-tier",
        Severity.WARNING,
        ("classes", "policy_in_force"),
        class_of_former_tier,
        "Once no pod has the class: `kubectl delete priorityclass NAME`.",
    ),
    LintRule(
        "default-class-above-tiers",
        Severity.ERROR,
        ("classes",),
        default_class_above_tiers,
        "Make another class the default.",
    ),
    LintRule(
        "tier-class-missing",
        Severity.ERROR,
        ("classes",),
        tier_class_missing,
        "Run `helm upgrade` with the values of the release: the chart restores the class.",
    ),
    LintRule(
        "tier-class-differs",
        Severity.ERROR,
        ("classes",),
        tier_class_differs,
        "Bring policy and class together.",
    ),
)
