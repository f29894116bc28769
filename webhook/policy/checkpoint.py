"""Which checkpoint hook a pod gets, and the grace it needs; never replaces a preStop that the user wrote.

preStop runs within the grace period, before the stop signal, at every deletion: preemption, scale-in, kubectl delete.
Source: https://kubernetes.io/docs/concepts/containers/container-lifecycle-hooks/
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from webhook.policy.demand import asks_for_gpus
from webhook.policy.facts import Workload
from webhook.policy.objects import Pod
from webhook.policy.refusal import Refused
from webhook.policy.tier_policy import Checkpoint, Hook, HookKind, TierPolicy, WorkloadType

CHECKPOINT = "gpu-tiers.dev/checkpoint"
DEFAULT_GRACE = 30
"""Seconds a pod has where it says nothing (API default)."""

_WAIT_FOR_SAVE = """\
d={path}
[ -e $d/listening ] || exit 0
touch $d/request
i=0
while [ $i -lt {seconds} ]; do
  [ -e $d/done ] && exit 0
  sleep 1
  i=$((i+1))
done
echo "no checkpoint within {seconds} s" >&2
exit 1
"""


@dataclass(frozen=True, slots=True)
class HookPlan:
    """What to write on a pod. `grace` in seconds; `containers` are indices of spec.containers that get `handler`.

    `folder` is where the file protocol's emptyDir is mounted; None where the kind needs none.
    """

    kind: HookKind
    grace: int
    containers: tuple[int, ...] = ()
    handler: dict[str, Any] | None = None
    folder: str | None = None


def hook_plan(pod: Pod, kind: WorkloadType | None, owners: Sequence[Workload], policy: TierPolicy) -> HookPlan | None:
    """The hook of a pod that holds GPUs; None where it gets none."""
    hook = _hook(pod, kind, owners, policy.checkpoint)
    holders = tuple(i for i, each in enumerate(pod.spec.containers) if asks_for_gpus(each, policy))
    if hook.kind == "none" or not holders or (pod.spec.os and pod.spec.os.name == "windows"):
        return None
    if hook.kind == "sigterm":
        return HookPlan("sigterm", _grace(pod, hook.seconds, policy.checkpoint))
    return _file_plan(pod, hook, holders, policy.checkpoint)


def _file_plan(pod: Pod, hook: Hook, holders: tuple[int, ...], limits: Checkpoint) -> HookPlan | None:
    seconds = min(hook.seconds, limits.max_grace_period - limits.margin)
    handler = file_handler(hook.path, seconds)
    free = tuple(index for index in holders if _pre_stop(pod, index) in (None, handler))
    if not free:
        return None
    return HookPlan("file", _grace(pod, seconds, limits), free, handler, hook.path)


def file_handler(path: str, seconds: int) -> dict[str, Any]:
    """The preStop handler of the file protocol. It returns at once unless a listener has announced itself.

    A save that is not confirmed in time ends it with 1, which the kubelet reports as FailedPreStopHook.
    """
    return {"exec": {"command": ["/bin/sh", "-c", _WAIT_FOR_SAVE.format(path=path, seconds=seconds)]}}


def _hook(pod: Pod, kind: WorkloadType | None, owners: Sequence[Workload], limits: Checkpoint) -> Hook:
    """The policy's hook for the workload type, its kind overridden by the annotation on the pod or an owner."""
    hook = limits.hooks.get(kind, Hook()) if kind else Hook()
    for annotations in (pod.metadata.annotations, *(owner.annotations for owner in owners)):
        if CHECKPOINT in annotations:
            return replace(hook, kind=_kind(annotations[CHECKPOINT]))
    return hook


def _kind(text: str) -> HookKind:
    for kind in get_args(HookKind):
        if kind == text:
            return text  # type: ignore[return-value] # just compared with every member
    raise Refused(
        f'metadata.annotations[{CHECKPOINT}]: "{text[:40]}" is no kind of hook; write {", ".join(get_args(HookKind))}'
    )


def _grace(pod: Pod, seconds: int, limits: Checkpoint) -> int:
    """Never less than what is there; what we add is capped, for a long grace is a critical pod's wait."""
    there = pod.spec.termination_grace_period_seconds
    needed = min(seconds + limits.margin, limits.max_grace_period)
    return max(DEFAULT_GRACE if there is None else there, needed)


def _pre_stop(pod: Pod, index: int) -> dict[str, Any] | None:
    lifecycle = pod.spec.containers[index].lifecycle
    return lifecycle.pre_stop if lifecycle else None
