"""The cluster as preemption knows it, with its disruption budgets and its storage, and the rules that bound preemption.

Source: https://kubernetes.io/docs/reference/kubernetes-api/policy-resources/pod-disruption-budget-v1/
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import cached_property
from typing import TypeVar

import msgspec

from webhook.objects.podgroups import PodGroup
from webhook.objects.pods import Metadata
from webhook.objects.storage import CSIDriver, CSINode, PersistentVolume, StorageClass, VolumeClaim
from webhook.objects.view import View, read
from webhook.policy.devices import DeviceClaim, DeviceKey, Inventory
from webhook.policy.preemption.node_state import Amounts, NodeState
from webhook.policy.preemption.pod_state import PodState
from webhook.policy.quota.tenant_quotas import LabelSelector, requirements_of
from webhook.policy.values.tenants import Requirement
from webhook.policy.values.tier_policy import TierPolicy

OVERDUE = 60.0
"""Seconds after its grace period for which a pod still counts as ending, because the driver has to free its devices."""


class Rules(msgspec.Struct, frozen=True):
    """The policy, the namespaces that are exempt, and those whose pods another queue admits, as Kueue does."""

    policy: TierPolicy
    exempt: frozenset[str] = frozenset()
    queued_elsewhere: frozenset[str] = frozenset()

    @property
    def longest_grace(self) -> int:
        """The longest grace period, in seconds, for which a preemptor waits for a pod to end."""
        return self.policy.checkpoint.max_grace_period


class DisruptionBudget(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget. `lines` are its selector's; None selects no pod. `allowed` pods may be evicted now."""

    namespace: str
    name: str
    lines: tuple[Requirement, ...] | None
    allowed: int

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Tell whether it selects a pod. An empty selector selects all of the namespace."""
        return (
            namespace == self.namespace and self.lines is not None and all(each.matches(labels) for each in self.lines)
        )


class _BudgetSpec(View, frozen=True):
    selector: LabelSelector | None = None


class _BudgetStatus(View, frozen=True):
    disruptions_allowed: int = 0


class _Budget(View, frozen=True):
    metadata: Metadata = Metadata()
    spec: _BudgetSpec = _BudgetSpec()
    status: _BudgetStatus = _BudgetStatus()


def disruption_budget(raw: msgspec.Raw | bytes) -> DisruptionBudget:
    """Return a budget from its JSON. Raises Refused."""
    found = read(raw, _Budget)
    about, selector = found.metadata, found.spec.selector
    lines = None if selector is None else tuple(requirements_of(selector))
    return DisruptionBudget(about.namespace, about.name, lines, found.status.disruptions_allowed)


UNLIMITED = Decimal("Infinity")


class StorageState(msgspec.Struct, frozen=True):
    """PersistentVolumeClaims by namespace/name, all else by name."""

    claims: Mapping[str, VolumeClaim] = {}
    volumes: Mapping[str, PersistentVolume] = {}
    classes: Mapping[str, StorageClass] = {}
    drivers: Mapping[str, CSIDriver] = {}
    nodes: Mapping[str, CSINode] = {}

    def attachment(self, key: str) -> tuple[str, str] | None:
        """Return the CSI driver and the handle of a claim's volume, by the claim's namespace/name.

        A volume that is yet to be made has the provisioner and the claim's key. None without a CSI driver, or if the
        claim, or its volume and class, do not exist.
        """
        claim = self.claims.get(key)
        if claim is None:
            return None
        if (volume := self.volumes.get(claim.spec.volume_name)) is not None:
            return volume.attachment
        found = self.classes.get(claim.spec.storage_class_name)
        return (found.provisioner, key) if found else None

    def attachable(self, node: str, drivers: Iterable[str], pods: Iterable[PodState]) -> Amounts:
        """Return how many volumes of each driver a node can attach in addition to those of its `pods`, by amount_of().

        Without a limit of the driver on the node that is infinity; 0 if the driver is missing there and has to run.

        Volumes of ending pods count as attached, because they are detached some time later. Volumes that no pod uses
        don't count, because they are detached soon.
        """
        limits = {each.name: each.allocatable.count for each in self.nodes.get(node, CSINode()).spec.drivers}
        left: dict[str, Decimal] = {}
        for driver in drivers:
            limit, found = limits.get(driver), self.drivers.get(driver)
            if limit is not None:
                there = {self.attachment(used.key) for pod in pods for used in pod.volumes}
                left[amount_of(driver)] = Decimal(limit - sum(each is not None and each[0] == driver for each in there))
            else:
                must_run = found is not None and found.says("preventPodSchedulingIfMissing")
                left[amount_of(driver)] = Decimal(0) if must_run and driver not in limits else UNLIMITED
        return left


def amount_of(driver: str) -> str:
    """Return the name of a driver's volumes among the resources of a node."""
    return f"volumes of {driver}"


class ClusterState(msgspec.Struct, frozen=True, dict=True):
    """Nodes by name, pods that have not ended by uid, ResourceClaims and PodGroups by namespace/name.

    `budgets` are by namespace. `at_risk` is what a pod would lose by its end, in GPU-seconds; 0 where it is not named.
    `unsaved_since` is the time of the last save of each pod that saves when it is asked, or of its start. Times are in
    seconds since 1970.
    """

    nodes: Mapping[str, NodeState]
    pods: Mapping[str, PodState]
    claims: Mapping[str, DeviceClaim]
    inventory: Inventory
    now: float
    budgets: Mapping[str, Sequence[DisruptionBudget]] = msgspec.field(default_factory=dict)
    groups: Mapping[str, PodGroup] = msgspec.field(default_factory=dict)
    at_risk: Mapping[str, float] = msgspec.field(default_factory=dict)
    unsaved_since: Mapping[str, float] = msgspec.field(default_factory=dict)
    storage: StorageState = StorageState()

    @cached_property
    def pods_on(self) -> Mapping[str, list[PodState]]:
        return _by_key((pod.node, pod) for pod in self.pods.values() if pod.node)

    @cached_property
    def devices_on(self) -> Mapping[str, list[DeviceKey]]:
        return _by_key((device.node, key) for key, device in self.inventory.devices.items())

    @cached_property
    def gangs(self) -> Mapping[str, list[PodState]]:
        """The pods by `PodState.gang`; a pod without a gang is alone under its uid."""
        return _by_key((pod.gang, pod) for pod in self.pods.values())

    @cached_property
    def volume_users(self) -> Mapping[str, list[PodState]]:
        """The pods that use each PersistentVolumeClaim."""
        return _by_key((used.key, pod) for pod in self.pods.values() for used in pod.volumes)

    @cached_property
    def repelling(self) -> Sequence[PodState]:
        """The pods on nodes whose required anti-affinity keeps others off."""
        return [pod for pod in self.pods.values() if pod.repels and pod.node in self.nodes]

    def ending(self, within: float) -> frozenset[str]:
        """Return the uids of pods that are being deleted, and whose grace period ends `within` so many seconds.

        Pods more than OVERDUE seconds late are left out, because they may never end: the node is lost, or a finalizer
        blocks the deletion.
        """
        first, last = self.now - OVERDUE, self.now + within
        return frozenset(
            uid for uid, pod in self.pods.items() if pod.ends_at is not None and first < pod.ends_at < last
        )


T = TypeVar("T")


def _by_key(pairs: Iterable[tuple[str, T]]) -> Mapping[str, list[T]]:
    """Return the values by key; an unknown key has an empty list."""
    found: defaultdict[str, list[T]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found
