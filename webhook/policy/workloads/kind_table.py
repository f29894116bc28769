"""The table of workload kinds: the fields of a row, the table as a value, and how rows are made of data.

A new operator is an entry in a YAML file of the folder `kinds` and an example, not a class; a company's own is one in
its policy file. An entry has the fields of KindRow in camelCase, except that `labels` is written podLabels, `usual`
usualType, and a template's `count` pods. A template's `path` is complete in an entry: spec.workers.*.template. The
object that contains the template is at `holder`, or at the longest common path of the template and
its number at `replicas`. Counts and other operator logic are functions, named in `pods`, `times`, `left`, `least`,
`made` and `merged`.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import takewhile
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import structs
from msgspec.structs import replace

from webhook.objects.data_files import data_file
from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import OwnerReference
from webhook.objects.view import steps
from webhook.policy.workloads.made_pods import MAKES_PODS, spark_executors
from webhook.policy.workloads.pod_counts import GROUP_COUNTS, POD_COUNTS, GroupCount, PodCount, counted_at, once, one


class WorkloadType(StrEnum):
    """The types that a workload is judged as. Any other object is left alone."""

    TRAINING = "training"
    SERVING = "serving"
    BATCH = "batch"
    INTERACTIVE = "interactive"


Form = Literal["template", "spec", "container", "resources", "parameter"]
"""The form of a template: a pod template, a pod spec without metadata, one container, its resources alone, or a
parameter that may describe one (policy/workloads/templates.py)."""

MakesPod = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]
"""Makes an operator's pod of a template and the object that contains it, if its other fields count too."""

Source = Literal[
    "command", "variable", "kind", "names", "name", "task", "image", "probe", "port", "listens", "server", "answers",
    "around",
]  # fmt: skip
"""The source of a guess. `port` is a port that programs are known by, `listens` any to which others may connect,
`probe` the readiness path of a model server.

`names` are those of a workload and of its container, if both say training. `task` is a name that says batch, for a kind
that trains. `server` is for workloads that end: neither its name nor its image alone is enough, both together are.
`answers` is a name that says serving, if others may connect. `kind` is the name of a kind without a row. `around` are a
service account or variables with a program's name.
"""

EVERY_SOURCE: tuple[Source, ...] = ("command", "variable", "image", "answers", "names", "name", "probe", "port")
"""A command tells more than the image that it is packed in, and an image more than a name."""


