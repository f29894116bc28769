"""The table of workload kinds: what a row says, the table as a value, and what the labels of all rows tell together."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import OwnerReference
from webhook.policy.workloads.pod_counts import GroupCount, PodCount, once, one
from webhook.policy.workloads.workload_types import WorkloadType

Form = Literal["template", "spec", "container", "resources", "parameter"]
"""The form of a template: a pod template, a pod spec without metadata, one container, its resources alone, or
a parameter that may describe one (policy/workloads/templates.py)."""

MakesPod = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
"""Makes an operator's pod of a template and the object that holds it, where fields beside the template count too."""

Source = Literal[
    "command", "variable", "kind", "names", "name", "task", "image", "probe", "port", "listens", "server", "answers",
    "around",
]  # fmt: skip
"""The source of a guess. `port` is a port that programs are known by, `listens` any that others may ask at, `probe`
the path of a readiness probe as servers of models have it.

`names` are those of a workload and of its container, where both say training. `task` is a name that says batch, of what
trains by its kind. `server` is for what ends: neither its name nor its image alone makes it one, both together do.
`answers` is a name that says serving, of what others may ask. `kind` is the name of a kind that no row describes.
`around` are a service account or variables that are called after a program.
"""

EVERY_SOURCE: tuple[Source, ...] = ("command", "variable", "image", "answers", "names", "name", "probe", "port")
"""A command tells more than the image that it is packed in, and an image more than a name."""

ENDING_SOURCES: tuple[Source, ...] = ("command", "variable", "names", "name", "image")
"""A Job that ends serves nobody, so no port tells its type; and people name a Job after its task."""


class Between(msgspec.Struct, frozen=True):
    """Labels and annotations that an operator writes on the way from a workload to its pods.

    `metadata` is their place in the workload; `*` is the item in which the template lies. `row` is the kind of the
    object that gets them and makes the pods: a CronJob's Job. None: the pods get them, as those of an Argo Workflow.
    """

    metadata: str
    row: "KindRow | None" = None


class Templates(msgspec.Struct, frozen=True):
    """Where pod templates lie: at `path` below each `holder`; `*` in that is each list item or map value.

    `count` tells from the holder how many pods each makes, and `times` from the whole workload how often it makes
    those. `left` tells how many still run or come, where pods that have succeeded are not made again. Of a gang `least`
    tells without how many of them it is of no use; None where it needs all. `containers` are fields beside `containers`
    that hold one container each, as KServe has them. `made` makes the pod where an operator does more than its form
    says. `between` is what else is written on the way to the pods, the nearest to them first.
    """

    holder: str
    path: str
    count: PodCount = one
    form: Form = "template"
    containers: tuple[str, ...] = ()
    times: GroupCount = once
    left: GroupCount | None = None
    least: GroupCount | None = None
    made: MakesPod | None = None
    between: tuple[Between, ...] = ()


class RuntimeKinds(msgspec.Struct, frozen=True):
    """Another object that the pods of a workload are made of: the workload names it, at `reference`.

    `plurals` are its kinds, the default first; those in `cluster_wide` lie in no namespace. `merged` makes of the
    workload and this object a workload whose pod templates are those of its pods.
    """

    group: str
    plurals: Mapping[str, str]
    cluster_wide: frozenset[str]
    reference: str
    merged: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]


