"""Makes an explanation: the webhook's own code judges the object as if it were created now.

A pod that replaces another one is judged without the usage of that one.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from msgspec.structs import replace

from webhook.admission.facts import facts_of, gang_of_pod, usage_met
from webhook.admission.reviewer import Verdict
from webhook.cli.cluster.one_object import (
    AskedCluster,
    asks_for_none,
    eviction_of,
    has_all_pods,
    kubectl_name,
    last_refusal,
    pods_of_workload,
)
from webhook.cli.cluster.target import OF_A_VERDICT
from webhook.cli.cluster.workloads import as_new
from webhook.cli.explain.other_tiers import tiers_of_type, tiers_to_name
from webhook.cli.explain.replacement import Existing, evicted_first, ledger_without, ledger_without_gang
from webhook.cli.explain.tier_changes import changes_now
from webhook.cli.manifests.documents import Document
from webhook.cli.manifests.finding import Finding, verdict_of
from webhook.cli.manifests.judge import judge_of
from webhook.cluster.scheduling_view import node_reservations
from webhook.ledger.account import Account, Entry
from webhook.ledger.protocol import Ledger
from webhook.objects.group_kind import POD
from webhook.objects.pods import Named, Pod
from webhook.objects.quantities import written
from webhook.objects.refusal import Phrase, Refused
from webhook.objects.view import Tree, at, view
from webhook.policy.assignment.assigned_by import ASSIGNED_BY
from webhook.policy.assignment.limits import charge_of_all
from webhook.policy.assignment.request import Assignment
from webhook.policy.checkpoint.hook_plan import HookPlan
from webhook.policy.checkpoint.listen import has_report_volume
from webhook.policy.checkpoint.work_lost import max_at_risk
from webhook.policy.decide import Decision, decide_pod, eviction_warnings
from webhook.policy.placement import NO_PLAN
from webhook.policy.quota.charges import Charge, never_fits, shortfall
from webhook.policy.quota.queue_status import NoRoom, hold_order_phrase, would_be_queued
from webhook.policy.values.facts import Facts
from webhook.policy.values.gpu_supply import resources_of_classes
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tiers, active_class
from webhook.policy.workloads.workload import has_ended
from webhook.report.explained import (
    ClassShown,
    Explained,
    GangShown,
    HookShown,
    PodsNow,
    TenantOfIt,
)
from webhook.report.object_verdict import VerdictName
from webhook.report.posture import NodeReservation
from webhook.report.shown import as_number
from webhook.report.tenants import tenant_shown
from webhook.report.waiting import running_pods
from webhook.sentences.sentence import has_shown_id, sentence


@dataclass(frozen=True, slots=True)
class NewPod:
    """A pod as it would be created: the pod in question, or a pod of one of a workload's templates."""

    finding: Finding
    pod: Pod
    facts: Facts | None
    decision: Decision | None

    @property
    def weight(self) -> Decimal:
        """Return the charged GPUs of all pods of its template."""
        charge = self.decision.charge if self.decision else None
        return charge.gpus * self.finding.count if charge else Decimal(0)


async def explained(asked: AskedCluster, tree: Tree) -> Explained:
    """Return the explanation of a pod or of a workload of the cluster. Raises ApiError."""
    document = Document("the cluster", tree)
    is_pod = document.group_kind == POD
    new = Document("the cluster", as_new(tree)) if is_pod else document
    finding = await asked.judge.finding(new)
    if not (is_pod or finding.parts):
        finding = replace(finding, pods=await asked.judge.idle_pods(document))
    parts = [await _part(asked, each) for each in ((finding,) if is_pod else finding.pods)]
    pods = None if is_pod else await pods_of_workload(asked, document.namespace, document.uid)
    makes_pods = not (is_pod or asks_for_none(document, asked.policy.kinds))
    refused = await last_refusal(asked, document.namespace, document.uid, pods or ()) if makes_pods else None
    counted = Counter(class_now(each, asked.policy.tiers) for each in running_pods(pods or ()))
    there = Explained(
        kind=document.kind,
        group=document.group,
        namespace=document.namespace,
        name=document.name,
        judged=False,
        class_now=class_now(tree, asked.policy.tiers) if is_pod else None,
        owned=view(tree, Named).metadata.controller is not None,
        assigned_by=(document.metadata.get("annotations") or {}).get(ASSIGNED_BY, "") if is_pod else "",
        pods=tuple(PodsNow(count, now) for now, count in counted.most_common()),
        refused=refused,
        last_eviction=await eviction_of(asked, document.namespace, view(tree, Named).metadata),
        reserved=await _reserved(asked, [tree] if is_pod else pods or ()),
        may_name=await tiers_to_name(asked, document.namespace),
    )
    exist, due = sum(each.count for each in there.pods), sum(each.count for each in finding.pods)
    complete = has_all_pods(document, exist, due)
    if complete:
        there = replace(there, refused=None)
    if asked.reader.sure:
        replaced = tree if is_pod else evicted_first(pods or ()) if complete else None
        account, gang = _booked(asked, document, _main(parts))
        if replaced and not gang:
            in_its_place = judge_of(asked.cluster, await ledger_without(asked, [replaced]), asked.policy)
            finding = next_finding(finding, await in_its_place.finding(new))
        there = replace(there, gang=gang_shown(account, gang) if gang else None)
        there = await _judged(asked, document, there, finding, parts)
        there = await _with_changes(asked, document, there, _main(parts), pods, replaced, (account, gang))
    asked.reader.without(OF_A_NEW_ONE, *OF_A_VERDICT)
    if resources_of_classes(asked.policy.classes.values()):
        asked.reader.without("whether its tier evicts anybody for its GPUs", "nodes")
    return replace(
        there,
        unread=asked.reader.missing(
            f"explain {kubectl_name(document.group_kind, document.name)} -n {document.namespace}"
        ),
    )