class Between(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The labels and annotations that an operator writes on the way from a workload to its pods.

    `metadata` is their place in the workload; `*` is the item with the template. `row` is the kind of the object that
    gets them and makes the pods: a CronJob's Job. None: the pods get them, as those of an Argo Workflow.
    """

    metadata: str
    row: "KindRow | None" = None


class Templates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The place of pod templates: at `path` below each `holder`; `*` is each list item or map value.

    `count` returns the number of pods per holder, and `times` how often the whole workload makes those. `left` returns
    how many still run or come, if pods that have succeeded are not made again. `least` is how many a gang needs; None
    for all. `containers` are further fields with one container each, as in KServe. `made` makes the pod if its operator
    adds more than the form says. `between` are the other labels and annotations on the way to the pods, the nearest to
    them first.
    """

    holder: str
    path: str
    count: PodCount = msgspec.field(default=one, name="pods")
    form: Form = "template"
    containers: tuple[str, ...] = ()
    times: GroupCount = once
    left: GroupCount | None = None
    least: GroupCount | None = None
    made: MakesPod | None = None
    between: tuple[Between, ...] = ()


class RuntimeKinds(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Another object that a workload's pods are made of: the workload names it, at `reference`.

    `plurals` are its kinds, the default first; those in `cluster_wide` are not namespaced. `merged` combines the
    workload and this object into a workload whose pod templates are those of its pods.
    """

    group: str
    plurals: Mapping[str, str]
    cluster_wide: frozenset[str]
    reference: str
    merged: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]


class ManagedBy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The field in which a workload names the controller of its pods, and the names of the kind's own controllers.

    MultiKueue writes another name, and makes the pods in another cluster. Without such a field, the kind's own
    controller always makes the pods. Source: https://kueue.sigs.k8s.io/docs/concepts/multikueue/
    """

    field: str
    own: frozenset[str]


class WhileQueued(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The fields by which a kind's controller goes on while its pods are queued.

    The behaviour of each controller with pods that exist and do not run was tried on Kubernetes 1.37
    (tests/apiserver/test_hold_workloads.py) and with JobSet, LeaderWorkerSet, KubeRay, the training operator, Knative
    (tests/operators). docs/queueing.md describes it. maxSurge of Argo's and Kruise's kinds follows their CRDs.

    `surge` is the number of pods that a rollout makes next to the old ones, `surge_by_default` also without the field;
    none if `unless` is set. `deadlines` begin when a controller has made the pods, whether or not they run.
    `concurrency` lets the next run begin next to a queued one. `order`: pods are made one after another unless it is
    Parallel. `progress` are the annotations that say when Knative scales pods that do not run to zero.
    """

    surge: str = ""
    surge_by_default: bool = False
    unless: str = ""
    deadlines: tuple[str, ...] = ()
    concurrency: str = ""
    order: str = ""
    on_every_node: bool = False
    progress: str = ""


class Retries(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The `replicas` whose restartPolicy decides whether the training operator makes a failed pod again.

    A replica without a policy has the `default`. With a policy in `by` the operator makes the pod again. Source:
    kubeflow.org/v1, RestartPolicy, and UpdateJobStatus of each controller.
    """

    replicas: str
    default: str
    by: frozenset[str]


class KindRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A kind of workload.

    `type` is the type that the kind proves, unless a guess from `unless` says another. `fields` are places in the
    object that prove a type if they are set. `usual` is a general launcher's usual use; `before_usual` are the guesses
    that have precedence. `runs` are places of commands outside the pod templates: a text, a list, or a container.
    `gpu_fields` are places that ask for GPUs outside the templates; without these and without templates, the operator
    brings the GPUs. `labels` are those that the operator puts on its pods, with a value if only that one counts.
    `at_once`: the pods of all its templates run together; those of a pipeline may run one at a time. `recurs`: it has
    no pods of its own, but its later runs do.
    `class_field` is the place of a PriorityClass for pods whose template names none.
    `gang`: its pods need one another, and are charged as a whole. `gang_label` marks members without GPUs, which share
    the gang's tier. `group_label` is on the pods of a gang that consists of groups: the number of the pod's group, from
    0. The first group is the gang, and each other group is a separate gang. `scale` is the field of a gang that its
    scale subresource writes. `kueue`: Kueue has an integration for it, which may copy the label of its class into pod
    templates at every update. A template without that label would change then, and roll. `managed_by` is the field that
    names its controller. `runtime` is the other object that its pods are made of. `wraps` is the place of whole objects
    that it creates, and `wrapped` are the rows of those. `source` is the source of all this.
    """

    group: str
    kind: str
    plural: str
    source: str
    type: WorkloadType | None = None
    usual: WorkloadType | None = msgspec.field(default=None, name="usualType")
    fields: Mapping[str, WorkloadType] = msgspec.field(default_factory=dict)
    unless: tuple[Source, ...] = ()
    before_usual: tuple[Source, ...] = EVERY_SOURCE
    runs: tuple[str, ...] = ()
    gpu_fields: tuple[str, ...] = ()
    labels: Mapping[str, str | None] = msgspec.field(default_factory=dict, name="podLabels")
    gang: bool = False
    gang_label: str | None = None
    group_label: str = ""
    scale: str = ""
    at_once: bool = True
    recurs: bool = False
    class_field: str = ""
    kueue: Literal["Queues", "Copies"] | None = None
    while_queued: WhileQueued = WhileQueued()
    retries: Retries | None = None
    managed_by: ManagedBy | None = None
    runtime: RuntimeKinds | None = None
    wraps: str = ""
    wrapped: tuple["KindRow", ...] = ()
    templates: tuple[Templates, ...] = ()

    @property
    def group_kind(self) -> GroupKind:
        """Return group and kind, because Job, Service, Workspace, InferenceService exist in several groups."""
        return GroupKind(self.group, self.kind)


class PodLabel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A label on pods whose kind has no row: it proves a type, or gives its launcher's usual use.

    `value` is None if any value counts. `source` is where the label comes from.
    """

    key: str
    source: str
    value: str | None = None
    type: WorkloadType | None = None
    usual: WorkloadType | None = msgspec.field(default=None, name="usualType")


class TellingLabel(NamedTuple):
    """A label that only pods of one type have. `value` is None if any value counts; `unless` is as in a row."""

    key: str
    value: str | None
    type: WorkloadType
    unless: tuple[Source, ...]


POD_LABELS = msgspec.convert(data_file(__name__, "kinds/labels.yaml"), tuple[PodLabel, ...])
_WELL_KNOWN = tuple(TellingLabel(each.key, each.value, each.type, ()) for each in POD_LABELS if each.type)


class KindTable(msgspec.Struct, frozen=True, eq=False, dict=True):
    """The kinds that a policy knows. Two tables are never equal, because an object read by one may not fit another."""

    rows: tuple[KindRow, ...]

    def with_rows(self, rows: tuple[KindRow, ...]) -> "KindTable":
        """Return this table with further rows; a row of a known kind replaces its own, inside wrappers too."""
        if not rows:
            return self
        known = tuple({**self.by_kind, **{row.group_kind: row for row in rows}}.values())
        inside = tuple(row for row in known if not row.wraps)
        return KindTable(tuple(replace(row, wrapped=inside) if row.wraps else row for row in known))

    @cached_property
    def by_kind(self) -> Mapping[GroupKind, KindRow]:
        return {row.group_kind: row for row in self.rows}

    def is_gang(self, owner: OwnerReference | None) -> bool:
        """Tell whether an owner is of a kind whose pods are charged as a whole. No owner is read."""
        row = self.by_kind.get(GroupKind(owner.group, owner.kind)) if owner else None
        return row is not None and row.gang

    @cached_property
    def by_scaled(self) -> Mapping[tuple[str, str], KindRow]:
        """Return the kinds whose scale subresource is reviewed, by API group and plural."""
        return {(row.group, row.plural): row for row in self.rows if row.scale}

    @cached_property
    def gang_labels(self) -> frozenset[str]:
        """Return labels of gang members: a Ray head or an MPI launcher asks for no GPU and shares the gang's tier."""
        return frozenset(row.gang_label for row in self.rows if row.gang_label)

    @cached_property
    def telling_labels(self) -> Mapping[str, tuple[tuple[int, TellingLabel], ...]]:
        """Return labels that give a type without the owners, by key, each with its number: the lowest decides.

        ray.io/cluster is not among them, because everything that Ray runs has it.
        """
        by_kinds = [
            TellingLabel(*label, row.type, row.unless)
            for row in self.rows
            for label in row.labels.items()
            if row.type and all(other.type == row.type for other in self.rows if label in other.labels.items())
        ]
        ranked = list(enumerate(dict.fromkeys((*by_kinds, *_WELL_KNOWN))))
        return {key: tuple(pair for pair in ranked if pair[1].key == key) for key in {each.key for _, each in ranked}}

    @cached_property
    def usual_labels(self) -> Mapping[str, WorkloadType]:
        """Return labels of general launchers with their usual use, for pods whose owners are not visible."""
        usual: dict[str, WorkloadType] = {}
        for row in (each for each in self.rows if each.usual and not each.type):
            for label in row.labels.items():
                uses = {other.type or other.usual for other in self.rows if label in other.labels.items()}
                if row.usual and uses == {row.usual} and label[1] is None:
                    usual[label[0]] = row.usual
        return usual | {each.key: each.usual for each in POD_LABELS if each.usual}


_NAMED: Mapping[Any, Mapping[str, Callable[..., Any]]] = {
    PodCount: POD_COUNTS | {"spark_executors": spark_executors},
    GroupCount: GROUP_COUNTS,
    MakesPod: MAKES_PODS,
}
"""The functions that an entry may name, by the type of the column."""


def rows_of(entries: Sequence[dict[str, Any]]) -> tuple[KindRow, ...]:
    """Return a row for each entry. A `row` of `between` names another entry by group and kind: batch/Job."""
    by_name = {f"{entry['group']}/{entry['kind']}": entry for entry in entries}
    made: dict[str, KindRow] = {}

    def row(name: str) -> KindRow:
        if name not in made:
            made[name] = row_of(by_name[name] | {"templates": list(map(linked, by_name[name].get("templates", ())))})
        return made[name]

    def linked(template: dict[str, Any]) -> dict[str, Any]:
        passed = template.get("between", ())
        return template | {"between": [each | {"row": row(each["row"])} if "row" in each else each for each in passed]}

    return tuple(map(row, by_name))


def row_over(known: KindRow, entry: Mapping[str, Any]) -> KindRow:
    """Return a row with the fields that an entry has in place of its own."""
    named = {"group": known.group, "kind": known.kind, "plural": known.plural, "source": known.source}
    made = row_of({**named, **entry})
    written = (field.name for field in structs.fields(KindRow) if field.encode_name in entry)
    return structs.replace(known, **{name: getattr(made, name) for name in written})


def row_of(entry: Mapping[str, Any]) -> KindRow:
    """Return the row of an entry."""
    divided = {"templates": list(map(_divided, entry["templates"]))} if "templates" in entry else {}
    return msgspec.convert({**entry, **divided}, KindRow, dec_hook=_by_name)


def holder_of(path: str, replicas: str | None) -> list[str]:
    """Return the steps to the object that holds a template and its number of pods."""
    whole = steps(path)
    if replicas is None:
        return whole if whole[-1:] == ["*"] else whole[:-1]
    both = zip(whole, steps(replicas), strict=False)
    return [step for step, _ in takewhile(lambda pair: pair[0] == pair[1], both)]


def _divided(template: Mapping[str, Any]) -> dict[str, Any]:
    """Divide the paths of a template at its holder."""
    path, replicas = template["path"], template.get("replicas")
    holder = steps(template["holder"]) if "holder" in template else holder_of(path, replicas)
    divided = dict(template) | {"holder": ".".join(holder), "path": ".".join(steps(path)[len(holder) :])}
    if replicas is not None:
        divided["pods"] = counted_at(".".join(steps(divided.pop("replicas"))[len(holder) :]))
    return divided


def _by_name(column: Any, named: Any) -> Callable[..., Any]:
    return named if callable(named) else _NAMED[column][named]


_FILES = ("core", "training", "launchers", "serving", "llm_serving", "batch", "interactive", "wrappers")
"""The order of the rows decides if several kinds share a label."""

BUILT_IN = KindTable(()).with_rows(
    rows_of([entry for file in _FILES for entry in data_file(__name__, f"kinds/{file}.yaml")])
)
"""The kinds that gpu-tiers knows by itself."""
