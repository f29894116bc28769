"""gpu-tiers' labels on a namespace that say nothing, or nothing that there is; all goes on as if they weren't there."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from webhook.objects.phrase import AdmissionWarning
from webhook.policy.assignment.request import DEFAULT_TIER_LABEL, UNTIERED_LABEL
from webhook.policy.unknown_keys import LIKE_OURS, MOST_READ, MOST_SHOWN, MOST_TOLD
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import MODE_LABEL, Mode, TierPolicy
from webhook.policy.workloads.templates import DOMAIN

_OF_NAMESPACES = {
    "mode": MODE_LABEL,
    "default-tier": DEFAULT_TIER_LABEL,
    "tier": DEFAULT_TIER_LABEL,
    "untiered": UNTIERED_LABEL,
}
"""The labels that a namespace may have, by what people write for them."""


def namespace_warnings(
    labels: Mapping[str, str], policy: TierPolicy, tenants: Iterable[Tenant]
) -> Iterator[AdmissionWarning]:
    """What whoever set these labels will want to correct. Labels by which tenants are selected have a meaning."""
    ours = sorted(key for key in labels if LIKE_OURS.match(key))[:MOST_READ]
    if not ours:
        return
    mode, tier = labels.get(MODE_LABEL), labels.get(DEFAULT_TIER_LABEL)
    if mode and mode.capitalize() not in Mode.__members__:
        yield AdmissionWarning("unknown-mode", value=mode, likely=_likely(mode, [*Mode.__members__]))
    if tier is not None and policy.tiers.get(tier) is None:
        names = [each.name for each in policy.tiers]
        yield AdmissionWarning("unknown-default-tier", value=tier, likely=_likely(tier, names))
    choice = labels.get(UNTIERED_LABEL)
    if choice and choice.lower() not in ("assign", "refuse"):
        yield AdmissionWarning("unknown-choice", value=choice, likely=_likely(choice, ["Assign", "Refuse"]))
    selecting = {line.key for tenant in tenants for line in tenant.selector}
    meant = {key: _meant(key) for key in ours if key not in {*_OF_NAMESPACES.values(), *selecting}}
    for key, likely in islice(((key, likely) for key, likely in meant.items() if likely), MOST_TOLD):
        yield AdmissionWarning("unknown-key", key=f"label {key[:MOST_SHOWN]}", likely=likely)


@lru_cache(maxsize=256)
def _meant(key: str) -> str:
    """The label that was perhaps meant; "" for one of somebody else's that is like none of ours."""
    near = difflib.get_close_matches(key.rpartition("/")[2].lower(), _OF_NAMESPACES, n=1)
    if near:
        return _OF_NAMESPACES[near[0]]
    return f"{MODE_LABEL} or default-tier" if key.startswith(DOMAIN) else ""


def _likely(value: str, names: Sequence[str]) -> str:
    """The name that was perhaps meant; where none is like it, all of them."""
    by_lower = {name.lower(): name for name in names}
    near = difflib.get_close_matches(value.lower(), by_lower, n=1)
    *most, last = names
    return by_lower[near[0]] if near else " or ".join(filter(None, (", ".join(most), last)))
