"""A workload object as a value, by its row: its identity, its pods, its type, and its stage.

Each kind has fields for the stages: suspended, ended, partly done.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import msgspec
from msgspec.structs import replace

from webhook.objects.group_kind import POD, GroupKind
from webhook.objects.pods import Named, Pod
from webhook.objects.refusal import Refusal, Refused
from webhook.objects.view import Tree, all_at, at, listed, mapped, view
from webhook.policy.workloads.kind_table import Form, KindRow, WorkloadType
from webhook.policy.workloads.pod_counts import MOST_TEMPLATES, too_many_templates
from webhook.policy.workloads.templates import class_named, objects_in, own_templates, pod_templates


class Devices(msgspec.Struct, frozen=True):
    """One request of a pod's resource claims: so many devices of a class (KEP-4381).

    `entry` is the claim's name within the pod, and `request` the request's name within the claim; a container names
    devices by both. `claim` is the ResourceClaim, as namespace/name, if the pod names one that other pods may share; ""
    for a claim of its own. `profile` is the MIG profile that the devices must have, if known.
    """

    device_class: str
    count: int
    entry: str = ""
    request: str = ""
    claim: str = ""
    profile: str = ""


_OF_A_POD = ("metadata.", "spec.")


class Member(msgspec.Struct, frozen=True):
    """The pods that one template of a workload makes. `path` is the template's place in the workload, `form` its form.

    A gang needs at least `least` of them. `devices` are those of each pod's resource claims, as far as they were looked
    up. `makers` are between them and the workload, the nearest first: objects in the workload that make the pods, whole
    or described, and labels that are written on the way.
    """

    path: str
    template: Pod
    count: int
    least: int = 0
    devices: tuple[Devices, ...] = ()
    form: Form = "template"
    makers: tuple["Workload", ...] = ()

    def placed(self, refusal: Refusal) -> Refusal:
        """Return a refusal that names the template's field instead of the pod's."""
        of_the_pod = not refusal.place and refusal.field.startswith(_OF_A_POD)
        return refusal.of_template(self.path, bare=self.form != "template") if of_the_pod else refusal

    def placed_field(self, field: str) -> str:
        """Return the template's field for a pod's field; any other field unchanged."""
        own = field.removeprefix("spec.") if self.form != "template" else field
        return f"{self.path}.{own}" if field.startswith(_OF_A_POD) else field


class Workload(msgspec.Struct, frozen=True):
    """An object that makes pods: an owner of the pod under review, or itself under review.

    `row` is its kind's row in the table. `type` is the type that the object's own fields prove. `runs` are commands in
    its own fields: a RayJob's entrypoint. `brings_gpus`: its own fields ask for GPUs, or its operator brings them
    without a field. `class_name` is the PriorityClass for all of its pods. `shards`: its Indexed pods are more than run
    at once, so each works by itself. `in_stages`: some of its pods are made when others have ended. `place` is its
    metadata's place in another workload, if it is known only from there; "" for an object of its own. `selects` are the
    keys of the labels by which its controller selects its pods.
    """

    row: KindRow
    name: str
    uid: str = ""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    annotations: Mapping[str, str] = msgspec.field(default_factory=dict)
    members: tuple[Member, ...] = ()
    type: WorkloadType | None = None
    runs: tuple[str, ...] = ()
    brings_gpus: bool = False
    class_name: str = ""
    shards: bool = False
    in_stages: bool = False
    selects: frozenset[str] = frozenset()
    place: str = ""

    @property
    def metadata_place(self) -> str:
        """Return the place of its labels and annotations."""
        return self.place or f"{self}.metadata"

    @property
    def kind(self) -> GroupKind:
        return self.row.group_kind

    def __str__(self) -> str:
        return f"{self.row.kind}/{self.name}"


def gang_among(owners: Sequence[Workload]) -> Workload | None:
    """Return the workload whose pods need one another: the outermost such owner."""
    return next((each for each in reversed(owners) if each.row.gang), None)


def group_number(gang: Workload, labels: Mapping[str, str]) -> int:
    """Return the number of a pod's group in a gang of groups; 0 for the first, and for all other gangs.

    A LeaderWorkerSet creates the leaders of all groups first. If they took the GPUs of the first group, no group could
    run.
    """
    written = labels.get(gang.row.group_label, "")
    return int(written) if re.fullmatch("[0-9]{1,6}", written) else 0


def workload(tree: Tree, row: KindRow) -> Workload:
    """Return a workload object with its members. Raises Refused with the path of an invalid template."""
    metadata = view({"metadata": tree.get("metadata") or {}}, Named).metadata
    # 1. The first templates of a long pipeline are enough, because its pods are booked one by one.
    members = tuple(islice(_members(tree, row, metadata.shown_name), MOST_TEMPLATES + 1))
    if row.gang and len(members) > MOST_TEMPLATES:
        raise too_many_templates()

    # 2. One of its own fields asks for GPUs: the field is set, and not 0. The operator of a kind without templates
    #    brings them.
    fields = (found for path in row.gpu_fields for _, found in all_at(tree, path))
    asks = any(found not in (None, 0, "0", "", [], {}) for found in fields)
    brings = asks if row.gpu_fields else not any(True for _ in pod_templates(tree, row))

    # 3. It has more Indexed pods than run at once.
    jobs = [mapped(spec) for path in _JOB_SPECS for _, spec in all_at(tree, path)]
    indexed = [each for each in jobs if each.get("completionMode") == "Indexed"]
    numbers = ((each.get("completions"), each.get("parallelism", 1)) for each in indexed)
    shards = any(isinstance(all_, int) and isinstance(now, int) and all_ > now for all_, now in numbers)

    # 4. Its selector has labels and expressions; a ReplicationController's is a plain map.
    selector = mapped(at(tree, "spec.selector"))
    keys = (mapped(line).get("key") for line in listed(selector.get("matchExpressions")))
    selects = {*mapped(selector.get("matchLabels", selector)), *(key for key in keys if isinstance(key, str))}
    return Workload(
        row=row,
        name=metadata.shown_name,
        uid=metadata.uid,
        labels=metadata.labels,
        annotations=metadata.annotations,
        members=members[:MOST_TEMPLATES],
        type=next((value for path, value in row.fields.items() if at(tree, path)), None),
        runs=tuple(text for path in row.runs for _, found in all_at(tree, path) if (text := _text(found))),
        brings_gpus=brings,
        class_name=class_named(tree, row),
        shards=shards,
        in_stages=any(found == "Complete" for path in _STAGES for _, found in all_at(tree, path)),
        selects=frozenset(selects),
    )


_JOB_SPECS = ("spec", "spec.replicatedJobs.*.template.spec")
"""The specs of a Job, and of the Jobs in a JobSet."""


_STAGES = tuple(f"{place}spec.replicatedJobs.*.dependsOn.*.status" for place in ("", "runtime.spec.template."))
"""The stages of a JobSet, and of the runtime of a TrainJob."""


def _members(tree: Tree, row: KindRow, name: str) -> Iterator[Member]:
    # 1. The templates in it, with the labels on the way to their pods.
    for each in own_templates(tree, row):
        try:
            makers = tuple(
                Workload(
                    passed.row,
                    name,
                    labels=passed.labels,
                    annotations=passed.annotations,
                    place=f"{row.kind}/{name}.{passed.place}",
                )
                for passed in each.passed
            )
            yield Member(each.path, view(each.pod, Pod), each.count, each.least, form=each.form, makers=makers)
        except Refused as refused:
            raise Refused.of(refused.refusal.of_template(each.path, bare=each.form != "template")) from None

    # 2. The whole objects in it, which make pods once they are created; a Pod has no maker.
    for taken, inner, inner_row in objects_in(tree, row):
        place = ".".join(taken)
        try:
            made = workload(inner, inner_row)
        except Refused as refused:
            raise Refused.of(refused.refusal.within(place)) from None
        itself = () if made.kind == POD else (made,)
        for member in made.members:
            path = ".".join(filter(None, (place, member.path)))
            yield replace(member, path=path, makers=(*member.makers, *itself))


def _text(found: object) -> str:
    """Return a command as one text, from a text, a list, or a container with command, args, script."""
    if isinstance(found, str):
        return found
    if isinstance(found, list):
        return " ".join(each for each in found if isinstance(each, str))
    if isinstance(found, dict):
        return " ".join(filter(None, (_text(found.get(field)) for field in ("command", "args", "script", "source"))))
    return ""


SUSPEND = ("spec.suspend", "spec.runPolicy.suspend")
"""The fields of Jobs, JobSets, TrainJobs and Ray's kinds, and of the training operators' jobs."""

ENDED_CONDITIONS = frozenset({"Complete", "Completed", "Succeeded", "Failed"})
"""The conditions with status True of a Job, a JobSet, a TrainJob, and of the training operators' jobs."""