async def _reserved(asked: AskedCluster, pods: Iterable[Tree]) -> tuple[NodeReservation, ...]:
    """Return the reservations of nodes for these pods, except for pods that have a node already."""
    named = (view(each, Named).metadata for each in pods if at(each, "spec.nodeName") is None)
    waiting = {each.uid: f"{each.namespace}/{each.name}" for each in named}
    if not waiting or not asked.policy.classes:
        return ()
    reading = node_reservations(asked.reader.client)
    found = await asked.reader.part("nodes", reading, (), "which nodes are reserved for it")
    own = ((each, next((waiting[uid] for uid in each.pods if uid in waiting), "")) for each in found)
    return tuple(NodeReservation.of(each, pod) for each, pod in own if pod)


OF_A_NEW_ONE = "what a new one would get, and whether it would be admitted"


async def _judged(
    asked: AskedCluster, document: Document, there: Explained, finding: Finding, parts: list[NewPod]
) -> Explained:
    main = _main(parts)
    decided = main.decision if main else None
    verdict = verdict_of(finding, adoption=asked.policy.adoption)
    assignment = verdict.assignment or (decided.assignment if decided else None)
    refusal = refusal_of(finding, booked=there.gang is not None)
    let_in = VerdictName.DEMOTED if assignment and assignment.demoted_from else VerdictName.ALLOWED
    home = await asked.cluster.known.namespace(document.namespace)
    tenant = asked.cluster.known.tenant(home)
    own = tiers_of_type(main.pod, main.facts, asked.policy) if main and main.facts else asked.policy.tiers
    may_name = there.may_name
    # The webhook warns of evictions when the workload is applied; an explanation of one of its pods warns of them too.
    of_eviction = eviction_warnings(decided) if decided else ()
    said = verdict.as_fields() | {
        "judged": True,
        "name": document.name,
        "source": "",
        "verdict": let_in if verdict.message and not refusal else verdict.verdict,
        "tiers": (assignment.tier,) if assignment and assignment.tier else (),
        "assignment": assignment,
        "message": refusal,
        "shown_warnings": tuple(dict.fromkeys((*filter(has_shown_id, finding.shown_warnings), *of_eviction))),
    }
    pod = view(document.tree, Pod) if there.class_now else None
    return replace(
        there,
        **said,
        mode=asked.policy.mode_in(home.labels).name,
        left_alone="" if finding.tiered or not finding.allowed else finding.asks_nothing,
        templates=tuple(dict.fromkeys(hook_shown(each, pod) for each in parts if each.decision)),
        autoscaler=tuple(dict.fromkeys(filter(None, (_autoscaler_shown(each.decision, pod) for each in parts)))),
        class_of_new=class_of_new(main, assignment, asked.policy),
        tenant=_tenant(asked, tenant),
        may_name=None if may_name is None else tuple(each.name for each in own if each.name in may_name),
    )


