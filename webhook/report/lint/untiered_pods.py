"""Rules about pods with GPUs that have no tier, or not the one that their author wanted."""

from collections.abc import Iterator

from webhook.cluster.pod_listing import PodSummary
from webhook.cluster.webhook_configurations import leaves_out
from webhook.policy.metadata_keys import is_unknown, likely_key, namespace_warnings
from webhook.policy.values.facts import NAME_LABEL
from webhook.policy.values.tier_policy import Mode
from webhook.report.lint.rule import LintRule, Mistake, Severity
from webhook.report.lint.snapshot import ClusterSnapshot, number_of, some_of
from webhook.sentences.sentence import warning_words


def gpus_in_exempt_namespace(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Namespaces that the entries for pods leave out."""
    for name, pods in snapshot.pods_by_namespace.items():
        if _is_exempt(name, snapshot):
            yield Mistake(f"Namespace/{name}", f"is exempt, and has {number_of(len(pods), 'pod')} with GPUs")


def pods_without_tier(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """In Audit no pod gets one; those of exempt namespaces are told of already."""
    tiers = snapshot.policy.tiers
    for name, pods in snapshot.pods_by_namespace.items() if snapshot.policy.mode is not Mode.Audit else ():
        bare = [pod for pod in pods if tiers.of_class(pod.class_name) is None]
        if bare and not _is_exempt(name, snapshot):
            labelled = sum(1 for pod in bare if pod.tier_label)
            noted = f", {labelled} of them with its label" if labelled else ""
            what = f"{number_of(len(bare), 'pod')} with GPUs and no tier's class{noted}"
            yield Mistake(f"Namespace/{name}", f"{what}: {some_of(pod.made_by for pod in bare)}")


def unknown_label(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Of pods from before the installation, too: nobody was warned of theirs."""
    bearers: dict[str, list[PodSummary]] = {}
    for pod in snapshot.pods:
        for key in filter(is_unknown, pod.labels):
            bearers.setdefault(key, []).append(pod)
    for key, pods in bearers.items():
        who = f"{number_of(len(pods), 'pod')} with GPUs: {some_of(pod.made_by for pod in pods)}"
        yield Mistake(f"label {key}", f"means nothing; did you mean {likely_key(key)}? It is on {who}")


def namespace_label(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Those from before the installation, too: nobody was warned of theirs."""
    tenants = [each.tenant for each in snapshot.tenants if each.tenant]
    for each in snapshot.namespaces:
        for warning in namespace_warnings(each.labels, snapshot.policy, tenants):
            yield Mistake(f"Namespace/{each.name}", warning_words(warning))


def _is_exempt(namespace: str, snapshot: ClusterSnapshot) -> bool:
    """Whether the API server asks us about no pod there."""
    labels = next((each.labels for each in snapshot.namespaces if each.name == namespace), {NAME_LABEL: namespace})
    return leaves_out(snapshot.configurations, labels)


NAMESPACE_LABEL = LintRule(
    "namespace-label",
    Severity.WARNING,
    ("namespaces", "tenants"),
    namespace_label,
    "Correct the label: `kubectl label namespace NAME KEY=VALUE --overwrite`.",
)
RULES = (
    LintRule(
        "gpus-in-exempt-namespace",
        Severity.WARNING,
        ("configurations", "namespaces", "pods"),
        gpus_in_exempt_namespace,
        "Take the namespace out of `exemptNamespaces`, or move the pods.",
    ),
    LintRule(
        "pods-without-tier",
        Severity.WARNING,
        ("pods",),
        pods_without_tier,
        "Start these pods again so that they get a tier.",
    ),
    LintRule(
        "unknown-label",
        Severity.WARNING,
        ("pods",),
        unknown_label,
        "Write the label as it is called on the pod template, and start the pods again.",
    ),
    NAMESPACE_LABEL,
)
