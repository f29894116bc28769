"""Which tier a pod or a workload gets: the six steps, the first that applies; never whether there is room for it.

Each step is a function from what was asked and what is known to a finding, or None. A mistake is Refused.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from webhook.policy.facts import Facts, Workload
from webhook.policy.objects import Pod
from webhook.policy.refusal import Refused
from webhook.policy.rules import matches
from webhook.policy.tier_policy import TierPolicy
from webhook.policy.tiers import Tier
from webhook.policy.workload_type import Evidence, workload_type

TIER_LABEL = "gpu-tiers.dev/tier"
DEFAULT_TIER_LABEL = "gpu-tiers.dev/default-tier"


@dataclass(frozen=True, slots=True)
class Ask:
    """Who asks for a tier, and what they wrote. The policy and the facts are what it is judged by."""

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

    `tier` is None where a class outside the tiers is kept. `asked` is what a person wrote by name, so that it is
    refused where it may not be had; what we chose ourselves is lowered.
    """

    tier: Tier | None
    step: str
    reason: str
    asked: bool = False
    evidence: Evidence | None = None
    trace: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    demoted_from: str | None = None

    def __str__(self) -> str:
        """The deciding line: what the assigned-by annotation says."""
        demoted = f"; demoted from {self.demoted_from}" if self.demoted_from else ""
        return f"{self.step}: {self.reason}{demoted}"


def asked_by(pod: Pod, facts: Facts, policy: TierPolicy, *, holds_gpus: bool) -> Ask:
    """What a pod asks for, with the evidence of what it is."""
    default = (live.name for live in facts.classes.values() if live.global_default)
    name = pod.spec.priority_class_name
    return Ask(
        pod=pod,
        label=pod.metadata.labels.get(TIER_LABEL),
        class_name="" if name in default else name,  # the API server writes the default's name on every pod
        facts=facts,
        policy=policy,
        evidence=workload_type(pod, facts.owners),
        holds_gpus=holds_gpus,
    )


def assign(ask: Ask) -> Assignment:
    """The first step that finds a tier. Raises Refused where what was asked for names no tier or contradicts itself."""
    trace = []
    for name, step in STEPS:
        found = step(ask)
        trace.append(f"{name}: {found.reason if found else '-'}")
        if found is not None:
            return replace(found, step=name, evidence=ask.evidence, trace=tuple(trace))
    raise AssertionError("the default tier is the last step and always finds one")


def _by_group(ask: Ask) -> Assignment | None:
    """The scheduler refuses a group whose pods differ from it in priority (1.37), so its tier is no choice."""
    group = ask.facts.group
    if group is None:
        return None
    tier = ask.policy.tiers.of_class(group.priority_class_name)
    if tier is None:
        raise Refused(
            f"spec.schedulingGroup: PodGroup/{group.name} has no tier (priorityClassName "
            f'"{group.priority_class_name}"); make it again with the label {TIER_LABEL}: {ask.policy.tiers.names()}'
        )
    if ask.label not in (None, tier.name):
        raise Refused(
            f"metadata.labels[{TIER_LABEL}]: {ask.label}, but its PodGroup/{group.name} is {tier.name}; "
            "a group and its pods share one tier"
        )
    return _found(tier, f"PodGroup/{group.name} is {tier.name}", asked=True)


def _by_label(ask: Ask) -> Assignment | None:
    """The label on the pod, then on its owners, the nearest first; for a member without GPUs, its gang's templates."""
    for where, name in _labels(ask):
        tier = _known(name, f"{where}metadata.labels[{TIER_LABEL}]", ask.policy)
        if where == "":
            _no_contradiction(tier, ask)
        return _found(tier, f"the label on {where.rstrip('.') or 'the pod'} says {tier.name}", asked=True)
    return None


def _labels(ask: Ask) -> Iterator[tuple[str, str]]:
    if ask.label is not None:
        yield "", ask.label
    for owner in ask.facts.owners:
        if TIER_LABEL in owner.labels:
            yield f"{owner}.", owner.labels[TIER_LABEL]
        if not ask.holds_gpus:
            yield from _labels_of_members(owner)


