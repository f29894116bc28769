"""The policy file, field by field (config.gpu-tiers.dev/v1alpha1).

It is a file and not a CRD: the API server doesn't know it.
"""

from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictInt, StrictStr, ValidationInfo, field_validator
from pydantic.alias_generators import to_camel

from webhook.config.sections import (
    OFF_IS_A_WORD,
    ON_IS_A_WORD,
    KindSection,
    OwnKindSection,
    PlacementSection,
    SchedulingSection,
    Section,
    matching,
)
from webhook.objects.quantities import quantity
from webhook.objects.refusal import Refused
from webhook.policy.checkpoint.hook_kinds import completed, missing, reader, unwanted
from webhook.policy.checkpoint.work_lost import LEAST_AT_RISK, MOST_AT_RISK
from webhook.policy.saves.node_signals import BUILT_IN
from webhook.policy.values.tenants import Operator
from webhook.policy.values.tier_policy import DevicePreemption, Hook, HookKind, Telling, Urgency
from webhook.policy.values.tiers import NONPREEMPTING, PreemptionPolicy
from webhook.policy.workloads.kind_table import WorkloadType

HIGHEST_VALUE = 1_000_000_000
"""User-made PriorityClasses end here; above lie the system's (API doc of PriorityClass)."""

LEAST_MEMORY = 2**28
"""Bytes: less is a number without its unit."""

Name = Annotated[str, Field(max_length=63 - len(NONPREEMPTING)), matching("tierName")]
ServiceAccount = Annotated[str, matching("serviceAccount")]
ExtendedResource = Annotated[str, matching("extendedResource")]
SignalKey = Annotated[str, matching("signalKey")]
_PROTECTIONS = "`Protect`, `Allow`, or a time of protection such as `24h`"
Protection = Annotated[str, matching("protection"), Field(description=_PROTECTIONS)]
"""What a tier's pods tell autoscalers. The time is written as Go writes it, because Karpenter reads it so."""


class TierSection(Section):
    """A tier. The PriorityClass of its name has this value and this preemption policy."""

    name: Name
    value: int = Field(ge=1, le=HIGHEST_VALUE)
    preemption_policy: PreemptionPolicy = "PreemptLowerPriority"
    description: str = ""


class ResourceSection(Section):
    """A GPU resource: a resource name, a DRA device class, or the pod annotation of a scheduler that shares GPUs.

    One unit counts as `weight` GPUs; 0 if it is no GPU, although it may look like one. `gpu-memory` is in MiB, so it
    needs `memoryPerGPU`, such as "80Gi".
    """

    name: ExtendedResource | None = None
    device_class_name: str | None = Field(default=None, min_length=1, max_length=253)
    annotation: Literal["gpu-fraction", "gpu-memory"] | None = None
    memory_per_gpu: str | None = Field(default=None, alias="memoryPerGPU")
    weight: Decimal = Field(default=Decimal(1), ge=0, le=1024, max_digits=12, decimal_places=6)

    @property
    def title(self) -> str:
        """The name in lists and errors."""
        other = f"annotation {self.annotation}" if self.annotation else f"deviceClassName {self.device_class_name}"
        return self.name or other

    @property
    def mebibytes(self) -> Decimal | None:
        """The memory of a GPU in the unit of the annotation."""
        return None if self.memory_per_gpu is None else quantity(self.memory_per_gpu, "memoryPerGPU") / 2**20

    @field_validator("memory_per_gpu")
    @classmethod
    def _require_unit(cls, value: str) -> str:
        with suppress(Refused):
            if quantity(value, "memoryPerGPU") >= LEAST_MEMORY:
                return value
        raise ValueError(f'"{value}" is not a memory size; write it with its unit, such as "80Gi" or "81559Mi"')

    def problems(self) -> Iterator[str]:
        if sum(each is not None for each in (self.name, self.device_class_name, self.annotation)) != 1:
            yield "write one of name, deviceClassName and annotation"
        if (self.annotation == "gpu-memory") != (self.memory_per_gpu is not None):
            yield "memoryPerGPU goes with the annotation gpu-memory: it needs one, and nothing else has one"


class FlavorSection(Section):
    """GPUs of one model, known by the labels of their nodes, with the price of a GPU-hour in the site's currency."""

    name: Name
    node_labels: dict[str, str] = Field(min_length=1)
    gpu_hour_price: Decimal | None = Field(default=None, ge=0, max_digits=12, decimal_places=6)


class MatchSection(Section):
    """The workloads of a rule. Every given part must match."""

    kinds: tuple[KindSection, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)
    namespaces: tuple[str, ...] = ()
    service_accounts: tuple[ServiceAccount, ...] = ()

    def problems(self) -> Iterator[str]:
        if not (self.kinds or self.labels or self.namespaces or self.service_accounts):
            yield "matches nothing: give kinds, labels, namespaces or serviceAccounts (namespace:name)"


class RuleSection(Section):
    """Gives a tier to the workloads that match."""

    match: MatchSection
    tier: str


