"""Warnings on how a pod ends: what a person should know before it is preempted. They say only what is sure.

The table of texts says what each warning means.
"""

import re
from collections.abc import Iterator, Mapping

import msgspec

from webhook.objects.phrase import AdmissionWarning, Phrase
from webhook.objects.pods import Container, Pod
from webhook.policy.checkpoint.hook_kinds import ROWS
from webhook.policy.checkpoint.hook_plan import FIELDS, OWN_PRE_STOP, UNUSED_CLAIM, WINDOWS, HookDecision, grace_of
from webhook.policy.checkpoint.listen import hides_path
from webhook.policy.checkpoint.programs import LONGEST, is_first_process, lost_checkpoints, sleeps
from webhook.policy.values.tier_policy import Checkpoint, HookKind


class HookSubject(msgspec.Struct, frozen=True):
    """A pod, or the template of one, with the decision on its hook. `bare` means that nobody makes it again."""

    pod: Pod
    decision: HookDecision
    checkpoint: Checkpoint
    bare: bool = False

    @property
    def wanted(self) -> bool:
        """Tells whether a hook was asked for. Without one there are no warnings on how the pod ends."""
        return self.decision.asked.hook.kind != "none"

    @property
    def grace(self) -> int:
        return self.decision.plan.grace if self.decision.plan else grace_of(self.pod)

    def holders(self) -> Iterator[Container]:
        yield from (self.pod.spec.containers[index] for index in self.decision.holders)


def hook_warnings(subject: HookSubject) -> tuple[AdmissionWarning, ...]:
    """Every warning once, in the order of the checks."""
    told = (*_of_request(subject), *_of_plan(subject), *_of_grace(subject), *_of_containers(subject))
    return tuple(dict.fromkeys(told))


def _of_request(subject: HookSubject) -> Iterator[AdmissionWarning]:
    """Warn of what was asked for and is not done, or takes the place of what the policy has."""
    asked, decision = subject.decision.asked, subject.decision
    hook, why_not = asked.hook, decision.why_not
    if not subject.wanted and "seconds" in asked.fields and not asked.by_annotation:
        yield AdmissionWarning("hook-ignored", kind="hook to time", reason=Phrase("timeout-alone"))
    if subject.wanted:
        by_choice = why_not in (OWN_PRE_STOP, WINDOWS) and not asked.by_annotation
        # A pod without a container that asks for GPUs was meant only if it says so: the launcher of a gang was not.
        by_itself = asked.fields.get("kind", "").startswith("metadata.")
        if why_not and not by_choice and (decision.holders or by_itself or why_not == UNUSED_CLAIM):
            yield AdmissionWarning("hook-ignored", kind=f"{hook.kind} hook", reason=why_not)
        if "seconds" in asked.fields and asked.cut and decision.plan:
            reason = Phrase("tier-leaves", seconds=hook.seconds)
            yield AdmissionWarning("hook-ignored", kind=f"{hook.kind} hook of {asked.uncut} s", reason=reason)
    other = asked.by_policy.kind not in ("none", hook.kind, *_PART_OF.get(hook.kind, ()))
    if asked.by_annotation and other and decision.holders and not why_not:
        yield AdmissionWarning("hook-overrides-policy", kind=hook.kind, policy=asked.by_policy.kind)


_PART_OF: Mapping[HookKind, tuple[HookKind, ...]] = {"listen": ("file",)}
"""Kinds that another one includes, so that nothing is lost with them."""


def _of_grace(subject: HookSubject) -> Iterator[AdmissionWarning]:
    """The time that the pod has to end, beside a preStop that the user wrote and beside the cap of its tier."""
    grace, cap = grace_of(subject.pod), subject.decision.asked.cap
    for container in subject.holders():
        own = container.lifecycle.pre_stop if container.lifecycle else None
        if own is None or (subject.decision.plan and own == subject.decision.plan.handler):
            continue
        needed = sleeps(own) + 1
        if subject.wanted:
            needed = max(needed, subject.decision.asked.hook.seconds + subject.checkpoint.margin)
        needed = min(needed, cap)
        if subject.grace < needed:
            yield AdmissionWarning("pre-stop-grace", container=container.name, grace=subject.grace, needed=needed)
    if grace > cap and subject.decision.holders:
        yield AdmissionWarning("grace-above-cap", grace=grace, cap=cap)


_SHELL_LESS = re.compile(r"distroless|chainguard|\bscratch\b|(^|[/:-])static([:@-]|$)")


def _of_plan(subject: HookSubject) -> Iterator[AdmissionWarning]:
    """Warn of what the hook needs of the pod, as far as nobody sees it here."""
    plan, pod = subject.decision.plan, subject.pod
    if plan is None:
        return
    if plan.kind == "http" and plan.handler is not None:
        port = plan.handler["httpGet"]["port"]
        declared = {each.container_port for _, container in pod.spec.every_container() for each in container.ports}
        if port not in declared and all(container.image for container in subject.holders()):
            yield AdmissionWarning("hook-port", port=port)
    if plan.kind == "listen" and hides_path(pod, subject.decision.asked.hook, plan.containers):
        yield AdmissionWarning("python-path", key=FIELDS["python_path"])
    for index in plan.containers if ROWS[plan.kind].needs_shell else ():
        image = pod.spec.containers[index].image
        if _SHELL_LESS.search(image[:LONGEST]):
            yield AdmissionWarning("no-shell", image="/".join(image.rsplit("/", 2)[-2:]), kind=plan.kind)


def _of_containers(subject: HookSubject) -> Iterator[AdmissionWarning]:
    """How the program and its helpers end, and what is left of them."""
    pod, decision = subject.pod, subject.decision
    for container in subject.holders() if subject.wanted and not pod.spec.share_process_namespace else ():
        if is_first_process(container):
            yield AdmissionWarning("shell-pid-1", container=container.name)
    for index, container in enumerate(pod.spec.containers if decision.plan else ()):
        waits = container.lifecycle is not None and container.lifecycle.pre_stop is not None
        image = container.image.rpartition("/")[2]
        helps = _HELPER.search(container.name[:LONGEST]) or _HELPER.search(image[:LONGEST])
        if helps and not waits and index not in decision.holders:
            main = next(subject.holders()).name
            yield AdmissionWarning("sidecar-ends-first", container=container.name, main=main)
    for container in subject.holders() if subject.wanted else ():
        for path, volume in lost_checkpoints(container, pod):
            yield AdmissionWarning("checkpoint-on-emptydir", container=container.name, path=path, volume=volume)
    if subject.bare and subject.wanted and decision.holders and pod.spec.restart_policy == "Never":
        yield AdmissionWarning("no-controller")


_HELPER = re.compile(r"proxy|envoy|fuse|upload|\bsync|rclone", re.IGNORECASE)
