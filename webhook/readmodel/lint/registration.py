"""Rules about how the API server is told to ask gpu-tiers, and whom else it asks."""

from collections.abc import Iterator
from datetime import timedelta

from webhook.cluster.webhook_configurations import BY_NAME, KINDS, WebhookConfiguration, WebhookEntry
from webhook.policy.values.tier_policy import Mode
from webhook.readmodel.lint.rule import Rule, Seen, Severity
from webhook.readmodel.lint.snapshot import ClusterSnapshot, counted, listed

GATES = ("pods.validate.gpu-tiers.dev", "pods-update.validate.gpu-tiers.dev")
"""The entries whose failurePolicy depends on the mode."""
SOON = timedelta(days=14)
"""A certificate that nobody has renewed by then: gpu-tiers renews its own 30 days before, cert-manager too."""


def webhook_missing(snapshot: ClusterSnapshot) -> Iterator[Seen]:
    """Both kinds belong together."""
    there = {each.kind for each in _ours(snapshot)}
    for kind in KINDS:
        if kind not in there:
            lacks = "no pod gets a tier" if kind == KINDS[0] else "nothing is refused, and no quota holds"
            yield Seen(kind, f"none of gpu-tiers is there: {lacks}")


def ca_bundle_empty(snapshot: ClusterSnapshot) -> Iterator[Seen]:
    """A webhook behind a URL may have a certificate that everybody trusts."""
    for each in _ours(snapshot):
        empty = [entry.name for entry in each.webhooks if _lacks_bundle(entry)]
        if empty:
            what = f"no caBundle in {len(empty)} of {counted(len(each.webhooks), 'entry').replace('ys', 'ies')}"
            yield Seen(str(each), f"{what}: {listed(empty)}")


def failure_policy_differs(snapshot: ClusterSnapshot) -> Iterator[Seen]:
    """Fail in Enforce, else Ignore, as the chart has it."""
    due = "Fail" if snapshot.policy.mode is Mode.Enforce else "Ignore"
    for each in _ours(snapshot):
        for entry in each.webhooks:
            if entry.name in GATES and entry.failure_policy != due:
                what = f"{entry.name} has failurePolicy {entry.failure_policy}; mode {snapshot.policy.mode.name} needs "
                yield Seen(str(each), what + due)


def later_webhook(snapshot: ClusterSnapshot) -> Iterator[Seen]:
    """Configurations are called in the order of their names."""
    own = max((each.metadata.name for each in _ours(snapshot) if each.kind == KINDS[0]), default=None)
    for each in snapshot.configurations if own else ():
        later = each.kind == KINDS[0] and not each.is_ours and each.metadata.name > (own or "")
        entries = [entry.name for entry in each.webhooks if entry.meets_new_pods] if later else []
        if entries:
            yield Seen(str(each), f"is called after {own}, and may change pods: {listed(entries)}")


def exempt_by_label(snapshot: ClusterSnapshot) -> Iterator[Seen]:
    """The chart exempts by name alone, which nobody can choose."""
    for each in _ours(snapshot):
        keys = {line.key for entry in each.webhooks for line in (*entry.namespaces, *entry.objects)} - {BY_NAME}
        if keys:
            yield Seen(str(each), f"asks only where the label {listed(sorted(keys))} allows it")


def gpus_in_exempt_namespace(snapshot: ClusterSnapshot) -> Iterator[Seen]:
    """Namespaces that the entries for pods leave out."""
    entries = [entry for each in _ours(snapshot) for entry in each.webhooks if entry.name == GATES[0]]
    labels = {each.name: each.labels for each in snapshot.namespaces}
    for name in sorted({pod.namespace for pod in snapshot.pods}):
        exempt = any(
            not line.matches(labels.get(name, {BY_NAME: name})) for each in entries for line in each.namespaces
        )
        if exempt:
            pods = [pod for pod in snapshot.pods if pod.namespace == name]
            yield Seen(f"Namespace/{name}", f"is exempt, and has {counted(len(pods), 'pod')} with GPUs")