PHASES = ("status.state.phase", "status.jobDeploymentStatus", "status.phase")
"""The fields of Volcano's Job, a RayJob, and kinds that have a phase alone."""

ENDED_PHASES = frozenset({"Complete", "Completed", "Succeeded", "Failed", "Terminated"})
ABORTED = ("status.state.phase", "Aborted")
"""The phase of an aborted Volcano Job, which may be resumed."""


def is_suspended(tree: Tree) -> bool:
    place, phase = ABORTED
    return any(at(tree, each) is True for each in SUSPEND) or at(tree, place) == phase


def manager_elsewhere(tree: Tree, row: KindRow) -> str:
    """Return the name of the controller that manages a workload instead of its kind's own; "" for its own.

    Its own controller then makes no pods here. Pods that another controller makes here are charged one by one.
    """
    named = at(tree, row.managed_by.field) if row.managed_by else None
    return named if row.managed_by and isinstance(named, str) and named not in row.managed_by.own else ""


def has_ended(tree: Tree) -> bool:
    """Tell whether a workload makes no more pods."""
    conditions = (mapped(each) for each in listed(at(tree, "status.conditions")))
    true_types = [each.get("type") for each in conditions if each.get("status") == "True"]
    phases = [at(tree, place) for place in PHASES]
    return any(isinstance(each, str) and each in ENDED_CONDITIONS for each in true_types) or any(
        isinstance(each, str) and each in ENDED_PHASES for each in phases
    )


SUCCEEDED = ("status.succeeded", "status.replicaStatuses.*.succeeded", "status.replicatedJobsStatus.*.succeeded")
"""The fields with the number of succeeded pods or Jobs: of a Job, the training operators' jobs, a JobSet."""


def is_partly_done(tree: Tree) -> bool:
    """Tell whether some of a workload's pods have succeeded."""
    return any(found for place in SUCCEEDED for _, found in all_at(tree, place))
