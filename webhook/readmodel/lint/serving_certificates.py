"""Rules about the certificates by which the API server trusts gpu-tiers."""

from collections.abc import Iterator
from datetime import timedelta

from webhook.readmodel.lint.rule import LintRule, Mistake, Severity
from webhook.readmodel.lint.snapshot import CertificateSeen, ClusterSnapshot, number_of

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