async def _with_changes(
    asked: AskedCluster,
    document: Document,
    there: Explained,
    main: NewPod | None,
    pods: list[Tree] | None,
    replaced: Tree | None,
    booked: tuple[Account, tuple[Entry, ...]],
) -> Explained:
    """Return the explanation with what the object's next pod waits for, and what would give it another tier.

    `pods` are those of a workload, None for a pod, and `replaced` is the pod that the next one replaces.
    """
    decided, given, (account, gang) = main.decision if main else None, there.assignment, booked
    if main is None or main.facts is None or decided is None or given is None:
        return there

    # 1. Usage for the next pod is without the pod that it replaces. A controller's pod takes the slot of the old one.
    tenant, tier = main.facts.tenant, given.tier.name if given.tier else ""
    queued = [each for each in ([document.tree] if pods is None else pods) if view(each, Pod).waits_for_quota]
    owners = main.facts.owners
    own = {document.uid, *(view(each, Named).metadata.uid for each in queued), *(each.uid for each in owners)}
    running = [document.tree] if pods is None else [each for each in pods if each not in queued]
    leaving = evicted_first(running)
    ledger: Ledger = asked.ledger
    if gang and tenant:
        ledger = ledger_without_gang(tenant, account, gang[0].gang)
    elif leaving:
        ledger = await ledger_without(asked, [leaving])
    is_made_again = replaced and leaving and not queued and (pods is not None or there.owned)
    in_slot = is_made_again and class_now(leaving or {}, asked.policy.tiers).tier == tier
    # A slot can be filled at once, unless a budget is used up: then the next pod waits for new hours.
    in_slot = in_slot and not (decided.charge and tenant and any(row.spent for row in decided.charge.rows(tenant)))
    if not (there.message or gang or in_slot):
        there = replace(there, waits_for=_waits_for(asked, main.facts, decided, ledger, own))
    if has_ended(document.tree):
        return there

    # 2. What would give it another tier.
    return replace(
        there, changes=await changes_now(asked, document, there, decided, Existing(pods, account, gang, own))
    )


def _main(parts: list[NewPod]) -> NewPod | None:
    """Return the part with a decision whose pods use the most GPUs; without decisions the first part, None for none."""
    decided = (each for each in parts if each.decision)
    return max(decided, key=lambda each: each.weight, default=parts[0] if parts else None)


async def next_decision(asked: AskedCluster, document: Document) -> Decision | None:
    """Return the decision on a pod if it were created now; for a workload, on the template with the most GPUs in all.

    None if the pods can't be judged or gpu-tiers leaves them alone.
    """
    is_pod = document.group_kind == POD
    finding = await asked.judge.finding(Document("the cluster", as_new(document.tree)) if is_pod else document)
    main = _main([await _part(asked, each) for each in ((finding,) if is_pod else finding.pods)])
    return main.decision if main else None


async def _part(asked: AskedCluster, finding: Finding) -> NewPod:
    pod = view(finding.document.tree, Pod)
    facts: Facts | None = None
    try:
        facts = await facts_of(pod, finding.document.namespace, asked.cluster, asked.policy)
        return NewPod(finding, pod, facts, decide_pod(pod, facts, asked.policy))
    except Refused:  # the verdict says so
        return NewPod(finding, pod, facts, None)


def _tenant(asked: AskedCluster, found: Tenant | None) -> TenantOfIt | None:
    if found is None:
        return None
    shown = tenant_shown(asked.quotas[found.name].quota)
    may_use = tuple(each.name for each in asked.policy.tiers if found.may_use(each, asked.policy.tiers))
    hours = (*(each.sentence for each in shown.budgets), *shown.grants)
    return TenantOfIt(found.name, may_use, shown.on_exceed, shown.rows, hours)


def _waits_for(asked: AskedCluster, facts: Facts, decided: Decision, ledger: Ledger, own: Collection[str]) -> str:
    """Return what a new pod would wait for now; "" if its tenant does not queue it, or has room for it.

    It has room if the row is not full with the queue's reservations for its tier and higher ones, however many pods
    wait. `own` are the uids under which the queue reserves GPUs for the pod itself.
    """
    tenant, charge = facts.tenant, decided.charge
    if tenant is None or charge is None or not (tenant.charges(charge.gpus) and decided.gets_gate):
        return ""
    tiers, gang = asked.policy.tiers, gang_of_pod(facts)
    whole = charge_of_all(decided.tier_request, charge) if gang else charge  # a gang starts as a whole
    if row := never_fits(whole, tenant):
        return sentence(
            Phrase("would-never-start", row=row.subject, tenant=tenant.name, hard=row.hard, gpus=whole.gpus)
        )
    usage, _ = usage_met(ledger, tenant, tiers.rank(charge.tier), own=own)
    short = shortfall((whole,), tenant, usage)
    if short is None:
        return ""
    usage, reserved = usage_met(asked.ledger, tenant, tiers.rank(charge.tier), own=own)  # as in the table of rows
    no_room = NoRoom.of(replace(short, usage=usage, reserved=reserved))
    queue = tenant_shown(asked.quotas[tenant.name].quota).queue
    line = queue.workloads - any(each.uid in own for each in queue.entries)
    together = f"; all of its pods start together and ask for {written(whole.gpus)}" if gang else ""
    order = f". {sentence(hold_order_phrase(tenant))}" if line else ""
    return f"{sentence(would_be_queued(tenant.name, no_room, line))}{together}{order}"


