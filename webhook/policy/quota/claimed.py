"""Keeps on a pod, in an annotation, the GPUs that its claims asked for when it was let in.

Devices are given to ResourceClaims, and those are made after their pods, or deleted and made anew. So no claim of a pod
may ask for more later, and the pod is charged no less while it exists.
"""

import re
from collections.abc import Collection, Mapping
from decimal import Decimal

from webhook.objects.group_kind import POD_GROUP
from webhook.objects.pods import Metadata, Pod
from webhook.objects.quantities import written
from webhook.objects.refusal import Reason, Refusal
from webhook.policy.quota.demand import NOTHING, demand_of
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.workload import Devices

CLAIMED = "gpu-tiers.dev/claimed"
"""The GPUs of each entry of `resourceClaims` that asks for some: "gpu=2,other=0.5"."""
_FIELD = f"metadata.annotations[{CLAIMED}]"
_ENTRY = re.compile(r"([a-z0-9-]{1,63})=([0-9]{1,6}(?:\.[0-9]{1,9})?)", re.ASCII)


def gpus_of(devices: Collection[Devices], policy: TierPolicy) -> Decimal:
    return demand_of(Pod(), devices, policy)


def claimed(devices: Collection[Devices], policy: TierPolicy) -> str:
    """The annotation's value for a pod whose claims have these devices; "" where they count nothing."""
    entries = dict.fromkeys(each.entry for each in devices)
    counted = ((entry, gpus_of([each for each in devices if each.entry == entry], policy)) for entry in entries)
    return ",".join(f"{entry}={written(gpus)}" for entry, gpus in counted if gpus)


def misstated(pod: Pod, due: str) -> Refusal | None:
    """Return why a pod is refused that says something else of its claims than is due; None where it says that."""
    there = pod.metadata.annotations.get(CLAIMED, "")
    if there == due:
        return None
    return Refusal(Reason.CHANGED, "claims-misstated", mark=_FIELD, there=there or "absent", due=due or "absent")


def changed_claimed(old: Pod, new: Pod) -> Refusal | None:
    """Return why a changed mark is refused on an existing pod: what its claims may ask for rests on it."""
    before, after = (each.metadata.annotations.get(CLAIMED, "") for each in (old, new))
    if before == after:
        return None
    return Refusal(Reason.CHANGED, "claims-changed", _FIELD, after=after or "absent", before=before or "absent")


def outgrown(pod: Metadata, entry: str, asked: Decimal) -> Refusal | None:
    """Return why a ResourceClaim is refused that asks for more GPUs than a pod was let in with that is to hold it."""
    most = let_in_with(pod).get(entry, NOTHING)
    if asked <= most:
        return None
    return Refusal(Reason.CHANGED, "claim-outgrown", "spec.devices", gpus=asked, pod=pod.name, most=most, claim=entry)


def kept_by_group(claim: Metadata, asked: Decimal) -> Refusal | None:
    """Why the ResourceClaim of a PodGroup is refused: it is made before its pods, and stays when they are gone."""
    owner = claim.controller
    if owner is None or (owner.group, owner.kind) != POD_GROUP:
        return None
    return Refusal(Reason.INVALID, "claim-for-group", "metadata.ownerReferences", group=owner.name, gpus=asked)


def let_in_with(pod: Metadata) -> Mapping[str, Decimal]:
    """The GPUs that a pod was let in with, by the entries of its claims."""
    there = pod.annotations.get(CLAIMED)
    return {name: Decimal(gpus) for name, gpus in _ENTRY.findall(there)} if there else {}


def not_made(pod: Pod, devices: Collection[Devices], policy: TierPolicy) -> tuple[Decimal, dict[str, Decimal]]:
    """The GPUs that a pod was let in with beyond its `devices`: its own, and those that it shares, by ResourceClaim.

    Its claim is not made yet, or is gone, or was made anew with less: one of as many may come at any time. A node says
    nothing of that, because its author may have written it.
    """
    own, shared, let_in = NOTHING, dict[str, Decimal](), let_in_with(pod.metadata)
    for claim in pod.spec.resource_claims if let_in else ():
        there = gpus_of([each for each in devices if each.entry == claim.name], policy)
        more = max(let_in.get(claim.name, NOTHING) - there, NOTHING)
        if claim.resource_claim_name is None:
            own += more
        elif more:
            key = f"{pod.metadata.namespace}/{claim.resource_claim_name}"
            shared[key] = max(more, shared.get(key, NOTHING))
    return own, shared
