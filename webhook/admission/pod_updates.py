"""Reviews of updates of admitted pods, and of the ResourceClaims made for them.

A pod's labels and annotations are mutable, its class and charge are not. A ResourceClaim may be created after its pod,
or deleted and created again while unused. It must not ask for more than its pods were admitted with. A claim that no
pod waits for is admitted, because its pods are charged when they are created; a PodGroup's claim with GPUs is refused.
"""

from msgspec import structs

from webhook.admission.facts import charged_facts, needed_to, queued_group, schedulers_groups
from webhook.admission.pods import KUBERNETES_CONTROLLERS, read_pod, whole_group
from webhook.admission.review import Request
from webhook.admission.reviewer import Reviewer, Verdict
from webhook.ledger.protocol import Booked, Booking
from webhook.objects.pods import Named, Pod
from webhook.objects.refusal import Reason
from webhook.objects.view import read
from webhook.policy.assignment.consistency import changed_mark, drift, outranked, rank_changes
from webhook.policy.assignment.kueue import changed_class
from webhook.policy.assignment.limits import allowed_tiers
from webhook.policy.quota.charges import charge_of, flavor_of
from webhook.policy.quota.demand import gpus_of, outgrown, refusal_of_group_claim
from webhook.policy.quota.refusals import pod_fit
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import Mode
from webhook.policy.workloads.claims import Claim, devices_of


class PodUpdateReviewer(Reviewer, frozen=True):
    """Judges an UPDATE of a pod."""

    async def validate(self, request: Request, mode: Mode) -> Verdict:
        old, new, policy = read_pod(request.old_object), read_pod(request.object), self.policy

        # 1. A changed label, of tier or queue, still agrees with the pod's class, and its GPUs are unchanged.
        tier = policy.tiers.of_class(new.spec.priority_class_name)
        changed = (
            drift(old, new, policy)
            or changed_mark(old, new, policy)
            or changed_class(old.metadata.labels, new.metadata.labels, tier, policy)
        )
        if changed is None and tier is not None and rank_changes(old.metadata, new.metadata):
            with needed_to("find the rank of this pod"):
                groups = await schedulers_groups(new.metadata, request.namespace, self.cluster)
                home = await self.cluster.known.namespace(request.namespace)
            changed = outranked(new, None, Facts(home, self.cluster.known.classes(), groups=groups))
        if changed is not None:
            return Verdict(refusal=changed.because(Reason.CHANGED))

        # 2. A gated pod may get a node selector, and then counts on the flavor that it names.
        before = flavor_of(old, policy)
        if before == flavor_of(new, policy):
            return Verdict()
        return await self._moved(new, before, request.namespace, dry_run=request.dry_run or mode is Mode.Audit)

    async def _moved(self, pod: Pod, before: str | None, namespace: str, *, dry_run: bool) -> Verdict:
        """Move the charge to the flavor that the pod names now, if there is room.

        If the pod is in a Kueue pod group, the whole group must have room, as if each of its pods had this charge.
        """
        cluster, policy = self.cluster, self.policy
        home, devices = await charged_facts(pod, namespace, cluster)
        tenant, charge = cluster.known.tenant(home), charge_of(pod, devices, policy)
        verdict = Verdict(tenant=tenant.name if tenant else None)
        if tenant is None or charge is None or not tenant.charges(charge.gpus):
            return verdict
        if tenant.has_queue and pod.waits_for_quota:
            return verdict  # nothing is booked yet: the leader books it with the new flavor
        moved_from = structs.replace(charge, flavor=before)
        tiers, rank = allowed_tiers(tenant, policy), policy.tiers.rank(charge.tier)
        with needed_to("find the group of this pod"):
            group = await queued_group(pod, namespace, cluster, policy)
        if group is not None:
            whole = await self.ledger.book(whole_group(group, charge, home.name, tenant, rank), dry_run=True)
            if not isinstance(whole, Booked):
                short = self.in_each_tier(whole, tenant)
                return verdict.fitted(pod_fit(short, tenant, tiers, what=f"group {group.name}"))
        uid, name, gang = pod.metadata.uid, pod.metadata.name, group.uid if group else ""
        booking = Booking(uid, home.name, tenant, (charge,), name=name, moved_from=moved_from, gang=gang, rank=rank)
        answer = await self.ledger.book(booking, dry_run=dry_run)
        if isinstance(answer, Booked):
            return verdict
        return verdict.fitted(pod_fit(self.in_each_tier(answer, tenant), tenant, tiers))


class ResourceClaimReviewer(Reviewer, frozen=True):
    """Judges a ResourceClaim with GPUs at its CREATE and UPDATE."""

    async def validate(self, request: Request, mode: Mode) -> Verdict:
        """Judge a claim at its CREATE, or when it gets another owner. Raises Refused if its pods can't be read.

        In Audit only a PodGroup's claim can be refused, because no pod says what it was admitted with.
        """
        asked = gpus_of(tuple(devices_of(read(request.object, Claim).spec, "")), self.policy)
        claim = read(request.object, Named).metadata
        # Kubernetes generates the name of each pod's claim, once, so no pod can name it before.
        if not request.name and request.user_info.username.startswith(KUBERNETES_CONTROLLERS):
            claim = structs.replace(claim, name="")
        with needed_to("find the owner of this claim"):
            tenant = self.cluster.known.tenant(await self.cluster.known.namespace(request.namespace))
            if tenant is None or not tenant.charges(asked):
                return Verdict()
            if refusal := refusal_of_group_claim(claim, asked):
                return Verdict(refusal=refusal, tenant=tenant.name)
            if mode is Mode.Audit:
                return Verdict(tenant=tenant.name)
            waiting = await self.cluster.lookups.claimants(request.namespace, claim)
        problems = (outgrown(pod, entry, asked) for pod, entry in waiting)
        return Verdict(refusal=next(filter(None, problems), None), tenant=tenant.name)
