"""Finds what would give an existing object another tier, by the present room and by its own pods."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from msgspec import structs

from webhook.cli.cluster.one_object import AskedCluster, kubectl_name, pods_of_workload
from webhook.cli.explain.other_tiers import none_open
from webhook.cli.manifests.documents import Document
from webhook.kube.client import path
from webhook.kube.errors import Forbidden, NotFound
from webhook.objects.group_kind import POD, GroupKind
from webhook.objects.pods import Named, Pod
from webhook.objects.refusal import Refused
from webhook.objects.view import Tree, at, listed, mapped, view
from webhook.policy.assignment.request import Assignment
from webhook.policy.decide import Decision
from webhook.policy.quota.charges import never_fits
from webhook.policy.quota.queue_status import ends_surge
from webhook.policy.values.facts import Facts
from webhook.report.explained import JOB, Explained, Replaces, TierOf, changes, job_outlasts_deletions
from webhook.report.waiting import running_pods


async def outlasts_deletions(asked: AskedCluster, document: Document, pods: list[Tree] | None) -> bool:
    """Tell whether a Job, or the Job that made a pod, goes on if its pods are deleted. False if it can't be read."""
    job, namespace, owner = document.tree, document.namespace, view(document.tree, Named).metadata.controller
    if owner is not None and GroupKind(owner.group, owner.kind) == JOB:
        try:
            job = await asked.reader.client.get(path("batch/v1", "jobs", namespace, owner.name))
        except (Forbidden, NotFound):
            return False
        pods = await pods_of_workload(asked, namespace, owner.uid)
    return pods is not None and job_outlasts_deletions(job, [*running_pods(pods)])


async def replaced_by(
    asked: AskedCluster, document: Document, pods: list[Tree] | None, facts: Facts, tier: str
) -> Replaces:
    """Return the ways in which an object's pods can be replaced by pods of a tier.

    `pods` are those of a workload; None for a pod, of which the outermost owner is read, if the user may.
    """
    there, owner = [document.tree] if pods is None else pods, document.tree
    if pods is None and facts.owners:
        owner, last = {}, facts.owners[-1]
        with suppress(Refused):
            owner = await asked.cluster.lookups.stored_workload(document.namespace, last.name, last.row)
    spec = mapped(at(owner, "spec"))
    row, tiers = asked.policy.kinds.by_kind.get(document.group_kind), asked.policy.tiers
    strategy = mapped(spec.get("updateStrategy"))
    stay = strategy.get("type") == "OnDelete" or at(strategy, "rollingUpdate.partition")
    # The pods that no rollout replaces, except those that have the tier already; if all have it, all of them.
    stuck = [view(each, Pod) for each in there if stay or not _is_ready(each)]
    others = [each for each in stuck if tiers.of_class(each.spec.priority_class_name) != tiers.get(tier)]
    return Replaces(
        deletable=await outlasts_deletions(asked, document, pods),
        not_replaced=" ".join(each.metadata.name for each in others or stuck),
        surges=ends_surge(document.tree, row) if row else "",
        paused=spec.get("paused") is True,
    )


def tier_changes(
    document: Document,
    there: Explained,
    assignment: Assignment,
    decision: Decision,
    closed: Mapping[str, str],
    replace: str,
) -> Iterator[str]:
    """Yield what would give the object another tier. `closed` says what closes each tier to it; "" for an open tier.

    `replace` is the command that replaces its pods, "" for none. A booked gang keeps its tier even if a higher one gets
    room later.
    """
    request, higher, tenant = decision.tier_request, assignment.demoted_from, decision.tier_request.facts.tenant
    own = {assignment.tier.name if assignment.tier else "", higher}
    own |= {there.class_now.tier} if there.class_now else set()
    owners, charge = request.facts.owners, decision.charge
    outermost = owners[-1] if owners else None
    of_pods = [each.now for each in there.pods] or ([there.class_now] if there.class_now and outermost else [])
    others = tuple(tier for tier, reason in closed.items() if not reason and tier not in own)
    if higher and tenant and charge:
        room = (
            f"{'GPU-hours and ' if any(e.counts(higher, charge.flavor) for e in tenant.spent) else ''}room in {higher}"
        )
        if there.gang and assignment.tier:
            begins = "" if closed[higher] else f": its tenant has {room} now"
            until = f" when its tenant has {room}: until then all of its pods run as {assignment.tier.name}"
            yield f"create it again{begins or until}."
        elif never_fits(structs.replace(charge, tier=higher), tenant):
            yield f"{higher} never takes it: {closed[higher]}."
        else:
            yield f"a pod that is created while its tenant has {room} gets {higher}."
        if not others:
            return
    of_gang = [assignment.tier.name] if there.gang and assignment.tier else []
    tiers = [each.tier or "no tier" for each in of_pods] or of_gang
    own_name = "" if document.group_kind == POD else kubectl_name(document.group_kind, document.name)
    found = changes(
        assignment,
        TierOf(
            bearer=kubectl_name(assignment.bearer.kind, assignment.bearer.name) if assignment.bearer else "",
            owner=kubectl_name(outermost.kind, outermost.name) if outermost else own_name,
            namespace=document.namespace,
            replace=replace,
            group=request.facts.group.name if request.facts.group else "",
            next_pod="refused" if there.message else "queued" if there.waits_for else "",
        ),
        others=others,
        default_of=_default_of(assignment, request.policy.default_tier),
        keeps=", ".join(dict.fromkeys(tiers)),
    )
    yield from [*found] or [none_open(closed, own)]


def _is_ready(pod: Tree) -> bool:
    return any(
        (at(each, "type"), at(each, "status")) == ("Ready", "True") for each in listed(at(pod, "status.conditions"))
    )


def _default_of(assignment: Assignment, default_tier: str) -> str:
    types: Mapping[str, str] = {
        "rule": f"{assignment.asked}",
        "workload-type": f"workloadTypes.{assignment.evidence.type.value}" if assignment.evidence else "workloadTypes",
        "namespace-default": "defaultTier of the TenantQuota, or the namespace's label gpu-tiers.dev/default-tier",
        "policy-default": f"defaultTier of the policy, {default_tier}",
    }
    found = types.get(assignment.step, "")
    return f"{found} of the policy" if assignment.step == "workload-type" else found
