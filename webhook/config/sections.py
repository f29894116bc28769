"""Sections of the policy file as pydantic reads them: their base, kinds of workloads, and the placement of pods.

Values that the API server would refuse on a pod are refused here, because otherwise every pod of the tier would be
refused later.
"""

import re
from collections.abc import Iterator
from typing import Annotated, Literal, Self, TypeVar

import msgspec
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from webhook.objects.data_files import data_file
from webhook.objects.group_kind import POD, POD_GROUP, SCHEDULING_WORKLOAD, GroupKind
from webhook.objects.view import steps
from webhook.policy.placement import UNNAMED
from webhook.policy.values.tier_policy import USUAL_NAMES, Strategy, System
from webhook.policy.workloads.kind_table import BUILT_IN, KindRow, WorkloadType, holder_of, row_over

V = TypeVar("V", bound=msgspec.Struct)


class Section(BaseModel):
    """Base of all sections: camelCase in the file, an unknown field is an error."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        use_enum_values=False,
        defer_build=True,  # validators are built when the first file is read
    )

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with fields together. Only the first is reported."""
        yield from ()

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if problem := next(self.problems(), ""):
            raise ValueError(problem)
        return self

    def made(self, of: type[V]) -> V:
        """Return the value of policy whose fields have the same names as those of the section in the file."""
        return msgspec.convert(self.model_dump(by_alias=True, exclude_none=True), of)


OFF_IS_A_WORD = BeforeValidator(lambda value: "Off" if value is False else value)
ON_IS_A_WORD = BeforeValidator(lambda value: "On" if value is True else value)
"""YAML takes a bare Off for false, and On for true."""


_PATTERNS = data_file(__name__, "patterns.yaml")


def matching(form: str) -> AfterValidator:
    """Return a check of a text by its form in patterns.yaml."""
    pattern, words = _PATTERNS[form]["pattern"], _PATTERNS[form]["words"]

    def check(text: str) -> str:
        if re.fullmatch(pattern, text) is None:
            raise ValueError(f'"{text[:63]}"{words}')
        return text

    return AfterValidator(check)


LabelKey = Annotated[str, matching("labelKey")]
Path = Annotated[str, Field(max_length=253), matching("path")]
ScalePath = Annotated[str, Field(max_length=253), matching("scalePath")]
Plural = Annotated[str, Field(max_length=63), matching("plural")]
NodeLabel = Annotated[str, matching("nodeLabel")]
NodeLabelValue = Annotated[str, matching("nodeLabelValue")]
SchedulerName = Annotated[str, matching("schedulerName")]


class KindSection(Section):
    """An API group and a kind in it; "" is the core group."""

    group: str = ""
    kind: str = Field(min_length=1)

    @property
    def group_kind(self) -> GroupKind:
        return GroupKind(self.group, self.kind)

    def __str__(self) -> str:
        return "/".join(filter(None, self.group_kind))


class TemplateSection(Section):
    """The path of a pod template, such as `spec.workers.*.template`; `*` is each list item or map value.

    `replicas` is the field with its number of pods, one if it is absent. `form` is `spec` if a bare pod spec lies
    there, without metadata.
    """

    path: Path
    replicas: Path | None = None
    form: Literal["template", "spec"] = "template"

    def problems(self) -> Iterator[str]:
        below = len(holder_of(self.path, self.replicas))
        if "*" in (*steps(self.path)[below:], *steps(self.replicas or "")[below:]):
            yield f"replicas: {self.replicas} must lie in the same item as path: {self.path}"


