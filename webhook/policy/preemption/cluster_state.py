"""The cluster as preemption knows it, and the rules of the platform team that bound it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from webhook.objects.podgroups import PodGroup
from webhook.policy.devices import DeviceClaim, DeviceKey, Inventory
from webhook.policy.preemption.disruption_budget import DisruptionBudget
from webhook.policy.preemption.node_state import NodeState
from webhook.policy.preemption.pod_state import PodState
from webhook.policy.preemption.storage_state import StorageState
from webhook.policy.values.tier_policy import TierPolicy

OVERDUE = 60.0
"""Seconds after the end of its grace for which a pod is still taken to end: its driver has to give back the devices."""


class Rules(msgspec.Struct, frozen=True):
    """The policy, the namespaces that are exempt, and those whose pods another queue admits, as Kueue does."""

    policy: TierPolicy
    exempt: frozenset[str] = frozenset()
    queued_elsewhere: frozenset[str] = frozenset()

    @property
    def longest_grace(self) -> int:
        """The grace of a pod, in seconds, up to which others wait for its end."""
        return self.policy.checkpoint.max_grace_period


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
        found: defaultdict[str, list[PodState]] = defaultdict(list)
        for pod in self.pods.values():
            if pod.node:
                found[pod.node].append(pod)
        return found

    @cached_property
    def devices_on(self) -> Mapping[str, list[DeviceKey]]:
        found: defaultdict[str, list[DeviceKey]] = defaultdict(list)
        for key, device in self.inventory.devices.items():
            found[device.node].append(key)
        return found

    @cached_property
    def gangs(self) -> Mapping[str, list[PodState]]:
        """The pods of each gang, those without one by themselves."""
        found: defaultdict[str, list[PodState]] = defaultdict(list)
        for pod in self.pods.values():
            found[pod.gang].append(pod)
        return found

    @cached_property
    def repelling(self) -> Sequence[PodState]:
        """The pods on nodes whose required anti-affinity keeps others off."""
        return [pod for pod in self.pods.values() if pod.repels and pod.node in self.nodes]

    @cached_property
    def members(self) -> Mapping[str, list[PodState]]:
        """The pods of each PodGroup."""
        found: defaultdict[str, list[PodState]] = defaultdict(list)
        for pod in self.pods.values():
            if pod.pod_group:
                found[pod.pod_group].append(pod)
        return found

    @cached_property
    def volume_users(self) -> Mapping[str, list[PodState]]:
        """The pods that use each PersistentVolumeClaim."""
        found: defaultdict[str, list[PodState]] = defaultdict(list)
        for pod in self.pods.values():
            for used in pod.volumes:
                found[used.key].append(pod)
        return found

    def ending(self, within: float) -> frozenset[str]:
        """Return the uids of pods that are being deleted, and end in so many seconds at most.

        One that is overdue may never end: its node is lost, or somebody's finalizer holds it.
        """
        first, last = self.now - OVERDUE, self.now + within
        return frozenset(
            uid for uid, pod in self.pods.items() if pod.ends_at is not None and first < pod.ends_at < last
        )
