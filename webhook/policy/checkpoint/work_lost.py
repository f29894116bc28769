"""The work that an eviction loses: whether the pod saved, the GPU-time since, and its cost for other schedulers.

The hook and the kubelet report whether a pod saved. Costs change in steps: the written value stays until it is off by
one.
"""

import re
import signal
from collections.abc import Collection, Iterable, Mapping
from decimal import Decimal
from itertools import pairwise
from math import floor, log2
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

MINUTE, HOUR = 60.0, 3600.0


MAX_AT_RISK = "gpu-tiers.dev/checkpoint-max-at-risk"
"""The annotation of a pod with the most seconds of work that it may lose; it comes before the tier's."""
LEAST_AT_RISK, MOST_AT_RISK = 10, 7 * 86_400


def max_at_risk(text: str) -> int | None:
    """Return the seconds that the annotation gives; None if it gives no number from 10 s to a week."""
    seconds = int(text) if text.isdecimal() and len(text) <= len(str(MOST_AT_RISK)) else 0
    return seconds if LEAST_AT_RISK <= seconds <= MOST_AT_RISK else None


class LastSave(msgspec.Struct, frozen=True):
    """The last complete save of a pod, in seconds since 1970, and its step if known."""

    step: int | None
    at: float


class Work(msgspec.Struct, frozen=True, rename="camel"):
    """GPU-seconds of work that no checkpoint covers. `exact`: since a reported save; otherwise an upper bound."""

    gpu_seconds: float
    exact: bool

    def __str__(self) -> str:
        most, seconds = "" if self.exact else "at most ", self.gpu_seconds
        if seconds < 2 * MINUTE:
            return f"{most}{seconds:.0f} GPU-second{'' if round(seconds) == 1 else 's'}"
        if seconds < 2 * HOUR:
            return f"{most}{seconds / MINUTE:.0f} GPU-minutes"
        return f"{most}{seconds / HOUR:,.1f} GPU-hours"


def work_since(gpus: Decimal, until: float, saved: LastSave | None, started: float | None) -> Work | None:
    """Return the work of so many GPUs from a pod's last save or its start, the later one, `until` a time.

    None if both are unknown. A pod continues from a save before its start, and another pod lost the work between.
    Clocks of machines differ: if the end seems to precede the save, no work is lost. If the end does not seem to follow
    the start and there is no save, the work is unknown: None.
    """
    since = max(saved.at, started or 0.0) if saved else started
    if since is None or (saved is None and until <= since):
        return None
    return Work(float(gpus) * max(0.0, until - since), exact=saved is not None)


def summed(parts: Iterable[Work]) -> Work:
    """Return the sum; one part that is not exact makes it an upper bound."""
    known = [*parts]
    return Work(sum(each.gpu_seconds for each in known), exact=all(each.exact for each in known))


LEAST = 5 * MINUTE
"""GPU-seconds at risk up to which the boost is 0. Each boost stands for twice the work of the one below."""
MOST = 16
"""The highest boost. It stands for 5,461 GPU-hours."""
SAME_SAVE = 5 * MINUTE
"""The written time of a save stays if the next save comes sooner than this."""


def room_between(values: Iterable[int]) -> int:
    """Return the highest boost by which none of these priorities reaches the next; MOST for fewer than two."""
    return min((above - below - 1 for below, above in pairwise(sorted(values))), default=MOST)


def boost(gpu_seconds: float, written: int, room: int) -> int:
    """Return the boost for so much work at risk; the `written` boost stays until it is off by a whole one.

    A wanted boost is at most `room`, the most that the priorities leave, and at most MOST. It is never below 0, because
    pending workloads of the same priority would evict the workload.
    """
    wanted = min(max(log2(max(gpu_seconds, LEAST) / LEAST), 0.0), room, MOST)
    return written if abs(wanted - written) < 1 else floor(wanted)


def save_time(saved: float, written: float) -> float:
    """Return a pod's last save in whole seconds; the `written` time stays while it is about the same."""
    return written if abs(saved - written) < SAME_SAVE else floor(saved)


Saved = Literal["saved", "not-saved", "nothing-listens", "hook-ended", "no-hook", "unknown"]

IN_WORDS: dict[Saved, str] = {
    "saved": "it saved in {seconds} s",
    "not-saved": "it did NOT save{because}",
    "nothing-listens": "it did NOT save: its program knows nothing of the checkpoint hook",
    "hook-ended": "its hook ended without an error",
    "no-hook": "it had no preStop hook but {grace} s after SIGTERM to save; whether it saved is unknown",
    "unknown": "whether it saved is unknown",
}

_OUTCOME_LINE = re.compile(
    r"^gpu-tiers: (?:saved in (\d+) s|(not saved in \d+ s)|(the save failed)|(nothing listens))$", re.MULTILINE
)
"""The line that the hooks write into the termination message (hook_kinds.py). A program may write there too."""


