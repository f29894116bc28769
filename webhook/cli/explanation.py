"""Puts an explanation together: the webhook's own code asked about the object as if it were created now."""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from webhook.admission.facts import facts_of
from webhook.admission.webhook import MODE_LABEL, mode_in
from webhook.cli.anew import anew
from webhook.cli.asked_cluster import AskedCluster
from webhook.cli.booked_gang import booked_gang
from webhook.cli.documents import Document
from webhook.cli.finding import Finding
from webhook.cli.other_tiers import tier_changes
from webhook.cli.pods_shown import NewPod, class_now, class_of_new, hook_shown, pods_now, weight_of
from webhook.cli.show import ELSEWHERE, UNCOUNTED
from webhook.cli.workload_now import last_refusal, pods_of_workload
from webhook.objects.group_kind import POD
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refused
from webhook.objects.view import view
from webhook.policy.assignment.request import ASSIGNED_BY, Assignment
from webhook.policy.decide import decide_pod
from webhook.readmodel.explained import Explained, GangShown, TenantOfIt
from webhook.readmodel.tenants import tenant_shown

Tree = dict[str, Any]


async def explained(asked: AskedCluster, tree: Tree) -> Explained:
    """The explanation of a pod or of a workload of the cluster. Raises ApiError."""
    document = Document("the cluster", tree)
    is_pod = document.group_kind == POD
    finding = await asked.desk.finding(Document("the cluster", anew(tree)) if is_pod else document)
    parts = [await _part(asked, each) for each in ((finding,) if is_pod else finding.pods)]
    decided = [each for each in parts if each.decision]
    main = max(decided, key=weight_of, default=parts[0] if parts else None)
    assignment = finding.verdict.assignment or (main.decision.assignment if main and main.decision else None)
    gang = _gang(asked, document, main)
    pods = [] if is_pod else await pods_of_workload(asked, document.namespace, document.uid)
    found = Explained(
        object=f"{document.kind}/{document.name}",
        namespace=document.namespace,
        mode=await _mode(asked, document.namespace),
        left_alone="" if finding.tiered or not finding.allowed else _left_alone(finding),
        hooks=tuple(dict.fromkeys(hook_shown(each, view(tree, Pod) if is_pod else None) for each in decided)),
        class_now=class_now(tree, asked.policy.tiers) if is_pod else None,
        class_of_new=class_of_new(main, asked.policy.tiers),
        assigned_by=(document.metadata.get("annotations") or {}).get(ASSIGNED_BY, "") if is_pod else "",
        pods=tuple(pods_now(pods, asked.policy.tiers)),
        tenant=await _tenant(asked, document.namespace),
        gang=gang,
        refusal=refusal_of(finding, booked=gang is not None),
        refused=None if is_pod else await last_refusal(asked, document.namespace, document.uid, pods),
        warnings=tuple(each for each in finding.warnings if each.startswith("[")),
        changes=tuple(_changes(document, assignment, main)),
    )
    told = _with_evidence(_with_tier(found, assignment), finding)
    return replace(told, unread=tuple(dict.fromkeys(asked.unread)))


def _with_tier(found: Explained, assignment: Assignment | None) -> Explained:
    if assignment is None:
        return found
    tier = assignment.tier.name if assignment.tier else ""
    return replace(found, tier=tier, decided_by=str(assignment), trace=assignment.trace)


def _with_evidence(found: Explained, finding: Finding) -> Explained:
    evidence = finding.evidence
    if evidence is None:
        return found
    grade = evidence.grade.name.lower()
    return replace(found, workload_type=evidence.type.value, evidence=evidence.text, grade=grade)


async def _part(asked: AskedCluster, finding: Finding) -> NewPod:
    pod = view(finding.before, Pod)
    try:
        facts = await facts_of(pod, finding.document.namespace, asked.cluster, asked.policy)
        return NewPod(finding, pod, facts, decide_pod(pod, facts, asked.policy))
    except Refused:  # the verdict says so
        return NewPod(finding, pod, None, None)


async def _mode(asked: AskedCluster, namespace: str) -> str:
    home = await asked.cluster.namespace(namespace)
    return mode_in(asked.policy, home.labels.get(MODE_LABEL, "")).name


def _left_alone(finding: Finding) -> str:
    if finding.elsewhere:
        return ELSEWHERE.format(kind=finding.document.kind, places=", ".join(finding.elsewhere))
    return (
        UNCOUNTED.format(names=", ".join(finding.uncounted)) if finding.uncounted else "it asks for no GPU and no tier"
    )


async def _tenant(asked: AskedCluster, namespace: str) -> TenantOfIt | None:
    found = asked.cluster.tenant(await asked.cluster.namespace(namespace))
    if found is None:
        return None
    shown = tenant_shown(asked.quotas[found.name].quota)
    may_use = tuple(each.name for each in asked.policy.tiers if found.may_use(each, asked.policy.tiers))
    return TenantOfIt(found.name, may_use, shown.on_exceed, shown.rows)


def _gang(asked: AskedCluster, document: Document, main: NewPod | None) -> GangShown | None:
    """The gang that it is, or that it is of."""
    facts = main.facts if main else None
    if facts is None or facts.tenant is None:
        return None
    uids = {document.uid, *(owner.uid for owner in facts.owners)}
    if facts.together:
        uids.add(facts.together.uid)
    return booked_gang(asked.quotas[facts.tenant.name].account, document.namespace, uids)


def refusal_of(finding: Finding, *, booked: bool) -> str:
    """What a create would be told now; a gang that is booked needs no room for its pods."""
    verdicts = [each.verdict for each in (finding, *finding.parts)]
    told = (each.refusal for each in verdicts if each.refusal and not (booked and each.over_quota))
    return next(told, "")


def _changes(document: Document, assignment: Assignment | None, main: NewPod | None) -> Iterator[str]:
    if assignment and main and main.decision:
        yield from tier_changes(document, assignment, main.decision)
