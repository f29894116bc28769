"""Whether a pod that was evicted has saved, as far as its hook and the kubelet tell."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Saved = Literal["saved", "not-saved", "nothing-listens", "hook-ended", "no-hook", "unknown"]

IN_WORDS: dict[Saved, str] = {
    "saved": "it saved in {seconds} s",
    "not-saved": "it did NOT save in time",
    "nothing-listens": "it did NOT save: its program knows nothing of the checkpoint hook",
    "hook-ended": "its hook ended without an error",
    "no-hook": "it had no preStop hook, and whether it saved at SIGTERM is not known",
    "unknown": "whether it saved is not known",
}

_TOLD = re.compile(r"^gpu-tiers: (?:saved in (\d+) s|(not saved in \d+ s)|(nothing listens))$", re.MULTILINE)
"""What the hooks write into the termination message (hook_kinds.py); a program may write there too."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`seconds` is how long the save took, where the hook tells."""

    saved: Saved
    seconds: int | None = None

    def __str__(self) -> str:
        return IN_WORDS[self.saved].format(seconds=self.seconds)


def outcome_of(messages: Iterable[str], *, hooked: bool, failed: bool, seen: bool) -> Outcome:
    """The outcome of the worst container that tells one.

    `messages` are the termination messages of the containers, `hooked` tells whether a container has a preStop handler,
    `failed` whether the kubelet reported one as failed, `seen` whether the end of the containers was seen.
    """
    told = [_read(found) for message in messages for found in _TOLD.finditer(message)]
    if told:
        return max(told, key=lambda each: (_BADNESS.index(each.saved), each.seconds or 0))
    if not hooked:
        return Outcome("no-hook")
    if failed:
        return Outcome("not-saved")
    return Outcome("hook-ended" if seen else "unknown")


_BADNESS: tuple[Saved, ...] = ("saved", "nothing-listens", "not-saved")


def _read(found: re.Match[str]) -> Outcome:
    seconds, late, _ = found.groups()
    if seconds is not None:
        return Outcome("saved", int(seconds))
    return Outcome("not-saved" if late else "nothing-listens")
