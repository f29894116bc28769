"""The platform team's policy as values.

The fields are those of the file (config.gpu-tiers.dev/v1alpha1); docs/policy.md explains each.
"""

from collections.abc import Mapping
from decimal import Decimal
from enum import IntEnum
from functools import cached_property
from typing import Any, Literal

import msgspec

from webhook.objects.group_kind import GroupKind
from webhook.objects.refusal import Phrase
from webhook.policy.values.tenants import Requirement
from webhook.policy.values.tiers import Tier, Tiers
from webhook.policy.values.weights import IMPLICIT_CLAIM, DeviceClass, Weights
from webhook.policy.workloads.kind_table import BUILT_IN, KindTable, WorkloadType

HookKind = Literal["file", "listen", "http", "exec", "signal", "sigterm", "sleep", "none"]


class Hook(msgspec.Struct, frozen=True):
    """A checkpoint hook. `seconds` is the time for a save; for `sleep`, how long it sleeps.

    The table of kinds has the other fields of each kind, and their defaults. `path` is the folder of the `file`
    protocol, or the path of the `http` request. `python_path` is the PYTHONPATH of the pod's images; "" if unknown.
    `reports`: the pod gets the means to report its saves.
    """

    kind: HookKind = "none"
    seconds: int = 120
    path: str = ""
    port: int | str = 0
    command: tuple[str, ...] = ()
    signal: str = ""
    done_file: str = ""
    python_path: str = ""
    reports: bool = False


class Checkpoint(msgspec.Struct, frozen=True):
    """Hooks by workload type and by tier. Times are in seconds; the caps bound what a hook adds to a grace period.

    `tier_caps` are for tiers whose pods have to end sooner. `listener_image` is the image with the listener; "" if
    annotations have it. `pod_failure_policy`: a Job without one gets a policy by which preemptions don't count.
    """

    hooks: Mapping[WorkloadType, Hook] = msgspec.field(default_factory=dict)
    tiers: Mapping[str, Hook] = msgspec.field(default_factory=dict)
    margin: int = 10
    max_grace_period: int = 600
    tier_caps: Mapping[str, int] = msgspec.field(default_factory=dict)
    listener_image: str = ""
    pod_failure_policy: Literal["Add", "Leave"] = "Add"


class AtOnce(msgspec.Struct, frozen=True, rename="camel"):
    """How many runs may save at the same time: in the cluster, of a tenant, and to a PersistentVolumeClaim."""

    cluster: int = 32
    tenant: int = 16
    volume_claim: int = 4

    def of(self, share: str) -> int:
        return {"tenant": self.tenant, "volumeClaim": self.volume_claim}.get(share, self.cluster)


class Saves(msgspec.Struct, frozen=True):
    """When trainings are asked to save: the most seconds of work at risk by tier, and how many save at once."""

    max_at_risk: Mapping[str, int] = msgspec.field(default_factory=dict)
    at_once: AtOnce = AtOnce()


class ReportTarget(msgspec.Struct, frozen=True):
    """The address to which trainings report their progress. `ca` is the certificate of its CA as PEM."""

    url: str
    ca: str


System = Literal["Volcano", "KAI"]
"""Schedulers with queues of their own. Kueue is not among them, because it queues what any scheduler places."""

USUAL_NAMES: Mapping[str, System] = {"volcano": "Volcano", "kai-scheduler": "KAI"}
"""The usual schedulerName of each."""

Strategy = Literal["Pack", "Spread"]

DevicePreemption = Literal["Off", "Remove", "On"]
"""Whether pods are evicted for those that wait for devices of DRA. `Remove` ends the reservations that are left."""

Telling = Literal["Off", "Write", "Remove"]
"""Whether a scheduler gets the costs of evictions. `Remove` deletes them, while we still have the right."""


Urgency = Literal["Imminent", "Planned", "Possible"]
"""How soon a node ends: within minutes, later, or perhaps. The most urgent comes first."""


