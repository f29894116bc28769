"""Makes the chart's copies of the table of kinds, the names of GPUs and the kinds of hooks."""

import yaml

from webhook.config.model import HookSection
from webhook.policy.checkpoint.hook_kinds import REQUIRED, ROWS
from webhook.policy.metadata_keys import LIKE_OURS
from webhook.policy.saves.node_signals import BUILT_IN as NODE_SIGNALS
from webhook.policy.values.tier_policy import USUAL_NAMES
from webhook.policy.values.weights import table
from webhook.policy.workloads.kind_table import BUILT_IN

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
    """Return the chart's files/kinds.yaml, whose head explains each key."""
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


_HEAD_OF_KNOWN = """\
# Made by `make generate` from webhook/policy: values/accelerators.yaml, values/tier_policy.py, metadata_keys.py,
# checkpoint/hook_kinds.py and saves/node_signals.yaml.
# `gpuNames`: the domains of accelerators, and regular expressions for CEL: of what others call accelerators, and of
# devices that are none.
# `keysLikeOurs`: a regular expression for labels of gpu-tiers, and for what people write in their place.
# `hooks`: the fields that each kind of checkpoint hook takes, and those that it can't do without.
# `schedulers`: whose a scheduler is, by its usual name.
# `nodeSignals`: where a signal of a node's end stands, by its id.
"""


def chart_known() -> str:
    """Return the chart's files/known.yaml, whose head explains each key."""
    field = {name: str(HookSection.model_fields[name].alias) for row in ROWS.values() for name in row.takes}
    hooks = {
        kind: {
            "takes": [field[name] for name in row.takes],
            "needs": [field[name] for name, default in row.takes.items() if default is REQUIRED],
        }
        for kind, row in ROWS.items()
    }
    names = {
        "gpuNames": {"domains": sorted(table().domains), "words": table().words, "others": table().others},
        "keysLikeOurs": LIKE_OURS.pattern,
    }
    signals = {row.id: row.where for row in NODE_SIGNALS}
    known = {**names, "hooks": hooks, "schedulers": dict(USUAL_NAMES), "nodeSignals": signals}
    return _HEAD_OF_KNOWN + yaml.safe_dump(known, sort_keys=False, width=1000, default_flow_style=None)
