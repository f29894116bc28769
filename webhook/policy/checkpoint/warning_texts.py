"""The table of warnings that have an id: the sentence of each, and what the docs say about it.

A warning starts with its id in brackets, so that whoever reads it can search for it, and has 120 characters at most:
the API server cuts long ones, and a terminal wraps them.
"""

from dataclasses import dataclass

LONGEST = 120


@dataclass(frozen=True, slots=True)
class WarningText:
    """A warning: its id, its text with the places of values, and the paragraph of the docs that says what to do."""

    id: str
    text: str
    docs: str


WARNINGS = (
    WarningText(
        "pre-stop-grace",
        "container {container} has its own preStop, and {grace} s of grace where {needed} s are needed",
        "A container's own `preStop` is never replaced, and the grace period is not raised for it. It runs within "
        "`terminationGracePeriodSeconds`: when that is over the program is killed, saved or not. Raise it to what "
        "the handler takes, plus the time to end.",
    ),
    WarningText(
        "shell-pid-1",
        "container {container}: a shell as first process keeps SIGTERM to itself; exec the program",
        "`sh -c` without `exec` stays the container's first process. It neither ends at SIGTERM nor passes it on, so "
        "the program hears nothing and holds its GPUs until the grace period is over. Write `exec` before the last "
        "command, set a `trap`, or leave the shell out.",
    ),
    WarningText(
        "job-backoff",
        "preemptions count against backoffLimit {limit}; have podFailurePolicy ignore DisruptionTarget",
        "A preempted pod of a Job has failed, and after `backoffLimit` failures the Job is failed for good. A "
        "`podFailurePolicy` with `action: Ignore` for the condition `DisruptionTarget` leaves preemptions out; it "
        "wants `restartPolicy: Never`. The program has to end with 143 then: a pod that saves and ends with 0 has "
        "*succeeded*, and nobody trains on.",
    ),
    WarningText(
        "job-exit-code",
        "{path} acts on exit code 143 before DisruptionTarget is ignored",
        "The rules of a `podFailurePolicy` are tried in order. A rule on exit codes that also holds for 143, the code "
        "of a program that SIGTERM ended, decides before the rule that ignores `DisruptionTarget` is reached: a "
        "preemption then fails or counts. Put the rule on `DisruptionTarget` first.",
    ),
    WarningText(
        "grace-above-cap",
        "terminationGracePeriodSeconds {grace} is above the policy's {cap}; autoscalers may cut it there",
        "Whoever needs the GPUs waits as long as the pod may take to end, and the cluster autoscaler cuts at 600 "
        "seconds unless told otherwise. The grace period stays as it was written; what a hook adds is bounded by "
        "`checkpoint.maxGracePeriodSeconds`.",
    ),
    WarningText(
        "no-controller",
        "restartPolicy Never and no controller: once preempted, nobody makes this pod again; use a Job",
        "A preempted pod is deleted. Only a controller (a Job, a PyTorchJob) makes another one that goes on from the "
        "checkpoint.",
    ),
    WarningText(
        "checkpoint-on-emptydir",
        "container {container}: {path} lies on the emptyDir {volume}, which dies with the pod",
        "An `emptyDir` is deleted with its pod, and so is the checkpoint that was just saved there. Said only where "
        "an argument or a variable is named after a checkpoint, its path lies in an `emptyDir`, and no other "
        "container mounts that volume to carry the files away. Save to a PersistentVolumeClaim or an object store.",
    ),
    WarningText(
        "hook-ignored",
        "no {kind}: {reason}",
        "A hook was asked for, by an annotation or by the policy, and the pod can't have it, for the reason that "
        "stands there. The pod runs, and ends as it would without gpu-tiers. The same is said of an annotation that "
        "has nothing to act on, or whose name is misspelt.",
    ),
    WarningText(
        "hook-overrides-policy",
        "the annotation's hook, {kind}, takes the place of the policy's for it, {policy}",
        "An annotation comes before the policy, so that a team knows its own programs best. It is said once, when "
        "the workload is applied, because an annotation may be older than the policy.",
    ),
    WarningText(
        "hook-port",
        "no container declares port {port}, which the http hook asks; make sure that something listens",
        "A declared port is a hint, so a hook may ask one that is not declared. Where nothing listens the request "
        "fails, the kubelet reports `FailedPreStopHook`, and the pod ends without a save. Declare the port under "
        "`ports`, and this is not said.",
    ),
    WarningText(
        "no-shell",
        "image {image} seems to have no shell, as a {kind} hook needs; use http, sleep or sigterm",
        "The hooks `file` and `signal` run `/bin/sh`, `touch`, `rm` and `sleep` of the image. Without them the "
        "kubelet reports `FailedPreStopHook` and the pod ends without a save. It is a guess from the image's name "
        "(distroless, static, scratch).",
    ),
    WarningText(
        "sidecar-ends-first",
        "container {container} ends at once, while {main} still saves; make it a native sidecar",
        "All containers of a pod are told to end at the same time, so a proxy or an uploader that the save needs may "
        "be gone before it is done. An init container with `restartPolicy: Always` ends after the others. Said of "
        "containers whose name or image says proxy, upload, sync or the like, and that have no `preStop`.",
    ),
)

BY_ID = {each.id: each for each in WARNINGS}


def said(warning: str, **values: object) -> str:
    """A warning with its values; long names are cut so that all of it has 120 characters at most."""
    text = f"[{warning}] {BY_ID[warning].text}"
    room = LONGEST - len(text.format(**dict.fromkeys(values, "")))
    fitted: dict[str, str] = {}
    for left, (name, value) in zip(range(len(values), 0, -1), _shortest_first(values), strict=True):
        fitted[name] = _cut(value, room // left)
        room -= len(fitted[name])
    return text.format(**fitted)


def _shortest_first(values: dict[str, object]) -> list[tuple[str, str]]:
    return sorted(((name, str(value)) for name, value in values.items()), key=lambda each: len(each[1]))


def _cut(value: str, most: int) -> str:
    return value if len(value) <= most else f"{value[: most - 1]}…"
