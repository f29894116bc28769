"""Tells on which nodes the volumes of a pod can be used, as kube-scheduler does.

1. A claim that is bound: where its PersistentVolume's affinity and its labels of zone and region allow.
2. A claim whose volume is made where its first pod starts (WaitForFirstConsumer): where the `allowedTopologies` of its
   StorageClass allow. A free PersistentVolume that would do as well is not looked for.
3. A node attaches no more volumes of a CSI driver than it can.

If more than that decides, it is not judged. Sources: the plugins VolumeBinding, VolumeZone, VolumeRestrictions and
NodeVolumeLimits of kube-scheduler 1.37.
"""

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal

import msgspec

from webhook.objects.pods import NodeRequirement, NodeSelectorTerm
from webhook.objects.refusal import Phrase
from webhook.objects.storage import Terms, UsedVolume, VolumeClaim
from webhook.policy.preemption.cluster_state import ClusterState
from webhook.policy.preemption.nobody_evicted import NobodyEvicted, not_judged
from webhook.policy.preemption.pod_requests import Amounts
from webhook.policy.preemption.pod_state import PodState
from webhook.policy.preemption.storage_state import StorageState, amount_of

IN_TREE = "kubernetes.io/"
"""The provisioners that came before CSI drivers, and no-provisioner: its volumes are made by hand."""


class NeededVolumes(msgspec.Struct, frozen=True):
    """The volumes of a pod: their number by CSI driver. A node must match one term of each of `selectors`."""

    drivers: Mapping[str, int]
    selectors: tuple[Terms, ...]

    @property
    def amounts(self) -> Amounts:
        return {amount_of(driver): Decimal(count) for driver, count in self.drivers.items()}

    def reached_from(self, node: str, labels: Mapping[str, str]) -> bool:
        return all(any(term.matches(node, labels) for term in terms) for terms in self.selectors)


def needed_volumes(pod: PodState, state: ClusterState) -> NeededVolumes:
    """Return the volumes of a pod that waits. Raises NobodyEvicted."""
    storage, selectors, attached = state.storage, list[Terms](), set[tuple[str, str]]()
    for used in dict.fromkeys(pod.volumes):
        claim = _usable(used, pod, storage)
        if problem := _unjudged(claim, pod, state):
            raise not_judged(pod, Phrase("unjudged-volume", claim=used.key, problem=problem))
        selectors += _selectors(claim, storage)
        if (attachment := storage.attachment(used.key)) is not None:
            attached.add(attachment)
    return NeededVolumes(Counter(driver for driver, _ in attached), tuple(selectors))


def _usable(used: UsedVolume, pod: PodState, storage: StorageState) -> VolumeClaim:
    """Return a claim. Raises NobodyEvicted if the scheduler finds no node because of it, whoever goes."""
    claim = storage.claims.get(used.key)
    problem = "volume-claim-missing" if claim is None else _fault(claim, used, pod, storage)
    if claim is None or problem:
        raise NobodyEvicted("preemptor-volume", pod=pod.shown, claim=used.key, problem=Phrase(problem))
    return claim


def _fault(claim: VolumeClaim, used: UsedVolume, pod: PodState, storage: StorageState) -> str:
    if claim.metadata.deletion_timestamp is not None:
        return "volume-claim-deleted"
    if used.is_own and claim.metadata.controller_uid != pod.uid:
        return "volume-claim-of-another"
    if claim.is_bound:
        is_lost = claim.status.phase == "Lost" or claim.spec.volume_name not in storage.volumes
        return "volume-lost" if is_lost else ""
    found = storage.classes.get(claim.spec.storage_class_name)
    is_made = found is not None and found.waits and not claim.spec.volume_name
    return "" if is_made else "volume-claim-unbound"


def _unjudged(claim: VolumeClaim, pod: PodState, state: ClusterState) -> Phrase | None:
    """Return what forbids to say which nodes can use a claim."""
    users = (each for each in state.volume_users[claim.key] if each.node or each.gang == pod.gang)
    other = next((each for each in users if each is not pod), None)
    if other is not None and "ReadWriteOncePod" in claim.spec.access_modes:
        return Phrase("volume-of-one-pod", other=other.shown)
    if claim.is_bound:
        return Phrase("volume-in-tree") if state.storage.volumes[claim.spec.volume_name].is_in_tree else None
    if other is not None:
        return Phrase("volume-not-made", other=other.shown)
    made_by = state.storage.classes[claim.spec.storage_class_name].provisioner
    if made_by.startswith(IN_TREE) or claim.spec.selector:
        return Phrase("volume-to-be-found")
    driver = state.storage.drivers.get(made_by)
    if driver is not None and driver.says("storageCapacity"):
        return Phrase("volume-capacity", driver=made_by)
    return None


def _selectors(claim: VolumeClaim, storage: StorageState) -> list[Terms]:
    if claim.is_bound:
        return [*storage.volumes[claim.spec.volume_name].selectors]
    terms = storage.classes[claim.spec.storage_class_name].terms
    found = [terms] if terms else []
    if claim.selected_node:
        name = NodeRequirement(key="metadata.name", operator="In", values=(claim.selected_node,))
        found.append((NodeSelectorTerm(match_fields=(name,)),))
    return found
