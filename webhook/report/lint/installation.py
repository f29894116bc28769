"""Rules about the installation: how the API server asks gpu-tiers and other webhooks, and whether the webhook runs."""

from collections.abc import Iterator
from datetime import timedelta

from webhook.cluster.listed import CRD
from webhook.cluster.webhook_configurations import (
    ALWAYS,
    KINDS,
    OF_PODS,
    WebhookConfiguration,
    missing_kinds,
    without,
)
from webhook.config.published import active_map_of, digest_of
from webhook.policy.values.facts import NAME_LABEL
from webhook.policy.values.tier_policy import Mode
from webhook.report.lint.rule import Mistake, Severity, clauses_once, rule
from webhook.report.lint.snapshot import CertificateSeen, ClusterSnapshot, number_of, some_of

GATES = (OF_PODS, "pods-update.validate.gpu-tiers.dev", "resourceclaims.validate.gpu-tiers.dev")
"""The entries whose failurePolicy depends on the mode."""


@rule("webhook-missing", Severity.ERROR, "configurations", line="registered")
def webhook_missing(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find the kind of configuration that gpu-tiers lacks: it needs both."""
    for kind, lacks in without(missing_kinds(snapshot.configurations)):
        yield Mistake(kind, f"gpu-tiers has none: {lacks}")


@rule("guard-missing", Severity.ERROR, "configurations", "admission_policies", line="registered")
def guard_missing(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find ValidatingAdmissionPolicies that are missing, have no binding, or guard gates without Deny.

    Without any webhook configuration nothing is installed, so nothing is missing.
    """
    if not any(_ours(snapshot)):
        return
    for end in ALWAYS:
        if not any(each.name.endswith(end) for each in snapshot.admission_policies):
            yield Mistake("ValidatingAdmissionPolicy", f"gpu-tiers has none whose name ends with {end}")
    for each in snapshot.admission_policies:
        if not each.exists:
            yield Mistake(str(each), "does not exist, although a binding names it")
        elif not each.actions:
            yield Mistake(str(each), "no binding names it, so the API server does not ask it")
        elif each.keeps_gates and "Deny" not in each.actions:
            yield Mistake(str(each), f"its binding says {some_of(sorted(each.actions))}, not Deny")


@rule("crd-missing", Severity.ERROR, "tenants", line="tenants")
def crd_missing(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find an installation whose TenantQuotas are gone, because somebody deleted their CRD."""
    if not snapshot.has_crd:
        yield Mistake(f"CustomResourceDefinition/{CRD}", "does not exist, so no quota holds")


@rule("address-incomplete", Severity.ERROR, "configurations", line="registered")
def address_incomplete(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find webhooks behind a Service without a CA or path. A URL has a path, and perhaps a CA that everybody trusts."""
    for each in _ours(snapshot):
        called = [(entry.name, entry.client_config, entry.client_config.service) for entry in each.webhooks]
        no_ca = [name for name, config, service in called if service and not config.ca_bundle]
        no_path = [name for name, _, service in called if service and not service.path]
        for field, empty in (("caBundle", no_ca), ("path", no_path)):
            if empty:
                what = f"{len(empty)} of {number_of(len(each.webhooks), 'webhook')} without {field}"
                yield Mistake(str(each), f"{what}: {some_of(empty)}")


@rule("failure-policy-differs", Severity.ERROR, "configurations", line="registered")
def failure_policy_differs(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find entries of GATES whose failurePolicy differs from the chart's: Fail in Enforce, otherwise Ignore."""
    due = "Fail" if snapshot.policy.mode is Mode.Enforce else "Ignore"
    for each in _ours(snapshot):
        for entry in each.webhooks:
            if entry.name in GATES and entry.failure_policy != due:
                what = f"{entry.name} has failurePolicy {entry.failure_policy}; mode {snapshot.policy.mode.name} needs "
                yield Mistake(str(each), what + due)


@rule("exempt-by-label", Severity.WARNING, "configurations")
def exempt_by_label(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find webhooks that a label switches off. The chart exempts only by a namespace's name, which can't be changed."""
    for each in _ours(snapshot):
        keys = {line.key for entry in each.webhooks for line in (*entry.namespaces, *entry.objects)} - {NAME_LABEL}
        if keys:
            yield Mistake(str(each), f"leaves out namespaces or objects by the label {some_of(sorted(keys))}")


@rule("later-webhook", Severity.WARNING, "configurations")
def later_webhook(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find other webhooks that may change pods after ours: configurations are called in the order of their names."""
    own = max((each.metadata.name for each in _ours(snapshot) if each.kind == KINDS[0]), default=None)
    for each in snapshot.configurations if own else ():
        later = each.kind == KINDS[0] and not each.is_ours and each.metadata.name > (own or "")
        entries = [entry.name for entry in each.webhooks if entry.meets_new_pods] if later else []
        if entries:
            yield Mistake(str(each), f"is called after {own}, and may change pods: {some_of(entries)}")


def _ours(snapshot: ClusterSnapshot) -> Iterator[WebhookConfiguration]:
    return (each for each in snapshot.configurations if each.is_ours)


SOON = timedelta(days=14)
"""The time before expiry in which a renewal is overdue: gpu-tiers and cert-manager renew 30 days before expiry."""


@rule("certificate-expired", Severity.ERROR, "certificates", line="certificates")
def certificate_expired(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find a serving certificate that has expired."""
    for each in snapshot.certificates:
        if not each.ca and each.not_after <= snapshot.now:
            yield Mistake(each.where, _end(each, snapshot))


@rule("certificate-expires", Severity.WARNING, "certificates", line="certificates")
def certificate_expires(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find a serving certificate that expires soon."""
    for each in snapshot.certificates:
        if not each.ca and timedelta(0) < each.not_after - snapshot.now < SOON:
            yield Mistake(each.where, _end(each, snapshot))


@rule("ca-expires", Severity.ERROR, "configurations", line="certificates")
def ca_expires(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find a caBundle whose last CA expires soon or has expired. During a replacement an older CA in it may expire."""
    for where in dict.fromkeys(each.where for each in snapshot.certificates if each.ca):
        last = max((each for each in snapshot.certificates if each.where == where), key=lambda each: each.not_after)
        if last.not_after - snapshot.now < SOON:
            yield Mistake(where, f"the CA in caBundle {_end(last, snapshot)}")


def _end(found: CertificateSeen, snapshot: ClusterSnapshot) -> str:
    left = found.not_after - snapshot.now
    if left <= timedelta(0):
        return f"expired on {found.not_after:%Y-%m-%d}"
    return f"expires on {found.not_after:%Y-%m-%d}, in {number_of(left.days, 'day')}"


WEBHOOKS = ("mutate", "validate")
A_WAIT = 1.0
"""Seconds: the timeout of each webhook is longer, and a call that fails by itself takes less."""
OLDEST_WATCH = 150
"""Seconds: the API server says something on each watch about once a minute."""


@rule("webhook-silent", Severity.ERROR, "answer", line="webhook")
def webhook_silent(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find webhooks that did not mark a dry run. Under Ignore the API server waits for them, and goes on silently."""
    asked = snapshot.dry_run
    missing = [each for each in WEBHOOKS if each not in {mark.webhook for mark in asked.marks}]
    if missing:
        # The API server reports no result of a call under Ignore: only the time shows it.
        why = "no replica answers (none is ready, or they hang), or its certificate is not trusted"
        if asked.seconds >= A_WAIT:
            why = "it waited for an answer: replicas hang, or the network blocks them"
        said = asked.said or f"the API server admitted it under failurePolicy Ignore, and {why}"
        yield Mistake(" and ".join(missing), f"did not mark a dry run, which took {asked.seconds:.1f} s: {said}")


@rule("policy-not-taken", Severity.ERROR, "read_active_policy", line="policy")
def policy_not_taken(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Report a policy file that the leader did not take, that is active with a problem, or whose ConfigMap is gone."""
    found, published = snapshot.installed, snapshot.installed.published
    if published is None or not (found.gone or published.problem):
        return
    active = f"the policy of {published.since} stays active" if published.since or found.gone else "none is active"
    what = f"was not taken, {active}: {clauses_once(published.problem)}"
    if found.gone:
        what = f"does not exist, so no new replica can start; {active}"
    elif published.digest == digest_of(found.file):
        what = f"active since {published.since}, but not as it should be: {clauses_once(published.problem)}"
    yield Mistake(f"ConfigMap {found.where}", what)


@rule("policy-not-yet-taken", Severity.WARNING, "read_active_policy", line="policy")
def policy_not_yet_taken(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find a policy file that changed and is not active yet, or that no replica has published a policy.

    A kubelet brings a change of the file within two minutes or so.
    """
    found = snapshot.installed
    if found.published is None:
        yield Mistake(f"ConfigMap {active_map_of(found.where)}", "no replica has reported which policy is active")
    elif not (found.gone or found.published.problem) and found.published.digest != digest_of(found.file):
        yield Mistake(f"ConfigMap {found.where}", f"was changed; the policy of {found.published.since} is still active")


@rule("replica-differs", Severity.WARNING, "read_active_policy", "replica", line="replica")
def replica_differs(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Compare the policy of the replica that answered with the leader's; other replicas are unknown."""
    replica, published = snapshot.replica, snapshot.installed.published
    if replica is None or published is None:
        return
    if replica.policy != published.digest:
        has = f"runs policy {replica.policy}, the leader {published.digest}"
        yield Mistake(f"replica {replica.replica}", has)
    elif not replica.taken and not published.problem:
        yield Mistake(f"replica {replica.replica}", "did not take the policy file that the leader took")


@rule("no-leader", Severity.ERROR, "leader", line="leader")
def no_leader(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find a Lease that no replica renews. It was read again for its whole duration, so no clocks are compared."""
    if not snapshot.leader:
        yield Mistake(f"Lease {snapshot.installed.where}", "no replica renews it")


@rule("ledger-not-exact", Severity.WARNING, "tenants", "accounts", line="ledger")
def ledger_not_exact(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Report tenants whose condition Exact, which the leader writes, is missing or not True."""
    for each in snapshot.tenants:
        conditions = each.status.get("conditions") or ()
        exact = [found for found in conditions if found.get("type") == "Exact"] or [{}]
        if exact[0].get("status") != "True":
            yield Mistake(f"TenantQuota/{each.name}", str(exact[0].get("message") or "its pods are not counted yet"))


@rule("watches-silent", Severity.WARNING, "replica", line="replica")
def watches_silent(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Find a replica that answered and has a watch without an event for too long."""
    replica = snapshot.replica
    if replica is not None and replica.watches > OLDEST_WATCH:
        yield Mistake(f"replica {replica.replica}", f"a watch has said nothing for {replica.watches} s")