class NodeSignal(msgspec.Struct, frozen=True, rename={"notice": "noticeSeconds"}):
    """A sign that a node will end: a taint, a condition or a label with this key, or that it is cordoned.

    `value` is that of the taint or label, "" for any, or the status of the condition, "" for True. `notice`: so many
    seconds before the end, as the provider guarantees. `source` is where its program is documented.
    """

    id: str
    where: Literal["Taint", "Condition", "Label", "Unschedulable"]
    key: str = ""
    value: str = ""
    urgency: Urgency = "Planned"
    notice: int | None = None
    source: str = ""


class Mode(IntEnum):
    """The mode; a larger value is stricter."""

    Audit = 0
    Warn = 1
    Enforce = 2


MODE_LABEL = "gpu-tiers.dev/mode"
"""The label by which a namespace may be stricter than the installation."""


class Grade(IntEnum):
    """The grade of evidence for a workload type; a larger value is better (docs/decisions/evidence.md)."""

    Hinted = 0
    """A name, a port, a restart policy."""
    Shown = 1
    """What its GPU containers run: a command, a variable, an image, a probed path, or names that agree."""
    Usual = 2
    """The usual use of a general launcher. It chooses a tier, but binds nobody who asks for another."""
    Proven = 3
    """The kind, its fields, or an operator's label: a claim against it may be refused."""


class GpuShare(msgspec.Struct, frozen=True):
    """A pod annotation that asks for a part of a GPU: a fraction, or MiB of a GPU with `memory` MiB."""

    annotation: str
    weight: Decimal
    memory: Decimal | None = None


class Flavor(msgspec.Struct, frozen=True):
    """GPUs of one model, identified by the labels of their nodes. `price` is that of a GPU-hour, if there is one."""

    name: str
    node_labels: Mapping[str, str]
    price: Decimal | None = None


class Match(msgspec.Struct, frozen=True):
    """The workloads that a rule applies to; every given part must hold."""

    kinds: tuple[GroupKind, ...] = ()
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    namespaces: tuple[str, ...] = ()
    service_accounts: tuple[str, ...] = ()


class Rule(msgspec.Struct, frozen=True):
    """Gives a tier to the workloads that match."""

    match: Match
    tier: str


class Queue(msgspec.Struct, frozen=True):
    """A queue of a scheduler."""

    system: System
    name: str


class Scheduling(msgspec.Struct, frozen=True, rename="camel"):
    """The scheduler and queue of a tier's pods that name none themselves; "" and None for none."""

    scheduler: str = msgspec.field(default="", name="schedulerName")
    queue: Queue | None = None


class Placement(msgspec.Struct, frozen=True, rename="camel"):
    """The place where the pods of a tier run, unless they set it themselves.

    A strategy goes with its `topology_key`, a label of nodes. `tolerations` are as in a pod, and `max_runtime` is in
    seconds.
    """

    strategy: Strategy | None = None
    topology_key: str = ""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    node_selector: Mapping[str, str] = msgspec.field(default_factory=dict)
    max_runtime: int | None = msgspec.field(default=None, name="maxRuntimeSeconds")


class Kueue(msgspec.Struct, frozen=True):
    """Kueue reads tiers from WorkloadPriorityClasses with the tiers' names.

    `without_queue_name` selects the namespaces in which it manages jobs without a queue name too; None for nowhere.
    """

    without_queue_name: tuple[Requirement, ...] | None = None

    def manages_unnamed(self, namespace_labels: Mapping[str, str]) -> bool:
        """Tell whether it manages jobs without a queue's name in a namespace with these labels."""
        lines = self.without_queue_name
        return lines is not None and all(line.matches(namespace_labels) for line in lines)


EVICTED_BY_NOBODY = Phrase("evicted-by-nobody")
"""The words on a tier whose pods no other tier may evict."""


