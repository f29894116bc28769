"""The pod that comes next: what it would have, and the room that one finds which comes in the place of another."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from msgspec.structs import replace

from webhook.admission.facts import charged_facts
from webhook.cli.cluster.one_object import AskedCluster
from webhook.cli.manifests.finding import Finding
from webhook.cli.manifests.judge import Judge, judge_of
from webhook.cluster.gpu_nodes import gpu_nodes
from webhook.ledger.account import Account, Entry
from webhook.ledger.memory import MemoryLedger
from webhook.objects.pods import Pod
from webhook.objects.quantities import written
from webhook.objects.refusal import Refused
from webhook.objects.view import Tree, view
from webhook.policy.assignment.request import Assignment
from webhook.policy.checkpoint.hook_plan import HookPlan
from webhook.policy.decide import Decision
from webhook.policy.quota.charges import Charge, charge_of
from webhook.policy.values.facts import Facts
from webhook.policy.values.tenants import is_maybe
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
        there=_has(there, plan) if there else None,
    )


def _has(pod: Pod, plan: HookPlan) -> bool:
    found = (pod.spec.containers[index].lifecycle for index in plan.containers)
    long_enough = (pod.spec.termination_grace_period_seconds or 0) >= plan.grace
    return long_enough and all(each is not None and each.pre_stop == plan.handler for each in found)


def class_now(pod: Tree, tiers: Tiers) -> ClassShown:
    spec = view(pod, Pod).spec
    tier = tiers.of_class(spec.priority_class_name)
    policy = spec.preemption_policy or "PreemptLowerPriority"
    return ClassShown(spec.priority_class_name, spec.priority or 0, policy, tier.name if tier else "")


def class_of_new(part: NewPod | None, assignment: Assignment | None, policy: TierPolicy) -> ClassShown | None:
    tier, facts = assignment.tier if assignment else None, part.facts if part else None
    live = facts.classes.get(class_in_force(tier, adoption=policy.adoption)) if tier and facts else None
    return ClassShown(live.name, live.value, live.preemption_policy, tier.name) if tier and live else None


def pods_now(pods: Iterable[Tree], tiers: Tiers) -> Iterator[PodsNow]:
    counted = Counter(class_now(each, tiers) for each in running_pods(pods))
    yield from (PodsNow(count, now) for now, count in counted.most_common())


def booked_gang(account: Account, namespace: str, uids: Collection[str]) -> GangShown | None:
    """The gang of one of these uids that holds a charge as a whole; None where none does."""
    gang = next((each for (home, uid), each in account.gangs.items() if home == namespace and uid in uids), None)
    if gang is None:
        return None
    seen = [each.wants for each in gang if each.state == "Used"]
    booked = max(seen or (each.wants for each in gang), key=_gpus)
    as_text = (f"{written(each.gpus)} GPUs{f' as {each.tier}' if each.tier else ''}" for each in booked)
    used = [each for each in account.entries if each.state == "Used" and not each.is_gang and each.gang == gang[0].gang]
    held = sum((_gpus(each.wants) for each in used), Decimal(0))
    return GangShown(f"{gang[0].kind}/{gang[0].name}", ", ".join(as_text) or "0", as_number(held))


def _gpus(drawn: tuple[Charge, ...]) -> Decimal:
    return sum((each.gpus for each in drawn), Decimal(0))


def running_pods(pods: Iterable[Tree]) -> Iterator[Tree]:
    """Those that have not ended: they hold their GPUs."""
    return (each for each in pods if (each.get("status") or {}).get("phase") not in ("Succeeded", "Failed"))


def evicted_first(pods: Iterable[Tree]) -> Tree | None:
    """The one whose place is free first, as it ranks lowest; None where none runs."""
    return min(running_pods(pods), key=lambda each: view(each, Pod).spec.priority or 0, default=None)


async def judge_without(asked: AskedCluster, pod: Tree) -> Judge:
    """A judge for whom all is as it is now, but that this pod, which counts by itself, holds nothing."""
    found = view(pod, Pod)
    try:
        home, devices = await charged_facts(found, found.metadata.namespace, asked.cluster)
    except Refused:  # its own verdict says so
        return asked.judge
    tenant, charge = asked.cluster.known.tenant(home), charge_of(found, devices, asked.policy)
    version = asked.quotas.get(tenant.name) if tenant else None
    if tenant is None or charge is None or version is None or not version.sealed or not any(running_pods([pod])):
        return asked.judge
    ledger = MemoryLedger()
    held = account_without(version.account, found.metadata.uid, await _on_its_node(asked, found, charge))
    ledger.store.set(tenant, held)
    return judge_of(asked.cluster, ledger, asked.policy)


async def _on_its_node(asked: AskedCluster, pod: Pod, charge: Charge) -> Charge:
    """On the flavor of its node: one that may land on several counts on those until it has a node."""
    if not (asked.policy.flavors and pod.spec.node_name):
        return charge
    lost = "on which flavor its pods run"
    nodes = await asked.reader.part("nodes", gpu_nodes(asked.reader.client, asked.policy), (), lost)
    node = next((each for each in nodes if each.name == pod.spec.node_name), None)
    named = None if is_maybe(charge.flavor) else charge.flavor
    return replace(charge, flavor=node.flavor or named) if node else charge


def account_without(account: Account, uid: str, charge: Charge) -> Account:
    """It is listed by itself, or among what its tier's pods hold in sum. What it shares stays with the others."""
    others = tuple(each for each in account.entries if each.uid != uid)
    if len(others) < len(account.entries):
        return replace(account, entries=others)
    sums = [each for each in account.entries if not each.uid and not each.of]
    of_its_tier = [each for entry in sums for each in entry.wants if each.tier == charge.tier and each.own]
    its = max(of_its_tier, key=lambda each: (each.flavor == charge.flavor, each.gpus), default=None)

    def left(entry: Entry) -> Entry:
        wants = (
            replace(each, gpus=max(each.gpus - charge.own, Decimal(0))) if each is its else each for each in entry.wants
        )
        return replace(entry, wants=tuple(wants))

    return replace(account, entries=tuple(left(each) for each in account.entries))
