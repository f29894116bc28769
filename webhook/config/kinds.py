"""Kinds of workloads that the policy file adds to the table or describes anew: their fields, and the rows they make."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from webhook.config.sections import Section, matching
from webhook.objects.group_kind import POD, POD_GROUP, SCHEDULING_WORKLOAD, GroupKind
from webhook.objects.view import steps
from webhook.policy.workloads.kind_table import BUILT_IN, KindRow, WorkloadType, holder_of, row_over

LabelKey = Annotated[
    str,
    matching(
        r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?",
        "should be the name of a label, as in example.com/job-name",
    ),
]
Path = Annotated[
    str,
    Field(max_length=253),
    matching(
        r"[A-Za-z0-9_*-]+(\.[A-Za-z0-9_*-]+)*",
        "should be names with dots between, as in spec.workers.*.template; * is each item of a list or map",
    ),
]
ScalePath = Annotated[
    str,
    Field(max_length=253),
    matching(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", "should be names with dots between, as in spec.replicas"),
]
Plural = Annotated[
    str,
    Field(max_length=63),
    matching(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", "should be small letters, as in pytorchjobs"),
]


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
    """Where a pod template lies, such as `spec.workers.*.template`; `*` is each list item or map value.

    `replicas` is the field with its number of pods, one if it is absent. `form` is `spec` if a bare pod spec lies
    there, without metadata.
    """

    path: Path
    replicas: Path | None = None
    form: Literal["template", "spec"] = "template"

    @model_validator(mode="after")
    def _in_one_item(self) -> Self:
        below = len(holder_of(self.path, self.replicas))
        if "*" in (*steps(self.path)[below:], *steps(self.replicas or "")[below:]):
            raise ValueError(f"replicas: {self.replicas} must lie in the same item as path: {self.path}")
        return self


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

    @model_validator(mode="after")
    def _one_word(self) -> Self:
        if self.type and self.usual_type:
            raise ValueError("write either type (every such object is one) or usualType (most are)")
        if self.group_kind in (POD, POD_GROUP, SCHEDULING_WORKLOAD):
            raise ValueError(f"{self} is no workload; write the kinds that make pods")
        if self.plural is None and self.group_kind not in BUILT_IN.by_kind:
            raise ValueError(
                f"{self} is not in the table of workload kinds, so write its plural, as in the paths of its API"
            )
        if self.plural is None and (self.gang or self.scale):
            raise ValueError(f"gang and scale need the plural of {self}, so write it, as in the paths of its API")
        return self

    def row(self) -> KindRow:
        """Return the row of this kind, or that of the table with the fields that are written here in place of its own.

        A type that is written replaces all that the table says of the type.
        """
        entry = self.model_dump(by_alias=True, exclude_defaults=True)
        if self.type or self.usual_type:
            entry |= {"type": self.type, "usualType": self.usual_type, "fields": {}, "unless": ()}
        if self.gang_label:
            entry["podLabels"] = {self.gang_label: None} | self.pod_labels
        known = BUILT_IN.by_kind.get(self.group_kind)
        return row_over(known or KindRow(self.group, self.kind, "", "the policy file"), entry)
