"""Views of single objects of a cluster: PriorityClasses, groups of pods, resource claims and ResourceQuotas."""

import msgspec

from webhook.objects.podgroups import PodGroup
from webhook.objects.pods import Metadata, PodClaim
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Reason, Refused
from webhook.objects.view import Tree, View, at, view
from webhook.policy.assignment.assigned_by import class_borne, read_assigned_by
from webhook.policy.quota.native_quotas import PRIORITY_CLASS, REQUESTS, NativeQuota
from webhook.policy.values.facts import Group
from webhook.policy.values.tenants import Operator, Requirement
from webhook.policy.values.tiers import PriorityClass
from webhook.policy.workloads.claims import Claim, ClaimTemplate, devices_of
from webhook.policy.workloads.pod_groups import GroupSource, SchedulersGroup
from webhook.policy.workloads.workload import Devices


class _Class(View, frozen=True):
    metadata: Metadata = Metadata()
    value: int = 0
    preemption_policy: str = "PreemptLowerPriority"
    global_default: bool = False


def priority_class(tree: object) -> PriorityClass:
    """Return a PriorityClass from its decoded JSON. Raises Refused with the field's path on a wrong type."""
    found = view(tree, _Class)
    ours = found.metadata.labels.get("app.kubernetes.io/name") == "gpu-tiers"
    return PriorityClass(found.metadata.name, found.value, found.preemption_policy, found.global_default, ours)


def group_of(found: PodGroup, name: str, *, prioritized: bool) -> Group:
    """Return the group of that name. `prioritized`: the API server keeps a class and a priority on it."""
    assigned_by = read_assigned_by(found.metadata.annotations)
    return Group(
        name,
        class_borne(found),
        prioritized=prioritized,
        demoted_from=assigned_by.demoted_from if assigned_by else "",
        pods=_count(at(found.spec.scheduling_policy.gang, "minCount")),
        claims=found.spec.resource_claims,
    )


def schedulers_group_of(tree: Tree, source: GroupSource, name: str) -> SchedulersGroup:
    """Return the PodGroup of Volcano, KAI or the coscheduling plugin."""
    class_name = at(tree, "spec.priorityClassName")
    pods = _count(at(tree, "spec.minMember"))
    return SchedulersGroup(source, name, pods, class_name if isinstance(class_name, str) else "")


def _count(found: object) -> int:
    return found if type(found) is int and found > 0 else 0


def claimed_object(claim: PodClaim) -> tuple[str, str]:
    made = claim.resource_claim_name is not None
    name = claim.resource_claim_name if made else claim.resource_claim_template_name
    if not name:
        raise Refused(Reason.INVALID, "claim-of-nothing", "spec.resourceClaims", entry=claim.name)
    return "ResourceClaim" if made else "ResourceClaimTemplate", name


def devices_in(tree: object, namespace: str, claim: PodClaim) -> tuple[Devices, ...]:
    """Return what the claim or template asks for. Raises Refused."""
    if claim.resource_claim_name is not None:
        return tuple(devices_of(view(tree, Claim).spec, claim.name, f"{namespace}/{claim.resource_claim_name}"))
    return tuple(devices_of(view(tree, ClaimTemplate).spec.spec, claim.name))


LOOKED_AT = {PRIORITY_CLASS, "NotTerminating", "NotBestEffort"}
"""A ResourceQuota of any other scope is passed over: it counts few pods with GPUs, or none. Most pods with GPUs have no
deadline and ask for CPU or memory, so the last two are taken to count them."""


class _Line(View, frozen=True):
    scope_name: str = ""
    operator: Operator = "Exists"
    values: tuple[str, ...] = ()


class _Selector(View, frozen=True):
    match_expressions: tuple[_Line, ...] = ()


class _Spec(View, frozen=True):
    hard: dict[str, str | int | float] = msgspec.field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    scope_selector: _Selector = _Selector()


class _Status(View, frozen=True):
    hard: dict[str, str | int | float] = msgspec.field(default_factory=dict)
    used: dict[str, str | int | float] = msgspec.field(default_factory=dict)


class ResourceQuota(View, frozen=True):
    """A ResourceQuota."""

    metadata: Metadata = Metadata()
    spec: _Spec = _Spec()
    status: _Status = _Status()


def native_quota(found: ResourceQuota) -> NativeQuota | None:
    """Return what a ResourceQuota leaves; None for scopes that are passed over."""
    lines = (*(_Line(scope_name=each) for each in found.spec.scopes), *found.spec.scope_selector.match_expressions)
    if not {line.scope_name for line in lines} <= LOOKED_AT:
        return None
    classes = (line for line in lines if line.scope_name == PRIORITY_CLASS)
    hard, used = found.status.hard or found.spec.hard, found.status.used
    free = {
        name.removeprefix(REQUESTS): quantity(limit, f"hard.{name}") - quantity(used.get(name, 0), f"used.{name}")
        for name, limit in hard.items()
        if name.startswith(REQUESTS)
    }
    return NativeQuota(
        found.metadata.name, tuple(Requirement(PRIORITY_CLASS, line.operator, line.values) for line in classes), free
    )
