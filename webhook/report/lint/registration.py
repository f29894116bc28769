"""Rules about how the API server is told to ask gpu-tiers, why it trusts it, and whom else it asks."""

from collections.abc import Iterator
from datetime import timedelta

from webhook.cluster.webhook_configurations import (
    KINDS,
    OF_GATES,
    OF_PODS,
    WebhookConfiguration,
    missing_kinds,
    without,
)
from webhook.policy.values.facts import NAME_LABEL
from webhook.policy.values.tier_policy import Mode
from webhook.report.lint.rule import LintRule, Mistake, Severity
from webhook.report.lint.snapshot import CertificateSeen, ClusterSnapshot, number_of, some_of

GATES = (OF_PODS, "pods-update.validate.gpu-tiers.dev", "resourceclaims.validate.gpu-tiers.dev")
"""The entries whose failurePolicy depends on the mode."""


def webhook_missing(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Both kinds belong together."""
    for kind, lacks in without(missing_kinds(snapshot.configurations)):
        yield Mistake(kind, f"none of gpu-tiers is there: {lacks}")


def guard_missing(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Of what the API server refuses by itself. Where no webhook is registered, nothing is installed."""
    if not any(_ours(snapshot)):
        return
    if not any(each.keeps_gates for each in snapshot.admission_policies):
        yield Mistake("ValidatingAdmissionPolicy", f"none of gpu-tiers whose name ends with {OF_GATES} is there")
    for each in snapshot.admission_policies:
        if not each.actions:
            yield Mistake(str(each), "no binding names it, so the API server does not ask it")
        elif each.keeps_gates and "Deny" not in each.actions:
            yield Mistake(str(each), f"its binding says {some_of(sorted(each.actions))}, not Deny")


def ca_bundle_empty(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """A webhook behind a URL may have a certificate that everybody trusts."""
    for each in _ours(snapshot):
        empty = [
            entry.name for entry in each.webhooks if entry.client_config.service and not entry.client_config.ca_bundle
        ]
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


def _ours(snapshot: ClusterSnapshot) -> Iterator[WebhookConfiguration]:
    return (each for each in snapshot.configurations if each.is_ours)


SOON = timedelta(days=14)
"""A certificate that nobody has renewed by then: gpu-tiers renews its own 30 days before, cert-manager too."""


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


RULES = (
    LintRule(
        "webhook-missing",
        Severity.ERROR,
        ("configurations",),
        webhook_missing,
        "Run `helm upgrade` with the values of the release.",
    ),
    LintRule(
        "guard-missing",
        Severity.ERROR,
        ("configurations", "admission_policies"),
        guard_missing,
        "Run `helm upgrade` with the values of the release.",
    ),
    LintRule(
        "ca-bundle-empty",
        Severity.ERROR,
        ("configurations",),
        ca_bundle_empty,
        "Read the webhook's log, or cert-manager's: one of the two writes it.",
    ),
    LintRule(
        "failure-policy-differs",
        Severity.ERROR,
        ("configurations",),
        failure_policy_differs,
        "Run `helm upgrade` with the values of the release.",
    ),
    LintRule(
        "exempt-by-label",
        Severity.WARNING,
        ("configurations",),
        exempt_by_label,
        "Run `helm upgrade` with the values of the release, and exempt namespaces by name.",
    ),
    LintRule(
        "later-webhook",
        Severity.WARNING,
        ("configurations",),
        later_webhook,
        "Rename the configuration so that its name sorts first.",
    ),
    LintRule(
        "certificate-expired",
        Severity.ERROR,
        ("certificates",),
        certificate_expired,
        "Restart the webhook's pods: gpu-tiers then makes a new one.",
    ),
    LintRule(
        "certificate-expires",
        Severity.WARNING,
        ("certificates",),
        certificate_expires,
        "Read the webhook's log for why it was not renewed.",
    ),
    LintRule(
        "ca-expires",
        Severity.ERROR,
        ("configurations",),
        ca_expires,
        "Read the webhook's log for why there is no new one.",
    ),
)
