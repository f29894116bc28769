"""Reviews of pods at CREATE: a patch, and then validation and booking."""

from contextlib import suppress

import msgspec
from msgspec import structs

from webhook.admission import patch
from webhook.admission.facts import charged_facts, facts_of, gang_uid, usage_met, what_may_demote
from webhook.admission.review import Request
from webhook.admission.reviewer import MOST_REMEMBERED_BYTES, Reviewer, Verdict, with_free_name
from webhook.cluster.cluster import Cluster
from webhook.ledger.protocol import Booked, Booking, GangBooking
from webhook.objects.pods import QUOTA_GATE, Pod, require_few, require_short_uid
from webhook.objects.refusal import AdmissionWarning, Phrase, Reason, Refusal, Refused, Unreadable
from webhook.objects.view import read, view
from webhook.policy.assignment.assigned_by import ASSIGNED_BY, assigned_by
from webhook.policy.assignment.consistency import disagreement, outranked
from webhook.policy.assignment.kueue import DEFAULT_CLASS, PRIORITY_CLASS, is_queued, without_default_classes
from webhook.policy.assignment.limits import class_within_ceiling, open_tiers
from webhook.policy.assignment.request import may_concern
from webhook.policy.decide import Decision, decide_pod, named_tier, pod_warnings, whole_charge
from webhook.policy.quota.charges import (
    Charge,
    GangPart,
    QuotaVerdict,
    Shortfall,
    gang_of,
    never_fits,
    row_usage,
    shortfall,
)
from webhook.policy.quota.demand import claimed, demand_of, gpus_of_pods, misstated, shared_by
from webhook.policy.quota.native_quotas import native_rooms
from webhook.policy.quota.refusals import POD, pod_fit
from webhook.policy.values.facts import Facts
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import Mode
from webhook.policy.workloads.pod_groups import PodsTogether
from webhook.policy.workloads.workload import gang_among

KUBERNETES_CONTROLLERS = ("system:serviceaccount:kube-system:", "system:kube-controller-manager")
"""The prefixes of the users with which Kubernetes' controllers create pods. No other user can have such a name, so only
their retries count."""


