"""The annotations by which a tier's pods tell autoscalers whether they may remove the node.

Karpenter takes "true", or since v1.12 how long the pod is protected from its start; it takes no word against the
protection. Source: https://karpenter.sh/preview/reference/annotations/

Cluster Autoscaler takes "false", for the pod's whole life. "true" also lets it end pods that it spares by default:
those with local storage, and those without a controller, which nobody would create again. Source:
https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md#what-types-of-pods-can-prevent-ca-from-removing-a-node
"""

from collections.abc import Mapping

import msgspec

from webhook.objects.pods import Pod
from webhook.policy.placement import on_every_node
from webhook.policy.values.facts import Facts

KARPENTER = "karpenter.sh/do-not-disrupt"
CLUSTER_AUTOSCALER = "cluster-autoscaler.kubernetes.io/safe-to-evict"
MOST_SHOWN = 40
"""Characters of the author's value."""


class AutoscalerPlan(msgspec.Struct, frozen=True):
    """The annotations that a pod lacks. `said` sums up those that it will have, and its author's that stay."""

    said: str
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)


NO_PLAN = AutoscalerPlan("")


def plan_autoscaler(pod: Pod, facts: Facts, wanted: str) -> AutoscalerPlan:
    """Return the annotations for a pod whose tier wants `Protect`, `Allow`, or a protection for so long (24h)."""
    # 1. Each autoscaler has its own words. A DaemonSet's pod ends with its node, and would keep every node.
    if on_every_node(pod, facts):
        return AutoscalerPlan(f"{wanted} changes nothing: a pod of a DaemonSet ends with its node")
    if wanted != "Allow":
        written = {KARPENTER: "true" if wanted == "Protect" else wanted, CLUSTER_AUTOSCALER: "false"}
    elif pod.metadata.controller or facts.owners:
        written = {CLUSTER_AUTOSCALER: "true"}
    else:
        return AutoscalerPlan("Allow changes nothing: the pod has no controller that would create it again")

    # 2. An author's annotation stays, each by itself.
    there = pod.metadata.annotations
    own = [key for key in (KARPENTER, CLUSTER_AUTOSCALER) if key in there and there[key] != written.get(key)]
    added = ", ".join(f"{key}={value}" for key, value in written.items() if key not in own)
    stays = "".join(f"; the pod's own {key}={there[key][:MOST_SHOWN]} stays" for key in own)
    return AutoscalerPlan(
        f"{wanted}: {added or 'adds nothing'}{stays}",
        {key: value for key, value in written.items() if key not in there},
    )