def _booked(asked: AskedCluster, document: Document, main: NewPod | None) -> tuple[Account, tuple[Entry, ...]]:
    """Return the account of the object's tenant, and the entries of its gang in it; none if no gang is booked whole."""
    facts = main.facts if main else None
    if facts is None or facts.tenant is None:
        return Account(), ()
    uids = {document.uid, *(owner.uid for owner in facts.owners)}
    if facts.together:
        uids.add(facts.together.uid)
    account = asked.quotas[facts.tenant.name].account
    gangs = account.gangs.items()
    return account, next((each for (home, uid), each in gangs if home == document.namespace and uid in uids), ())


def next_finding(now: Finding, in_its_place: Finding) -> Finding:
    """Return the finding about a pod that replaces an existing one: `in_its_place`, without the usage of that one.

    If even that is over quota, return the finding of `now`, because its refusal has the usage of the table of rows.
    """
    first = next(_refused(in_its_place), None)
    return now if first and first.over_quota else in_its_place


def refusal_of(finding: Finding, *, booked: bool) -> str:
    """Return the refusal of the next pod now, "" for none. A gang that is booked needs no room for its pods."""
    texts = (sentence(each.refusal) for each in _refused(finding) if each.refusal and not (booked and each.over_quota))
    return next(texts, "")


def _refused(finding: Finding) -> Iterator[Verdict]:
    """Yield the verdicts that refuse the next pods.

    A workload's own over-quota refusal does not count, because a stored workload needs no room for all pods at once.
    """
    at_once = finding.parts and finding.verdict.over_quota
    verdicts = (each.verdict for each in (finding.parts if at_once else (finding, *finding.parts)))
    return (each for each in verdicts if each.refusal)


def hook_shown(part: NewPod, there: Pod | None) -> HookShown:
    """Return the hook that a new pod would get, and whether the existing pod `there` has it."""
    decision = part.decision
    hook = decision.hook if decision else None
    if decision is None or hook is None or hook.plan is None:
        return HookShown(why_not=sentence(hook.why_not) if hook and hook.why_not else "", template=part.finding.path)
    plan, containers = hook.plan, part.pod.spec.containers
    tier, bounds = decision.assignment.tier, decision.tier_request.policy.saves.max_at_risk
    bound = max_at_risk(hook.asked.max_at_risk) or bounds.get(tier.name if tier else "", 0)
    return HookShown(
        kind=plan.kind,
        seconds=hook.asked.hook.seconds,
        grace=plan.grace,
        containers=tuple(containers[index].name for index in plan.containers),
        template=part.finding.path,
        uncut=hook.asked.uncut if hook.asked.cut else 0,
        there=_has(there, plan) if there else None,
        max_at_risk=bound if there and has_report_volume(there.spec) else 0,
    )


def _autoscaler_shown(decision: Decision | None, there: Pod | None) -> str:
    """Return what a new pod would tell autoscalers, "" for nothing, and whether the existing pod `there` lacks it."""
    plan = decision.autoscaler if decision else NO_PLAN
    return f"{plan.said}; the pod lacks these annotations" if there and plan.annotations else plan.said


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
    live = facts.classes.get(active_class(tier, adoption=policy.adoption)) if tier and facts else None
    return ClassShown(live.name, live.value, live.preemption_policy, tier.name) if tier and live else None


def gang_shown(account: Account, gang: tuple[Entry, ...]) -> GangShown:
    """Return the GPUs that a gang is booked with as a whole, and those that its pods use."""
    seen = [each.wants for each in gang if each.state == "Used"]
    booked = max(seen or (each.wants for each in gang), key=_gpus)
    as_text = (f"{written(each.gpus)} GPUs{f' as {each.tier}' if each.tier else ''}" for each in booked)
    used = [each for each in account.entries if each.state == "Used" and not each.is_gang and each.gang == gang[0].gang]
    in_use = sum((_gpus(each.wants) for each in used), Decimal(0))
    return GangShown(f"{gang[0].kind}/{gang[0].name}", ", ".join(as_text) or "0", as_number(in_use))


def _gpus(drawn: tuple[Charge, ...]) -> Decimal:
    return sum((each.gpus for each in drawn), Decimal(0))
