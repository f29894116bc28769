"""Warnings on how a pod ends, for the person to read before it is preempted. They state only what is certain.

docs/warnings.md says what each warning means; the texts are in webhook/sentences/warnings.yaml.
"""

import re
from collections.abc import Iterator, Mapping

from webhook.objects.pods import Pod
from webhook.objects.refusal import AdmissionWarning, Phrase
from webhook.policy.checkpoint.hook_kinds import ROWS
from webhook.policy.checkpoint.hook_plan import FIELDS, OWN_PRE_STOP, UNUSED_CLAIM, WINDOWS, HookDecision, grace_of
from webhook.policy.checkpoint.listen import hides_path
from webhook.policy.checkpoint.programs import LONGEST, is_first_process, lost_checkpoints, sleeps
from webhook.policy.checkpoint.work_lost import MAX_AT_RISK
from webhook.policy.values.tier_policy import Checkpoint, HookKind


def hook_warnings(
    pod: Pod, decision: HookDecision, checkpoint: Checkpoint, *, bare: bool = False
) -> tuple[AdmissionWarning, ...]:
    """Return every warning once, in the order of the checks. `bare`: no controller makes the pod again."""
    warnings = (*_of_hook(pod, decision), *_of_grace(pod, decision, checkpoint), *_of_end(pod, decision, bare=bare))
    return tuple(dict.fromkeys(warnings))


def _of_hook(pod: Pod, decision: HookDecision) -> Iterator[AdmissionWarning]:
    asked, plan, why_not = decision.asked, decision.plan, decision.why_not
    hook = asked.hook
    # 1. A request that is not met, or that replaces the policy's hook.
    if hook.kind == "none" and "seconds" in asked.fields and not asked.by_annotation:
        yield AdmissionWarning("hook-ignored", kind="hook to time", reason=Phrase("timeout-alone"))
    if hook.kind != "none":
        by_choice = why_not in (OWN_PRE_STOP, WINDOWS) and not asked.by_annotation
        # A pod without a GPU container counts only if it asks itself: a gang's launcher does not.
        by_itself = asked.fields.get("kind", "").startswith("metadata.")
        if why_not and not by_choice and (decision.holders or by_itself or why_not == UNUSED_CLAIM):
            yield AdmissionWarning("hook-ignored", kind=f"{hook.kind} hook", reason=why_not)
        if "seconds" in asked.fields and asked.cut and plan:
            reason = Phrase("tier-leaves", seconds=hook.seconds)
            yield AdmissionWarning("hook-ignored", kind=f"{hook.kind} hook of {asked.uncut} s", reason=reason)
    other = asked.by_policy.kind not in ("none", hook.kind, *_PART_OF.get(hook.kind, ()))
    if asked.by_annotation and other and decision.holders and not why_not:
        yield AdmissionWarning("hook-overrides-policy", kind=hook.kind, policy=asked.by_policy.kind)

    if "max_at_risk" in asked.fields and decision.holders and not (plan and plan.reports):
        yield AdmissionWarning("max-at-risk-unheard", key=MAX_AT_RISK)

    # 2. The hook needs something of the pod that is not visible here.
    if plan is None:
        return
    if plan.kind == "http" and plan.handler is not None:
        port = plan.handler["httpGet"]["port"]
        declared = {each.container_port for _, container in pod.spec.every_container() for each in container.ports}
        if port not in declared and all(pod.spec.containers[index].image for index in decision.holders):
            yield AdmissionWarning("hook-port", port=port)
    if plan.kind == "listen" and hides_path(pod, hook, plan.containers):
        yield AdmissionWarning("python-path", key=FIELDS["python_path"])
    for index in plan.containers if ROWS[plan.kind].needs_shell else ():
        image = pod.spec.containers[index].image
        if _SHELL_LESS.search(image[:LONGEST]):
            yield AdmissionWarning("no-shell", image="/".join(image.rsplit("/", 2)[-2:]), kind=plan.kind)


def _of_grace(pod: Pod, decision: HookDecision, checkpoint: Checkpoint) -> Iterator[AdmissionWarning]:
    """Warn of a grace period that is too short for the user's own preStop, or above the cap of the tier."""
    asked, plan, cap = decision.asked, decision.plan, decision.asked.cap
    grace = plan.grace if plan else grace_of(pod)
    for container in (pod.spec.containers[index] for index in decision.holders):
        own = container.lifecycle.pre_stop if container.lifecycle else None
        if own is None or (plan and own == plan.handler):
            continue
        wanted = asked.hook.seconds + checkpoint.margin if asked.hook.kind != "none" else 0
        needed = min(max(sleeps(own) + 1, wanted), cap)
        if grace < needed:
            yield AdmissionWarning("pre-stop-grace", container=container.name, grace=grace, needed=needed)
    if grace_of(pod) > cap and decision.holders:
        yield AdmissionWarning("grace-above-cap", grace=grace_of(pod), cap=cap)


def _of_end(pod: Pod, decision: HookDecision, *, bare: bool) -> Iterator[AdmissionWarning]:
    """Warn of how the program and its sidecars end, of lost checkpoints, and of a pod that nobody makes again.

    The kind `none` gives no such warning.
    """
    holders = [pod.spec.containers[index] for index in decision.holders]
    wanting = holders if decision.asked.hook.kind != "none" else []
    for container in wanting if not pod.spec.share_process_namespace else ():
        if is_first_process(container):
            yield AdmissionWarning("shell-pid-1", container=container.name)
    for index, container in enumerate(pod.spec.containers if decision.plan else ()):
        waits = container.lifecycle is not None and container.lifecycle.pre_stop is not None
        image = container.image.rpartition("/")[2]
        helps = _HELPER.search(container.name[:LONGEST]) or _HELPER.search(image[:LONGEST])
        if helps and not waits and index not in decision.holders:
            yield AdmissionWarning("sidecar-ends-first", container=container.name, main=holders[0].name)
    for container in wanting:
        for path, volume in lost_checkpoints(container, pod):
            yield AdmissionWarning("checkpoint-on-emptydir", container=container.name, path=path, volume=volume)
    if bare and wanting and pod.spec.restart_policy == "Never":
        yield AdmissionWarning("no-controller")


_PART_OF: Mapping[HookKind, tuple[HookKind, ...]] = {"listen": ("file",)}
"""The kinds that a kind includes: a `listen` hook does what a `file` hook does, so it replaces nothing."""


_SHELL_LESS = re.compile(r"distroless|chainguard|\bscratch\b|(^|[/:-])static([:@-]|$)")


_HELPER = re.compile(r"proxy|envoy|fuse|upload|\bsync|rclone", re.IGNORECASE)
