"""Rules about how the API server is told to ask gpu-tiers, and whom else it asks."""

from collections.abc import Iterator
from datetime import timedelta

from webhook.cluster.pod_listing import PodSummary
from webhook.cluster.webhook_configurations import (
    KINDS,
    OF_PODS,
    WebhookConfiguration,
    WebhookEntry,
    leaves_out,
)
from webhook.policy.unknown_keys import is_unknown, likely_key
from webhook.policy.values.facts import NAME_LABEL
from webhook.policy.values.tier_policy import Mode
from webhook.readmodel.lint.rule import LintRule, Mistake, Severity
from webhook.readmodel.lint.snapshot import CertificateSeen, ClusterSnapshot, number_of, some_of

GATES = (OF_PODS, "pods-update.validate.gpu-tiers.dev")
"""The entries whose failurePolicy depends on the mode."""
SOON = timedelta(days=14)
"""A certificate that nobody has renewed by then: gpu-tiers renews its own 30 days before, cert-manager too."""


def webhook_missing(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Both kinds belong together."""
    there = {each.kind for each in _ours(snapshot)}
    for kind in KINDS:
        if kind not in there:
            lacks = "no pod gets a tier" if kind == KINDS[0] else "nothing is refused, and no quota holds"
            yield Mistake(kind, f"none of gpu-tiers is there: {lacks}")


def ca_bundle_empty(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """A webhook behind a URL may have a certificate that everybody trusts."""
    for each in _ours(snapshot):
        empty = [entry.name for entry in each.webhooks if _lacks_bundle(entry)]
        if empty:
            what = f"{len(empty)} of {number_of(len(each.webhooks), 'webhook')} without caBundle"
            yield Mistake(str(each), f"{what}: {some_of(empty)}")


def failure_policy_differs(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Fail in Enforce, else Ignore, as the chart has it."""
    due = "Fail" if snapshot.policy.mode is Mode.Enforce else "Ignore"
    for each in _ours(snapshot):
        for entry in each.webhooks:
            if entry.name in GATES and entry.failure_policy != due:
                what = f"{entry.name} has failurePolicy {entry.failure_policy}; mode {snapshot.policy.mode.name} needs "
                yield Mistake(str(each), what + due)


def later_webhook(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Configurations are called in the order of their names."""
    own = max((each.metadata.name for each in _ours(snapshot) if each.kind == KINDS[0]), default=None)
    for each in snapshot.configurations if own else ():
        later = each.kind == KINDS[0] and not each.is_ours and each.metadata.name > (own or "")
        entries = [entry.name for entry in each.webhooks if entry.meets_new_pods] if later else []
        if entries:
            yield Mistake(str(each), f"is called after {own}, and may change pods: {some_of(entries)}")


def exempt_by_label(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """The chart exempts by name alone, which nobody can choose."""
    for each in _ours(snapshot):
        keys = {line.key for entry in each.webhooks for line in (*entry.namespaces, *entry.objects)} - {NAME_LABEL}
        if keys:
            yield Mistake(str(each), f"asks only where the label {some_of(sorted(keys))} allows it")


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


def certificate_expired(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """The one that the webhook serves."""
    for each in snapshot.certificates:
        if not each.ca and each.not_after <= snapshot.now:
            yield Mistake(each.where, _end(each, snapshot))


def certificate_expires(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """The one that the webhook serves."""
    for each in snapshot.certificates:
        if not each.ca and timedelta(0) < each.not_after - snapshot.now < SOON:
            yield Mistake(each.where, _end(each, snapshot))


def ca_expires(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """By which the API server trusts the webhook. While a CA is replaced there are two, and the old one may end."""
    for where in dict.fromkeys(each.where for each in snapshot.certificates if each.ca):
        last = max((each for each in snapshot.certificates if each.where == where), key=lambda each: each.not_after)
        if last.not_after - snapshot.now < SOON:
            yield Mistake(where, f"the CA in caBundle {_end(last, snapshot)}")


def _end(found: CertificateSeen, snapshot: ClusterSnapshot) -> str:
    left = found.not_after - snapshot.now
    if left <= timedelta(0):
        return f"expired on {found.not_after:%Y-%m-%d}"
    return f"expires on {found.not_after:%Y-%m-%d}, in {number_of(left.days, 'day')}"


def _ours(snapshot: ClusterSnapshot) -> Iterator[WebhookConfiguration]:
    return (each for each in snapshot.configurations if each.is_ours)


def _is_exempt(namespace: str, snapshot: ClusterSnapshot) -> bool:
    """Whether the API server asks us about no pod there."""
    labels = next((each.labels for each in snapshot.namespaces if each.name == namespace), {NAME_LABEL: namespace})
    return leaves_out(snapshot.configurations, labels)


def _lacks_bundle(entry: WebhookEntry) -> bool:
    return entry.client_config.service is not None and not entry.client_config.ca_bundle


RULES = (
    LintRule(
        "webhook-missing",
        Severity.ERROR,
        ("configurations",),
        webhook_missing,
        "The API server asks nobody: what the policy says does not happen, and nothing tells so.",
        "Run `helm upgrade` with the values of the release. If an installation was meant to end, remove what is left "
        "of it with `helm uninstall`.",
    ),
    LintRule(
        "ca-bundle-empty",
        Severity.ERROR,
        ("configurations",),
        ca_bundle_empty,
        "The API server can't trust the webhook, so that each call fails: under Ignore pods pass without a tier, under "
        "Fail no GPU pod starts.",
        "Read the webhook's log, or cert-manager's: one of the two writes it. With `certificates.source: files` set "
        "`certificates.caBundle`.",
    ),
    LintRule(
        "failure-policy-differs",
        Severity.ERROR,
        ("configurations",),
        failure_policy_differs,
        "With Ignore in Enforce pods pass without tier and quota whenever the webhook does not answer. With Fail in "
        "the other modes GPU pods wait for a webhook that refuses nothing.",
        "Run `helm upgrade` with the values of the release. That is also the way back from docs/break-glass.md.",
    ),
    LintRule(
        "exempt-by-label",
        Severity.WARNING,
        ("configurations",),
        exempt_by_label,
        "Whoever may set that label on a namespace or a pod gets GPUs without tier and quota.",
        "Run `helm upgrade` with the values of the release, and exempt namespaces by name: `exemptNamespaces`.",
    ),
    LintRule(
        "unknown-label",
        Severity.WARNING,
        ("pods",),
        unknown_label,
        "It begins with `gpu-tiers.dev/` and is none of gpu-tiers' labels: what its author wanted does not happen.",
        "Write the label as it is called on the pod template, and start the pods again.",
    ),
    LintRule(
        "gpus-in-exempt-namespace",
        Severity.WARNING,
        ("configurations", "namespaces", "pods"),
        gpus_in_exempt_namespace,
        "These pods have no tier: at priority 0 every tier evicts them, and no quota counts them.",
        "Take the namespace out of `exemptNamespaces`, or move the pods. Device plugins and exporters ask for no GPU.",
    ),
    LintRule(
        "pods-without-tier",
        Severity.WARNING,
        ("pods",),
        pods_without_tier,
        "They were there before gpu-tiers, or came while it did not answer, or keep a class of somebody else. At "
        "priority 0 every tier evicts them.",
        "Start them again so that they get a tier; until then `adoption: true` keeps them from being evicted. For kept "
        "classes set `unmanagedClasses` in the policy.",
    ),
    LintRule(
        "later-webhook",
        Severity.WARNING,
        ("configurations",),
        later_webhook,
        "It changes pods after gpu-tiers has. A pod to which it gives GPUs is refused in Enforce, and runs without a "
        "tier in the other modes; a class that it sets makes the pod be refused.",
        "Rename its configuration so that the name sorts first, or leave it if it touches neither resources nor "
        "priority, and ignore this rule.",
    ),
    LintRule(
        "certificate-expired",
        Severity.ERROR,
        ("certificates",),
        certificate_expired,
        "The API server can't trust the webhook, so that each call fails: under Ignore pods pass without a tier, under "
        "Fail no GPU pod starts.",
        "Restart the webhook's pods: gpu-tiers then makes a new one. If cert-manager or you keep it, renew it there.",
    ),
    LintRule(
        "certificate-expires",
        Severity.WARNING,
        ("certificates",),
        certificate_expires,
        "It should have been renewed by now. Once it has expired each call of the API server fails.",
        "Read the webhook's log for why it was not renewed. If cert-manager or you keep it, renew it there.",
    ),
    LintRule(
        "ca-expires",
        Severity.ERROR,
        ("configurations",),
        ca_expires,
        "Once it has expired the API server trusts no certificate of the webhook, and each call fails.",
        "Read the webhook's log for why there is no new one. If cert-manager or you keep it, renew it there.",
    ),
)
