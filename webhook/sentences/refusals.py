"""The words of each refusal, by its id. Before them stands the field that it is about, where there is one.

docs/troubleshooting.md says of them what to do.
"""

from collections.abc import Mapping

_RANKS = "what a scheduler ranks a pod by may not lie above the pod's tier: write its class there, or leave it out"
_NOT_APPLIED = "Create it again; if that fails, tell your platform team"

_OF_FIELDS: Mapping[str, str] = {
    "unread": "{problem}",
    "undecided": "gpu-tiers can't decide now, try again: {problem}",
    "too-large-object": "too large; gpu-tiers judges {parts} fields and list entries in {mib} MiB of JSON at most, "
    "managedFields and status aside",
    "no-object": "not an object",
    "unparsable": "can't be read: {error}",
    "wrong-type": "{what}",
    "half-absent": "absent; without it there is nothing to give a tier to",
    "unreadable": "{problem}; without it gpu-tiers can't {what}",
    "name-taken": '{resource} "{name}" already exists',
    "too-many-in-pod": "{count} {what}; gpu-tiers counts GPUs in {most} at most",
    "owner-uid-too-long": "a uid of {length} characters is none of the API server's, which have 36",
    "too-many-templates": "more than {most} pod templates; gpu-tiers judges {most} at most",
    "too-many-pods": "makes {count} pods; a workload may make {most} at most",
    "no-quantity": '"{value}" is no quantity; write a whole number of GPUs, such as "2"',
    "no-gpu-count": '"{value}" is no number of GPUs; write a whole one, such as "2"',
    "no-pod-count": '"{value}" is no count of {of}; write a whole number from 0 to {most}',
    "no-group-size": "{value:shown} is no number of pods; write such as 4",
    "no-device-count": '"{count}" is no number of devices; write 1 or more',
    "no-gpu-map": '"{value}" is no map; write {{name: nvidia.com/gpu, quantity: 1}}',
    "gpu-name-absent": "absent; write the name of the resource, such as nvidia.com/gpu",
    "no-list": "is no list; write a list",
    "below-zero": '"{value}" is below 0; write the GPUs that the tenant may hold',
    "gpu-not-listed": "{name} looks like GPUs, and the policy does not list it; ask for a resource that it lists, or "
    'have the platform team add {{name: {name}, weight: "1"}} to its resources, with the weight "0" if it is no GPU',
}
_OF_PARTS_OF_GPUS: Mapping[str, str] = {
    "two-parts": '"{value:shown}" and {other}: "{other_value:shown}" both ask for a part of a GPU; keep one of them',
    "part-and-whole": '"{value:shown}" asks for a part of a GPU, and the containers ask for GPUs by name; keep the '
    "annotation or the resource",
    "no-part": '"{value:shown}" is no part of a GPU; write a number above 0 and below 1, such as "0.5"',
    "no-gpu-memory": '"{value:shown}" is no memory of a GPU; write whole MiB, such as "20000"',
    "no-part-count": '"{value:shown}" is no number of GPUs; write a whole one, such as "2"',
    "part-changed": "{after:shown}, but it was {before:shown}; a pod's part of a GPU is fixed when it is created: "
    "delete the pod and create it again",
    "claims-misstated": "{mark} is {there:shown}, not {due:shown}: gpu-tiers writes there what the pod's claims ask "
    "for. A claim was made anew meanwhile, or the mutating webhook was not reached: leave it out, and create the pod "
    "again",
    "gate-without-gpus": "{gate} is what gpu-tiers writes on pods that wait for quota, and opens. This pod asks for no "
    "GPUs that count, so nobody would open it: leave it out",
    "claims-changed": "{after:shown}, but it was {before:shown}; what a pod's claims may ask for is fixed when it is "
    "created: delete the pod and create it again",
    "gang-changed": "{after:shown}, but it was {before:shown}; gpu-tiers counts the pod by it: leave it as it is",
    "claim-of-nothing": '"{entry:shown}" names no claim; write resourceClaimTemplateName or resourceClaimName',
    "claim-of-group": '"{claim:shown}" is the claim of PodGroup {group:shown}, which may have more GPUs than its '
    "template names now, and keeps them without a pod; write a name that the group's spec.resourceClaims does not have",
    "claim-for-group": "PodGroup {group:shown} would keep {gpus:gpus} that no pod is charged for; give each pod a "
    "claim of its own, by a name that the group's spec.resourceClaims does not have",
    "claim-outgrown": "asks for {gpus:gpus}, but pod {pod:shown} was let in with {most} by its claim {claim:shown}; "
    "ask for no more, or delete the pod, and create it again when the claim or its template is there",
}
_OF_TIERS: Mapping[str, str] = {
    "unknown-tier": '"{name:shown}" is no tier; the tiers are {tiers}',
    "no-tier-named": "names no tier, and {who} leaves the choice to you: label it {label}, whose value is "
    "{tiers:choice}",
    "label-unlike-class": "{tier} contradicts spec.priorityClassName: {class_name:shown}; write one of the two, or the "
    "same in both",
    "tier-above-ceiling": "{tier} is not for tenant {tenant}; {allowance}",
    "default-above-ceiling": "{tier} ({reason}) is not for tenant {tenant}; {allowance}",
    "class-above-ceiling": "{name} ({value}) is above the ceiling of tenant {tenant}; {allowance}",
    "tier-not-for-type": "{tier} is not allowed for {type} workloads; this is one because of {clue}; it may use "
    "{tiers}",
    "without-tenant": "namespace {namespace} belongs to no tenant: no TenantQuota's namespaceSelector selects it; "
    "{way_out}",
    "class-unknown": "no PriorityClass is named {name:shown}",
    "class-of-no-tier": "{name:shown} is no tier's class; write one of {tiers}",
    "class-missing": "PriorityClass/{name} of tier {tier} does not exist; your platform team restores it with helm "
    "upgrade",
    "class-differs": "PriorityClass/{name} has {attribute} {there}, but the policy says {due} for tier {tier}; your "
    "platform team has to bring the two together",
    "tier-not-applied": "tier {tier} was not applied ({wrong:;}): another webhook changed the pod after gpu-tiers, or "
    f"the mutating webhook was not reached. {_NOT_APPLIED}",
    "tier-label-changed": "{after}, but this pod runs {runs}; a pod's tier is fixed when it is created: delete the pod "
    "and create it again with the label",
}
_OF_GROUPS_AND_QUEUES: Mapping[str, str] = {
    "group-without-tier": 'PodGroup/{group} has no tier (priorityClassName "{class_name}"); create it again with the '
    "label {label}, whose value is one of {tiers}",
    "unlike-group": "{written:shown}, but its PodGroup/{group} is {tier}; a group and its pods share one tier: write "
    "the group's, or leave it out",
    "gang-in-two-tiers": "{tier} contradicts {other}: {other_tier}; the pods of a {kind} are useful only together and "
    "need one tier: write the same in both, or leave one out",
    "unlike-owner": "{written:shown}, but the pods of its owner {owner} are {tier} ({reason}); a group and its pods "
    "share one tier: write theirs, or leave it out",
    "unlike-template": "{tier}, but the template {template:shown} in its Workload has priorityClassName "
    "{class_name:shown}; a PodGroup has the class of its template: write that, or leave it out",
    "unlike-parent": "{tier}, but CompositePodGroup/{parent:shown} above it has priorityClassName {class_name:shown}; "
    "all groups of a tree share one priority: name the tier on the root, or on the workload that makes the groups",
    "tier-not-on-group": 'tier {tier} was not applied to this PodGroup (spec.priorityClassName is "{class_name}", '
    f"spec.priority is {{priority}}): the mutating webhook was not reached. {_NOT_APPLIED}",
    "template-class-unknown": "{template:shown} has priorityClassName {class_name:shown}, which is no PriorityClass, "
    "and templates can't be changed later; write that of a tier, one of {tiers}",
    "templates-differ": "{one:shown} has priorityClassName {its_class:shown}, and {other:shown} has "
    "{other_class:shown}; the templates of a Workload share one tier",
    "template-priority": "{priority}, but {name} is {value}; leave it out: the API server writes it on the PodGroups",
    "outranked": f"{{written}}, but this pod is {{own}}; {_RANKS}",
    "outranked-workload": f"{{name:shown}}, but its pods are {{own}}; {_RANKS}",
    "outranking": f"{{name:shown}}, but its pod {{pod:shown}} is {{own}}; {_RANKS}",
    "queue-class-unlike": "{name:shown} contradicts the tier of the pods, {tier} ({reason}); leave it out, or label it "
    "{label}: {name:shown} as well",
    "queue-class-changed": "{name} is another tier than that of the pods; write {tier}",
}
_OF_HOOKS: Mapping[str, str] = {
    "hook-port-unknown": 'no container of the pod has a port named "{port}"; write its number, or name it under ports',
    "hook-kind-unknown": '"{value:shown}" is no kind of hook; write one of {kinds}',
    "hook-field-missing": "a hook of kind {kind} needs a {lacking}; write {key}",
    "hook-field-unwanted": "a hook of kind {kind} takes no {name}; drop it, or write {key}: {takers}",
    "hook-value-wrong": '"{value:shown}" {error}',
    "hook-time-wrong": '"{value:shown}" is no time to save; write seconds, from 1 to {most}',
}
EXCEEDED = "exceeded quota: "
"""How each refusal begins that ends when others of the tenant end.

Argo Workflows, Tekton, Flyte and Airflow look for these words, in lower case, in a create that is refused with 403, as
the API server's own ResourceQuotas refuse it. They create the object again later. Without the words the step fails.
"""
_OF_ROOM: Mapping[str, str] = {
    "over-quota": "tenant {tenant}: {row} is at {used} of {hard:gpus}{reserved}; {what} asks for {gpus}. "
    "{flavor}{fits}",
    "no-room-for-gang": "{what} asks for {at_least}{gpus:gpus} ({shape:+}); tenant {tenant} has {free} {of}free"
    "{reserved}{fewer}. {flavor}{fits}",
}
_OF_QUOTAS: Mapping[str, str] = {
    **{each: EXCEEDED + text for each, text in _OF_ROOM.items()},
    "too-large": "tenant {tenant}: {row} allows {hard:gpus}; {what} asks for {at_least}{gpus}{whole}. {flavor}{fits}",
    "gang-names-node": "{node:shown} is named, so these pods would not wait for quota with the others of their gang, "
    "as tenant {tenant} has it; leave the field out, and write nodeSelector: {{kubernetes.io/hostname: {node:shown}}}",
}
_OF_THE_API_SERVER: Mapping[str, str] = {
    "kind-not-served": '"{version:shown}" has no {kind}; write {served}',
    "job-restarts": "{policy:shown}; a {kind} takes Never or OnFailure",
    "job-restart-absent": "absent, which means Always; a {kind} takes Never or OnFailure",
    "failure-policy-restarts": "OnFailure; a Job with a podFailurePolicy takes Never alone",
    "stays-without-restart": "{policy:shown}; a {kind} takes Always alone: leave it out",
    "selector-absent": "absent; a {kind} selects its pods by labels of its template: write them as matchLabels",
    "selector-unlike-pods": "{value:shown}, but the template's label {key:shown} is another or absent; the two have to "
    "be the same",
    "priority-without-class": "{value:shown}, but no PriorityClass is named; the API server takes it from the class: "
    "leave it out",
    "limit-absent": 'absent; the API server takes no such request without the same limit: write "{value}" in limits',
    "limit-unlike-request": '"{request}", but the limit is "{limit}"; the API server takes the same number in both',
    "resource-without-domain": "the API server knows no resource {name:shown}; write its full name, such as "
    "nvidia.com/gpu",
    "claim-not-declared": '"{name:shown}" is none of spec.resourceClaims: {claims}',
    "value-unquoted": '{value:shown} is no text; write it in quotes: "{value:shown}"',
}
"""What `review` says of manifests that never reach the webhook."""

REFUSALS: Mapping[str, str] = {
    **_OF_THE_API_SERVER,
    **_OF_FIELDS,
    **_OF_PARTS_OF_GPUS,
    **_OF_TIERS,
    **_OF_GROUPS_AND_QUEUES,
    **_OF_HOOKS,
    **_OF_QUOTAS,
}
