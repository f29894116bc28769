"""How a pod lies to others of its own: a gang's close together (Pack), replicas apart (Spread).

Both are wishes to the scheduler and never keep a pod from running. Beside the tier's topology key both name the node: a
gang lies best on few nodes of one rack, and whoever spreads by rack wants two replicas of a rack on two nodes.
"""

from collections.abc import Mapping
from typing import Any

from webhook.objects.pods import Pod
from webhook.policy.placement.gang_label import GangLabel, gang_label_of
from webhook.policy.values.facts import Facts
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.workload import Workload

Tree = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
_REVISIONS = ("pod-template-hash", "rollouts-pod-template-hash")
"""Labels that tell the replicas of one revision (Deployment; Argo Rollout), which a rollout must not mix."""
_WEIGHTS = (100, 50)


def speaks_for_itself(pod: Pod) -> bool:
    """Whether a person or a controller has said how the pod lies to other pods."""
    affinity = pod.spec.affinity
    of_affinity = _says(affinity.pod_affinity) or _says(affinity.pod_anti_affinity)
    return of_affinity or bool(pod.spec.topology_spread_constraints)


def packed(gang: GangLabel, topology_key: str) -> Tree:
    """The pod affinity of a gang to itself (spec.affinity.podAffinity)."""
    selector = {"matchLabels": {gang.key: gang.value}}
    return {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": weight, "podAffinityTerm": {"labelSelector": selector, "topologyKey": key}}
            for weight, key in zip(_WEIGHTS, _keys(topology_key), strict=False)
        ]
    }


def spread(siblings: Tree, topology_key: str) -> list[Tree]:
    """The constraints of a replica towards its siblings (spec.topologySpreadConstraints)."""
    rule = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **siblings}
    return [{"topologyKey": key, **rule} for key in _keys(topology_key)]


def siblings_of(labels: Mapping[str, str], facts: Facts, kinds: KindTable) -> Tree | None:
    """What selects the replicas of the nearest owner: its template's labels; a revision's by matchLabelKeys (KEP-3243).

    Where its template bears no label that the pod bears too, its operator's label does. None where there is none.
    """
    common = _of_template(labels, facts.owners[0]) if facts.owners else {}
    revision = [key for key in _REVISIONS if key in labels]
    selected = {key: value for key, value in common.items() if key not in revision}
    if not selected and (told := gang_label_of(labels, facts.owners, kinds)):
        selected = {told.key: told.value}
    if not selected:
        return None
    return {"labelSelector": {"matchLabels": selected}} | ({"matchLabelKeys": revision} if revision else {})


def _of_template(labels: Mapping[str, str], owner: Workload) -> Mapping[str, str]:
    """The labels of the first template whose labels the pod all bears."""
    templates = (member.template.metadata.labels for member in owner.members)
    return next((each for each in templates if each and each.items() <= labels.items()), {})


def _says(terms: object) -> bool:
    """An affinity without a term says nothing."""
    return isinstance(terms, dict) and any(terms.values())


def _keys(topology_key: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((topology_key, HOSTNAME)))
