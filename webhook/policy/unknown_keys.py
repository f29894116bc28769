"""Labels and annotations in gpu-tiers' own domain that mean nothing: a misspelt one, without which all goes on."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice

from webhook.policy.assignment.kueue import QUEUE_CLASS
from webhook.policy.assignment.request import ASSIGNED_BY, DEFAULT_TIER_LABEL, GANG, TIER_LABEL
from webhook.policy.checkpoint.hook_request import CHECKPOINT
from webhook.policy.checkpoint.hook_request import KNOWN as OF_HOOKS
from webhook.policy.values.warning_texts import said
from webhook.policy.workloads.templates import TEMPLATE_CLASS

DOMAIN = "gpu-tiers.dev/"
MOST_TOLD = 3
"""Warnings about one object. To look for what was meant takes 0.3 ms a key."""
MOST_SHOWN = 76
"""Characters of a key: those of the domain and of the longest name that Kubernetes allows."""
WRITTEN_BY_PEOPLE = (TIER_LABEL, *OF_HOOKS)
KNOWN_KEYS = frozenset(
    {
        *WRITTEN_BY_PEOPLE,
        *(ASSIGNED_BY, DEFAULT_TIER_LABEL, GANG, QUEUE_CLASS, TEMPLATE_CLASS),
        *(f"{DOMAIN}dry-run-owner", f"{DOMAIN}mode"),
    }
)
"""Those of pods and workloads, and of namespaces, whose labels some tools copy."""


def unknown_keys(carriers: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """A warning for each key of these labels and annotations that gpu-tiers does not know; of many for a few."""
    ours = {key: None for carrier in carriers for key in carrier if is_unknown(key)}
    return (said("unknown-key", key=key[:MOST_SHOWN], likely=likely_key(key)) for key in islice(ours, MOST_TOLD))


def is_unknown(key: str) -> bool:
    """Whether a label or an annotation is in our domain and means nothing."""
    return key.startswith(DOMAIN) and key not in KNOWN_KEYS


@lru_cache(maxsize=256)
def likely_key(key: str) -> str:
    """The key that was perhaps meant; where none is like it, the two that most are looking for."""
    names = [each.removeprefix(DOMAIN) for each in WRITTEN_BY_PEOPLE]
    near = difflib.get_close_matches(key.removeprefix(DOMAIN)[:MOST_SHOWN].lower(), names, n=1)
    return f"{DOMAIN}{near[0]}" if near else f"{TIER_LABEL} or {CHECKPOINT}"
