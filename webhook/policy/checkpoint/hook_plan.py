"""Plans a pod's checkpoint hook and the grace period that it needs. A preStop that the user wrote stays.

preStop runs within the grace period, before the stop signal, at every deletion: preemption, scale-in, kubectl delete.
Source: https://kubernetes.io/docs/concepts/containers/container-lifecycle-hooks/
"""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import structs

from webhook.objects.containers import Container
from webhook.objects.phrase import Phrase
from webhook.objects.pods import Pod
from webhook.objects.refusal import Reason, Refused
from webhook.policy.checkpoint.hook_kinds import FOLDER, ROWS
from webhook.policy.checkpoint.hook_request import HookRequest, requested_hook
from webhook.policy.checkpoint.listen import (
    VolumeMounted,
    can_report,
    listener,
    listener_obstacle,
    listener_variables,
    report_variables,
    report_volume,
)
from webhook.policy.checkpoint.programs import VARIABLE, shutdown_timeout
from webhook.policy.quota.demand import demand_of, gpu_holders
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import Checkpoint, Hook, HookKind, TierPolicy
from webhook.policy.workloads.kind_table import WorkloadType

DEFAULT_GRACE = 30
"""Seconds a pod has where it says nothing (API default)."""
OWN_PRE_STOP = Phrase("own-pre-stop")
WINDOWS = Phrase("windows-pod")
UNUSED_CLAIM = Phrase("claim-unused")


class HookPlan(msgspec.Struct, frozen=True):
    """The fields to write on a pod. `grace` in seconds; `containers` are indices of spec.containers that get `handler`.

    `folder` is where the protocol's emptyDir is mounted; None where none is needed. `variables` are environment
    variables by the index of their container. `volumes` bring what saves for a program that does not listen itself, and
    the token of one that reports.
    """

    kind: HookKind
    grace: int
    containers: tuple[int, ...] = ()
    handler: dict[str, Any] | None = None
    folder: str | None = None
    variables: tuple[tuple[int, str, str], ...] = ()
    volumes: tuple[VolumeMounted, ...] = ()


class HookDecision(msgspec.Struct, frozen=True):
    """The hook that was asked for, and the plan; without one, `why_not` says why the pod can't have the hook.

    `holders` are the indices of the app containers that ask for GPUs.
    """

    asked: HookRequest
    holders: tuple[int, ...]
    plan: HookPlan | None = None
    why_not: Phrase | None = None


def plan_hook(
    pod: Pod, workload_type: WorkloadType | None, facts: Facts, policy: TierPolicy, tier: str | None = None
) -> HookDecision:
    """The hook of a pod with what was asked for. Raises Refused where it asks for what can't be done."""
    asked = requested_hook(pod, workload_type, tier, facts.owners, policy.checkpoint)
    holders = gpu_holders(pod, facts.devices, policy)
    if asked.hook.kind == "none":
        return HookDecision(asked, holders)
    if not holders:
        return HookDecision(asked, holders, None, _without_holders(facts, policy))
    hook = asked.hook if isinstance(asked.hook.port, int) else _with_port_number(asked.hook, pod, holders)
    free = tuple(index for index in holders if _pre_stop(pod, index) in (None, _handler(hook)))
    why_not = _obstacle(pod, asked, hook, free, policy.checkpoint)
    if why_not is not None:
        return HookDecision(asked, holders, None, why_not)
    plan = _plan(pod, hook, holders, free, policy.checkpoint)
    if hook.kind == "listen" or hook.reports:
        plan = _equipped(pod, plan, hook, facts, policy)
    return HookDecision(asked, holders, plan)


def _equipped(pod: Pod, plan: HookPlan, hook: Hook, facts: Facts, policy: TierPolicy) -> HookPlan:
    """The plan with the listener, and with what it takes to report where somebody hears it."""
    listens, target = hook.kind == "listen", policy.reports if hook.reports and can_report(pod) else None

    def variables(index: int) -> Iterator[tuple[str, str]]:
        if listens:
            yield from listener_variables(pod, pod.spec.containers[index], hook, facts.owners)
        if target:
            yield from report_variables(target)

    brought = (listener(policy.checkpoint.listener_image),) if listens else ()
    return structs.replace(
        plan,
        variables=tuple((index, *each) for index in plan.containers for each in variables(index)),
        volumes=(*brought, report_volume()) if target else brought,
    )


