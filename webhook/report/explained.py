"""The reasons for an object's tier and hook, the verdict on its next pod, and what would change its tier."""

from collections.abc import Collection, Iterator
from typing import Any, Literal, NamedTuple

from msgspec.structs import fields

from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Pod
from webhook.objects.refusal import Phrase
from webhook.objects.view import Tree, at, listed, view
from webhook.policy.assignment.assigned_by import parsed
from webhook.policy.assignment.request import TIER_LABEL, Assignment
from webhook.report.object_verdict import ObjectVerdict
from webhook.report.posture import NodeReservation
from webhook.report.shown import Gpus, Shown
from webhook.report.tenants import RowShown
from webhook.report.waiting import Eviction, RefusedPods
from webhook.sentences.sentence import sentence

JOB = GroupKind("batch", "Job")


class ClassShown(Shown, frozen=True):
    """A PriorityClass as a pod has it. `tier` is "" for a class outside the tiers."""

    name: str
    priority: int
    preemption_policy: str
    tier: str = ""

    def __str__(self) -> str:
        name = self.name or "no PriorityClass"
        aside = "" if self.tier in (self.name, "") else f", tier {self.tier}"
        return f"{name} ({self.priority}, {self.preemption_policy}{aside})"


class HookShown(Shown, frozen=True):
    """The checkpoint hook that a new pod would get. `there`: whether the existing pod has it; None without such a pod.

    Without a kind, `why_not` says why there is no hook. `template` is the path of the pod template, "" for a pod.
    `uncut` are the seconds that were asked for, if the tier allows less, and otherwise 0. `max_at_risk` are the seconds
    of unsaved work after which an existing pod is asked to save; 0 for no bound, or without a pod that reports.
    """

    kind: str = ""
    seconds: int = 0
    grace: int = 0
    containers: tuple[str, ...] = ()
    why_not: str = ""
    template: str = ""
    there: bool | None = None
    uncut: int = 0
    max_at_risk: int = 0

    def __str__(self) -> str:
        if not self.kind:
            return f"none: {self.why_not}" if self.why_not else "none"
        where = f" in {', '.join(self.containers)}" if self.containers else ""
        state = {True: "; the pod has it", False: "; the pod does not have it", None: ""}[self.there]
        seconds = f"{self.seconds} s" + (f" (of {self.uncut} s; its tier leaves no more)" if self.uncut else "")
        does = f"{seconds} in which requests end and nothing is saved" if self.kind == "sleep" else f"{seconds} to save"
        asked = f"; asked to save after {self.max_at_risk} s of unsaved work" if self.max_at_risk else ""
        return f"{self.kind}{where}, {does}, {self.grace} s of grace{asked}{state}"


class TenantOfIt(Shown, frozen=True):
    """The tenant, with the tiers that it may use, the rows of its quota, and sentences on its budgets and grants."""

    name: str
    may_use: tuple[str, ...]
    on_exceed: str
    rows: tuple[RowShown, ...] = ()
    hours: tuple[str, ...] = ()


class GangShown(Shown, frozen=True):
    """A workload that is booked whole, with the GPUs that it was admitted with and those that its pods use."""

    workload: str
    booked: str
    used: Gpus


class PodsNow(Shown, frozen=True):
    """The number of a workload's existing pods with one class."""

    count: int
    now: ClassShown


