"""The request for a tier, whether it concerns gpu-tiers at all, and the assigned tier.

The pods that gpu-tiers decides on are selected in the same way as by the configuration's matchConditions in CEL.
"""

from decimal import Decimal

import msgspec
from msgspec import structs

from webhook.objects.podgroups import PodGroup, SchedulingWorkload
from webhook.objects.pods import Metadata, Pod
from webhook.objects.refusal import AdmissionWarning, Phrase, Reason, Refused
from webhook.policy.classification.evidence import Evidence
from webhook.policy.devices import evicted_by
from webhook.policy.quota.charges import flavor_of, lacking
from webhook.policy.quota.demand import hold_gpus
from webhook.policy.values.facts import Facts
from webhook.policy.values.tenants import QuotaRow, Tenant
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier
from webhook.policy.workloads.templates import TEMPLATE_CLASS
from webhook.policy.workloads.workload import Workload

TIER_LABEL = "gpu-tiers.dev/tier"
DEFAULT_TIER_LABEL = "gpu-tiers.dev/default-tier"
UNTIERED_LABEL = "gpu-tiers.dev/untiered"
GANG = "gpu-tiers.dev/gang"
"""The uid of the workload that a pod is charged to, on pods whose controller is another object."""


def gang_beyond(metadata: Metadata) -> str:
    """Return the uid of the gang that a pod is charged to, by the annotation GANG; "" if that is its controller."""
    uid = metadata.annotations.get(GANG, "")
    return uid if uid != metadata.controller_uid else ""


class TierRequest(msgspec.Struct, frozen=True):
    """A pod that needs a tier: what somebody wrote on it, and the facts and the policy that it is judged by."""

    pod: Pod
    label: str | None
    class_name: str
    facts: Facts
    policy: TierPolicy
    evidence: Evidence | None
    holds_gpus: bool = True


class Assignment(msgspec.Struct, frozen=True):
    """A tier with the name of the step that decided it, which `assign` sets, and its reason.

    `tier` is None for a class outside the tiers. `asked` is the field in which a person named the tier: such a tier is
    refused if it isn't allowed. It is "" if we chose: such a tier is lowered. `bearer` is the owner with
    that field, if it is the owner's own and not a template's. `template` is the template of the pod's gang with that
    field, if the pod's own template names no tier. `demoted_from` is the tier that had no room, and `lacks` says what
    its tenant lacks there. `evicted` says which tiers may evict the pod in the lower one.
    """

    tier: Tier | None
    step: str
    reason: Phrase
    asked: str = ""
    bearer: Workload | None = None
    template: str = ""
    evidence: Evidence | None = None
    trace: tuple[Phrase, ...] = ()
    warnings: tuple[AdmissionWarning, ...] = ()
    demoted_from: str | None = None
    lacks: Phrase | str = ""
    evicted: Phrase | str = ""

    def lowered_to(self, tier: Tier, asked: "TierRequest", row: QuotaRow | None = None) -> "Assignment":
        """Return this assignment in a lower tier, because `row` has no room. Without a row it was demoted earlier."""
        higher, tenant = self.tier.name if self.tier else "", asked.facts.tenant
        lacks = lacking(tenant, higher, flavor_of(asked.pod, asked.policy), row) if tenant else ""
        evicted = evicted_by(tier, asked.pod, asked.facts, asked.policy)
        return structs.replace(self, tier=tier, demoted_from=higher or None, lacks=lacks, evicted=evicted)


def tier_request(
    pod: Pod, facts: Facts, policy: TierPolicy, evidence: Evidence | None, *, holds_gpus: bool
) -> TierRequest:
    """Return the request that a pod makes, with the evidence of its workload type."""
    # Volcano writes the class of its Jobs on their pods since 1.11.
    ours = {owner.annotations.get(TEMPLATE_CLASS) for owner in facts.owners if owner.row.class_field}
    label, name = pod.metadata.labels.get(TIER_LABEL), class_asked(pod)
    name = "" if name in ours else not_default(name, facts)
    return TierRequest(pod, label, name, facts, policy, evidence, holds_gpus)


def not_default(name: str, facts: Facts) -> str:
    """Return a pod's class; "" for the cluster's default, because the API server writes its name on every pod."""
    live = facts.classes.get(name)
    return "" if live is not None and live.global_default else name


def class_asked(pod: Pod) -> str:
    """Return the class that somebody wrote on a pod or a template; "" for a class that gpu-tiers wrote there.

    With a forged annotation, the class only asks for nothing, so the annotation needs no proof.
    """
    name = pod.spec.priority_class_name
    return "" if pod.metadata.annotations.get(TEMPLATE_CLASS) == name else name


def named(name: str, field: str, policy: TierPolicy, tenant: Tenant | None = None) -> Tier:
    """Return the tier named in a field. Raises Refused with the tiers that exist, or those that a tenant may use."""
    tier = policy.tiers.get(name)
    if tier is not None:
        return tier
    usable = tuple(each.name for each in policy.tiers if tenant and tenant.may_use(each, policy.tiers))
    if tenant and usable and usable != tuple(each.name for each in policy.tiers):
        what = "unknown-tier-of-tenant"
        raise Refused(Reason.UNKNOWN_TIER, what, field, name=name, tenant=tenant.name, tiers=usable)
    raise Refused(Reason.UNKNOWN_TIER, "unknown-tier", field, name=name, tiers=policy.tiers.names())


def may_concern(pod: Pod, policy: TierPolicy) -> bool:
    """Tell from the pod itself whether it could be ours. If not, nothing is looked up."""
    return (
        any(
            name in policy.weights
            for _, container in pod.spec.every_container()
            for name in (*container.resources.requests, *container.resources.limits)
        )
        or bool(pod.spec.resource_claims)
        or any(share.annotation in pod.metadata.annotations for share in policy.shares)
        or names_a_tier(pod, policy)
        or pod.spec.scheduling_group is not None
        or not policy.kinds.gang_labels.isdisjoint(pod.metadata.labels)
    )


def concerns(pod: Pod, demand: Decimal, facts: Facts, policy: TierPolicy) -> bool:
    """Tell whether a pod is ours: it asks for GPUs, it or its PodGroup names a tier, or its owner has GPUs."""
    group = facts.group
    return (
        demand > 0
        or names_a_tier(pod, policy)
        or (group is not None and policy.tiers.of_class(group.priority_class_name) is not None)
        or gang_with_gpus(facts, policy) is not None
    )


def group_concerns(group: Pod | PodGroup, facts: Facts, policy: TierPolicy) -> bool:
    """Tell whether a group is ours: its owner holds GPUs, or it names a tier."""
    return gang_with_gpus(facts, policy) is not None or names_a_tier(group, policy)


def names_a_tier(found: Pod | PodGroup, policy: TierPolicy) -> bool:
    return TIER_LABEL in found.metadata.labels or policy.tiers.of_class(found.spec.priority_class_name) is not None


def require_metadata_and_spec(found: Pod | PodGroup | SchedulingWorkload) -> None:
    """Raise Refused if metadata or spec is missing, because a patch below an absent path fails with status 500."""
    nothing = type(found)()  # a view has the same default object for every absent half
    for field, half, absent in (("metadata", found.metadata, nothing.metadata), ("spec", found.spec, nothing.spec)):
        if half is absent:
            raise Refused(Reason.INVALID, "half-absent", field)


def gang_with_gpus(facts: Facts, policy: TierPolicy) -> Workload | None:
    """Return the nearest owner whose pods ask for GPUs, gang or not; None without one."""
    return next((owner for owner in facts.owners if hold_gpus(owner.members, policy)), None)
