"""The platform team's policy as values.

The fields are those of the file (config.gpu-tiers.dev/v1alpha1); docs/policy.md explains each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import IntEnum
from functools import cached_property
from typing import Literal

from webhook.objects.group_kind import GroupKind
from webhook.policy.values.hooks import Checkpoint
from webhook.policy.values.placement import Placement
from webhook.policy.values.scheduling import USUAL_NAMES, Scheduling, System
from webhook.policy.values.tenants import Requirement
from webhook.policy.values.tiers import Tiers
from webhook.policy.workloads.kinds import BUILT_IN, KindTable
from webhook.policy.workloads.workload_types import WorkloadType

IMPLICIT_CLAIM = "deviceclass.resource.kubernetes.io/"
"""Starts the resource name under which a device class is asked for without a claim (KEP-5004)."""


class Mode(IntEnum):
    """How strict: the larger, the stricter."""

    Audit = 0
    Warn = 1
    Enforce = 2


class Grade(IntEnum):
    """How good the evidence of a workload type is: the larger, the better (docs/decisions/evidence.md)."""

    Hinted = 0
    """A name, a port, a restart policy."""
    Shown = 1
    """What its GPU containers run: a command, a variable, an image, a probed path."""
    Usual = 2
    """What a general launcher is mostly used for: chooses a tier, binds nobody who asks for another."""
    Proven = 3
    """The kind, its fields, or an operator's label: a claim against it may be refused."""


@dataclass(frozen=True, slots=True)
class GpuResource:
    """Something that counts as a GPU: a resource name or a DRA device class, and how many GPUs one of it is."""

    name: str
    weight: Decimal


@dataclass(frozen=True, slots=True)
class GpuShare:
    """A pod annotation that asks for a part of a GPU: a fraction, or MiB of a GPU that has `memory` of them."""

    annotation: str
    weight: Decimal
    memory: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Flavor:
    """GPUs of one model, known by the labels of their nodes."""

    name: str
    node_labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Match:
    """What a rule applies to; every part that is given must hold."""

    kinds: tuple[GroupKind, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    namespaces: tuple[str, ...] = ()
    service_accounts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """Gives a tier to the workloads that match."""

    match: Match
    tier: str


@dataclass(frozen=True, slots=True)
class Kueue:
    """Kueue reads tiers from WorkloadPriorityClasses of their names.

    `without_queue_name` selects the namespaces in which it manages jobs that name no queue too; None: it does nowhere.
    """

    without_queue_name: tuple[Requirement, ...] | None = None

    def manages_unnamed(self, namespace_labels: Mapping[str, str]) -> bool:
        """Whether it manages jobs without a queue's name in a namespace of these labels."""
        lines = self.without_queue_name
        return lines is not None and all(line.matches(namespace_labels) for line in lines)


@dataclass(frozen=True)
class TierPolicy:
    """The whole policy in force."""

    tiers: Tiers
    default_tier: str
    mode: Mode = Mode.Audit
    adoption: bool = False
    resources: tuple[GpuResource, ...] = ()
    device_classes: tuple[GpuResource, ...] = ()
    shares: tuple[GpuShare, ...] = ()
    flavors: tuple[Flavor, ...] = ()
    tier_of_type: Mapping[WorkloadType, str] = field(default_factory=dict)
    allowed_by_type: Mapping[WorkloadType, tuple[str, ...]] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    unmanaged_classes: Literal["Keep", "Replace", "Deny"] = "Keep"
    unreadable_owners: Literal["Deny", "DefaultTier"] = "Deny"
    namespaces_without_tenant: Literal["Allow", "Warn", "Deny"] = "Allow"
    raise_by: Grade = Grade.Shown
    quota_release_strategy: Literal["Terminal", "Terminating"] = "Terminal"
    checkpoint: Checkpoint = field(default_factory=Checkpoint)
    placement: Mapping[str, Placement] = field(default_factory=dict)
    scheduling: Mapping[str, Scheduling] = field(default_factory=dict)
    templates: Literal["Off", "ValidateOnly", "Mutate"] = "ValidateOnly"
    kueue: Kueue | None = None
    kinds: KindTable = BUILT_IN

    @cached_property
    def weights(self) -> dict[str, Decimal]:
        """GPUs per unit of each resource name that counts, the implicit names of device classes included."""
        implicit = {IMPLICIT_CLAIM + each.name: each.weight for each in self.device_classes}
        return {each.name: each.weight for each in self.resources} | implicit

    @cached_property
    def systems(self) -> Mapping[str, System]:
        """The schedulers that have queues, by the name that a pod calls them by."""
        queued = (each for each in self.scheduling.values() if each.scheduler and each.queue)
        return {**USUAL_NAMES, **{each.scheduler: each.queue.system for each in queued if each.queue}}
