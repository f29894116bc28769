"""The rule about gpu-tiers' labels on namespaces."""

from collections.abc import Iterator

from webhook.policy.namespace_labels import namespace_warnings
from webhook.readmodel.lint.rule import LintRule, Mistake, Severity
from webhook.readmodel.lint.snapshot import ClusterSnapshot
from webhook.sentences.sentence import warning_words


def namespace_label(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Those from before the installation, too: nobody was warned of theirs."""
    tenants = [each.tenant for each in snapshot.tenants if each.tenant]
    for each in snapshot.namespaces:
        for warning in namespace_warnings(each.labels, snapshot.policy, tenants):
            yield Mistake(f"Namespace/{each.name}", warning_words(warning))


NAMESPACE_LABEL = LintRule(
    "namespace-label",
    Severity.WARNING,
    ("namespaces", "tenants"),
    namespace_label,
    "A misspelt label means nothing, and for a default tier that does not exist pods are refused: the namespace is not "
    "what its owner thinks it is.",
    "Correct it with `kubectl label namespace NAME --overwrite`; a dash behind the label's name takes it away.",
)
RULES = (NAMESPACE_LABEL,)
