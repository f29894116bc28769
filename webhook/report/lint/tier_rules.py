"""Rules about tiers: pods without theirs, and the ranks of tiers and PriorityClasses."""

from collections.abc import Iterator

from webhook.cluster.pod_listing import PodSummary
from webhook.cluster.webhook_configurations import leaves_out
from webhook.policy.assignment.request import TIER_LABEL
from webhook.policy.devices import evicts_others
from webhook.policy.metadata_keys import is_unknown, likely_key, namespace_warnings
from webhook.policy.values.facts import NAME_LABEL
from webhook.policy.values.tier_policy import Mode
from webhook.policy.values.tiers import Tier, active_class, disagreements
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.report.lint.rule import Mistake, Severity, rule
from webhook.report.lint.snapshot import ClusterSnapshot, number_of, some_of
from webhook.report.posture import dra_posture, posture_of
from webhook.sentences.sentence import warning_words


@rule("gpus-in-exempt-namespace", Severity.WARNING, "configurations", "namespaces", "pods")
def gpus_in_exempt_namespace(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find GPU pods in namespaces that the webhook's entries for pods leave out."""
    for name, pods in snapshot.pods_by_namespace.items():
        if _is_exempt(name, snapshot):
            yield Mistake(f"Namespace/{name}", f"is exempt, and has {number_of(len(pods), 'pod')} with GPUs")


@rule("pods-without-tier", Severity.WARNING, "pods")
def pods_without_tier(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find GPU pods without a tier. In Audit no pod gets one; another rule reports exempt namespaces."""
    tiers = snapshot.policy.tiers
    for name, pods in snapshot.pods_by_namespace.items() if snapshot.policy.mode is not Mode.Audit else ():
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
        yield Mistake(f"label {key}", f"means nothing; did you mean {likely_key(key)}? It is on {who}")


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
    """Find types that rank above serving, because people wait for serving, while the others can wait."""
    policy = snapshot.policy
    serving = _tier_of(WorkloadType.SERVING, snapshot)
    if serving is None:
        return
    others = {kind: _tier_of(kind, snapshot) for kind in (WorkloadType.TRAINING, WorkloadType.BATCH)}
    above = [f"{kind} ({tier.name})" for kind, tier in others.items() if tier and tier.value > serving.value]
    if above:
        evicted = "" if policy.adoption else ", and evicts it"
        yield Mistake(f"tier {serving.name}", f"serving gets it; {some_of(above)} ranks above{evicted}")


@rule("never-for-training", Severity.WARNING)
def never_for_training(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find training in a tier that evicts nobody. During adoption no tier does, which is known."""
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
    """Find PriorityClasses above a tier. Kubernetes' own are meant to be, and other rules report the default class."""
    for name, evicts in _foreign(snapshot):
        live = snapshot.classes[name]
        if not live.global_default and not live.ours:
            what = f"value {live.value} evicts {', '.join(evicts)}{_borne(name, snapshot)}"
            yield Mistake(f"PriorityClass/{name}", what)


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
    for name, evicts in _foreign(snapshot):
        live = snapshot.classes[name]
        if live.global_default:
            what = f"value {live.value} is the default of all pods, and evicts {', '.join(evicts)}"
            yield Mistake(f"PriorityClass/{name}", what)


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


def _foreign(snapshot: ClusterSnapshot) -> Iterator[tuple[str, tuple[str, ...]]]:
    for each in posture_of(snapshot.policy, classes=snapshot.classes).classes:
        if not each.name.startswith("system-"):
            yield each.name, each.evicts


def _borne(name: str, snapshot: ClusterSnapshot) -> str:
    using = [pod for pod in snapshot.pods if pod.class_name == name]
    return f"; {number_of(len(using), 'pod')} with GPUs bear{'s' if len(using) == 1 else ''} it" if using else ""
