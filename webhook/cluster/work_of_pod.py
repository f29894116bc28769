"""Tells of a pod that runs whether it has work to lose, and since when it works.

Owners are not looked up: mutate has read them and left its finding on the pod, which also shows much by itself.
"""

from collections.abc import Sequence
from datetime import datetime

from webhook.objects.group_kind import GroupKind
from webhook.objects.pods import Pod
from webhook.objects.view import View
from webhook.policy.assignment.assigned_by import read_assigned_by
from webhook.policy.checkpoint.hook_kinds import tells
from webhook.policy.classification.classify import classify
from webhook.policy.values.tier_policy import TierPolicy
from webhook.policy.workloads.workload_types import WorkloadType


def has_work_to_lose(pod: Pod, policy: TierPolicy) -> bool:
    """A training pod has, and any that bears a hook of ours which waits for a save.

    It is training where its annotation `assigned-by` says that its type gave it its tier, else by what it shows.
    """
    written = read_assigned_by(pod.metadata.annotations)
    if written and written.workload_type:
        trains = written.workload_type == WorkloadType.TRAINING
    else:
        trains = type_shown(pod, policy) is WorkloadType.TRAINING
    hooks = (each.lifecycle.pre_stop for each in pod.spec.containers if each.lifecycle and each.lifecycle.pre_stop)
    return trains or any(map(tells, hooks))


def type_shown(pod: Pod, policy: TierPolicy) -> WorkloadType | None:
    """By the kind of its controller, else by itself."""
    owner = pod.metadata.controller
    row = policy.kinds.by_kind.get(GroupKind(owner.group, owner.kind)) if owner else None
    if row is not None and row.type is not None:
        return row.type
    evidence = classify(pod, (), policy.kinds)
    return evidence.type if evidence else None


class _Period(View, frozen=True):
    started_at: datetime | None = None


class _State(View, frozen=True):
    running: _Period | None = None
    terminated: _Period | None = None


class ContainerAge(View, frozen=True):
    """Since when a container runs, or ran until it ended; of its status nothing else is read."""

    state: _State = _State()

    @property
    def began(self) -> datetime | None:
        """None while it waits."""
        period = self.state.running or self.state.terminated
        return period.started_at if period else None


def began_at(containers: Sequence[ContainerAge]) -> float | None:
    """Seconds since 1970 from the first of its containers on, so that no work before is left out; None before that."""
    times = [each.began for each in containers if each.began]
    return min(times).timestamp() if times else None