class OwnKindSection(KindSection):
    """A kind that the table lacks, or fields that replace those of the table's row.

    `type` is the type of every such object. `usualType` is the type of most, unless the command or the image of a pod
    says another. `podLabels` are the labels that its operator puts on the pods; write a value if only that value tells.
    With `gang`, its pods are of use only together, and are charged as a whole. Members of a gang that ask for no GPU
    are known by `gangLabel` and share the gang's tier. `scale` is the field that its scale subresource writes, such as
    `spec.replicas`; then a scale is reviewed as an update of the object is.
    """

    plural: Plural | None = None
    type: WorkloadType | None = None
    usual_type: WorkloadType | None = None
    pod_labels: dict[LabelKey, str | None] = Field(default_factory=dict)
    gang: bool | None = None
    gang_label: LabelKey | None = None
    scale: ScalePath | None = None
    templates: tuple[TemplateSection, ...] = ()

    def problems(self) -> Iterator[str]:
        if self.type and self.usual_type:
            yield "write either type (every such object is one) or usualType (most are)"
        if self.group_kind in (POD, POD_GROUP, SCHEDULING_WORKLOAD):
            yield f"{self} is no workload; write the kinds that make pods"
        if self.plural is None and self.group_kind not in BUILT_IN.by_kind:
            yield f"{self} is not in the table of workload kinds, so write its plural, as in the paths of its API"
        if self.plural is None and (self.gang or self.scale):
            yield f"gang and scale need the plural of {self}, so write it, as in the paths of its API"

    def row(self) -> KindRow:
        """Return the row of this kind, or that of the table with the fields that are written here.

        A written type replaces all fields of the table's row about the type.
        """
        entry = self.model_dump(by_alias=True, exclude_defaults=True)
        if self.type or self.usual_type:
            entry |= {"type": self.type, "usualType": self.usual_type, "fields": {}, "unless": ()}
        if self.gang_label:
            entry["podLabels"] = {self.gang_label: None} | self.pod_labels
        known = BUILT_IN.by_kind.get(self.group_kind)
        return row_over(known or KindRow(self.group, self.kind, "", "the policy file"), entry)


LONGEST_RUNTIME = 2**31 - 1
"""The largest activeDeadlineSeconds of a pod."""


class TolerationSection(Section):
    """A toleration as a pod has it. Without `key` it tolerates every taint, without `effect` every effect."""

    key: NodeLabel | None = None
    operator: Literal["Equal", "Exists"] = "Equal"
    value: NodeLabelValue | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = None

    def problems(self) -> Iterator[str]:
        if self.operator == "Equal" and self.key is None:
            yield "operator Equal needs a key; operator Exists without one is for all taints"
        if self.operator == "Exists" and self.value is not None:
            yield "operator Exists takes no value"
        if self.toleration_seconds is not None and self.effect != "NoExecute":
            yield "tolerationSeconds goes with effect: NoExecute"


class PlacementSection(Section):
    """The placement of a tier's pods, and their longest run time in seconds. A pod's own settings stay.

    `Pack` draws a gang together and `Spread` keeps replicas apart, both by the node label `topologyKey`, and as a wish.
    """

    strategy: Strategy | None = None
    topology_key: NodeLabel | None = None
    tolerations: tuple[TolerationSection, ...] = ()
    node_selector: dict[NodeLabel, NodeLabelValue] = Field(default_factory=dict)
    max_runtime_seconds: int | None = Field(default=None, ge=1, le=LONGEST_RUNTIME)

    def problems(self) -> Iterator[str]:
        if (self.strategy is None) != (self.topology_key is None):
            yield "strategy and topologyKey go together: write both or none"


class QueueSection(Section):
    """A queue of Volcano or KAI, for the pods that such a scheduler places. It has to exist."""

    system: System
    name: SchedulerName


class SchedulingSection(Section):
    """The scheduler of a tier's pods, and their queue. A workload's own settings stay."""

    scheduler_name: SchedulerName | None = None
    queue: QueueSection | None = None

    def problems(self) -> Iterator[str]:
        if self.scheduler_name in UNNAMED:
            yield f"schedulerName {self.scheduler_name} is what every pod has; leave it out"
        theirs = USUAL_NAMES.get(self.scheduler_name or "")
        if self.queue is not None and theirs not in (None, self.queue.system):
            yield f"schedulerName {self.scheduler_name} is {theirs}'s, which knows no queues of {self.queue.system}"
