"""The labels and annotations in gpu-tiers' own domain: the ones that it writes, and the ones without a meaning.

An existing key stays as it is, whoever wrote it, because a selector or its author may need it. Only our own marks are
overwritten. They are annotations, which no selector names, and describe the object that has them. Any other text in a
mark is forged, or was copied from another object with its manifest.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from webhook.objects.pods import QUOTA_GATE, Metadata
from webhook.objects.refusal import AdmissionWarning
from webhook.policy.assignment.assigned_by import ASSIGNED_BY
from webhook.policy.assignment.kueue import PRIORITY_CLASS, QUEUE_CLASS
from webhook.policy.assignment.request import DEFAULT_TIER_LABEL, GANG, TIER_LABEL, UNTIERED_LABEL
from webhook.policy.checkpoint.hook_plan import KNOWN as OF_HOOKS
from webhook.policy.checkpoint.listen import ANNOTATIONS
from webhook.policy.checkpoint.work_lost import MAX_AT_RISK
from webhook.policy.placement import CLUSTER_AUTOSCALER, KAI_PREEMPTIBILITY, KAI_QUEUE, KARPENTER, VOLCANO_QUEUE
from webhook.policy.quota.demand import CLAIMED
from webhook.policy.quota.tenant_quotas import CHECKED_NAMES
from webhook.policy.saves.save_requests import SAVE_REQUESTED
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tier_policy import MODE_LABEL, Mode, TierPolicy
from webhook.policy.workloads.templates import DOMAIN, TEMPLATE_CLASS
from webhook.policy.workloads.workload import Workload

EVICTABLE_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
"""Volumes that don't keep Cluster Autoscaler from removing the node, separated by commas without spaces.

Our volume is added to the author's list, whose entries stay (admission/patch.py).
"""
LABELS = (TIER_LABEL, PRIORITY_CLASS, KAI_QUEUE, KAI_PREEMPTIBILITY)
MARKS = frozenset({ASSIGNED_BY, CLAIMED, GANG, QUEUE_CLASS, TEMPLATE_CLASS, *ANNOTATIONS.values()})
"""Annotations that people don't write. The listener's text is among them, because an old one has an old protocol."""
WRITTEN = frozenset({*LABELS, VOLCANO_QUEUE, KARPENTER, CLUSTER_AUTOSCALER, EVICTABLE_VOLUMES, MAX_AT_RISK, *MARKS})
"""All keys that gpu-tiers writes on objects under review; controllers/work_at_risk.py has further ones."""

_OURS = MARKS | {PRIORITY_CLASS, EVICTABLE_VOLUMES}
"""The keys that are overwritten. Kueue's label is in `wanted` only if nobody else wrote it, by
QUEUE_CLASS (assignment/kueue.py)."""


def due(there: Mapping[str, str], wanted: Mapping[str, str], selects: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return the entries to write in a map of labels or annotations: absent ones, and our own.

    Labels in `selects` are left out, because the pod's controller may want pods without them. Raises LookupError for a
    key that is not in WRITTEN, which is our own mistake.
    """
    if not wanted.keys() <= WRITTEN:
        raise LookupError(f"not in the list of written keys: {', '.join(wanted.keys() - WRITTEN)}")
    free = ((key, value) for key, value in wanted.items() if key not in selects)
    return {key: value for key, value in free if key not in there or key in _OURS}


LIKE_OURS = re.compile("^gpu[-.]?t[eirs]+[.][a-z]+/")
"""Starts of keys in our domain, and in domains that people write for it: gpu-tier.dev, gputiers.io. The chart has it
too."""
MOST_NAMED_KEYS = 3
"""Warnings about one object. The search for the intended key takes 0.3 ms a key."""
MOST_READ = 64
MOST_SHOWN = 76
"""Characters of a shown key: the domain and the longest name that Kubernetes allows."""
WRITTEN_BY_PEOPLE = (TIER_LABEL, *OF_HOOKS, SAVE_REQUESTED)
_BY_NAME = {each.removeprefix(DOMAIN): each for each in WRITTEN_BY_PEOPLE}
KNOWN_KEYS = frozenset(
    {
        *WRITTEN_BY_PEOPLE,
        *MARKS,
        *(CHECKED_NAMES, DEFAULT_TIER_LABEL, MODE_LABEL, QUOTA_GATE, UNTIERED_LABEL),
        f"{DOMAIN}check",
    }
)
"""The keys of pods, workloads and namespaces, whose labels some tools copy, and the name of our gate."""


