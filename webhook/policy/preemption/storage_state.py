"""The storage of a cluster: which volume a claim has, and how many volumes a node can still attach."""

from collections.abc import Iterable, Mapping
from decimal import Decimal

import msgspec

from webhook.objects.storage import CSIDriver, CSINode, PersistentVolume, StorageClass, VolumeClaim
from webhook.policy.preemption.pod_requests import Amounts
from webhook.policy.preemption.pod_state import PodState

UNLIMITED = Decimal("Infinity")


class StorageState(msgspec.Struct, frozen=True):
    """PersistentVolumeClaims by namespace/name, all else by name."""

    claims: Mapping[str, VolumeClaim] = {}
    volumes: Mapping[str, PersistentVolume] = {}
    classes: Mapping[str, StorageClass] = {}
    drivers: Mapping[str, CSIDriver] = {}
    nodes: Mapping[str, CSINode] = {}

    def attachment(self, key: str) -> tuple[str, str] | None:
        """Return the CSI driver and the handle of a claim's volume, also of one that is yet to be made."""
        claim = self.claims.get(key)
        if claim is None:
            return None
        if (volume := self.volumes.get(claim.spec.volume_name)) is not None:
            return volume.attachment
        found = self.classes.get(claim.spec.storage_class_name)
        return (found.provisioner, key) if found else None

    def attachable(self, node: str, drivers: Iterable[str], pods: Iterable[PodState]) -> Amounts:
        """Return how many volumes of each driver a node can attach beside those of its pods.

        Those of pods that end count as attached, because they are detached some time after. Volumes that no pod uses
        are not looked for: they are detached soon.
        """
        limits = {each.name: each.allocatable.count for each in self.nodes.get(node, CSINode()).spec.drivers}
        left: dict[str, Decimal] = {}
        for driver in drivers:
            limit = limits.get(driver)
            if limit is not None:
                there = {self.attachment(used.key) for pod in pods for used in pod.volumes}
                left[amount_of(driver)] = Decimal(limit - sum(each is not None and each[0] == driver for each in there))
            else:
                left[amount_of(driver)] = Decimal(0) if self._must_run(driver) and driver not in limits else UNLIMITED
        return left

    def _must_run(self, driver: str) -> bool:
        return driver in self.drivers and self.drivers[driver].says("preventPodSchedulingIfMissing")


def amount_of(driver: str) -> str:
    """Return the name of a driver's volumes among the resources of a node."""
    return f"volumes of {driver}"