def _labels_of_members(owner: Workload) -> Iterator[tuple[str, str]]:
    for member in owner.members:
        if TIER_LABEL in member.template.metadata.labels:
            yield f"{owner}.{member.path}.", member.template.metadata.labels[TIER_LABEL]


def _no_contradiction(tier: Tier, ask: Ask) -> None:
    written = ask.policy.tiers.of_class(ask.class_name)
    if ask.class_name and written != tier:
        raise Refused(
            f"metadata.labels[{TIER_LABEL}]: {tier.name} contradicts spec.priorityClassName: {ask.class_name}; "
            "write one of the two, or the same in both"
        )


def _by_rule(ask: Ask) -> Assignment | None:
    for index, rule in enumerate(ask.policy.rules):
        if matches(rule.match, ask.pod, ask.facts):
            return _found(_tier(rule.tier, ask.policy), f"rules[{index}] of the policy says {rule.tier}", asked=True)
    return None


def _by_class(ask: Ask) -> Assignment | None:
    if not ask.class_name:
        return None
    tier = ask.policy.tiers.of_class(ask.class_name)
    if tier is not None:
        return _found(tier, f"priorityClassName is {ask.class_name}", asked=True)
    match ask.policy.unmanaged_classes:
        case "Deny":
            raise Refused(
                f"spec.priorityClassName: {ask.class_name} is no tier's class; write one of {ask.policy.tiers.names()}"
            )
        case "Keep":
            warning = f"priorityClassName {ask.class_name} is no tier's class and is kept; this pod gets no tier"
            reason = f"priorityClassName {ask.class_name} is outside the tiers and kept"
            return Assignment(None, "", reason, asked=True, warnings=(warning,))
    return None


def _by_type(ask: Ask) -> Assignment | None:
    evidence = ask.evidence
    name = ask.policy.tier_of_type.get(evidence.type) if evidence else None
    if evidence is None or name is None:
        return None
    tier, default = _tier(name, ask.policy), _tier(ask.policy.default_tier, ask.policy)
    if evidence.guess and tier.value > default.value and not ask.policy.guesses_may_raise:
        return None
    return _found(tier, str(evidence))


def _by_namespace(ask: Ask) -> Assignment | None:
    """The tenant's default, then the namespace's own."""
    tenant, namespace = ask.facts.tenant, ask.facts.namespace
    if tenant is not None and tenant.default_tier:
        tier = _known(tenant.default_tier, f"TenantQuota/{tenant.name}: spec.defaultTier", ask.policy)
        return _found(tier, f"the default of tenant {tenant.name}")
    if DEFAULT_TIER_LABEL in namespace.labels:
        field = f"Namespace/{namespace.name}: metadata.labels[{DEFAULT_TIER_LABEL}]"
        tier = _known(namespace.labels[DEFAULT_TIER_LABEL], field, ask.policy)
        return _found(tier, f"the default of namespace {namespace.name}")
    return None


def _by_default(ask: Ask) -> Assignment:
    return _found(_tier(ask.policy.default_tier, ask.policy), "the policy's default")


STEPS: tuple[tuple[str, Callable[[Ask], Assignment | None]], ...] = (
    ("group", _by_group),
    ("label", _by_label),
    ("rule", _by_rule),
    ("class", _by_class),
    ("workload-type", _by_type),
    ("namespace-default", _by_namespace),
    ("policy-default", _by_default),
)
"""The order of DESIGN's steps; a PodGroup comes first, since its pods have no choice."""


def _found(tier: Tier, reason: str, *, asked: bool = False) -> Assignment:
    return Assignment(tier, "", reason, asked=asked)


def _known(name: str, field: str, policy: TierPolicy) -> Tier:
    tier = policy.tiers.get(name)
    if tier is None:
        raise Refused(f'{field}: "{name[:63]}" is no tier; the tiers are {policy.tiers.names()}')
    return tier


def _tier(name: str, policy: TierPolicy) -> Tier:
    return _known(name, "policy", policy)