class HookSection(Section):
    """A checkpoint hook. `seconds` is how long a save may take (default 120), or how long `sleep` sleeps (default 15).

    [The kinds](checkpointing.md#kinds) take different fields, each with its own default.
    """

    kind: HookKind
    seconds: int | None = Field(default=None, ge=1, le=86_400)
    path: str | None = None
    port: StrictInt | StrictStr | None = None
    command: tuple[str, ...] | str | None = None
    signal: str | None = None
    done_file: str | None = None
    python_path: str | None = None
    reports: StrictBool | None = None

    @field_validator("path", "port", "command", "signal", "done_file", "python_path")
    @classmethod
    def _readable(cls, value: Any, info: ValidationInfo) -> Any:
        kind = info.data.get("kind", "file")
        return None if value is None else reader(kind, str(info.field_name))(value)

    def given(self) -> dict[str, Any]:
        return self.model_dump(exclude={"kind", "seconds"}, exclude_none=True)

    def hook(self) -> Hook:
        return completed(self.kind, self.seconds, self.given())

    def problems(self) -> Iterator[str]:
        given = self.given()
        wrong, lacking = unwanted(self.kind, given), missing(self.kind, given)
        if wrong is not None:
            yield f"a hook of kind {self.kind} takes no {to_camel(wrong)}"
        if lacking is not None:
            yield f"a hook of kind {self.kind} needs a {lacking}"


GraceSeconds = Annotated[int, Field(ge=1, le=86_400, description="seconds, from 1 to 86400")]
SecondsAtRisk = Annotated[
    int, Field(ge=LEAST_AT_RISK, le=MOST_AT_RISK, description=f"seconds, from {LEAST_AT_RISK} to {MOST_AT_RISK}")
]


class CheckpointSection(Section):
    """Hooks by workload type and by tier (the tier comes first), and the limits of grace periods, in seconds.

    `maxGracePeriodSecondsByTier` is for tiers whose pods have to go sooner than `maxGracePeriodSeconds` allows.
    `listenerImage` is an image of gpu-tiers that brings the listener of `listen` hooks into pods, as an image volume
    (Kubernetes 1.35). Without it the listener travels in annotations, which needs nothing. `podFailurePolicy: Leave`
    keeps gpu-tiers from [adding one](checkpointing.md#jobs) to Jobs that have none.
    """

    training: HookSection | None = None
    serving: HookSection | None = None
    batch: HookSection | None = None
    interactive: HookSection | None = None
    tiers: dict[str, HookSection] = Field(default_factory=dict)
    margin_seconds: int = Field(default=10, ge=0, le=3600)
    max_grace_period_seconds: int = Field(default=600, ge=1, le=86_400)
    max_grace_period_seconds_by_tier: dict[str, GraceSeconds] = Field(default_factory=dict)
    pod_failure_policy: Literal["Add", "Leave"] = "Add"
    listener_image: Annotated[str, matching("image")] = ""

    def problems(self) -> Iterator[str]:
        of_all, by_tier = self.max_grace_period_seconds, self.max_grace_period_seconds_by_tier
        caps = {"": (_CAP, of_all)} | {tier: (f"{_CAP}ByTier.{tier}", cap) for tier, cap in sorted(by_tier.items())}
        for name, cap in caps.values():
            if self.margin_seconds >= cap:
                yield f"marginSeconds must be below {name}, or no time is left to save"
            if cap > of_all:
                yield f"{name} is {cap}, which is above {_CAP}, {of_all}"
        hooks: list[tuple[str, str, HookSection | None]] = [
            *((each.value, "", getattr(self, each.value)) for each in WorkloadType),
            *((f"tiers.{tier}", tier, hook) for tier, hook in self.tiers.items()),
        ]
        for name, tier, hook in hooks:
            limit, cap = caps.get(tier, caps[""])
            if hook and hook.seconds is not None and hook.seconds > (left := cap - self.margin_seconds):
                yield f"{name}.seconds is {hook.seconds}, but {limit} less marginSeconds leaves {left}"


_CAP = "maxGracePeriodSeconds"


class AtOnceSection(Section):
    """How many runs may save at the same time: in the cluster, of a tenant, and to a PersistentVolumeClaim."""

    cluster: int = Field(default=32, ge=1, le=10_000)
    tenant: int = Field(default=16, ge=1, le=10_000)
    volume_claim: int = Field(default=4, ge=1, le=10_000)


class SavesSection(Section):
    """Asks trainings that [report](checkpointing.md#reports) to [save and train on](saves.md).

    `maxAtRiskSeconds` is the most work, in seconds, that pods of a tier may lose; the annotation
    `gpu-tiers.dev/checkpoint-max-at-risk` of a pod comes before it. `atOnce` protects the storage.
    """

    max_at_risk_seconds: dict[str, SecondsAtRisk] = Field(default_factory=dict)
    at_once: AtOnceSection = AtOnceSection()


