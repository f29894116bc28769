"""Finds the checkpoint hook of a pod, and plans it with the grace period that it needs.

1. The policy gives the hook by tier, or else by workload type. Annotations override it: those of the pod, then those of
   its owners, the nearest first.
2. The plan leaves the user's own preStop as it is.

preStop runs within the grace period, before the stop signal, at every deletion: preemption, scale-in, kubectl delete.
Source: https://kubernetes.io/docs/concepts/containers/container-lifecycle-hooks/
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from webhook.objects.pods import Pod, VolumeMount
from webhook.objects.refusal import Phrase, Reason, Refused
from webhook.policy.checkpoint import listen
from webhook.policy.checkpoint.hook_kinds import FOLDER, READERS, ROWS, completed, handler_of, missing, reader
from webhook.policy.checkpoint.programs import VARIABLE, shutdown_timeout
from webhook.policy.checkpoint.work_lost import LEAST_AT_RISK, MAX_AT_RISK, MOST_AT_RISK, max_at_risk
from webhook.policy.quota.demand import demand_of, gpu_holders
from webhook.policy.values.facts import Facts
from webhook.policy.values.tier_policy import Checkpoint, Hook, HookKind, TierPolicy
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.policy.workloads.workload import Workload

CHECKPOINT = "gpu-tiers.dev/checkpoint"
TIMEOUT = f"{CHECKPOINT}-timeout"
"""The annotation with the seconds that a save may take, instead of the policy's."""
FIELDS = {name: f"{CHECKPOINT}-{name.replace('_', '-')}" for name in READERS}
"""The annotation of each field of a hook."""
KNOWN = (CHECKPOINT, TIMEOUT, MAX_AT_RISK, *FIELDS.values())
_KEYS = {"kind": CHECKPOINT, "seconds": TIMEOUT, "max_at_risk": MAX_AT_RISK, **FIELDS}


class HookRequest(msgspec.Struct, frozen=True):
    """The requested hook, its seconds cut to the cap. `by_policy` is the policy's hook, without annotations and cap.

    `fields` are the places of the annotations that counted, by the field that they set ("kind" is the kind). `cap` is
    the longest grace period that the hook may ask for, and `uncut` the seconds that were asked for. `max_at_risk` is
    the text of the annotation MAX_AT_RISK.
    """

    hook: Hook
    by_policy: Hook
    fields: Mapping[str, str] = msgspec.field(default_factory=dict)
    cap: int = 0
    uncut: int = 0
    max_at_risk: str = ""

    @property
    def by_annotation(self) -> bool:
        """Tell whether an annotation names the kind."""
        return "kind" in self.fields

    @property
    def cut(self) -> bool:
        """Tell whether the cap leaves less time to save than was asked for."""
        return self.hook.seconds < self.uncut


class _Note(NamedTuple):
    place: str
    text: str
    distance: int


def requested_hook(
    pod: Pod, workload_type: WorkloadType | None, tier: str | None, owners: Sequence[Workload], checkpoint: Checkpoint
) -> HookRequest:
    """Return the requested hook. Raises Refused if an annotation asks for something impossible."""
    by_tier = checkpoint.tiers.get(tier) if tier else None
    by_type = checkpoint.hooks.get(workload_type) if workload_type else None
    by_policy = by_tier or by_type or Hook()
    carriers = [("metadata", pod.metadata.annotations), *((each.metadata_place, each.annotations) for each in owners)]
    # 1. The nearest annotation of each field. A field of an object above the one that names the kind does not count,
    #    because it belongs to another hook.
    found: dict[str, _Note] = {}
    if any(key.startswith(CHECKPOINT) for _, notes in carriers for key in notes):
        for (name, key), (distance, (where, notes)) in product(_KEYS.items(), enumerate(carriers)):
            if key in notes and name not in found:
                found[name] = _Note(f"{where}.annotations[{key}]", notes[key], distance)
        if kind := found.get("kind"):
            found = {name: each for name, each in found.items() if name not in FIELDS or each.distance <= kind.distance}

    # 2. What they say.
    hook = _annotated(found, by_policy, checkpoint) if found else by_policy
    # Time beyond a tier's cap is cut, not refused, because gpu-tiers may have chosen the tier.
    most = longest_save(checkpoint, tier)
    within = structs.replace(hook, seconds=min(hook.seconds, most))
    fields = {name: note.place for name, note in found.items()}
    bound = found.get("max_at_risk")
    if bound is not None and max_at_risk(bound.text) is None:
        least, most = LEAST_AT_RISK, MOST_AT_RISK
        raise Refused(Reason.HOOK, "max-at-risk-wrong", bound.place, value=bound.text, least=least, most=most)
    text = bound.text if bound else ""
    return HookRequest(within, by_policy, fields, most + checkpoint.margin, hook.seconds, text)


