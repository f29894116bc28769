"""Whether a rule of the policy applies to a pod; never what the rule gives it."""

from webhook.objects.pods import Pod
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import Match


def matches(match: Match, pod: Pod, facts: Facts) -> bool:
    """Whether every part of the match that is given holds. Kinds match any owner, labels the pod or an owner."""
    return (
        (not match.kinds or any(owner.kind in match.kinds for owner in facts.owners))
        and (not match.labels or _labelled(match, pod, facts))
        and (not match.namespaces or facts.namespace.name in match.namespaces)
        and (not match.service_accounts or _account(pod, facts) in match.service_accounts)
    )


def _labelled(match: Match, pod: Pod, facts: Facts) -> bool:
    carriers = [pod.metadata.labels, *(owner.labels for owner in facts.owners)]
    return any(match.labels.items() <= dict(labels).items() for labels in carriers)


def _account(pod: Pod, facts: Facts) -> str:
    return f"{facts.namespace.name}:{pod.spec.service_account_name or 'default'}"
