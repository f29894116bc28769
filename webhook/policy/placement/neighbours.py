"""How a pod lies to others of its own: a gang's close together (Pack), replicas apart (Spread).

Both are wishes to the scheduler and never keep a pod from running. Beside the tier's topology key both name the node: a
gang lies best on few nodes of one rack, and whoever spreads by rack wants two replicas of a rack on two nodes. The pods
of one gang are told by a label that all of them bear, written by the operator that makes them.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from webhook.objects.pods import Pod
from webhook.objects.view import Tree
from webhook.policy.values.facts import Facts
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.workload import Workload, gang_among

HOSTNAME = "kubernetes.io/hostname"
_REVISIONS = ("pod-template-hash", "rollouts-pod-template-hash")
"""Labels that tell the replicas of one revision (Deployment; Argo Rollout), which a rollout must not mix."""
_WEIGHTS = (100, 50)

_NARROWER: Mapping[str, str] = {
    # https://github.com/kubernetes-sigs/lws/blob/main/api/leaderworkerset/v1/leaderworkerset_types.go
    "leaderworkerset.sigs.k8s.io/name": "leaderworkerset.sigs.k8s.io/group-key",
}
"""Labels that span several gangs, each with the one that tells them apart."""

_GROUPS = ("scheduling.x-k8s.io/pod-group", "kueue.x-k8s.io/pod-group-name")
"""Labels that people write themselves on pods of one group: Coscheduling's, Kueue's."""

_OF_ONE_POD = frozenset({"paddle-res-name"})
"""Labels with another value on each pod (https://github.com/PaddleFlow/paddle-operator)."""


class GangLabel(msgspec.Struct, frozen=True):
    """The pods with one value of a label. `size` is how many they are as far as the workload says it, else 0."""

    key: str
    value: str
    size: int = 0

    def __str__(self) -> str:
        return f"{self.key}={self.value}"


def gang_label_of(labels: Mapping[str, str], owners: Sequence[Workload], kinds: KindTable) -> GangLabel | None:
    """The gang of a pod with these labels, its owners the nearest first; None where it bears no label that tells it."""
    for key, size in _candidates(owners, kinds):
        narrower = _NARROWER.get(key, key)
        if narrower in labels:
            return GangLabel(narrower, labels[narrower], size if narrower == key else 0)
        if key in labels:
            return GangLabel(key, labels[key], size)
    return None


def _candidates(owners: Sequence[Workload], kinds: KindTable) -> Iterator[tuple[str, int]]:
    """Labels that may tell the gang, the best first, each with the size of such a gang.

    The labels of the workload that is a gang come first, then those of the nearest owner: the trials of an Experiment
    are no gang, nor are the steps of a pipeline.
    """
    gang = gang_among(owners)
    for owner in (*([gang] if gang else []), *(owner for owner in owners if owner.row.at_once)):
        size = sum(member.count for member in owner.members)
        yield from ((key, size) for key in _naming(owner))
    if not owners:
        yield from ((key, 0) for key in sorted(kinds.gang_labels))
    yield from ((key, 0) for key in _GROUPS)


def _naming(owner: Workload) -> Iterator[str]:
    """The operator's labels whose value is a name: one that tells by its value alone stands on all pods of the kind."""
    row = owner.row
    first = (row.gang_label,) if row.gang_label else ()
    named = (key for key, value in row.labels.items() if value is None and key not in _OF_ONE_POD)
    return iter(dict.fromkeys((*first, *named)))


def speaks_for_itself(pod: Pod) -> bool:
    """Tells whether a person or a controller has said how the pod lies to other pods."""
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
