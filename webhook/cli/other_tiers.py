"""What would give an object another tier, from the facts that its own rests on."""

from collections.abc import Iterator, Mapping

from webhook.cli.documents import Document
from webhook.objects.group_kind import POD, GroupKind
from webhook.policy.assignment.limits import acceptable
from webhook.policy.assignment.request import Assignment
from webhook.policy.decide import Decision
from webhook.policy.values.facts import Facts
from webhook.readmodel.explained import changes

_BUILT_IN_GROUPS = ("", "apps", "batch")


def tier_changes(document: Document, assignment: Assignment, decision: Decision) -> Iterator[str]:
    """What a person can do, a sentence each."""
    request, own = decision.tier_request, assignment.tier.name if assignment.tier else ""
    yield from changes(
        assignment.asked,
        assignment.step,
        bearer=_bearer(assignment.asked, request.facts),
        owner=_for_kubectl(document, request.facts),
        namespace=document.namespace,
        others=tuple(each.name for each in acceptable(request) if each.name != own),
        default_of=_default_of(assignment, request.policy.default_tier),
    )


def _bearer(asked: str, facts: Facts) -> str:
    """The owner that bears the field itself, and not in a template."""
    for owner in facts.owners:
        if asked.startswith((f"{owner}.metadata.", f"{owner}.spec.priorityClassName")):
            return kubectl_name(owner.kind, owner.name)
    return ""


def _for_kubectl(document: Document, facts: Facts) -> str:
    """The outermost workload, as kubectl takes it."""
    if facts.owners:
        return kubectl_name(facts.owners[-1].kind, facts.owners[-1].name)
    return "" if document.group_kind == POD else kubectl_name(document.group_kind, document.name)


def kubectl_name(kind: GroupKind, name: str) -> str:
    """Such as job/train, pytorchjob.kubeflow.org/train."""
    word = kind.kind.lower()
    return f"{word}/{name}" if kind.group in _BUILT_IN_GROUPS else f"{word}.{kind.group}/{name}"


def _default_of(assignment: Assignment, default_tier: str) -> str:
    types: Mapping[str, str] = {
        "rule": f"{assignment.asked}",
        "workload-type": f"workloadTypes.{assignment.evidence.type.value}" if assignment.evidence else "workloadTypes",
        "namespace-default": "defaultTier of the TenantQuota, or the namespace's label gpu-tiers.dev/default-tier",
        "policy-default": f"defaultTier of the policy, {default_tier}",
    }
    found = types.get(assignment.step, "")
    return f"{found} of the policy" if assignment.step == "workload-type" else found