class TierPolicy(msgspec.Struct, frozen=True, dict=True):
    """The whole active policy.

    `resources` and `device_classes` are those that count, with the number of GPUs in each unit. `classes` are the
    DeviceClasses of the cluster, from which the number per device follows. `autoscaler` is what a tier's pods tell
    autoscalers: `Protect`, `Allow`, or how long to protect, such as 24h.

    `reports` is the address for trainings' reports; None if this replica receives none.
    """

    tiers: Tiers
    default_tier: str
    mode: Mode = Mode.Audit
    adoption: bool = False
    resources: Mapping[str, Decimal] = msgspec.field(default_factory=dict)
    device_classes: Mapping[str, Decimal] = msgspec.field(default_factory=dict)
    shares: tuple[GpuShare, ...] = ()
    uncounted: Literal["CountWhole", "Warn", "Refuse"] = "CountWhole"
    flavors: tuple[Flavor, ...] = ()
    flavor_unnamed: Literal["Worst", "WhenBound"] = "Worst"
    tier_of_type: Mapping[WorkloadType, str] = msgspec.field(default_factory=dict)
    allowed_by_type: Mapping[WorkloadType, tuple[str, ...]] = msgspec.field(default_factory=dict)
    demote_to: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    unmanaged_classes: Literal["Keep", "Replace", "Deny"] = "Keep"
    unreadable_owners: Literal["Deny", "DefaultTier"] = "Deny"
    namespaces_without_tenant: Literal["Allow", "Warn", "Deny"] = "Allow"
    untiered: Literal["Assign", "Refuse"] = "Assign"
    tier_access: Literal["Anyone", "RBAC"] = "Anyone"
    raise_by: Grade = Grade.Shown
    quota_release_strategy: Literal["Terminal", "Terminating"] = "Terminal"
    checkpoint: Checkpoint = msgspec.field(default_factory=Checkpoint)
    saves: Saves = Saves()
    placement: Mapping[str, Placement] = msgspec.field(default_factory=dict)
    scheduling: Mapping[str, Scheduling] = msgspec.field(default_factory=dict)
    autoscaler: Mapping[str, str] = msgspec.field(default_factory=dict)
    templates: Literal["Off", "ValidateOnly", "Mutate"] = "ValidateOnly"
    kueue: Kueue | None = None
    eviction_cost: Mapping[Literal["Kueue", "Volcano"], Telling] = msgspec.field(default_factory=dict)
    device_preemption: DevicePreemption = "Off"
    node_signals: tuple[NodeSignal, ...] = ()
    kinds: KindTable = BUILT_IN
    classes: Mapping[str, DeviceClass] = msgspec.field(default_factory=dict)
    reports: ReportTarget | None = None

    def mode_in(self, namespace_labels: Mapping[str, str]) -> Mode:
        """Return the mode in a namespace: its own label may be stricter than the installation, not milder."""
        own = Mode.__members__.get(namespace_labels.get(MODE_LABEL, "").capitalize())
        return self.mode if own is None else max(self.mode, own)

    def evicted_by(self, tier: Tier) -> Phrase:
        """Return the words for the tiers that may evict pods of this one; during adoption nobody may."""
        above = (each for each in self.tiers if each.value > tier.value and each.preemption_policy != "Never")
        names = () if self.adoption else tuple(each.name for each in above)
        return Phrase("evicted-by", tiers=names) if names else EVICTED_BY_NOBODY

    @cached_property
    def weights(self) -> Weights:
        """Return the GPUs per unit of everything that a pod can ask for."""
        by_class = {IMPLICIT_CLAIM + name: weight for name, weight in self.device_classes.items()}
        return Weights({**by_class, **self.resources}, self.classes, unlisted=self.uncounted != "Warn")

    @cached_property
    def systems(self) -> Mapping[str, System]:
        """Return the schedulers that have queues, by their schedulerName."""
        queued = (each for each in self.scheduling.values() if each.scheduler and each.queue)
        return {**USUAL_NAMES, **{each.scheduler: each.queue.system for each in queued if each.queue}}