def _with_port_number(hook: Hook, pod: Pod, holders: tuple[int, ...]) -> Hook:
    """The hook with its port as a number: the pod's containers share one address.

    A container without an image is completed by its operator, so that its ports can't be known yet.
    """
    order = [pod.spec.containers[index] for index in holders] + [each for _, each in pod.spec.every_container()]
    ports = [port for container in order for port in container.ports if port.name == hook.port]
    unknown = hook.port if any(not container.image for container in order) else 0
    return structs.replace(hook, port=ports[0].container_port if ports else unknown)


def _handler(hook: Hook) -> dict[str, Any] | None:
    make = ROWS[hook.kind].handler
    return make(hook) if make else None


def _without_holders(facts: Facts, policy: TierPolicy) -> Phrase | None:
    """Return why no container gets the hook; None where that can't be told before its claims can be read."""
    if facts.unread_claims:
        return None
    claimed = demand_of(Pod(), facts.devices, policy) > 0
    return UNUSED_CLAIM if claimed else Phrase("no-gpu-container")


def _obstacle(pod: Pod, asked: HookRequest, hook: Hook, free: tuple[int, ...], checkpoint: Checkpoint) -> Phrase | None:
    """Return why a pod can't have a hook; None where it can. Raises Refused for an unknown port in an annotation."""
    system = pod.spec.os.name if pod.spec.os else pod.spec.node_selector.get("kubernetes.io/os")
    if system == "windows":  # which has no /bin/sh
        return WINDOWS
    if hook.kind == "http" and not hook.port:
        if "port" in asked.fields:
            raise Refused(Reason.HOOK, "hook-port-unknown", asked.fields["port"], port=asked.hook.port)
        return Phrase("no-such-port", port=asked.hook.port)
    if hook.kind == "signal" and (pod.spec.share_process_namespace or pod.spec.host_pid):
        return Phrase("shared-pids")
    if hook.kind != "sigterm" and not free:
        return OWN_PRE_STOP
    return listener_obstacle(pod, hook, free, checkpoint.listener_image) if hook.kind == "listen" else None


def _plan(pod: Pod, hook: Hook, holders: tuple[int, ...], free: tuple[int, ...], checkpoint: Checkpoint) -> HookPlan:
    """The plan. The grace is at least what is there; the seconds are capped, as a critical pod waits for all of it."""
    grace = max(grace_of(pod), hook.seconds + checkpoint.margin)
    if hook.kind != "sigterm":
        return HookPlan(hook.kind, grace, free, _handler(hook), _folder(pod, hook, free))
    # The grace is no use to a save that torchrun cuts short.
    waits = ((index, shutdown_timeout(pod.spec.containers[index], grace - checkpoint.margin)) for index in holders)
    return HookPlan("sigterm", grace, variables=tuple((index, VARIABLE, text) for index, text in waits if text))


def _folder(pod: Pod, hook: Hook, free: tuple[int, ...]) -> str | None:
    """The folder to mount: a folder that somebody named within a volume of the pod is there already."""
    folder = {"file": hook.path, "listen": hook.path, "signal": hook.done_file.rpartition("/")[0]}.get(hook.kind)
    if not folder or (hook.kind == "signal" and folder != FOLDER):
        return None
    within = all(_in_a_volume(pod.spec.containers[index], folder) for index in free)
    return None if within and folder != FOLDER else folder


def _in_a_volume(container: Container, folder: str) -> bool:
    paths = (mount.mount_path.rstrip("/") for mount in container.volume_mounts if not mount.read_only)
    return any(folder.startswith(f"{path}/") for path in paths if path)


def grace_of(pod: Pod) -> int:
    """Seconds that a pod has to end, as it says itself."""
    there = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE if there is None else there


def _pre_stop(pod: Pod, index: int) -> dict[str, Any] | None:
    lifecycle = pod.spec.containers[index].lifecycle
    return lifecycle.pre_stop if lifecycle else None