def _annotated(found: Mapping[str, _Note], by_policy: Hook, checkpoint: Checkpoint) -> Hook:
    kind, seconds = by_policy.kind, None
    # 1. Read the kind, the fields that it takes, and the seconds.
    if note := found.get("kind"):
        known = next((kind for kind in ROWS if kind == note.text), None)
        if known is None:
            raise Refused(Reason.HOOK, "hook-kind-unknown", note.place, value=note.text, kinds=tuple(ROWS))
        kind = known
    given = {name: _value(kind, name, note) for name, note in found.items() if name in FIELDS}
    if note := found.get("seconds"):
        seconds, most = int(note.text) if re.fullmatch("[0-9]{1,6}", note.text) else 0, longest_save(checkpoint)
        if not 0 < seconds <= most:
            raise Refused(Reason.HOOK, "hook-time-wrong", note.place, value=note.text, most=most)

    # 2. Annotations change the policy's hook, or another kind replaces it.
    if kind == by_policy.kind:
        return structs.replace(by_policy, seconds=seconds or by_policy.seconds, **given)
    lacking = missing(kind, given)
    if lacking is not None:
        place, key = found["kind"].place, FIELDS[lacking]
        raise Refused(Reason.HOOK, "hook-field-missing", place, kind=kind, lacking=lacking, key=key)
    # The policy's time for a save holds for any hook, except `sleep`, whose time is not that of a save.
    other = "none" in (kind, by_policy.kind) or "sleep" in (kind, by_policy.kind)
    return completed(kind, seconds or (None if other else by_policy.seconds), given)


def _value(kind: HookKind, name: str, note: _Note) -> Any:
    if name not in ROWS[kind].takes:
        *others, last = [kind for kind, row in ROWS.items() if name in row.takes]
        takers, what = f"{', '.join(others)} or {last}" if others else last, name.replace("_", " ")
        raise Refused(
            Reason.HOOK, "hook-field-unwanted", note.place, kind=kind, name=what, key=CHECKPOINT, takers=takers
        )
    try:
        return reader(kind, name)(note.text)
    except ValueError as error:
        raise Refused(Reason.HOOK, "hook-value-wrong", note.place, value=note.text, error=str(error)) from None


def longest_save(checkpoint: Checkpoint, tier: str | None = None) -> int:
    """Return the longest time for a save in seconds: the tier's cap, or that of all tiers, less the margin."""
    return checkpoint.tier_caps.get(tier or "", checkpoint.max_grace_period) - checkpoint.margin


DEFAULT_GRACE = 30
"""The grace period in seconds of a pod that sets none (API default)."""
OWN_PRE_STOP = Phrase("own-pre-stop")
WINDOWS = Phrase("windows-pod")
UNUSED_CLAIM = Phrase("claim-unused")


class HookPlan(msgspec.Struct, frozen=True):
    """The fields to write on a pod. `grace` is in seconds. `containers` are the indices of those that get `handler`.

    `folder` is the mount path of the protocol's emptyDir; None if none is needed. `variables` are environment variables
    by the index of their container. `volumes` bring the listener for programs that do not listen, and the token for
    reports.
    """

    kind: HookKind
    grace: int
    containers: tuple[int, ...] = ()
    handler: dict[str, Any] | None = None
    folder: str | None = None
    variables: tuple[tuple[int, str, str], ...] = ()
    volumes: tuple[listen.VolumeMounted, ...] = ()

    @property
    def reports(self) -> bool:
        """Tell whether the pod gets the means to report its saves."""
        return any(each.volume["name"] == listen.REPORT_VOLUME for each in self.volumes)


class HookDecision(msgspec.Struct, frozen=True):
    """The requested hook and its plan. Without a plan, `why_not` says why the pod can't have the hook.

    `plan` and `why_not` are None if no hook is requested, or if claims that may give a container GPUs can't be read.
    `holders` are the indices of the app containers that ask for GPUs.
    """

    asked: HookRequest
    holders: tuple[int, ...]
    plan: HookPlan | None = None
    why_not: Phrase | None = None


