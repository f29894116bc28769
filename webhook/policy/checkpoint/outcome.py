"""Tells whether a pod that was evicted has saved, as far as its hook and the kubelet say."""

import re
import signal
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

Saved = Literal["saved", "not-saved", "nothing-listens", "hook-ended", "no-hook", "unknown"]

IN_WORDS: dict[Saved, str] = {
    "saved": "it saved in {seconds} s",
    "not-saved": "it did NOT save{because}",
    "nothing-listens": "it did NOT save: its program knows nothing of the checkpoint hook",
    "hook-ended": "its hook ended without an error",
    "no-hook": "it had no preStop hook, and nothing tells whether it saved at SIGTERM",
    "unknown": "nothing tells whether it saved",
}

_TOLD = re.compile(r"^gpu-tiers: (?:saved in (\d+) s|(not saved in \d+ s)|(nothing listens))$", re.MULTILINE)
"""What the hooks write into the termination message (hook_kinds.py); a program may write there too."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`seconds` is how long the save took, where the hook tells; `because` says why nothing was saved."""

    saved: Saved
    seconds: int | None = None
    because: str = ""

    def __str__(self) -> str:
        return IN_WORDS[self.saved].format(seconds=self.seconds, because=self.because)


LATE = Outcome("not-saved", because=" in time")
FAILED = Outcome("not-saved", because=": its hook failed, or was cut off")
UNKNOWN = Outcome("unknown")
KILLED = 128 + signal.SIGKILL
"""The exit code of SIGKILL, by which the kubelet ends what has used up its grace period."""


@dataclass(frozen=True, slots=True)
class ContainerEnd:
    """The termination message and the exit code of a container that has ended."""

    message: str = ""
    exit_code: int = 0


def outcome_of(
    ends: Mapping[str, ContainerEnd], *, hooked: Collection[str], telling: Collection[str], failed: bool, seen: bool
) -> Outcome:
    """The outcome of the worst container that tells one.

    `ends` has the containers that have ended, by name. `hooked` are those that have a preStop handler, `telling` those
    of them whose handler writes down what came of it. `failed` tells whether the kubelet reported one as failed, `seen`
    whether all containers were seen to have ended. One that ended with 0 was done, and had no hook run. Any other that
    tells nothing may have crashed before, or have written over what its hook told.
    """
    told = [_read(found) for end in ends.values() for found in _TOLD.finditer(end.message)]
    silent = (ends[name] for name in telling if name in ends and not _TOLD.search(ends[name].message))
    told += [FAILED if failed or end.exit_code == KILLED else UNKNOWN for end in silent if end.exit_code]
    if told:
        return max(told, key=lambda each: (_BADNESS.index(each.saved), each.seconds or 0))
    if not hooked:
        return Outcome("no-hook")
    if failed:
        return FAILED
    return Outcome("hook-ended") if seen and not telling else UNKNOWN


_BADNESS: tuple[Saved, ...] = ("saved", "unknown", "nothing-listens", "not-saved")


def _read(found: re.Match[str]) -> Outcome:
    seconds, late, _ = found.groups()
    if seconds is not None:
        return Outcome("saved", int(seconds))
    return LATE if late else Outcome("nothing-listens")