class KindRow(msgspec.Struct, frozen=True):
    """A kind of workload.

    `type` is what the kind proves, unless a guess from `unless` says another. `fields` are places in the object that
    prove a type where they are filled. `usual` is what a general launcher is mostly used for; `before_usual` are the
    guesses that tell more than that. `runs` are places of commands outside the pod templates: a text, a list, or a
    container. `gpu_fields` are places that ask for GPUs outside the templates; where a row has neither these nor
    templates, its operator brings the GPUs. `labels` are those that the operator puts on its pods, a value where only
    that one tells. `at_once`: the pods of all its templates run together; of a pipeline's, maybe those of one alone.
    `recurs`: it has no pods of its own, and later runs of it have.
    `class_field` is the place of a PriorityClass for those of its pods whose template names none.
    `gang`: its pods are of use only together, and are charged as a whole. `gang_label` is the one by which a member
    that asks for no GPU is known to share its gang's tier. `scale` is the field of a gang that its scale subresource
    writes. `runtime` is what else its pods are made of. `wraps` is the place of whole objects that it creates, and
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
    labels: Mapping[str, str | None] = msgspec.field(default_factory=dict)
    gang: bool = False
    gang_label: str | None = None
    scale: str = ""
    at_once: bool = True
    recurs: bool = False
    class_field: str = ""
    runtime: RuntimeKinds | None = None
    wraps: str = ""
    wrapped: tuple["KindRow", ...] = ()
    templates: tuple[Templates, ...] = ()

    @property
    def group_kind(self) -> GroupKind:
        """Group and kind go together: Job, Service, Workspace, InferenceService exist in several groups."""
        return GroupKind(self.group, self.kind)


def present(*keys: str) -> Mapping[str, str | None]:
    """Labels that tell by being there, whatever their value."""
    return dict.fromkeys(keys)


_TRAINING, SERVING, BATCH, INTERACTIVE = WorkloadType

WELL_KNOWN_LABELS: tuple[tuple[str, str | None, WorkloadType, str], ...] = (
    ("component", "singleuser-server", INTERACTIVE, "https://github.com/jupyterhub/kubespawner"),
    ("hub.jupyter.org/username", None, INTERACTIVE, "https://github.com/jupyterhub/kubespawner"),
    ("llm-d.ai/inferenceServing", "true", SERVING, "https://github.com/llm-d/llm-d"),
    ("llm-d.ai/inference-serving", "true", SERVING, "https://github.com/llm-d/llm-d"),
    ("app.kubernetes.io/name", "coder-workspace", INTERACTIVE, "https://github.com/coder/coder"),
    ("determined.ai/task_type", "TRIAL", _TRAINING, "https://github.com/determined-ai/determined"),
    ("determined.ai/task_type", "NOTEBOOK", INTERACTIVE, "https://github.com/determined-ai/determined"),
    ("interactive.dev.okteto.com", None, INTERACTIVE, "https://github.com/okteto/okteto"),
    ("kernel_id", None, INTERACTIVE, "https://github.com/jupyter-server/enterprise_gateway"),
    ("jenkins/label", None, BATCH, "https://github.com/jenkinsci/kubernetes-plugin"),
    ("job.runner.gitlab.com/pod", None, BATCH, "https://docs.gitlab.com/runner/executors/kubernetes/"),
    ("actions-ephemeral-runner", None, BATCH, "https://github.com/actions/actions-runner-controller"),
    ("com.coder.workspace.id", None, INTERACTIVE, "https://github.com/coder/coder"),
    ("com.coder.workspace.name", None, INTERACTIVE, "https://github.com/coder/coder"),
    ("model.aibrix.ai/name", None, SERVING, "https://github.com/vllm-project/aibrix"),
)
"""Labels that charts, spawners and platforms write on the pods they make: key, value (None: any), type, source."""

LAUNCHER_LABELS: tuple[tuple[str, WorkloadType, str], ...] = (
    ("pipeline/runid", BATCH, "https://github.com/kubeflow/pipelines"),
    ("airflow_version", BATCH, "https://airflow.apache.org/docs/apache-airflow-providers-cncf-kubernetes/"),
    ("dag_id", BATCH, "https://airflow.apache.org/docs/apache-airflow-providers-cncf-kubernetes/"),
    ("prefect.io/flow-run-id", BATCH, "https://github.com/PrefectHQ/prefect"),
    ("dagster/run-id", BATCH, "https://github.com/dagster-io/dagster"),
    ("execution-id", BATCH, "https://github.com/flyteorg/flyte"),
    ("skypilot-cluster", INTERACTIVE, "https://github.com/skypilot-org/skypilot"),
    ("skypilot-cluster-name", INTERACTIVE, "https://github.com/skypilot-org/skypilot"),
)
"""Labels of pipelines, runners and launchers without a kind of their own: key, usual use, source."""


class TellingLabel(NamedTuple):
    """A label that only pods of one workload type have; `value` None where any value tells, `unless` as in a row."""

    key: str
    value: str | None
    type: WorkloadType
    unless: tuple[Source, ...]


class KindTable(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The kinds that a policy knows. Two tables are never equal: what was read by one may not serve another."""

    rows: tuple[KindRow, ...]

    def with_rows(self, rows: tuple[KindRow, ...]) -> "KindTable":
        """This table with further rows; one of a kind that it knows takes the place of its own, inside wrappers too."""
        if not rows:
            return self
        known = tuple({**self.by_kind, **{row.group_kind: row for row in rows}}.values())
        inside = tuple(row for row in known if not row.wraps)
        return KindTable(tuple(replace(row, wrapped=inside) if row.wraps else row for row in known))

    @cached_property
    def by_kind(self) -> Mapping[GroupKind, KindRow]:
        return {row.group_kind: row for row in self.rows}

    def is_gang(self, owner: OwnerReference | None) -> bool:
        """Tells whether an owner, if there is one, is of a kind whose pods are charged as a whole. No owner is read."""
        row = self.by_kind.get(GroupKind(owner.group, owner.kind)) if owner else None
        return row is not None and row.gang

    @cached_property
    def by_scaled(self) -> Mapping[tuple[str, str], KindRow]:
        """The kinds whose scale subresource is reviewed, by API group and plural."""
        return {(row.group, row.plural): row for row in self.rows if row.scale}

    @cached_property
    def gang_labels(self) -> frozenset[str]:
        """Labels of members of gangs: a Ray head or an MPI launcher asks for no GPU and shares the gang's tier."""
        return frozenset(row.gang_label for row in self.rows if row.gang_label)

    @cached_property
    def telling_labels(self) -> Mapping[str, tuple[tuple[int, TellingLabel], ...]]:
        """Labels that tell a type without a look at the owners, each with its rank, by their keys.

        ray.io/cluster is not among them: everything that Ray runs has it.
        """
        ranked = list(enumerate(dict.fromkeys((*self._labels_of_one_type(), *_WELL_KNOWN))))
        return {key: tuple(pair for pair in ranked if pair[1].key == key) for key in {each.key for _, each in ranked}}

    def _labels_of_one_type(self) -> Iterator[TellingLabel]:
        for row in self.rows:
            for label in row.labels.items():
                if row.type and all(other.type == row.type for other in self.rows if label in other.labels.items()):
                    yield TellingLabel(*label, row.type, row.unless)

    @cached_property
    def usual_labels(self) -> Mapping[str, WorkloadType]:
        """Labels of general launchers, each with its usual use, for pods whose owners can't be seen."""
        return {**dict(self._labels_of_one_use()), **{key: told for key, told, _ in LAUNCHER_LABELS}}

    def _labels_of_one_use(self) -> Iterator[tuple[str, WorkloadType]]:
        for row in self.rows:
            for label in row.labels.items():
                uses = {other.type or other.usual for other in self.rows if label in other.labels.items()}
                if row.usual and not row.type and uses == {row.usual} and label[1] is None:
                    yield label[0], row.usual


_WELL_KNOWN = tuple(TellingLabel(key, value, told, ()) for key, value, told, _ in WELL_KNOWN_LABELS)
