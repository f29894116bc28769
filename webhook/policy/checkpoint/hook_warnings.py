"""Warnings on how a pod ends: what a person should know before it is preempted. They say only what is sure.

Each check is a function of its own; the table of texts says what each warning means.
"""

import re
from collections.abc import Callable, Iterator, Mapping

import msgspec

from webhook.objects.containers import Container
from webhook.objects.phrase import AdmissionWarning, Phrase
from webhook.objects.pods import Pod
from webhook.policy.checkpoint.hook_kinds import ROWS
from webhook.policy.checkpoint.hook_plan import OWN_PRE_STOP, UNUSED_CLAIM, WINDOWS, HookDecision, grace_of
from webhook.policy.checkpoint.hook_request import FIELDS
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
    return tuple(dict.fromkeys(warning for check in CHECKS for warning in check(subject)))


def _ignored(subject: HookSubject) -> Iterator[AdmissionWarning]:
    asked, decision = subject.decision.asked, subject.decision
    if not subject.wanted:
        if "seconds" in asked.fields and not asked.by_annotation:
            yield AdmissionWarning("hook-ignored", kind="hook to time", reason=Phrase("timeout-alone"))
        return
    by_choice = decision.why_not in (OWN_PRE_STOP, WINDOWS) and not asked.by_annotation
    if decision.why_not and not by_choice and _meant(subject):
        yield AdmissionWarning("hook-ignored", kind=f"{asked.hook.kind} hook", reason=decision.why_not)
    if "seconds" in asked.fields and asked.cut and decision.plan:
        reason = Phrase("tier-leaves", seconds=asked.hook.seconds)
        yield AdmissionWarning("hook-ignored", kind=f"{asked.hook.kind} hook of {asked.uncut} s", reason=reason)


def _meant(subject: HookSubject) -> bool:
    """Tells whether a pod without a container that asks for GPUs was meant: the launcher of a gang was not."""
    by_itself = subject.decision.asked.fields.get("kind", "").startswith("metadata.")
    return bool(subject.decision.holders or by_itself or subject.decision.why_not == UNUSED_CLAIM)


def _overrides(subject: HookSubject) -> Iterator[AdmissionWarning]:
    asked = subject.decision.asked
    other = asked.by_policy.kind not in ("none", asked.hook.kind, *_PART_OF.get(asked.hook.kind, ()))
    if asked.by_annotation and other and subject.decision.holders and not subject.decision.why_not:
        yield AdmissionWarning("hook-overrides-policy", kind=asked.hook.kind, policy=asked.by_policy.kind)


_PART_OF: Mapping[HookKind, tuple[HookKind, ...]] = {"listen": ("file",)}
"""Kinds that another one includes, so that nothing is lost with them."""


def _pre_stop_grace(subject: HookSubject) -> Iterator[AdmissionWarning]:
    for container in subject.holders():
        own = container.lifecycle.pre_stop if container.lifecycle else None
        if own is None or (subject.decision.plan and own == subject.decision.plan.handler):
            continue
        needed = sleeps(own) + 1
        if subject.wanted:
            needed = max(needed, subject.decision.asked.hook.seconds + subject.checkpoint.margin)
        needed = min(needed, subject.decision.asked.cap)
        if subject.grace < needed:
            yield AdmissionWarning("pre-stop-grace", container=container.name, grace=subject.grace, needed=needed)


def _shell(subject: HookSubject) -> Iterator[AdmissionWarning]:
    if subject.wanted and not subject.pod.spec.share_process_namespace:
        for container in subject.holders():
            if is_first_process(container):
                yield AdmissionWarning("shell-pid-1", container=container.name)


def _no_shell(subject: HookSubject) -> Iterator[AdmissionWarning]:
    plan = subject.decision.plan
    for index in plan.containers if plan and ROWS[plan.kind].needs_shell else ():
        image = subject.pod.spec.containers[index].image
        if plan and _SHELL_LESS.search(image[:LONGEST]):
            yield AdmissionWarning("no-shell", image="/".join(image.rsplit("/", 2)[-2:]), kind=plan.kind)


_SHELL_LESS = re.compile(r"distroless|chainguard|\bscratch\b|(^|[/:-])static([:@-]|$)")


def _hidden_path(subject: HookSubject) -> Iterator[AdmissionWarning]:
    plan, hook = subject.decision.plan, subject.decision.asked.hook
    if plan and plan.kind == "listen" and hides_path(subject.pod, hook, plan.containers):
        yield AdmissionWarning("python-path", key=FIELDS["python_path"])


def _port(subject: HookSubject) -> Iterator[AdmissionWarning]:
    plan = subject.decision.plan
    if plan is None or plan.kind != "http" or plan.handler is None:
        return
    port = plan.handler["httpGet"]["port"]
    declared = {each.container_port for _, container in subject.pod.spec.every_container() for each in container.ports}
    if port not in declared and all(container.image for container in subject.holders()):
        yield AdmissionWarning("hook-port", port=port)


def _above_cap(subject: HookSubject) -> Iterator[AdmissionWarning]:
    grace, cap = grace_of(subject.pod), subject.decision.asked.cap
    if grace > cap and subject.decision.holders:
        yield AdmissionWarning("grace-above-cap", grace=grace, cap=cap)


def _no_controller(subject: HookSubject) -> Iterator[AdmissionWarning]:
    if subject.bare and subject.wanted and subject.decision.holders and subject.pod.spec.restart_policy == "Never":
        yield AdmissionWarning("no-controller")


def _on_emptydir(subject: HookSubject) -> Iterator[AdmissionWarning]:
    if not subject.wanted:
        return
    for container in subject.holders():
        for path, volume in lost_checkpoints(container, subject.pod):
            yield AdmissionWarning("checkpoint-on-emptydir", container=container.name, path=path, volume=volume)


def _sidecar(subject: HookSubject) -> Iterator[AdmissionWarning]:
    if not subject.decision.plan:
        return
    main = next(subject.holders()).name
    for index, container in enumerate(subject.pod.spec.containers):
        waits = container.lifecycle is not None and container.lifecycle.pre_stop is not None
        if index in subject.decision.holders or waits:
            continue
        if _HELPER.search(container.name[:LONGEST]) or _HELPER.search(container.image.rpartition("/")[2][:LONGEST]):
            yield AdmissionWarning("sidecar-ends-first", container=container.name, main=main)


_HELPER = re.compile(r"proxy|envoy|fuse|upload|\bsync|rclone", re.IGNORECASE)

CHECKS: tuple[Callable[[HookSubject], Iterator[AdmissionWarning]], ...] = (
    _ignored,
    _overrides,
    _port,
    _hidden_path,
    _no_shell,
    _pre_stop_grace,
    _above_cap,
    _shell,
    _sidecar,
    _on_emptydir,
    _no_controller,
)