class PodReviewer(Reviewer, frozen=True):
    """Judges a pod at its CREATE."""

    async def mutate(self, request: Request, mode: Mode) -> Verdict:
        # 1. Read the pod. Nothing is looked up for a pod that can't be ours.
        pod = read_pod(request.object)

        # 2. Gather the facts, and decide tier, hook and placement. A tenant that demotes does so if there is no room.
        decision = await self._decision(pod, request, self.cluster)
        if decision is None:
            return Verdict()
        decision = await self._demoted(decision, request, mode)

        # 3. Write the decision as a patch, and the gate if the tenant has a queue.
        gated = mode is Mode.Enforce and decision.gets_gate
        gate = patch.gate(pod) if gated else ()
        verdict = verdict_on(decision, (*patch.of_pod(pod, decision), *gate))

        # 4. Check that the name is free before booking. Later, at validation, a generated name looks like a given one.
        return (
            await with_free_name(verdict, request, "pods", self.cluster) if decision.charged and not gated else verdict
        )

    async def validate(self, request: Request, mode: Mode) -> Verdict:
        """Check that a pod has the class of its tier, may have that tier, and fits the quota; then book or queue it."""
        # 1. Decide again, on the pod as it would be stored. A demotion took place before. In Audit nothing was patched,
        #    so the pod is judged as if it had been.
        pod, patched = read_pod(request.object), mode is not Mode.Audit
        decision = await self._decided_again(pod, request)
        if decision is not None and not patched:
            decision = await self._demoted(decision, request, mode)

        # 2. Our gate stays on no pod that nobody counts. A pod that isn't ours must respect the ceiling and forge no
        #    mark. If the ceiling can't be read it passes, as it does while the webhook is down, because pods without
        #    GPUs never wait for us.
        if pod.waits_for_quota and not (decision and (decision.asks_for_gpus or decision.gets_gate)):
            return Verdict(
                refusal=Refusal(Reason.INVALID, "gate-without-gpus", "spec.schedulingGates", gate=QUOTA_GATE)
            )
        if decision is None:
            if pod.spec.priority_class_name:
                with suppress(Unreadable):
                    known, home = self.cluster.known, await self.cluster.known.namespace(request.namespace)
                    class_within_ceiling(pod, Facts(home, known.classes(), tenant=known.tenant(home)), self.policy)
            forged = misstated(pod, "") if patched and pod.spec.resource_claims else None
            return Verdict(refusal=forged.because(Reason.INVALID) if forged else None)

        # 3. The pod agrees with the decision, no other scheduler ranks it higher, and the user may use its tier.
        verdict, asked = verdict_on(decision, warnings=pod_warnings(decision)), decision.tier_request
        problem = (_disagreement(pod, decision) if patched else None) or outranked(pod, decision.live, asked.facts)
        if problem is None and self.policy.tier_access == "RBAC":
            named = (named_tier(asked, decision.assignment),)
            problem = await self.unentitled(request, named, asked.facts, (asked,))
        if problem is not None:
            return structs.replace(verdict, refusal=problem)

        # 4. A gated pod is queued, if it could ever have room or adds nothing to its gang's charge. The leader books
        #    it, and opens the gate.
        if mode is Mode.Enforce and pod.waits_for_quota and decision.gets_gate:
            charged, fit = decision.charged, self._queued(decision)
            if not (fit.refusal and charged):
                return verdict.fitted(fit)
            booking = await self._booking(decision, request, *charged)
            return verdict if await self.ledger.has_room(booking) else verdict.fitted(fit)

        # 5. Book its charge; in Audit and for a dry run only check the room. Enforce would queue what has no room only
        #    now, so no other mode reports a refusal.
        booked = await self._book(verdict, decision, request, dry_run=request.dry_run or not patched)
        if mode is Mode.Enforce or not (booked.over_quota and decision.gets_gate):
            return booked
        queued = verdict.fitted(self._queued(decision))
        return booked if queued.refusal else queued

    def _queued(self, decision: Decision) -> QuotaVerdict:
        """Return the refusal of a gated pod that can never have room, or say that it is queued; neither if it has room.

        A queued pod without a controller gets the warning that it waits.
        """
        if decision.charged is None:
            return QuotaVerdict()
        asked, (tenant, charge) = decision.tier_request, decision.charged
        usage, reserved = usage_met(self.ledger, tenant, self.policy.tiers.rank(charge.tier), charge.shared)
        # 1. A row may be too small for it, even if nothing else uses the row.
        small, fit = never_fits(charge, tenant), QuotaVerdict()
        if small is not None:
            fit = pod_fit(Shortfall(charge, small, usage), tenant, open_tiers(asked, charge))
        short = shortfall((charge,), tenant, usage)
        if fit.refusal or short is None:
            return fit

        # 2. A person who makes a pod is warned of the row; other pods are covered when their workload is applied.
        if asked.pod.metadata.controller is not None:
            return structs.replace(fit, queued=True)
        row, gpus, queued = row_usage(short.row, usage, reserved), short.charge.gpus, Phrase("pod-queued")
        warning = AdmissionWarning("pod-waits", tenant=tenant.name, row=row, gpus=gpus, queued=queued)
        return QuotaVerdict(None, (*fit.warnings, warning), queued=True)

    async def _decided_again(self, pod: Pod, request: Request) -> Decision | None:
        """Return the decision by cached owners if the annotation assigned-by agrees with it, or else by present owners.

        The mutating call has just read these owners and written the annotation. A forged one can at most claim what an
        owner said a few seconds ago. The decision is None for a pod that isn't ours.
        """
        written = pod.metadata.annotations.get(ASSIGNED_BY)
        if pod.metadata.controller is not None and written is not None:
            cached = structs.replace(self.cluster, lookups=self.cluster.lookups.with_cached_owners())
            with suppress(Refused):
                found = await self._decision(pod, request, cached)
                if found and str(assigned_by(found.assignment)) == written and not _disagreement(pod, found):
                    return found
        return await self._decision(pod, request, self.cluster)

    async def _decision(self, pod: Pod, request: Request, cluster: Cluster) -> Decision | None:
        """Return the decision at the pod's own tier, or a recent one on a like pod; None for a pod that isn't ours."""
        if not may_concern(pod, self.policy):
            return None
        facts = await facts_of(pod, request.namespace, cluster, self.policy)
        if not pod.metadata.controller_uid or len(request.object) > MOST_REMEMBERED_BYTES:  # large pods are not cached
            return decide_pod(pod, facts, self.policy)
        return self.recent.get(pod, facts, self.policy)

    async def _demoted(self, decision: Decision, request: Request, mode: Mode) -> Decision:
        """Return the decision at the tier of the pod's gang, at a lower tier if its tenant demotes it, or as it is."""
        pod, facts = decision.tier_request.pod, decision.tier_request.facts

        # 1. A pod of a gang runs at the tier of its gang.
        usage, gang_tier = await what_may_demote(facts, self.ledger, facts.devices)
        if usage is None:
            return (gang_tier and decide_pod(pod, facts, self.policy, None, gang_tier)) or decision

        # 2. Any other pod runs at its own tier if that has room, or if no lower tier has.
        charged = decision.charged
        if charged is None or shortfall((whole_charge(charged[1], facts.together),), charged[0], usage) is None:
            return decision
        lower = decide_pod(pod, facts, self.policy, usage)
        if lower is None or lower.assignment == decision.assignment or mode is Mode.Audit:
            return lower or decision

        # 3. Usage counts a replaced pod and a pod that is about to end. If usage leaves no room, ask as a booking does,
        #    which finds the slot and waits for the end. Audit delays no create.
        if await self.ledger.has_room(await self._booking(decision, request, *charged)):
            return decision

        # 4. A pod of a rollout comes while an old one is ending, or has ended while no replica leads, and still counts.
        #    A demotion would last its whole life, so it is refused, and its controller tries again.
        stale = pod.metadata.controller is not None and not self.ledger.is_current
        if stale or await self._follows_an_ending_pod(pod, facts):
            return decision

        # 5. Look for a lower tier by the usage after that.
        usage, _ = await what_may_demote(facts, self.ledger, facts.devices)
        return decide_pod(pod, facts, self.policy, usage) or decision

    async def _follows_an_ending_pod(self, pod: Pod, facts: Facts) -> bool:
        """Tell whether a pod of the same workload is ending, by the labels by which its outermost owner selects pods.

        False if no owner selects pods, or if the pods can't be read.
        """
        selects = next((each.selects for each in reversed(facts.owners) if each.selects), frozenset[str]())
        labels = {key: value for key, value in pod.metadata.labels.items() if key in selects}
        with suppress(Unreadable):
            return bool(labels) and await self.cluster.lookups.is_any_ending(facts.namespace.name, labels)
        return False

    async def _book(self, verdict: Verdict, decision: Decision, request: Request, *, dry_run: bool) -> Verdict:
        """Book the charge. Without room, refuse the pod, or with onExceed Warn only warn of it.

        Also refuse a pod whose claims ask for more than when it was judged. A `dry_run` books nothing.
        """
        charged = decision.charged
        if charged is None:
            return verdict
        booking = await self._booking(decision, request, *charged)
        answer = await self.ledger.book(booking, dry_run=dry_run)
        if isinstance(answer, Booked):
            pod = decision.tier_request.pod
            if dry_run or not pod.spec.resource_claims:
                return verdict
            # A claim may have been created again, with more, while the booking waited for room.
            cluster = structs.replace(self.cluster, lookups=self.cluster.lookups.fresh())
            _, devices = await charged_facts(pod, request.namespace, cluster)
            return structs.replace(verdict, refusal=misstated(pod, claimed(devices, self.policy)))
        asked, (tenant, charge) = decision.tier_request, charged
        native = await self.cluster.lookups.native_quotas(request.namespace)
        short, group = self.in_each_tier(answer, tenant), booking.group.name if booking.group else ""
        rooms = native_rooms(asked.pod, short.charge.gpus, native, self.policy)
        what = f"group {group}" if group and short.charge.gpus > charge.gpus else POD
        return verdict.fitted(pod_fit(short, tenant, open_tiers(asked, short.charge), rooms, what))

    async def _retried(self, booking: Booking, pod: Pod) -> Booking:
        """Return the booking with the earlier tries of its controller, if at least one of them failed.

        A ResourceQuota or another webhook may refuse a create after us, and the controller tries again under another
        name. A StatefulSet takes the same name, whose slot all tries share. A controller of Kubernetes creates at most
        as many pods at once as are missing, and has all answers before it creates more. So if as many tries are not
        stored as pods are missing, at least the oldest was refused, because this pod is among those in flight.
        """
        # 1. In a burst the oldest try is stored, and nothing more is read.
        owner, namespace, lookups = pod.metadata.controller, booking.namespace, self.cluster.lookups
        tries = self.ledger.unseen(booking.tenant, namespace, booking.controller)
        if owner is None or not tries or booking.name in tries or not self.budget.take(owner.uid):
            return booking
        if await lookups.is_name_taken("v1", "pods", namespace, tries[0]):
            return booking

        # 2. Read how many pods are missing. A cached number from before a scale-up is too small: creates in flight
        #    would look refused. A terminating pod is missing, because it is replaced.
        try:
            maker = next(iter(await lookups.owners(namespace, owner, self.policy.kinds)), None)
            if maker is None:
                return booking
            stored = await lookups.pods_in(namespace)
        except Unreadable:
            return booking
        wanted = sum(member.count for member in maker.members)
        missing = wanted - sum(each.controller_uid == owner.uid and not each.deletion_timestamp for each in stored)
        if missing < 1:  # scaled down just now, or one pod on each node
            return booking

        # 3. Each of these has its own slot. Names are those of all pods, because whoever may edit a pod may remove its
        #    labels and its owner, and then it would look as if it was never stored.
        names = {each.name for each in stored}
        not_stored = tuple(dict.fromkeys(name for name in tries if name not in names))
        return structs.replace(booking, retries=not_stored) if len(not_stored) >= missing else booking

    async def _booking(self, decision: Decision, request: Request, tenant: Tenant, charge: Charge) -> Booking:
        facts, metadata = decision.tier_request.facts, decision.tier_request.pod.metadata
        gang = gang_uid(metadata, facts)
        booking = Booking(
            metadata.uid or request.uid,
            facts.namespace.name,
            tenant,
            (charge,),
            metadata.controller_uid,
            metadata.name,
            gang=gang if gang != metadata.controller_uid else "",
            group=_group_of(decision, charge, tenant, gang),
            workload=facts.owners[-1].uid if facts.owners else "",
            rank=self.policy.tiers.rank(charge.tier),
        )
        if request.dry_run or not request.user_info.username.startswith(KUBERNETES_CONTROLLERS):
            return booking
        return await self._retried(structs.replace(booking, tries_again=True), decision.tier_request.pod)


