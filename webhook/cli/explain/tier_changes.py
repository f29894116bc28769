"""Finds what would give an existing object another tier, by the present room and by its own pods."""

from collections.abc import Iterator, Mapping
from contextlib import suppress

from msgspec import structs

from webhook.admission.facts import gang_of_pod
from webhook.cli.cluster.one_object import AskedCluster, kubectl_name, pods_of_workload
from webhook.cli.explain.other_tiers import Offer, Situation, none_open, offers
from webhook.cli.explain.replacement import Existing, ledger_without, ledger_without_gang, native_without
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
from webhook.report.explained import JOB, Explained, Replaces, TierOf, changes, job_outlasts_deletions, replacement
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


async def changes_now(
    asked: AskedCluster, document: Document, there: Explained, decision: Decision, existing: Existing
) -> tuple[str, ...]:
    """Return what would give an existing object another tier, by the room that its own pods leave."""
    facts, given, (pods, account, gang, own) = decision.tier_request.facts, there.assignment, existing
    if given is None:
        return ()
    tenant, outermost = facts.tenant, facts.owners[-1] if facts.owners else None
    # 1. The label is the outermost owner's, so all pods of that one leave for new ones. Pods of a CronJob stay beside
    #    those of its next run.
    if outermost is not None and outermost.uid != document.uid:
        pods = await pods_of_workload(asked, document.namespace, outermost.uid)
        pods = [document.tree] if pods is None and there.class_now else pods
    leaving = [document.tree] if outermost is None and there.class_now else [*running_pods(pods or ())]
    how = await replaced_by(asked, document, leaving, facts, given.tier.name if given.tier else "")
    native = await asked.cluster.lookups.native_quotas(document.namespace)
    together = bool(gang) or gang_of_pod(facts) is not None
    with_old = Situation(asked.ledger, native, there.may_name, own, together=together)
    if outermost is not None and outermost.row.recurs:
        leaving = []
    booked_whole = ledger_without_gang(tenant, account, gang[0].gang) if gang and tenant else None
    alone = structs.replace(
        with_old,
        ledger=await ledger_without(asked, leaving) if booked_whole is None else booked_whole,
        native=native_without(native, leaving, asked.policy),
        own={*own, *(view(each, Named).metadata.uid for each in leaving)},
        count=max(min(len(leaving), how.most), 1),
    )

    # 2. A rollout may create pods before old ones end.
    offered = offers(decision, alone)
    kind, name = (outermost.kind, outermost.name) if outermost else (document.group_kind, document.name)
    command = "" if gang else replacement(kind, name, given, document.namespace, how)
    if command and how.surges:
        surging, now = offers(decision, with_old), {each.now.tier for each in there.pods}
        if any(offered[each].has_room and not surging[each].has_room for each in offered.keys() - now):
            command += f" (first set {how.surges}, as there is room for no pod more)"
    return tuple(tier_changes(document, there, given, decision, offered, command))


async def replaced_by(asked: AskedCluster, document: Document, pods: list[Tree], facts: Facts, tier: str) -> Replaces:
    """Return the ways in which an object's pods can be replaced by pods of a tier."""
    owner, last = document.tree, facts.owners[-1] if facts.owners else None
    if last is not None and last.uid != document.uid:
        owner = {}
        with suppress(Refused):
            owner = await asked.cluster.lookups.stored_workload(document.namespace, last.name, last.row)
    spec, kind = mapped(at(owner, "spec")), last.kind if last else document.group_kind
    row, tiers = asked.policy.kinds.by_kind.get(kind), asked.policy.tiers
    strategy, replicas = mapped(spec.get("updateStrategy")), spec.get("replicas")
    stays = strategy.get("type") == "OnDelete" or at(strategy, "rollingUpdate.partition")
    # Pods that have the tier already need not be replaced; if all have it, another tier is for all of them.
    named = [(each, view(each, Pod)) for each in pods]
    others = [(e, pod) for e, pod in named if tiers.of_class(pod.spec.priority_class_name) != tiers.get(tier)] or named
    waits_for = [] if kind.kind != "StatefulSet" else [pod for each, pod in named if not _is_ready(each)]
    rolls = not stays and any(pod not in waits_for for _, pod in others)
    stuck = waits_for if rolls else [pod for _, pod in others] if stays or waits_for else []
    return Replaces(
        deletable=await outlasts_deletions(asked, document, pods),
        not_replaced=" ".join(each.metadata.name for each in stuck),
        rolls=rolls,
        surges=ends_surge(owner, row) if row else "",
        paused=spec.get("paused") is True,
        most=replicas if isinstance(replicas, int) else len(pods),
    )


def tier_changes(
    document: Document,
    there: Explained,
    assignment: Assignment,
    decision: Decision,
    offered: Mapping[str, Offer],
    replace: str,
) -> Iterator[str]:
    """Yield what would give the object another tier. `offered` says what each tier would do with it.

    `replace` is the command that replaces its pods, "" for none. A booked gang keeps its tier even if a higher one gets
    room later.
    """
    request, higher, tenant = decision.tier_request, assignment.demoted_from, decision.tier_request.facts.tenant
    own = {assignment.tier.name if assignment.tier else "", higher}
    own |= {there.class_now.tier} if there.class_now else set()
    owners, charge = request.facts.owners, decision.charge
    outermost = owners[-1] if owners else None
    of_pods = [each.now for each in there.pods] or ([there.class_now] if there.class_now and outermost else [])
    others = tuple(tier for tier, each in offered.items() if not each.closed and tier not in own)
    if higher and tenant and charge:
        room = (
            f"{'GPU-hours and ' if any(e.counts(higher, charge.flavor) for e in tenant.spent) else ''}room in {higher}"
        )
        if there.gang and assignment.tier:
            begins = "" if offered[higher].closed else f": its tenant has {room} now"
            until = f" when its tenant has {room}: until then all of its pods run as {assignment.tier.name}"
            yield f"create it again{begins or until}."
        elif never_fits(structs.replace(charge, tier=higher), tenant):
            yield f"{higher} never takes it: {offered[higher].closed}."
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
            lacks=offered[assignment.tier.name].lacks if assignment.tier else "",
            queues=_full({tier: offered[tier].lacks for tier in others}),
        ),
        others=others,
        default_of=_default_of(assignment, request.policy.default_tier),
        keeps=", ".join(dict.fromkeys(tiers)),
    )
    yield from [*found] or [none_open(offered, own)]


def _full(lacks: Mapping[str, str]) -> str:
    """Return why these tiers have no room: each reason once, after its tiers unless it is that of all or names one."""
    said = (
        (reason, [tier for tier in lacks if lacks[tier] == reason])
        for reason in dict.fromkeys(lacks.values())
        if reason
    )
    return "; ".join(
        reason if len(tiers) == len(lacks) or tiers[0] in reason else f"in {' and '.join(tiers)}, {reason}"
        for reason, tiers in said
    )


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