def unknown_keys(bearers: Iterable[Metadata | Workload]) -> Iterator[AdmissionWarning]:
    """Yield a warning for each key meant for gpu-tiers that has no meaning, up to MOST_NAMED_KEYS.

    That is an unknown key, a label that has to be an annotation, and the reverse.
    """
    found = dict.fromkeys(islice((each for bearer in bearers for each in _meaningless(bearer)), MOST_READ))
    for key, other in islice(found, MOST_NAMED_KEYS):
        yield AdmissionWarning("unknown-key", key=key[:MOST_SHOWN], likely=other or likely_key(key))


def _meaningless(bearer: Metadata | Workload) -> Iterator[tuple[str, str]]:
    """Yield the keys without a meaning, and what each probably stands for ("the label of that name"); "" if unknown."""
    for keys, what, misplaced, other in (
        (bearer.labels, "label", OF_HOOKS, "the annotation of that name"),
        (bearer.annotations, "annotation", (TIER_LABEL,), "the label of that name"),
    ):
        for key in keys:
            if key in misplaced:
                yield f"{what} {key}", other
            elif is_unknown(key):
                yield key, ""


def is_unknown(key: str) -> bool:
    """Tell whether a label or an annotation is in our domain, or one meant to be ours, and has no meaning."""
    if key.startswith(DOMAIN):
        return key not in KNOWN_KEYS
    return LIKE_OURS.match(key) is not None and bool(_nearest(key.rpartition("/")[2][:MOST_SHOWN], _BY_NAME))


@lru_cache(maxsize=256)
def likely_key(key: str) -> str:
    """Return the key that was perhaps meant; otherwise TIER_LABEL, the most frequent one."""
    return _nearest(key.rpartition("/")[2][:MOST_SHOWN], _BY_NAME) or TIER_LABEL


def _nearest(word: str, meant: Mapping[str, str]) -> str:
    """Return what is meant by the most similar of some words in small letters; "" if none is similar."""
    near = difflib.get_close_matches(word.lower(), meant, n=1)
    return meant[near[0]] if near else ""


_OF_NAMESPACES = {
    "mode": MODE_LABEL,
    "default-tier": DEFAULT_TIER_LABEL,
    "tier": DEFAULT_TIER_LABEL,
    "untiered": UNTIERED_LABEL,
}
"""The labels that a namespace may have, by the words that people write for them."""


def namespace_warnings(
    labels: Mapping[str, str], policy: TierPolicy, tenants: Iterable[Tenant]
) -> Iterator[AdmissionWarning]:
    """Yield warnings about a namespace's labels for their author. Labels in a tenant's selector are right."""
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
    for key, likely in islice(((key, likely) for key, likely in meant.items() if likely), MOST_NAMED_KEYS):
        yield AdmissionWarning("unknown-key", key=f"label {key[:MOST_SHOWN]}", likely=likely)


@lru_cache(maxsize=256)
def _meant(key: str) -> str:
    """Return the label that was perhaps meant; "" for a label of somebody else that resembles none of ours."""
    otherwise = f"{MODE_LABEL} or default-tier" if key.startswith(DOMAIN) else ""
    return _nearest(key.rpartition("/")[2], _OF_NAMESPACES) or otherwise


def _likely(value: str, names: Sequence[str]) -> str:
    """Return the name that was perhaps meant; otherwise all of them."""
    *most, last = names
    near = _nearest(value, {name.lower(): name for name in names})
    return near or " or ".join(filter(None, (", ".join(most), last)))
