"""Reviews of groups of pods: PodGroups, the Workloads whose templates they are made of, and other schedulers' groups.

A PodGroup is immutable, and its pods must share its fields (KEP-4671, KEP-5710). A Workload's templates are immutable
too. Volcano and KAI rank all pods of a group by its class.
"""

from webhook.admission import patch
from webhook.admission.facts import facts_of, needed_to, what_may_demote
from webhook.admission.pods import verdict_on
from webhook.admission.review import Request
from webhook.admission.reviewer import Reviewer, Verdict
from webhook.objects.podgroups import PodGroup, PodGroupTemplate, SchedulingWorkload
from webhook.objects.pods import Pod, PodSpec
from webhook.objects.refusal import AdmissionWarning
from webhook.objects.view import read
from webhook.policy.assignment.consistency import group_disagreement, outranking
from webhook.policy.assignment.limits import class_within_ceiling
from webhook.policy.assignment.request import group_concerns
from webhook.policy.decide import named_tier
from webhook.policy.decide_group import (
    decide_group,
    decide_scheduling_workload,
    group_warnings,
    template_problem,
    templates_disagree,
)
from webhook.policy.values.facts import Facts, Group
from webhook.policy.values.tier_policy import Mode
from webhook.policy.workloads.pod_groups import LOOKED_UP


class PodGroupReviewer(Reviewer, frozen=True):
    """Judges a PodGroup or a CompositePodGroup at its CREATE."""

    async def mutate(self, request: Request, mode: Mode) -> Verdict:
        group = read(request.object, PodGroup)
        facts, model = await self._known(group, request.namespace, mode)
        devices = [each for owner in facts.owners for member in owner.members for each in member.devices]
        decision = decide_group(group, facts, self.policy, model, *await what_may_demote(facts, self.ledger, devices))
        if decision is None:
            return Verdict()
        return verdict_on(decision, operations=tuple(patch.of_group(group, decision)))

    async def validate(self, request: Request, mode: Mode) -> Verdict:
        """Check that a group has the class of its tier and may have that tier. Its pods are booked, not the group."""
        group = read(request.object, PodGroup)
        facts, model = await self._known(group, request.namespace, mode)
        decision = decide_group(group, facts, self.policy, model)
        if decision is None:
            of_class = Pod(spec=PodSpec(priority_class_name=group.spec.priority_class_name))
            class_within_ceiling(of_class, facts, self.policy)
            return Verdict()
        tier, live = decision.assignment.tier, decision.live
        patched = mode is not Mode.Audit  # Audit has patched nothing
        problem = group_disagreement(group, tier, live) if tier and live and patched else None
        asked = decision.tier_request
        if problem is None and self.policy.tier_access == "RBAC":
            named = (named_tier(asked, decision.assignment),)
            problem = await self.unentitled(request, named, asked.facts, (asked,))
        return verdict_on(decision, warnings=tuple(group_warnings(group, decision)), refusal=problem)

    async def _known(
        self, group: PodGroup, namespace: str, mode: Mode
    ) -> tuple[Facts, PodGroupTemplate | Group | None]:
        """Return the facts about a group, and its model: the group above it, or else the template that it is made of.

        The model is None if there is neither, and for a group that a controller made and that is not ours. In Audit the
        group above has no class from us, so it is no model.
        """
        facts = await facts_of(group.metadata, namespace, self.cluster, self.policy)
        if group.metadata.controller and not group_concerns(group, facts, self.policy):
            return facts, None
        lookups = self.cluster.lookups
        with needed_to("choose a tier"):
            if group.spec.parent_composite_pod_group_name and mode is not Mode.Audit:
                parent = await lookups.composite_pod_group(namespace, group.spec.parent_composite_pod_group_name)
                if parent is not None:
                    return facts, parent
            return facts, await lookups.pod_group_template(namespace, group.template) if group.template else None


SCHEDULERS_GROUPS = {source.kind: source for source in LOOKED_UP}


class SchedulerGroupReviewer(Reviewer, frozen=True):
    """Judges a group of another scheduler."""

    async def validate(self, request: Request, mode: Mode) -> Verdict:  # noqa: ARG002 - the same in every mode
        """Judge a group at its CREATE or when its class changes. Pods that come later are compared with the group.

        A class below that of its pods is admitted, so that a scheduler's controllers may leave a demoted gang as it is.
        Raises Refused for a class that the tenant may not have, or that contradicts the tier label.
        """
        group = read(request.object, PodGroup)
        source = SCHEDULERS_GROUPS[request.kind.group_kind]
        name = group.spec.priority_class_name
        with needed_to("find the owner of this group"):
            home = await self.cluster.known.namespace(request.namespace)
            facts = Facts(home, self.cluster.known.classes(), tenant=self.cluster.known.tenant(home))
            if decide_group(group, facts, self.policy) is None:
                class_within_ceiling(Pod(spec=PodSpec(priority_class_name=name)), facts, self.policy)
            there = (
                await self.cluster.lookups.group_members(request.namespace, source, group.metadata.name)
                if group.metadata.name
                else ()
            )
        members = (pod for pod in there if self.policy.tiers.of_class(pod.spec.priority_class_name))
        tenant = facts.tenant.name if facts.tenant else None
        return Verdict(refusal=outranking(name, members, facts.classes), tenant=tenant)


class SchedulingWorkloadReviewer(Reviewer, frozen=True):
    """Judges a Workload at its CREATE."""

    async def mutate(self, request: Request, mode: Mode) -> Verdict:  # noqa: ARG002 - the same in every mode
        """Write the class of its templates. If a controller made it, its owner gives its PodGroups their class.

        Templates that differ are refused here and not at validation, because the API server of 1.37 refuses them
        before that, and does not name them.
        """
        found = read(request.object, SchedulingWorkload)
        if (problem := templates_disagree(found, self.policy)) is not None:
            return Verdict(refusal=problem)
        if found.metadata.controller is not None:
            return Verdict()
        facts = await facts_of(found.metadata, request.namespace, self.cluster, self.policy)
        decision = decide_scheduling_workload(found, facts, self.policy)
        if decision is None:
            return Verdict()
        return verdict_on(decision, operations=tuple(patch.of_scheduling_workload(found, decision)))

    async def validate(self, request: Request, mode: Mode) -> Verdict:  # noqa: ARG002 - what can't be made is no mode's
        """Check that PodGroups can be made of its templates. A Workload without a tier gets only a warning.

        Its PodGroups get tiers of their own.
        """
        found = read(request.object, SchedulingWorkload)
        if (problem := templates_disagree(found, self.policy)) is not None:
            return Verdict(refusal=problem)
        facts = await facts_of(found.metadata, request.namespace, self.cluster, self.policy)
        decision = decide_scheduling_workload(found, facts, self.policy)
        problem = template_problem(found, decision.live if decision else None, facts, self.policy)
        if decision is None:
            return Verdict(warnings=(AdmissionWarning("let-in", refusal=problem),) if problem else ())
        return verdict_on(decision, refusal=problem)