def plan_hook(
    pod: Pod, workload_type: WorkloadType | None, facts: Facts, policy: TierPolicy, tier: str | None = None
) -> HookDecision:
    """Return the decision on a pod's hook. Raises Refused if the pod asks for something impossible."""
    # 1. Without a requested hook, or a container with GPUs, there is nothing to plan.
    asked = requested_hook(pod, workload_type, tier, facts.owners, policy.checkpoint)
    hook, holders = asked.hook, gpu_holders(pod, facts.devices, policy)
    if hook.kind == "none":
        return HookDecision(asked, holders)
    if not holders:  # the containers that use a claim are unknown while it can't be read
        unused = UNUSED_CLAIM if demand_of(Pod(), facts.devices, policy) > 0 else Phrase("no-gpu-container")
        return HookDecision(asked, holders, None, None if facts.unread_claims else unused)

    # 2. A port's name becomes its number, because the pod's containers share one address. The operator completes a
    #    container without an image, so its ports are unknown yet.
    if not isinstance(hook.port, int):
        order = [pod.spec.containers[index] for index in holders] + [each for _, each in pod.spec.every_container()]
        ports = [port.container_port for container in order for port in container.ports if port.name == hook.port]
        unknown = hook.port if any(not container.image for container in order) else 0
        hook = structs.replace(hook, port=ports[0] if ports else unknown)

    # 3. Containers without a handler get one.
    handler = handler_of(hook)
    own = {index: pod.spec.containers[index].lifecycle for index in holders}
    free = tuple(index for index, each in own.items() if (each.pre_stop if each else None) in (None, handler))
    why_not = _obstacle(pod, asked, hook, free, policy.checkpoint)
    if why_not is not None:
        return HookDecision(asked, holders, None, why_not)

    # 4. The grace period never shrinks. A longer one does not help a save that torchrun cuts short.
    margin = policy.checkpoint.margin
    grace = max(grace_of(pod), hook.seconds + margin)
    if hook.kind == "sigterm":
        waits = ((index, shutdown_timeout(pod.spec.containers[index], grace - margin)) for index in holders)
        timeouts = tuple((index, VARIABLE, text) for index, text in waits if text)
        return HookDecision(asked, holders, HookPlan("sigterm", grace, variables=timeouts))

    # 5. Our own folder is mounted. Another one is mounted only for a file or a listener, unless it is in a volume of
    #    each container that the container can write.
    folder = {"file": hook.path, "listen": hook.path, "signal": hook.done_file.rpartition("/")[0]}.get(hook.kind)
    mounts = [pod.spec.containers[index].volume_mounts for index in free]
    if not folder or (folder != FOLDER and (hook.kind == "signal" or all(_holds(each, folder) for each in mounts))):
        folder = None

    # 6. The listener comes with its variables, and the means to report if somebody receives reports.
    listens, target = hook.kind == "listen", policy.reports if hook.reports and listen.can_report(pod) else None
    variables: list[tuple[int, str, str]] = []
    for index in free if listens or target else ():
        if listens:
            of_listener = listen.listener_variables(pod, pod.spec.containers[index], hook, facts.owners)
            variables += ((index, *each) for each in of_listener)
        if target:  # with the PEM of the CA
            variables += ((index, "GPU_TIERS_REPORT", target.url), (index, "GPU_TIERS_REPORT_CA", target.ca))
    volumes = [listen.listener(policy.checkpoint.listener_image)] if listens else []
    volumes += [listen.report_volume(asked.max_at_risk)] if target else []
    plan = HookPlan(hook.kind, grace, free, handler, folder, tuple(variables), tuple(volumes))
    return HookDecision(asked, holders, plan)


def _holds(mounts: Iterable[VolumeMount], folder: str) -> bool:
    """Tell whether a folder is within a volume that a container may write."""
    paths = (mount.mount_path.rstrip("/") for mount in mounts if not mount.read_only)
    return any(folder.startswith(f"{path}/") for path in paths if path)


def _obstacle(pod: Pod, asked: HookRequest, hook: Hook, free: tuple[int, ...], checkpoint: Checkpoint) -> Phrase | None:
    """Return why a pod can't have a hook; None where it can. Raises Refused for an unknown port in an annotation."""
    system = pod.spec.os.name if pod.spec.os else pod.spec.node_selector.get("kubernetes.io/os")
    if system == "windows":  # Windows has no /bin/sh
        return WINDOWS
    if hook.kind == "http" and not hook.port:
        if "port" in asked.fields:
            raise Refused(Reason.HOOK, "hook-port-unknown", asked.fields["port"], port=asked.hook.port)
        return Phrase("no-such-port", port=asked.hook.port)
    if hook.kind == "signal" and (pod.spec.share_process_namespace or pod.spec.host_pid):
        return Phrase("shared-pids")
    if hook.kind != "sigterm" and not free:
        return OWN_PRE_STOP
    return listen.listener_obstacle(pod, hook, free, checkpoint.listener_image) if hook.kind == "listen" else None


def grace_of(pod: Pod) -> int:
    """Return the pod's own grace period in seconds, DEFAULT_GRACE if it sets none."""
    there = pod.spec.termination_grace_period_seconds
    return DEFAULT_GRACE if there is None else there
