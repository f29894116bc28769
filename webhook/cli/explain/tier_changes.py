"""Tells what would give an existing object another tier, by the room that there is now and by its own pods."""

from collections.abc import Iterator, Mapping
from decimal import Decimal

from msgspec.structs import replace

from webhook.cli.cluster.one_object import AskedCluster, kubectl_name, pods_of_workload
from webhook.cli.explain.closed_tiers import closed_tiers
from webhook.cli.manifests.documents import Document
from webhook.kube.client import path
from webhook.kube.errors import Forbidden, NotFound
from webhook.ledger.accounts import Accounts
from webhook.objects.group_kind import POD, GroupKind
from webhook.objects.pods import Named, Pod
from webhook.objects.view import Tree, view
from webhook.policy.assignment.limits import open_tiers
from webhook.policy.assignment.request import Assignment
from webhook.policy.decide import Decision
from webhook.policy.quota.charges import alternatives
from webhook.policy.values.tenants import Usage
from webhook.report.explained import JOB, Explained, TierOf, changes, job_outlasts_deletions, replacement
from webhook.report.waiting import running_pods


async def outlasts_deletions(asked: AskedCluster, document: Document, pods: list[Tree] | None) -> bool:
    """Tell whether a Job, or that of a pod, goes on if its pods are deleted."""
    job, namespace, owner = document.tree, document.namespace, view(document.tree, Named).metadata.controller
    if owner is not None and GroupKind(owner.group, owner.kind) == JOB:
        try:
            job = await asked.reader.client.get(path("batch/v1", "jobs", namespace, owner.name))
        except (Forbidden, NotFound):
            return False
        pods = await pods_of_workload(asked, namespace, owner.uid)
    return pods is not None and job_outlasts_deletions(job, [*running_pods(pods)])


def tier_changes(
    document: Document,
    there: Explained,
    weight: Decimal,
    assignment: Assignment,
    decision: Decision,
    ledger: Accounts,
    *,
    deletable: bool = False,
) -> Iterator[str]:
    """Yield what would give it another tier. A gang that is booked keeps its tier, whatever room there is later."""
    request, higher, tenant = decision.tier_request, assignment.demoted_from, decision.tier_request.facts.tenant
    own, gpus = {assignment.tier.name if assignment.tier else "", higher}, Decimal(0)
    own |= {there.class_now.tier} if there.class_now else set()
    offered = open_tiers(request, decision.charge)
    outermost = request.facts.owners[-1] if request.facts.owners else None
    of_pods = [each.now for each in there.pods] or ([there.class_now] if there.class_now and outermost else [])
    usage: Usage = {}
    if (charge := decision.charge) and tenant:
        gpus = weight if there.gang else charge.gpus
        now = there.class_now.tier if there.class_now else of_pods[0].tier if of_pods else ""
        holds = (there.gang or now) and not (there.class_now and view(document.tree, Pod).waits_for_quota)
        its = replace(charge, gpus=gpus if holds else Decimal(0), tier=now or charge.tier)
        usage = {row: used - (its.gpus if row in its.rows(tenant) else 0) for row, used in ledger.usage(tenant).items()}
        roomy = dict(alternatives(replace(charge, gpus=gpus), tenant, usage, offered))
        if tenant.on_exceed != "Warn":  # a row without room refuses nothing there, and a queue lets it wait
            offered = [each for each in offered if each in roomy or tenant.holds_on(each.name, charge.flavor)]
    others = tuple(each.name for each in offered if each.name not in own)
    if there.may_name is not None:
        others = tuple(each for each in others if each in there.may_name)
    if higher:
        flavor = charge.flavor if charge else None
        spent = any(each.counts(higher, flavor) for each in tenant.spent) if tenant else False
        room = f"{'GPU-hours and ' if spent else ''}room in {higher}"
        if there.gang and assignment.tier:
            tier = assignment.tier.name
            yield f"create it again when its tenant has {room}: until then all of its pods run as {tier}."
        else:
            yield f"a pod that is created while its tenant has {room} gets {higher}."
        if not others:
            return
    of_gang = [assignment.tier.name] if there.gang and assignment.tier else []
    tiers = [each.tier or "no tier" for each in of_pods] or of_gang
    own_name = "" if document.group_kind == POD else kubectl_name(document.group_kind, document.name)
    kind, name = (outermost.kind, outermost.name) if outermost else (document.group_kind, document.name)
    found = changes(
        assignment,
        TierOf(
            bearer=kubectl_name(assignment.bearer.kind, assignment.bearer.name) if assignment.bearer else "",
            owner=kubectl_name(outermost.kind, outermost.name) if outermost else own_name,
            namespace=document.namespace,
            replace=replacement(kind, name, assignment, document.namespace, deletable=deletable),
        ),
        others=others,
        default_of=_default_of(assignment, request.policy.default_tier),
        keeps=", ".join(dict.fromkeys(tiers)),
    )
    yield from [*found] or [closed_tiers(decision, own, gpus, usage, there.may_name)]


def _default_of(assignment: Assignment, default_tier: str) -> str:
    types: Mapping[str, str] = {
        "rule": f"{assignment.asked}",
        "workload-type": f"workloadTypes.{assignment.evidence.type.value}" if assignment.evidence else "workloadTypes",
        "namespace-default": "defaultTier of the TenantQuota, or the namespace's label gpu-tiers.dev/default-tier",
        "policy-default": f"defaultTier of the policy, {default_tier}",
    }
    found = types.get(assignment.step, "")
    return f"{found} of the policy" if assignment.step == "workload-type" else found
