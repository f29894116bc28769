"""What asks for a tier, and the tier that it is assigned with the step that decided it."""

from dataclasses import dataclass

from webhook.objects.pods import Pod
from webhook.objects.refusal import Reason, Refused, shown
from webhook.policy.classification.evidence import Evidence
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.values.tiers import Tier
from webhook.policy.workloads.templates import TEMPLATE_CLASS

TIER_LABEL = "gpu-tiers.dev/tier"
DEFAULT_TIER_LABEL = "gpu-tiers.dev/default-tier"
ASSIGNED_BY = "gpu-tiers.dev/assigned-by"
GANG = "gpu-tiers.dev/gang"
"""On a pod: the uid of the workload on whose charge it draws, where that is not its controller."""
"""The annotation that holds the deciding line of an assignment."""


@dataclass(frozen=True, slots=True)
class TierRequest:
    """A pod that needs a tier: what somebody wrote on it, and the facts and the policy that it is judged by."""

    pod: Pod
    label: str | None
    class_name: str
    facts: Facts
    policy: TierPolicy
    evidence: Evidence | None
    holds_gpus: bool = True


@dataclass(frozen=True, slots=True)
class Assignment:
    """A tier with the step that decided it.

    `tier` is None where a class outside the tiers is kept. `asked` is the field in which a person asked for the tier
    by name: such a tier is refused where it isn't allowed. It is "" where we chose: such a tier is lowered.
    """

    tier: Tier | None
    step: str
    reason: str
    asked: str = ""
    evidence: Evidence | None = None
    trace: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    demoted_from: str | None = None

    def __str__(self) -> str:
        """The deciding line: what the assigned-by annotation says."""
        demoted = f"; demoted from {self.demoted_from}" if self.demoted_from else ""
        return f"{self.step}: {self.reason}{demoted}"


def tier_request(
    pod: Pod, facts: Facts, policy: TierPolicy, evidence: Evidence | None, *, holds_gpus: bool
) -> TierRequest:
    """The request that a pod makes, with the evidence of its workload type."""
    # Volcano from 1.11 on writes the class of its Jobs on their pods
    ours = {owner.annotations.get(TEMPLATE_CLASS) for owner in facts.owners if owner.row.class_field}
    name = class_asked(pod)
    return TierRequest(
        pod=pod,
        label=pod.metadata.labels.get(TIER_LABEL),
        class_name="" if name in ours else not_default(name, facts),
        facts=facts,
        policy=policy,
        evidence=evidence,
        holds_gpus=holds_gpus,
    )


def not_default(name: str, facts: Facts) -> str:
    """The class of a pod; "" for the cluster's default, whose name the API server writes on every pod."""
    live = facts.classes.get(name)
    return "" if live is not None and live.global_default else name


def class_asked(pod: Pod) -> str:
    """The class that somebody wrote on a pod or a template; "" for one that gpu-tiers wrote into the template.

    Who forges the annotation has asked for nothing by the class, so it needs no proof.
    """
    name = pod.spec.priority_class_name
    return "" if pod.metadata.annotations.get(TEMPLATE_CLASS) == name else name


def found(tier: Tier, reason: str, *, asked: str = "") -> Assignment:
    """What a step has found; whoever asks the steps writes the step's name in."""
    return Assignment(tier, "", reason, asked=asked)


def named(name: str, field: str, policy: TierPolicy) -> Tier:
    """The tier of a name that stands in a field. Raises Refused, with the tiers that exist."""
    tier = policy.tiers.get(name)
    if tier is None:
        raise Refused(f'{field}: "{shown(name)}" is no tier; the tiers are {policy.tiers.names()}', Reason.UNKNOWN_TIER)
    return tier
