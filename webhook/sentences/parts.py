"""The words of what stands in other sentences: why a tier was given, what a tenant may have, what has room."""

from collections.abc import Mapping

REASONS: Mapping[str, str] = {
    "group-is": "PodGroup/{group} is {tier}",
    "label-says": "the label on {bearer} says {tier}",
    "rule-says": "{rule} says {tier}",
    "class-is": "{field} is {tier}",
    "class-kept": "priorityClassName {name:shown} is outside the tiers and kept",
    "type-is": "{evidence}",
    "default-of-tenant": "the default of tenant {tenant}",
    "default-of-namespace": "the default of namespace {namespace}",
    "default-of-policy": "the policy's default",
    "lowered": "lowered from {chosen} to {tier}, the ceiling of tenant {tenant}",
    "lowered-after": "{reason}; {lowered}",
    "as-told": "{text}",
}
"""Why a tier was given. They stand on pods in the annotation `assigned-by`, which must be read for as long as pods
live: a change here is a change of that (policy/assignment/assigned_by.py)."""

PARTS: Mapping[str, str] = {
    **REASONS,
    "step": "{step}: {found}{too_weak}",
    "found": "{found}{too_weak}",
    "too-weak": " ({evidence}, is {grade}: too weak to raise the tier, raiseBy is {needed})",
    "allowance": "it may use {tiers}. See TenantQuota/{tenant}.",
    "allowance-unknown": 'its maxTier "{max_tier:shown}" is no tier of the policy, so it may use none; ask your '
    "platform team to correct TenantQuota/{tenant}",
    "class-bound": "its pods may have a class of value {ceiling} at most, or none. See TenantQuota/{tenant}.",
    "ask-for-tenant": "ask your platform team for one",
    "remove-or-ask": "remove {asked}, or ask your platform team for one",
    "this-pod": "this pod",
    "as-tier": "as {tier}",
    "without-tier": "without a tier",
    "field-is-not": "{field} is {there}, not {due}",
    "group-ranks": "{source}: PodGroup/{group:shown} is {class_name:shown}",
    "label-ranks": "{field}: {class_name:shown}",
    "would-fit": "Would fit: {offers}{later}. See {see:and}.",
    "would-fit-later": "; once there is room: {tiers}",
    "offer": "{tier} ({left} free)",
    "offer-unlimited": "{tier} (no limit)",
    "of-wished": " of {gpus}",
    "flavor-unnamed": "It names no flavor, so it counts on each that it may run on; its nodeSelector can name one. ",
    "fewer-fit": ", {count} of these pods would fit",
    "pods-of-gang": "{count} x {gpus}",
    "stranded-gang": "{gang}: the quota has no room for the rest, so it can't run. Raise the quota, or delete it.",
    "stranded-gangs": "{gangs}: the quota has no room for the rest, so none can run. Raise the quota, or delete one.",
    "timeout-alone": "checkpoint-timeout alone sets no hook; add gpu-tiers.dev/checkpoint",
    "windows-pod": "it is a Windows pod",
    "own-pre-stop": "each container with GPUs has a preStop of its own",
    "claim-unused": "no app container names the pod's GPU claim under resources.claims",
    "no-gpu-container": "none of its app containers asks for GPUs",
    "no-such-port": 'no container has a port named "{port}"',
    "shared-pids": "in a shared PID namespace process 1 is not the container's own",
    "runs-lower": "tenant {tenant} has no room for it in {higher}: it runs as {tier}{evicted}",
    "evicted-by": ", which {tiers} may evict",
    "evicted-by-nobody": "",
    "counts-as": "counts as {gpus} GPU",
    "not-counted": "no quota counts it",
}