def read_pod(raw: msgspec.Raw) -> Pod:
    """Return the pod under review, without the priority class label that Kueue's webhook adds by default.

    Raises Refused if it is too large to be judged, or if the uid of its controller is too long.
    """
    pod = read(raw, Pod)
    if pod.metadata.labels.get(PRIORITY_CLASS) == DEFAULT_CLASS and is_queued(pod.metadata):
        pod = view(without_default_classes(msgspec.json.decode(raw)), Pod)
    require_few((pod,))
    require_short_uid(pod.metadata.controller)
    return pod


def _group_of(decision: Decision, charge: Charge, tenant: Tenant, uid: str) -> GangBooking | None:
    """Return the booking of the group with that uid; None if the pod has no group to book.

    It is a further group of the pod's workload, or a group that no workload makes. The pods of the latter are booked
    with this pod's charge.
    """
    asked, policy = decision.tier_request, decision.tier_request.policy
    facts, rank = asked.facts, policy.tiers.rank(charge.tier)
    gang, group = gang_among(facts.owners), facts.together
    if gang is not None and uid != gang.uid:
        parts = []
        for each in gang.members:
            gpus, shared = demand_of(each.template, each.devices, policy), shared_by(each.devices, policy)
            whole = structs.replace(charge, gpus=gpus_of_pods(each.least, gpus, shared), shared=shared)
            parts.append(GangPart(each.least, gpus, whole))
        demand = gang_of([each for each in parts if each.gpus])
        if demand is None:
            return None
        kind, name = gang.kind.qualified, f"{gang.name}-{uid.rpartition('/')[2]}"
        found = GangBooking(uid, kind, facts.namespace.name, name, tenant, demand.charges, of_pods=True, rank=rank)
    elif group is not None:
        found = whole_group(group, charge, facts.namespace.name, tenant, rank)
    else:
        return None
    return structs.replace(found, tier=charge.tier if decision.assignment.demoted_from and charge.tier else "")


