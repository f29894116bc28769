"""Why an object has its tier and hook, what it would get now, and what would change that: as values."""

from collections.abc import Iterator

from webhook.readmodel.refused_pods import RefusedPods
from webhook.readmodel.shown import Gpus, Shown
from webhook.readmodel.tenants import RowShown


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
    """The checkpoint hook that a pod would get. `there`: whether the pod has it; None where no pod was asked about.

    Without a kind, `why_not` says why there is none. `template` is the place of the pod template, "" for a pod.
    """

    kind: str = ""
    seconds: int = 0
    grace: int = 0
    containers: tuple[str, ...] = ()
    why_not: str = ""
    template: str = ""
    there: bool | None = None

    def __str__(self) -> str:
        if not self.kind:
            return self.why_not or "none"
        where = f" in {', '.join(self.containers)}" if self.containers else ""
        state = {True: "; the pod has it", False: "; the pod does not have it", None: ""}[self.there]
        return f"{self.kind}{where}, saves within {self.seconds} s, {self.grace} s of grace{state}"


class TenantOfIt(Shown, frozen=True):
    """The tenant, with the tiers that it may use and the rows of its quota."""

    name: str
    may_use: tuple[str, ...]
    on_exceed: str
    rows: tuple[RowShown, ...] = ()


class GangShown(Shown, frozen=True):
    """A workload that is booked whole, with the GPUs that it was let in with and those that its pods hold."""

    workload: str
    booked: str
    held: Gpus


class PodsNow(Shown, frozen=True):
    """So many pods of a workload that exist with one class."""

    count: int
    now: ClassShown


class Explained(Shown, frozen=True):
    """All that is said of one object. What is empty or None does not apply to it.

    `refusal` is what a create of it, or of another pod of it, would be told now, and `refused` what its controller was
    told.
    """

    object: str
    namespace: str
    mode: str
    left_alone: str = ""
    tier: str = ""
    decided_by: str = ""
    trace: tuple[str, ...] = ()
    workload_type: str = ""
    evidence: str = ""
    grade: str = ""
    hooks: tuple[HookShown, ...] = ()
    class_now: ClassShown | None = None
    class_of_new: ClassShown | None = None
    assigned_by: str = ""
    pods: tuple[PodsNow, ...] = ()
    tenant: TenantOfIt | None = None
    gang: GangShown | None = None
    refusal: str = ""
    refused: RefusedPods | None = None
    warnings: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def class_difference(now: ClassShown, due: ClassShown | None, assigned_by: str) -> str:
    """Why a pod's class is not what it would get now; "" where it is. `assigned_by` is what gpu-tiers wrote on it."""
    if due is None or now.name == due.name:
        return ""
    if not assigned_by:
        return (
            "it was created without gpu-tiers: before it was installed, while it was away, in mode Audit, or in an "
            "exempt namespace"
        )
    if "demoted from" in assigned_by:
        return f"when it was created, its tenant had no room ({assigned_by})"
    return f"the policy, its tenant or a label has changed since it was created ({assigned_by})"


def changes(
    asked: str, step: str, *, bearer: str, owner: str, namespace: str, others: tuple[str, ...], default_of: str
) -> Iterator[str]:
    """What would give it another tier, a sentence each.

    `asked` is the field in which somebody asked for the tier. `bearer` is the owner whose own field that is, and
    `owner` the outermost one, as kubectl takes them, "" where there is none. `others` are the tiers that it may have
    instead, and `default_of` is where the policy says what it gave.
    """
    if not others:
        yield "No other tier is open to it: its tenant's ceiling or the policy leaves none."
        return
    tiers = others[0] if len(others) == 1 else f"TIER (one of {', '.join(others)})"
    if step == "group":
        yield f"The PodGroup has the tier: label what makes it gpu-tiers.dev/tier={tiers}, and create it again."
    elif step in ("label", "class") and not bearer:
        where = f"the pod template of {owner}" if owner else "the pod, and create it again"
        yield f"Write another one in {where}: {tiers}. It stands at {asked}."
    elif step == "class":
        yield f"Write another one in {bearer}: {tiers}. It stands at {asked}."
    elif bearer or owner:
        yield f"kubectl label {bearer or owner} -n {namespace} --overwrite gpu-tiers.dev/tier={tiers}"
        yield "It counts for pods that are created after it; a pod keeps the tier that it was created with."
    else:
        yield f"Create the pod again with the label gpu-tiers.dev/tier={tiers}. A pod keeps the tier it began with."
    if default_of:
        yield f"For all that are like it, your platform team changes {default_of}."
