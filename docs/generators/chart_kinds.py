"""Makes the chart's copy of the table of kinds: what is reviewed, what is read as an owner, which labels gangs have."""

import yaml

from webhook.policy.workloads.kinds import BUILT_IN

_HEAD = """\
# Made from webhook/policy/workloads/kinds/ by `make generate`; change that, not this file.
# `resources`: workloads that a person applies, and owners of pods. Each group has a webhook entry and an RBAC rule.
# `templates`: the CEL path to the pod template, if the API fixes it. Then only GPU workloads reach the webhook.
# `gangs`: those of them whose pods are charged as a whole. Whoever leads follows them.
# `gangKinds`: what these are called. What one of them makes is reviewed with it.
# `scales`: the subresources by which those of them are scaled. Of other kinds a scale is not reviewed.
# `runtimes`: what workloads are made of besides. They are read only.
# `gangLabels`: the labels that operators put on members of a gang; a launcher or a head may ask for no GPU itself.
# `kinds`: the kinds that a rule of the policy may name.
"""

_TEMPLATES = {
    "": "object.spec.template",
    "apps": "object.spec.template",
    "batch": "(has(object.spec.jobTemplate) ? object.spec.jobTemplate.spec.template : object.spec.template)",
}
"""Only Kubernetes' own kinds are sure to have it, and a CEL error is a refusal."""


def chart_kinds() -> str:
    """The file, whole."""
    groups = sorted({row.group for row in BUILT_IN.rows})
    resources = {
        group: [row.plural for row in BUILT_IN.rows if row.group == group and row.kind != "Pod"] for group in groups
    }
    gangs = {group: [row.plural for row in BUILT_IN.rows if row.group == group and row.gang] for group in groups}
    scaled = [row for row in BUILT_IN.rows if row.scale]
    scales = {group: [f"{row.plural}/scale" for row in scaled if row.group == group] for group in groups}
    runtimes = {row.runtime.group: sorted(row.runtime.plurals.values()) for row in BUILT_IN.rows if row.runtime}
    kinds = sorted({"/".join(filter(None, row.group_kind)) for row in BUILT_IN.rows})
    content = {
        "gangLabels": sorted(BUILT_IN.gang_labels),
        "templates": _TEMPLATES,
        "gangs": {group: found for group, found in gangs.items() if found},
        "gangKinds": sorted({row.kind for row in BUILT_IN.rows if row.gang}),
        "scales": {group: found for group, found in scales.items() if found},
        "runtimes": runtimes,
        "resources": resources,
        "kinds": kinds,
    }
    return _HEAD + yaml.safe_dump(content, sort_keys=False, width=120)
