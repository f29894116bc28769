"""What a row of the table of workload kinds says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from webhook.objects.group_kind import GroupKind
from webhook.policy.workloads.group_counts import GroupCount, once
from webhook.policy.workloads.pod_counts import PodCount, one
from webhook.policy.workloads.workload_types import WorkloadType

Form = Literal["template", "spec", "container", "resources", "parameter"]
"""What lies at a template's place: a pod template, a pod spec without metadata, one container, its resources alone, or
a parameter that may describe one (policy/workloads/kfp.py)."""

MakesPod = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
"""What an operator makes of a template and the object that holds it, where fields beside the template count too."""

Source = Literal[
    "command", "variable", "kind", "name", "task", "image", "probe", "port", "listens", "server", "answers"
]
"""Where a guess comes from. `port` is a port that programs are known by, `listens` any that others may ask at, `probe`
the path of a readiness probe as servers of models have it.

`task` is a name that says batch, of what trains by its kind. `server` is for what ends: neither its name nor its
image alone makes it one, both together do. `answers` is a name that says serving, of what others may ask. `kind` is the
name of a kind that no row describes.
"""

EVERY_SOURCE: tuple[Source, ...] = ("command", "variable", "image", "answers", "name", "probe", "port")
"""What runs tells more than what it is packed in, and that more than what it is called."""

ENDING_SOURCES: tuple[Source, ...] = ("command", "variable", "name", "image")
"""What ends serves nobody, whatever port its image exposes, and is named for what it does."""


@dataclass(frozen=True, slots=True)
class Templates:
    """Where pod templates lie: at `path` below each `holder`; `*` in that is each list item or map value.

    `count` tells from the holder how many pods each makes, and `times` from the whole workload how often it makes
    those. Of a gang `least` tells without how many of them it is of no use; None where it needs all. `containers` are
    fields beside `containers` that hold one container each, as KServe has them. `made` makes the pod where an operator
    does more than its form says.
    """

    holder: str
    path: str
    count: PodCount = one
    form: Form = "template"
    containers: tuple[str, ...] = ()
    times: GroupCount = once
    least: GroupCount | None = None
    made: MakesPod | None = None


@dataclass(frozen=True, slots=True)
class RuntimeKinds:
    """Another object that the pods of a workload are made of: the workload names it, at `reference`.

    `plurals` are its kinds, the default first; those in `cluster_wide` lie in no namespace. `merged` makes of the
    workload and this object a workload whose pod templates are those of its pods.
    """

    group: str
    plurals: Mapping[str, str]
    cluster_wide: frozenset[str]
    reference: str
    merged: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class KindRow:
    """A kind of workload.

    `type` is what the kind proves, unless a guess from `unless` says another. `fields` are places in the object that
    prove a type where they are filled. `usual` is what a general launcher is mostly used for; `before_usual` are the
    guesses that tell more than that. `runs` are places of commands outside the pod templates: a text, a list, or a
    container. `gpu_fields` are places that ask for GPUs outside the templates; where a row has neither these nor
    templates, its operator brings the GPUs. `labels` are those that the operator puts on its pods, a value where only
    that one tells. `at_once`: the pods of all its templates run together; of a pipeline's, maybe those of one alone.
    `class_field` is the place of a PriorityClass for those of its pods whose template names none.
    `gang`: its pods are of use only together, and are charged as a whole. `gang_label` is the one by which a member
    that asks for no GPU is known to share its gang's tier. `scale` is the field of a gang that its scale subresource
    writes. `runtime` is what else its pods are made of. `wraps` are places of whole objects that it creates, and
    `wrapped` are the rows of those. `source` is where all this is from.
    """

    group: str
    kind: str
    plural: str
    source: str
    type: WorkloadType | None = None
    usual: WorkloadType | None = None
    fields: tuple[tuple[str, WorkloadType], ...] = ()
    unless: tuple[Source, ...] = ()
    before_usual: tuple[Source, ...] = EVERY_SOURCE
    runs: tuple[str, ...] = ()
    gpu_fields: tuple[str, ...] = ()
    labels: Mapping[str, str | None] = field(default_factory=dict)
    gang: bool = False
    gang_label: str | None = None
    scale: str = ""
    at_once: bool = True
    class_field: str = ""
    runtime: RuntimeKinds | None = None
    wraps: tuple[str, ...] = ()
    wrapped: tuple["KindRow", ...] = ()
    templates: tuple[Templates, ...] = ()

    @property
    def group_kind(self) -> GroupKind:
        """Group and kind go together: Job, Service, Workspace, InferenceService exist in several groups."""
        return GroupKind(self.group, self.kind)


def present(*keys: str) -> Mapping[str, str | None]:
    """Labels that tell by being there, whatever their value."""
    return dict.fromkeys(keys)