def certificate_expired(snapshot: ClusterSnapshot) -> Iterator[Seen]:
    """Now."""
    for each in snapshot.certificates:
        if each.not_after <= snapshot.now:
            yield Seen(each.where, f"{each.what} expired on {each.not_after:%Y-%m-%d}")


def certificate_expires(snapshot: ClusterSnapshot) -> Iterator[Seen]:
    """Soon."""
    for each in snapshot.certificates:
        left = each.not_after - snapshot.now
        if timedelta(0) < left < SOON:
            yield Seen(each.where, f"{each.what} expires on {each.not_after:%Y-%m-%d}, in {counted(left.days, 'day')}")


def _ours(snapshot: ClusterSnapshot) -> Iterator[WebhookConfiguration]:
    return (each for each in snapshot.configurations if each.is_ours)


def _lacks_bundle(entry: WebhookEntry) -> bool:
    return entry.client_config.service is not None and not entry.client_config.ca_bundle


RULES = (
    Rule(
        "webhook-missing",
        Severity.ERROR,
        ("configurations",),
        webhook_missing,
        "The API server asks nobody: what the policy says does not happen, and nothing tells so.",
        "Run `helm upgrade` with the values of the release. If an installation was meant to end, remove what is left "
        "of it with `helm uninstall`.",
    ),
    Rule(
        "ca-bundle-empty",
        Severity.ERROR,
        ("configurations",),
        ca_bundle_empty,
        "The API server can't trust the webhook, so that each call fails: under Ignore pods pass without a tier, under "
        "Fail no GPU pod starts.",
        "Read the webhook's log, or cert-manager's: one of the two writes it. With `certificates.source: files` set "
        "`certificates.caBundle`.",
    ),
    Rule(
        "failure-policy-differs",
        Severity.ERROR,
        ("configurations",),
        failure_policy_differs,
        "With Ignore in Enforce pods pass without tier and quota whenever the webhook does not answer. With Fail in "
        "the other modes GPU pods wait for a webhook that refuses nothing.",
        "Run `helm upgrade` with the values of the release. That is also the way back from docs/break-glass.md.",
    ),
    Rule(
        "exempt-by-label",
        Severity.WARNING,
        ("configurations",),
        exempt_by_label,
        "Whoever may set that label on a namespace or a pod gets GPUs without tier and quota.",
        "Run `helm upgrade` with the values of the release, and exempt namespaces by name: `exemptNamespaces`.",
    ),
    Rule(
        "gpus-in-exempt-namespace",
        Severity.WARNING,
        ("configurations", "namespaces", "pods"),
        gpus_in_exempt_namespace,
        "These pods have no tier: at priority 0 every tier evicts them, and no quota counts them.",
        "Take the namespace out of `exemptNamespaces`, or move the pods. Device plugins and exporters ask for no GPU.",
    ),
    Rule(
        "later-webhook",
        Severity.WARNING,
        ("configurations",),
        later_webhook,
        "It changes pods after gpu-tiers has. A pod to which it gives GPUs is refused in Enforce, and runs without a "
        "tier in the other modes; a class that it sets makes the pod be refused.",
        "Rename its configuration so that the name sorts first, or leave it if it touches neither resources nor "
        "priority, and ignore this rule.",
    ),
    Rule(
        "certificate-expired",
        Severity.ERROR,
        ("certificates",),
        certificate_expired,
        "The API server can't trust the webhook, so that each call fails: under Ignore pods pass without a tier, under "
        "Fail no GPU pod starts.",
        "Restart the webhook's pods: gpu-tiers then makes a new one. If cert-manager or you keep it, renew it there.",
    ),
    Rule(
        "certificate-expires",
        Severity.WARNING,
        ("certificates",),
        certificate_expires,
        "It should have been renewed by now. Once it has expired each call of the API server fails.",
        "Read the webhook's log for why it was not renewed. If cert-manager or you keep it, renew it there.",
    ),
)
