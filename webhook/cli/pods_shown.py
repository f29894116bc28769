"""What a pod has of its tier and its hook, and what a new one would have, as people are shown it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from webhook.cli.finding import Finding
from webhook.objects.pods import Pod
from webhook.objects.view import view
from webhook.policy.decide import Decision
from webhook.policy.values.facts import Facts
from webhook.policy.values.tiers import Tiers
from webhook.readmodel.explained import ClassShown, HookShown, PodsNow

Tree = dict[str, Any]


@dataclass(frozen=True, slots=True)
class NewPod:
    """A pod as it would be created: the one that was asked about, or one of a workload's template."""

    finding: Finding
    pod: Pod
    facts: Facts | None
    decision: Decision | None


def weight_of(part: NewPod) -> Decimal:
    """The GPUs of all pods like it."""
    charge = part.decision.charge if part.decision else None
    return charge.gpus * part.finding.count if charge else Decimal(0)


def hook_shown(part: NewPod, there: Pod | None) -> HookShown:
    """The hook that it would get, and whether the pod has it that is `there`."""
    hook = part.decision.hook if part.decision else None
    if hook is None or hook.plan is None:
        return HookShown(why_not=hook.why_not if hook else "", template=part.finding.path)
    plan, containers = hook.plan, part.pod.spec.containers
    return HookShown(
        kind=plan.kind,
        seconds=hook.asked.hook.seconds,
        grace=plan.grace,
        containers=tuple(containers[index].name for index in plan.containers),
        template=part.finding.path,
        there=_has(there, plan.containers, plan.handler, plan.grace) if there else None,
    )


def _has(pod: Pod, containers: tuple[int, ...], handler: Tree | None, grace: int) -> bool:
    found = (pod.spec.containers[index].lifecycle for index in containers)
    long_enough = (pod.spec.termination_grace_period_seconds or 0) >= grace
    return long_enough and all(each is not None and each.pre_stop == handler for each in found)


def class_now(pod: Tree, tiers: Tiers) -> ClassShown:
    """The class of a pod that exists."""
    spec = view(pod, Pod).spec
    tier = tiers.of_class(spec.priority_class_name)
    policy = spec.preemption_policy or "PreemptLowerPriority"
    return ClassShown(spec.priority_class_name, spec.priority or 0, policy, tier.name if tier else "")


def class_of_new(part: NewPod | None, tiers: Tiers) -> ClassShown | None:
    """The class that it would get; None where it gets no tier."""
    live = part.decision.live if part and part.decision else None
    if live is None:
        return None
    tier = tiers.of_class(live.name)
    return ClassShown(live.name, live.value, live.preemption_policy, tier.name if tier else "")


def pods_now(pods: Iterable[Tree], tiers: Tiers) -> Iterator[PodsNow]:
    """The pods that have not ended, by their class, the most first."""
    running = (each for each in pods if (each.get("status") or {}).get("phase") not in ("Succeeded", "Failed"))
    counted = Counter(class_now(each, tiers) for each in running)
    yield from (PodsNow(count, now) for now, count in counted.most_common())
