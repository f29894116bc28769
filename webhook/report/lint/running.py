"""Rules about whether the webhook runs: it answers, somebody leads, and the policy file is in force."""

from collections.abc import Iterator

from webhook.config.published import digest_of, place_beside
from webhook.report.lint.rule import LintRule, Mistake, Severity, clauses_once
from webhook.report.lint.snapshot import ClusterSnapshot

WEBHOOKS = ("mutate", "validate")
A_WAIT = 1.0
"""Seconds: the timeout of each webhook is longer, and a call that fails by itself takes less."""
OLDEST_WATCH = 150
"""Seconds: the API server says something on each watch about once a minute."""


def webhook_silent(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Under Ignore the API server waits for it, and goes on without a word."""
    asked = snapshot.running.dry_run
    missing = [each for each in WEBHOOKS if each not in {mark.webhook for mark in asked.marks}]
    if missing:
        said = asked.said or _passed(asked.seconds)
        yield Mistake(" and ".join(missing), f"did not mark a dry run, which took {asked.seconds:.1f} s: {said}")


def _passed(seconds: float) -> str:
    """Why a dry run is not marked that the API server lets pass: it tells nobody what a call under Ignore came to."""
    if seconds >= A_WAIT:
        why = "it waited for an answer: replicas hang, or the way to them is closed"
    else:
        why = "calls fail at once: no replica listens where the Service leads, or its certificate is not trusted"
    return f"the API server let it pass, as failurePolicy Ignore has it, and {why}"


def no_leader(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """The Lease is watched for as long as it lasts: no clocks are compared."""
    if not snapshot.running.leader:
        yield Mistake(f"Lease {snapshot.running.installed.where}", "no replica renews it")


def ledger_not_exact(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """The condition Exact, which the leader keeps."""
    for each in snapshot.tenants:
        conditions = each.status.get("conditions") or ()
        exact = [found for found in conditions if found.get("type") == "Exact"] or [{}]
        if exact[0].get("status") != "True":
            yield Mistake(f"TenantQuota/{each.name}", str(exact[0].get("message") or "its pods are not counted yet"))


def policy_not_taken(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """As the leader says it."""
    found = snapshot.running.installed
    told = found.published
    if told and found.gone:
        kept = f"that of {told.since} stays in force"
        yield Mistake(f"ConfigMap {found.where}", f"does not exist, so no new replica can start; {kept}")
    elif told and told.problem and told.digest == digest_of(found.file):
        what = f"in force since {told.since}, but not as it should be: {clauses_once(told.problem)}"
        yield Mistake(f"ConfigMap {found.where}", what)
    elif told and told.problem:
        since = told.since
        kept = f"that of {since} stays in force" if since else "none is in force"
        yield Mistake(f"ConfigMap {found.where}", f"was not taken, {kept}: {clauses_once(told.problem)}")


def policy_not_yet_taken(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """A kubelet brings a change within a minute or two."""
    found = snapshot.running.installed
    if found.published is None:
        yield Mistake(f"ConfigMap {place_beside(found.where)}", "no replica has told which policy is in force")
    elif not (found.gone or found.published.problem) and found.published.digest != digest_of(found.file):
        yield Mistake(f"ConfigMap {found.where}", f"was changed; that of {found.published.since} is in force still")


def replica_differs(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Only the replica that answered is known."""
    replica, published = snapshot.running.replica, snapshot.running.installed.published
    if replica is None or published is None:
        return
    if replica.policy != published.digest:
        has = f"has policy {replica.policy} in force, the leader {published.digest}"
        yield Mistake(f"replica {replica.replica}", has)
    elif not replica.taken and not published.problem:
        yield Mistake(f"replica {replica.replica}", "did not take the policy file that the leader took")


def watches_silent(snapshot: ClusterSnapshot) -> Iterator[Mistake]:
    """Of the replica that answered."""
    replica = snapshot.running.replica
    if replica is not None and replica.watches > OLDEST_WATCH:
        yield Mistake(f"replica {replica.replica}", f"a watch has said nothing for {replica.watches} s")


RULES = (
    LintRule(
        "webhook-silent",
        Severity.ERROR,
        ("answer",),
        webhook_silent,
        "Look at the Deployment's pods and their log.",
    ),
    LintRule(
        "policy-not-taken",
        Severity.ERROR,
        ("policy_in_force",),
        policy_not_taken,
        "Correct the fields that are named, or go back with `helm rollback`.",
    ),
    LintRule(
        "policy-not-yet-taken",
        Severity.WARNING,
        ("policy_in_force",),
        policy_not_yet_taken,
        "Wait a minute or two: `gpu-tiers check --wait 3m`.",
    ),
    LintRule(
        "replica-differs",
        Severity.WARNING,
        ("policy_in_force", "replica"),
        replica_differs,
        "Wait a minute or two. If it stays so, restart that replica.",
    ),
    LintRule(
        "no-leader",
        Severity.ERROR,
        ("leader",),
        no_leader,
        "Look at the log of the replicas for what they can't reach.",
    ),
    LintRule(
        "ledger-not-exact",
        Severity.WARNING,
        ("tenants", "accounts"),
        ledger_not_exact,
        "Wait; if it stays so, look at the leader's log.",
    ),
    LintRule(
        "watches-silent",
        Severity.WARNING,
        ("replica",),
        watches_silent,
        "Look at the replica's log for a watch that fails, and at how the API server answers.",
    ),
)
