"""Labels and annotations in gpu-tiers' own domain that mean nothing: a misspelt one, without which all goes on."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Protocol

from webhook.objects.phrase import AdmissionWarning
from webhook.objects.pods import QUOTA_GATE
from webhook.policy.assignment.request import DEFAULT_TIER_LABEL, TIER_LABEL, UNTIERED_LABEL
from webhook.policy.checkpoint.hook_request import CHECKPOINT
from webhook.policy.checkpoint.hook_request import KNOWN as OF_HOOKS
from webhook.policy.quota.tenant_quotas import CHECKED_NAMES
from webhook.policy.values.tier_policy import MODE_LABEL
from webhook.policy.workloads.templates import DOMAIN
from webhook.policy.written_keys import MARKS

LIKE_OURS = re.compile("^gpu[-.]?t[eirs]+[.][a-z]+/")
"""Begins keys of our domain, and of what people write for it: gpu-tier.dev, gputiers.io. It stands in the chart too."""
MOST_TOLD = 3
"""Warnings about one object. To look for what was meant takes 0.3 ms a key."""
MOST_READ = 64
MOST_SHOWN = 76
"""Characters of a key: those of the domain and of the longest name that Kubernetes allows."""
WRITTEN_BY_PEOPLE = (TIER_LABEL, *OF_HOOKS)
KNOWN_KEYS = frozenset(
    {
        *WRITTEN_BY_PEOPLE,
        *MARKS,
        *(CHECKED_NAMES, DEFAULT_TIER_LABEL, MODE_LABEL, QUOTA_GATE, UNTIERED_LABEL),
        f"{DOMAIN}check",
    }
)
"""Those of pods and workloads, and of namespaces, whose labels some tools copy; the name of our gate too."""


class Bearer(Protocol):
    """What has labels and annotations."""

    @property
    def labels(self) -> Mapping[str, str]: ...

    @property
    def annotations(self) -> Mapping[str, str]: ...


def unknown_keys(bearers: Iterable[Bearer]) -> Iterator[AdmissionWarning]:
    """A warning for each label and annotation of theirs that gpu-tiers does not know; of many for a few."""
    found = dict.fromkeys(islice((each for bearer in bearers for each in _meaningless(bearer)), MOST_READ))
    for key, other in islice(found, MOST_TOLD):
        yield AdmissionWarning("unknown-key", key=key[:MOST_SHOWN], likely=other or likely_key(key))


def _meaningless(bearer: Bearer) -> Iterator[tuple[str, str]]:
    """The keys, and where it would have a meaning if it stood there; "" for one without any."""
    for key in bearer.labels:
        if key in OF_HOOKS:
            yield f"label {key}", "the annotation of that name"
        elif is_unknown(key):
            yield key, ""
    for key in bearer.annotations:
        if key == TIER_LABEL:
            yield f"annotation {key}", "the label of that name"
        elif is_unknown(key):
            yield key, ""


def is_unknown(key: str) -> bool:
    """Tells whether a label or an annotation is in our domain and means nothing, or is in one that was to be ours."""
    if key.startswith(DOMAIN):
        return key not in KNOWN_KEYS
    return LIKE_OURS.match(key) is not None and _near(key) != []


@lru_cache(maxsize=256)
def likely_key(key: str) -> str:
    """The key that was perhaps meant; where none is like it, the two that most are looking for."""
    near = _near(key)
    return f"{DOMAIN}{near[0]}" if near else f"{TIER_LABEL} or {CHECKPOINT}"


def _near(key: str) -> list[str]:
    names = [each.removeprefix(DOMAIN) for each in WRITTEN_BY_PEOPLE]
    return difflib.get_close_matches(key.rpartition("/")[2][:MOST_SHOWN].lower(), names, n=1)