class SelectorLineSection(Section):
    """One line of a label selector's matchExpressions. `In` and `NotIn` take values."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def problems(self) -> Iterator[str]:
        if bool(self.values) != (self.operator in ("In", "NotIn")):
            yield "In and NotIn need values, Exists and DoesNotExist take none"


class SelectorSection(Section):
    """A label selector, as Kubernetes has it; the empty one selects all."""

    match_labels: dict[str, str] = Field(default_factory=dict)
    match_expressions: tuple[SelectorLineSection, ...] = ()


class KueueSection(Section):
    """Tells Kueue the tier of what it queues, by the label `kueue.x-k8s.io/priority-class`.

    `workloadPriorityClasses` turns it on; the chart then makes a WorkloadPriorityClass for each tier. What Kueue admits
    and a tenant's rows have no room for goes back into its queue then. The other two repeat what Kueue's own
    configuration says.
    """

    workload_priority_classes: bool = False
    manage_jobs_without_queue_name: bool = False
    managed_jobs_namespace_selector: SelectorSection = SelectorSection()


class EvictionCostSection(Section):
    """Tells other schedulers [what an eviction would lose](checkpointing.md#what-other-schedulers-are-told).

    `Remove` takes back what was written, for some minutes before `Off`.
    """

    kueue: Annotated[Telling, OFF_IS_A_WORD] = "Off"
    volcano: Annotated[Telling, OFF_IS_A_WORD] = "Off"


class PreemptionSection(Section):
    """Preemption where kube-scheduler has none.

    `dra: On` lets the leader [reserve nodes and evict pods](preemption-dra.md) for pods that wait for GPUs of DRA.
    [`Remove`](preemption-dra.md#turn-it-off) comes before `Off`.
    """

    dra: Annotated[DevicePreemption, OFF_IS_A_WORD, ON_IS_A_WORD] = "Off"


class NodeSignalSection(Section):
    """A sign that a node will end. An entry with an `id` of [the table](#node-signals) changes that row.

    `value` is that of the taint or label, or the status of the condition; without it any value counts, and of a
    condition True. The most urgent signal counts, then the shortest notice. `ignore: true` switches a row off.
    """

    id: Name
    where: Literal["Taint", "Condition", "Label", "Unschedulable"] | None = None
    key: SignalKey | None = None
    value: str | None = Field(default=None, max_length=63)
    urgency: Urgency | None = None
    notice: int | None = Field(default=None, ge=1, le=86_400, alias="noticeSeconds")
    ignore: StrictBool = False

    def problems(self) -> Iterator[str]:
        known = next((row for row in BUILT_IN if row.id == self.id), None)
        where = self.where or (known.where if known else None)
        key = self.key or (known.key if known else "")
        if known is None and self.ignore:
            ids = ", ".join(sorted(row.id for row in BUILT_IN))
            yield f'"{self.id}" is not in the table; its ids: {ids}'
        if where is None:
            yield "a signal of your own needs where: Taint, Condition, Label or Unschedulable"
        if (where == "Unschedulable") == bool(key):
            yield "Taint, Condition and Label need a key, and Unschedulable takes none"


class PolicyFile(Section):
    """The whole file, the preset merged in."""

    api_version: Literal["config.gpu-tiers.dev/v1alpha1"]
    kind: Literal["TierPolicy"]
    preset: str | None = None
    mode: Literal["Audit", "Warn", "Enforce"] = "Audit"
    adoption: bool = False
    resources: tuple[ResourceSection, ...]
    uncounted: Literal["CountWhole", "Warn", "Refuse"] = "CountWhole"
    resource_flavors: tuple[FlavorSection, ...] = ()
    flavor_unnamed: Literal["Worst", "WhenBound"] = "Worst"
    tiers: tuple[TierSection, ...]
    workload_types: dict[WorkloadType, str] = Field(default_factory=dict)
    default_tier: str
    allowed_tiers_by_type: dict[WorkloadType, tuple[str, ...]] = Field(default_factory=dict)
    demote_to: tuple[str, ...] = ()
    rules: tuple[RuleSection, ...] = ()
    kinds: tuple[OwnKindSection, ...] = ()
    unmanaged_classes: Literal["Keep", "Replace", "Deny"] = "Keep"
    unreadable_owners: Literal["Deny", "DefaultTier"] = "Deny"
    namespaces_without_tenant: Literal["Allow", "Warn", "Deny"] = "Allow"
    untiered: Literal["Assign", "Refuse"] = "Assign"
    tier_access: Literal["Anyone", "RBAC"] = "Anyone"
    raise_by: Literal["Proven", "Usual", "Shown", "Hinted"] = "Shown"
    quota_release_strategy: Literal["Terminal", "Terminating"] = "Terminal"
    checkpoint: CheckpointSection = CheckpointSection()
    saves: SavesSection = SavesSection()
    placement: dict[str, PlacementSection] = Field(default_factory=dict)
    scheduling: dict[str, SchedulingSection] = Field(default_factory=dict)
    autoscaler: dict[str, Protection] = Field(default_factory=dict)
    templates: Annotated[Literal["Off", "ValidateOnly", "Mutate"], OFF_IS_A_WORD] = "ValidateOnly"
    kueue: KueueSection = KueueSection()
    eviction_cost: EvictionCostSection = EvictionCostSection()
    preemption: PreemptionSection = PreemptionSection()
    node_signals: tuple[NodeSignalSection, ...] = ()
