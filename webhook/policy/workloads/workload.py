"""A workload object as a value: its identity, its pods, its type, and its stage.

Each kind has fields for the stages: suspended, ended, partly done.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec

from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Pod
from webhook.objects.refusal import Refusal
from webhook.objects.view import Tree, all_at, at, listed, mapped
from webhook.policy.workloads.kind_table import Form, KindRow, WorkloadType


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
        """Return a refusal that names the template's field instead of the pod's; any other refusal unchanged."""
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
    """Return the workload whose pods need one another, the outermost of such owners; None without one."""
    return next((each for each in reversed(owners) if each.row.gang), None)


def group_number(gang: Workload, labels: Mapping[str, str]) -> int:
    """Return the number of a pod's group in a gang of groups; 0 for the first, and for all other gangs.

    A LeaderWorkerSet creates the leaders of all groups first. If they took the GPUs of the first group, no group could
    run.
    """
    written = labels.get(gang.row.group_label, "")
    return int(written) if re.fullmatch("[0-9]{1,6}", written) else 0


SUSPEND = ("spec.suspend", "spec.runPolicy.suspend")
"""The fields of Jobs, JobSets, TrainJobs and Ray's kinds, and of the training operators' jobs."""

ENDED_CONDITIONS = frozenset({"Complete", "Completed", "Succeeded", "Failed"})
"""The conditions with status True of a Job, a JobSet, a TrainJob, and of the training operators' jobs."""

PHASES = ("status.state.phase", "status.jobDeploymentStatus", "status.phase")
"""The fields of Volcano's Job, a RayJob, and kinds that have only a phase."""

ENDED_PHASES = frozenset({"Complete", "Completed", "Succeeded", "Failed", "Terminated"})


def is_suspended(tree: Tree) -> bool:
    is_aborted = at(tree, "status.state.phase") == "Aborted"  # a Volcano Job, which may be resumed
    return is_aborted or any(at(tree, each) is True for each in SUSPEND)


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
    reached = ((true_types, ENDED_CONDITIONS), (phases, ENDED_PHASES))
    return any(isinstance(each, str) and each in ends for found, ends in reached for each in found)


SUCCEEDED = ("status.succeeded", "status.replicaStatuses.*.succeeded", "status.replicatedJobsStatus.*.succeeded")
"""The fields with the number of succeeded pods or Jobs: of a Job, the training operators' jobs, a JobSet."""


def is_partly_done(tree: Tree) -> bool:
    """Tell whether some of a workload's pods have succeeded."""
    return any(found for place in SUCCEEDED for _, found in all_at(tree, place))
