"""Which checkpoint hook a pod gets, and the grace it needs; never replaces a preStop that the user wrote.

preStop runs within the grace period, before the stop signal, at every deletion: preemption, scale-in, kubectl delete.
Source: https://kubernetes.io/docs/concepts/containers/container-lifecycle-hooks/
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from webhook.policy.demand import asks_for_gpus
from webhook.policy.facts import Workload, WorkloadType
from webhook.policy.objects import Pod
from webhook.policy.refusal import Refused, shown
from webhook.policy.tier_policy import Checkpoint, Hook, HookKind, TierPolicy

CHECKPOINT = "gpu-tiers.dev/checkpoint"
TIMEOUT = "gpu-tiers.dev/checkpoint-timeout"
"""Seconds a save may take, in place of the policy's for the workload type."""
_KINDS: tuple[HookKind, ...] = get_args(HookKind)
DEFAULT_GRACE = 30
"""Seconds a pod has where it says nothing (API default)."""

_WAIT_FOR_SAVE = """\
d={path}
[ -e $d/listening ] || exit 0
rm -f $d/done
touch $d/request || exit 1
i=0
while [ $i -lt {seconds} ]; do
  [ -e $d/done ] && rm -f $d/request && exit 0
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
    if hook.kind == "none" or not holders or _on_windows(pod):
        return None
    if hook.kind == "sigterm":
        return HookPlan("sigterm", _grace(pod, hook.seconds, policy.checkpoint))
    return _file_plan(pod, hook, holders, policy.checkpoint)


def _file_plan(pod: Pod, hook: Hook, holders: tuple[int, ...], limits: Checkpoint) -> HookPlan | None:
    seconds = min(hook.seconds, _most(limits))
    handler = file_handler(hook.path, seconds)
    free = tuple(index for index in holders if _pre_stop(pod, index) in (None, handler))
    if not free:
        return None
    return HookPlan("file", _grace(pod, seconds, limits), free, handler, hook.path)


def file_handler(path: str, seconds: int) -> dict[str, Any]:
    """The preStop handler of the file protocol. It returns at once unless a listener has announced itself.

    A save that is not confirmed in time ends it with 1, which the kubelet reports as FailedPreStopHook. The folder
    outlives a container that is restarted in place, so an old answer is cleared before and an answered request after.
    """
    return {"exec": {"command": ["/bin/sh", "-c", _WAIT_FOR_SAVE.format(path=path, seconds=seconds)]}}


def _hook(pod: Pod, kind: WorkloadType | None, owners: Sequence[Workload], limits: Checkpoint) -> Hook:
    """The policy's hook for the workload type, overridden by the annotations on the pod, else on its nearest owner."""
    hook = limits.hooks.get(kind, Hook()) if kind else Hook()
    field, text = _annotation(CHECKPOINT, pod, owners)
    if text is not None:
        hook = replace(hook, kind=_kind(text, field))
    field, text = _annotation(TIMEOUT, pod, owners)
    return hook if text is None else replace(hook, seconds=_seconds(text, field, limits))


def _annotation(key: str, pod: Pod, owners: Sequence[Workload]) -> tuple[str, str | None]:
    """The field that says it, and what it says."""
    carriers = [("", pod.metadata.annotations), *((f"{owner}.", owner.annotations) for owner in owners)]
    field = f"metadata.annotations[{key}]"
    return next(((where + field, notes[key]) for where, notes in carriers if key in notes), (field, None))


def _kind(text: str, field: str) -> HookKind:
    kind = next((kind for kind in _KINDS if kind == text), None)
    if kind is None:
        raise Refused(f'{field}: "{shown(text)}" is no kind of hook; write one of {", ".join(_KINDS)}')
    return kind


def _seconds(text: str, field: str, limits: Checkpoint) -> int:
    seconds = int(text) if re.fullmatch("[0-9]{1,6}", text) else 0
    if not 0 < seconds <= _most(limits):
        raise Refused(f'{field}: "{shown(text)}" is no time to save; write seconds, from 1 to {_most(limits)}')
    return seconds


def _most(limits: Checkpoint) -> int:
    """The longest save for which a capped grace period has room."""
    return limits.max_grace_period - limits.margin


def _on_windows(pod: Pod) -> bool:
    """Where there is no /bin/sh."""
    declared = pod.spec.os.name if pod.spec.os else pod.spec.node_selector.get("kubernetes.io/os")
    return declared == "windows"


def _grace(pod: Pod, seconds: int, limits: Checkpoint) -> int:
    """Never less than what is there; what we add is capped, for a long grace is a critical pod's wait."""
    there = pod.spec.termination_grace_period_seconds
    needed = min(seconds + limits.margin, limits.max_grace_period)
    return max(DEFAULT_GRACE if there is None else there, needed)


def _pre_stop(pod: Pod, index: int) -> dict[str, Any] | None:
    lifecycle = pod.spec.containers[index].lifecycle
    return lifecycle.pre_stop if lifecycle else None