def whole_group(group: PodsTogether, charge: Charge, namespace: str, tenant: Tenant, rank: int) -> GangBooking:
    """Return the booking of a whole group, as if each of its pods had this charge."""
    charges = (whole_charge(charge, group),)
    return GangBooking(group.uid, group.kind.qualified, namespace, group.name, tenant, charges, of_pods=True, rank=rank)


def verdict_on(
    decision: Decision,
    operations: patch.Operations = (),
    warnings: tuple[AdmissionWarning, ...] = (),
    refusal: Refusal | None = None,
) -> Verdict:
    """Return the verdict on a pod or a group; `warnings` are added to those of its assignment."""
    facts, assignment = decision.tier_request.facts, decision.assignment
    tenant, workload = facts.tenant.name if facts.tenant else None, str(facts.owners[-1]) if facts.owners else ""
    all_warnings = assignment.warnings + warnings
    return Verdict(assignment, operations, all_warnings, refusal, tenant, workload, decision=decision)


def _disagreement(pod: Pod, decision: Decision) -> Refusal | None:
    live, facts, policy = decision.live, decision.tier_request.facts, decision.tier_request.policy
    unlike = disagreement(pod, decision.assignment, live, facts) if live else None
    return unlike or misstated(pod, claimed(facts.devices, policy))