class Explained(ObjectVerdict, frozen=True, kw_only=True):
    """The verdict on one object of a cluster, with its context. Empty or None values do not apply to it.

    The verdict is on the object as if it were created now; it is not `judged` if a fact could not be read. `message` is
    the refusal of its next pod, `refused` the refusal that its controller got, and `last_eviction` the report of its
    last eviction. `waits_for` says what its next pod would wait for in the queue, and `reserved` are the nodes that are
    reserved for its pods. `mode_of_file` is the mode of a policy file that the user names; the cluster's `mode` is then
    unknown. `owned`: the object has a controller. `templates` are the hooks of its pod templates, or its own, and
    `autoscaler` is what its pods tell autoscalers. `may_name` are the tiers that the user may name in the namespace;
    None if anyone may name all.
    """

    judged: bool = True
    mode: str | None = None
    mode_of_file: str = ""
    left_alone: str = ""
    templates: tuple[HookShown, ...] = ()
    autoscaler: tuple[str, ...] = ()
    class_now: ClassShown | None = None
    owned: bool = True
    class_of_new: ClassShown | None = None
    assigned_by: str = ""
    pods: tuple[PodsNow, ...] = ()
    tenant: TenantOfIt | None = None
    gang: GangShown | None = None
    refused: RefusedPods | None = None
    last_eviction: Eviction | None = None
    changes: tuple[str, ...] = ()
    waits_for: str = ""
    reserved: tuple[NodeReservation, ...] = ()
    may_name: tuple[str, ...] | None = None
    unread: tuple[str, ...] = ()

    @property
    def object(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def demotion(self) -> str:
        """Return the sentence on the lower tier that a new pod would get, or that a booked gang keeps; "" for none."""
        given, tenant = self.assignment, self.tenant.name if self.tenant else ""
        if given is None or given.demoted_from is None:
            return ""
        lacks, evicted, higher = given.lacks, given.evicted, given.demoted_from
        if not self.gang:
            said = "runs-lower" if self.class_now else "new-runs-lower"
            return sentence(Phrase(said, lacks=lacks, tier=self.tier, evicted=evicted))
        hours = Phrase("or-hours") if isinstance(lacks, Phrase) and lacks.id != "lacks-room" else ""
        return sentence(
            Phrase("gang-runs-lower", tier=self.tier, evicted=evicted, tenant=tenant, higher=higher, hours=hours)
        )

    @property
    def stopped(self) -> str:
        """Return why its next pod would be refused, or what it would wait for in the queue; "" for neither."""
        return f"would be refused now: {self.message}" if self.message else self.waits_for

    @property
    def trace(self) -> tuple[str, ...]:
        return tuple(map(sentence, self.assignment.trace)) if self.assignment else ()

    def as_json(self) -> dict[str, Any]:
        verdict = ObjectVerdict.as_json(self) | ({} if self.judged else {"verdict": None, "allowed": None})
        common = {*ObjectVerdict.__struct_fields__, "judged", "owned"}
        own = {each.encode_name: getattr(self, each.name) for each in fields(self) if each.name not in common}
        return {**verdict, "trace": self.trace, **own}


UNMARKED = (
    "it has no mark of gpu-tiers: it was created before gpu-tiers was installed, while it was down, in mode Audit, in "
    "an exempt namespace, or with a mistake in mode Warn"
)


def why_it_differs(assigned_by: str, *, owned: bool) -> str:
    """Return why a pod's class differs from a new pod's. `assigned_by` is the annotation that gpu-tiers wrote on it.

    A pod that is not `owned` may have lost the owner that named its tier (kubectl delete --cascade=orphan).
    """
    written = parsed(assigned_by)
    if written and written.demoted_from:
        return f"when this one was created, its tenant had no room or GPU-hours left in {written.demoted_from}"
    if written and not owned and written.step == "label" and not written.names_own_label:
        return "the workload whose label gave this one its tier owns it no more"
    return "the policy, its tenant, its owner or a label has changed since this one was created"


class TierOf(NamedTuple):
    """The `bearer` is the owner in whose own field somebody asked for a tier, `owner` the outermost one; "" for none.

    Both are written as in kubectl: job/train. `replace` is the command that replaces its pods, "" if none does. `group`
    is its PodGroup, and `next_pod` what happens to its next pod now. `lacks` says what has no room for all of its pods
    in the tier that it names, "" for nothing, and `queues` what has none in other tiers, which queue them.
    """

    bearer: str
    owner: str
    namespace: str
    replace: str
    group: str = ""
    next_pod: Literal["", "queued", "refused"] = ""
    lacks: str = ""
    queues: str = ""


class Replaces(NamedTuple):
    """The ways in which pods can be replaced. `deletable`: a Job goes on if its pods are deleted.

    `not_replaced` are the names of pods that no rollout replaces: a StatefulSet waits for a pod that isn't ready, and
    the updateStrategy (OnDelete, partition) of a StatefulSet or a DaemonSet may leave pods. `rolls`: a rollout replaces
    the others once these are deleted. `surges` is the setting that stops a rollout from making new pods before it ends
    old ones, "" if it doesn't make them. `paused`: a paused Deployment has no rollout. `most` is the greatest number of
    pods that the workload makes.
    """

    deletable: bool = False
    not_replaced: str = ""
    rolls: bool = False
    surges: str = ""
    paused: bool = False
    most: int = 1


def replacement(kind: GroupKind, name: str, given: Assignment, namespace: str, how: Replaces) -> str:
    """Return the command by which a workload's pods are replaced by others, which may have another tier; "" for none.

    A Job whose template names the tier has no such command, because its template can't be changed.
    """
    if kind.group == "apps" and kind.kind in ("Deployment", "StatefulSet", "DaemonSet"):
        again = f"kubectl rollout restart {kind.kind.lower()}/{name} -n {namespace}"
        if how.not_replaced:
            delete = f"kubectl delete pod {how.not_replaced} -n {namespace}"
            return f"{again}; {delete}" if how.rolls else delete
        return f"kubectl rollout resume {kind.kind.lower()}/{name} -n {namespace}; {again}" if how.paused else again
    in_template = given.step in ("label", "class") and given.bearer is None
    if kind == JOB and how.deletable and not in_template:
        return f"kubectl delete pod -n {namespace} -l batch.kubernetes.io/job-name={name}"
    return ""


def job_outlasts_deletions(job: Tree, pods: Collection[Tree]) -> bool:
    """Tell whether a Job goes on if all of its running pods are deleted, because it counts each as failed.

    It counts them under every podReplacementPolicy, also pods that never ran (isPodFailed in the Job controller of
    Kubernetes). False for queued pods, because they would lose their position.
    """
    limit, failed = at(job, "spec.backoffLimit"), at(job, "status.failed")
    counted = (failed if isinstance(failed, int) else 0) + len(pods)
    rules = listed(at(job, "spec.podFailurePolicy.rules"))
    strict = at(job, "spec.backoffLimitPerIndex") is not None or any(at(each, "action") != "Ignore" for each in rules)
    queued = any(view(each, Pod).waits_for_quota for each in pods)
    return not (strict or queued) and counted <= (limit if isinstance(limit, int) else 6)


def changes(given: Assignment, its: TierOf, *, others: tuple[str, ...], default_of: str, keeps: str) -> Iterator[str]:
    """Yield sentences on what would give the object another tier.

    `others` are the tiers that it may have instead. `default_of` is the field that gave it its tier by default. `keeps`
    are the tiers of existing pods, which nothing changes. If somebody wrote another tier, the answer is how pods get
    that one.
    """
    bearer, owner, namespace, replace = its[:4]
    step, asked, wanted = given.step, given.asked, given.tier.name if given.tier else ""
    named, is_label = step in ("label", "class"), step == "label" and bearer
    if named and keeps and wanted not in ("", *keeps.split(", ")) and not given.demoted_from:
        label = f" with the label {TIER_LABEL}={wanted}" if is_label else ""
        yield from _ways_to(wanted, its, keeps, again=f"delete and apply {owner} again{label}.")
        return
    if not others:
        return
    tiers = others[0] if len(others) == 1 else f"TIER (one of {', '.join(others)})"
    label = f"gpu-tiers.dev/tier={tiers}"
    if step == "group":
        makes = f"label {owner}" if owner else f"create PodGroup {its.group} again with the label"
        again = "create it again" if owner else "its pods too"
        yield f"Its tier is its PodGroup's: {makes} {label}, and {again}."
    elif keeps and not replace and not owner.startswith("cronjob/"):
        what = f"another tier at {asked}: {tiers}" if named and not is_label else f"the label {label}"
        yield f"Existing pods keep {keeps}. Delete {owner} and apply it again with {what}."
    elif named and not bearer:
        do = f"In the pod template of {owner}, write" if owner else "Create the pod again with"
        yield f"{do} another tier at {asked}: {tiers}."
    elif step == "class":
        yield f"In {bearer}, write another tier at {asked}: {tiers}."
    elif bearer or owner:
        yield f"kubectl label {bearer or owner} -n {namespace} --overwrite {label}"
        if keeps and replace:
            yield f"Existing pods keep {keeps} until they are replaced: {replace}"
        else:
            yield "The label counts for pods that are created after it; a pod keeps the tier that it was created with."
    else:
        yield f"Create the pod again with the label {label}. A pod keeps the tier it began with."
    if its.queues:
        yield f"Pods without room are queued: {its.queues}."
    if default_of:
        yield f"For all workloads like it, your platform team can change {default_of}."


def _ways_to(wanted: str, its: TierOf, keeps: str, *, again: str) -> Iterator[str]:
    """Yield how existing pods, which keep their tiers, get the tier that somebody has written since."""
    if its.next_pod == "refused":
        yield f"Existing pods keep {keeps}. A new one would be refused now."
        return
    yield f"Existing pods keep {keeps}; pods made later get {wanted}."
    now = "once the queue admits its next pod" if its.next_pod else "now"
    if its.lacks and not its.next_pod:
        yield f"Not all of its pods have room there now: {its.lacks}."
    else:
        yield f"To have it {now}: {its.replace}" if its.replace else f"To have it {now}, {again}"
