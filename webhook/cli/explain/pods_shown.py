"""What a pod has of its tier and its hook, and what a new one would have, as people are shown it."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from webhook.cli.explain.replacement import running_pods
from webhook.cli.manifests.finding import Finding
from webhook.ledger.account import Account, Gang
from webhook.objects.pods import Pod
from webhook.objects.quantities import written
from webhook.objects.view import Tree, view
from webhook.policy.assignment.request import Assignment
from webhook.policy.decide import Decision
from webhook.policy.quota.charges import Charge
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tiers, class_in_force
from webhook.report.explained import ClassShown, GangShown, HookShown, PodsNow
from webhook.report.shown import as_number
from webhook.sentences.sentence import sentence


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
        return HookShown(why_not=sentence(hook.why_not) if hook and hook.why_not else "", template=part.finding.path)
    plan, containers = hook.plan, part.pod.spec.containers
    return HookShown(
        kind=plan.kind,
        seconds=hook.asked.hook.seconds,
        grace=plan.grace,
        containers=tuple(containers[index].name for index in plan.containers),
        template=part.finding.path,
        uncut=hook.asked.uncut if hook.asked.cut else 0,
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


def class_of_new(part: NewPod | None, assignment: Assignment | None, policy: TierPolicy) -> ClassShown | None:
    """The class that it would get; None where it gets no tier."""
    tier, facts = assignment.tier if assignment else None, part.facts if part else None
    live = facts.classes.get(class_in_force(tier, adoption=policy.adoption)) if tier and facts else None
    return ClassShown(live.name, live.value, live.preemption_policy, tier.name) if tier and live else None


def pods_now(pods: Iterable[Tree], tiers: Tiers) -> Iterator[PodsNow]:
    """The pods that have not ended, by their class, the most first."""
    counted = Counter(class_now(each, tiers) for each in running_pods(pods))
    yield from (PodsNow(count, now) for now, count in counted.most_common())


def booked_gang(account: Account, namespace: str, uids: Collection[str]) -> GangShown | None:
    """The gang of one of these uids that holds a charge as a whole; None where none does."""
    found = next((each for each in account.gangs if each.namespace == namespace and each.uid in uids), None)
    return _gang_shown(found, account) if found else None


def _gang_shown(gang: Gang, account: Account) -> GangShown:
    booked = gang.declared or max((each.charges for each in gang.promises), key=_gpus, default=())
    listed = (charge for pod in account.pods if pod.draws_on == gang.key for charge in pod.charges)
    return GangShown(f"{gang.kind}/{gang.name}", _as_text(booked), as_number(_gpus((*gang.held, *listed))))


def _gpus(drawn: tuple[Charge, ...]) -> Decimal:
    return sum((each.gpus for each in drawn), Decimal(0))


def _as_text(drawn: tuple[Charge, ...]) -> str:
    return ", ".join(f"{written(each.gpus)} GPUs{f' as {each.tier}' if each.tier else ''}" for each in drawn) or "0"