class Outcome(msgspec.Struct, frozen=True):
    """The outcome of an eviction. `seconds` is how long the save took, if known; `because` says why nothing was saved.

    `step` is the step that was saved, if the program or its listener reports it. `before_end` are the seconds from that
    save to the end. `grace` is the pod's grace period in seconds; all of it follows SIGTERM if there is no hook.
    """

    saved: Saved
    seconds: int | None = None
    because: str = ""
    step: int | None = None
    before_end: int | None = None
    grace: int = 0

    def __str__(self) -> str:
        if self.saved == "saved" and self.step is not None and self.before_end is not None:
            return f"it saved step {self.step:,}, {self.before_end} s before it ended"
        return IN_WORDS[self.saved].format(seconds=self.seconds, because=self.because, grace=self.grace)


LATE = Outcome("not-saved", because=" in time")
SAVE_FAILED = Outcome("not-saved", because=": its save failed")
FAILED = Outcome("not-saved", because=": its hook failed, or was cut off")
UNKNOWN = Outcome("unknown")
KILLED = 128 + signal.SIGKILL
"""The exit code of SIGKILL, by which the kubelet ends containers that used up the grace period."""


class ContainerEnd(msgspec.Struct, frozen=True):
    """A container that has ended: its termination message, exit code, and time in seconds since 1970."""

    message: str = ""
    exit_code: int = 0
    finished_at: float | None = None


class _Progress(msgspec.Struct, frozen=True):
    """The last line of a listener in the termination message. Times are in seconds since 1970."""

    last_saved_step: Annotated[int, Meta(ge=0, le=2**53)]
    last_saved_at: float


_PROGRESS = re.compile(r"^gpu-tiers: progress (\{.{1,1000}\})$", re.MULTILINE)


def last_save(end: ContainerEnd) -> tuple[int, int] | None:
    """Return the last saved step of a container, and how many seconds before its end that was; None if unknown."""
    progress = _progress(end)
    if progress is None or end.finished_at is None:
        return None
    return progress.last_saved_step, max(0, round(end.finished_at - progress.last_saved_at))


def _progress(end: ContainerEnd) -> _Progress | None:
    lines = _PROGRESS.findall(end.message)
    try:
        return msgspec.json.decode(lines[-1], type=_Progress) if lines else None
    except msgspec.DecodeError:
        return None


def saved_last(ends: Iterable[ContainerEnd], outcome: Outcome, asked_at: float | None) -> LastSave | None:
    """Return the last save of an evicted pod by its containers' reports; the oldest of several counts.

    Without a report, file and signal hooks say how many seconds a save took from `asked_at`, when it was requested.
    None if neither is known.
    """
    saves = [LastSave(each.last_saved_step, each.last_saved_at) for each in map(_progress, ends) if each]
    if saves:
        return min(saves, key=lambda each: each.at)
    if outcome.saved == "saved" and outcome.seconds is not None and asked_at is not None:
        return LastSave(None, asked_at + outcome.seconds)
    return None


def outcome_of(
    ends: Mapping[str, ContainerEnd], *, hooked: Collection[str], telling: Collection[str], failed: bool, seen: bool
) -> Outcome:
    """Return the outcome of the worst container that reports one; without any report, what the pod's hooks allow.

    `ends` are the containers that have ended, by name. `hooked` have a preStop handler, and `telling` are those of them
    whose handler writes its outcome. `failed`: the kubelet reported a failed handler. `seen`: all containers were seen
    to end. A container that ended with 0 was done, and had no hook run. Any other container of `telling` without a
    report may have crashed before, or have overwritten its hook's line. So its outcome is unknown, unless a handler
    failed or the kubelet killed it.
    """
    outcomes, lines = [], [(end, found) for end in ends.values() for found in _OUTCOME_LINE.finditer(end.message)]
    for end, found in lines:
        seconds, late, save_failed, _ = found.groups()
        if seconds is not None:
            step, before_end = last_save(end) or (None, None)
            outcomes.append(Outcome("saved", int(seconds), step=step, before_end=before_end))
        else:
            outcomes.append(LATE if late else SAVE_FAILED if save_failed else Outcome("nothing-listens"))
    silent = (ends[name] for name in telling if name in ends and not _OUTCOME_LINE.search(ends[name].message))
    outcomes += [FAILED if failed or end.exit_code == KILLED else UNKNOWN for end in silent if end.exit_code]
    if outcomes:
        return max(outcomes, key=lambda each: (_BADNESS.index(each.saved), each.seconds or 0))
    if not hooked:
        return Outcome("no-hook")
    if failed:
        return FAILED
    return Outcome("hook-ended") if seen and not telling else UNKNOWN


_BADNESS: tuple[Saved, ...] = ("saved", "unknown", "nothing-listens", "not-saved")
