"""What a case names that neither the policy nor the tenants have."""

from collections.abc import Iterator

from webhook.cli.documents import Document
from webhook.cli.policy_tests.missing_files import Place
from webhook.cli.policy_tests.suite import CaseSection
from webhook.cluster.offline import OfflineCluster
from webhook.policy.values.tier_policy import TierPolicy


def missing_references(
    case: CaseSection, document: Document, cluster: OfflineCluster, policy: TierPolicy
) -> Iterator[tuple[Place, str]]:
    """Each such name in a sentence, with the field's place in the case."""
    tiers, flavors = [each.name for each in policy.tiers], [each.name for each in policy.flavors]
    if case.expect.tier is not None:
        yield from _unknown(("expect", "tier"), "expect.tier", case.expect.tier, tiers, "tier")
    if case.used and cluster.tenant_name(document.namespace) is None:
        yield ("used",), f"used: no tenant selects namespace {document.namespace}, so nothing is counted there"
    for number, row in enumerate(case.used):
        way = f"used[{number}]"
        if row.tier is not None:
            yield from _unknown(("used", number, "tier"), f"{way}.tier", row.tier, tiers, "tier")
        if row.resource_flavor is not None:
            place = ("used", number, "resourceFlavor")
            yield from _unknown(place, f"{way}.resourceFlavor", row.resource_flavor, flavors, "resource flavor")


def _unknown(place: Place, field: str, value: str, known: list[str], what: str) -> Iterator[tuple[Place, str]]:
    if value not in known:
        there = f"write one of {', '.join(known)}" if known else f"the policy has no {what}"
        yield place, f'{field}: "{value}" is no {what} of the policy; {there}'
