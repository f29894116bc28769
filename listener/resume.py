"""Chooses the checkpoint that a program goes on from, and counts the tries that lead nowhere.

Tries are counted because a checkpoint that a program can't load would end each of its tries, and nobody would be there
to see it. An eviction during the start says less, so that only errors count quickly.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from listener.mark import Mark, marks_of
from listener.protocol import read_json, remove, say, write_json

ERRORS = 2
"""A checkpoint is given up after so many resumes that raised before a step ..."""
STARTS = 5
"""... or so many in all: killed for memory, or evicted again and again."""


class Tries:
    """How often a checkpoint was resumed from without a step after it."""

    def __init__(self, mark: Mark) -> None:
        self.note = mark.file + ".tries"
        tree = read_json(self.note)
        self.starts, self.errors = int(tree.get("starts", 0)), int(tree.get("errors", 0))

    def exhausted(self) -> bool:
        return self.errors >= ERRORS or self.starts >= STARTS

    def count(self, starts: int = 0, errors: int = 0) -> None:
        """Write what was read plus these: ranks that share a disk and read at once count once."""
        write_json(self.note, {"starts": self.starts + starts, "errors": self.errors + errors})

    def forget(self) -> None:
        remove(self.note)


def choose(files: Iterable[str], call: int) -> Mark | None:
    """Return the latest whole checkpoint of this run and call that isn't exhausted, or None."""
    for mark in marks_of(files, call):
        if not mark.is_whole():
            say("not resumed from %s: it is not whole" % mark.path)
        elif Tries(mark).exhausted():
            say("not resumed from %s: it was tried, and no step followed" % mark.path)
        else:
            return mark
    return None


def agreed(mark: Mark | None, ranks: Any) -> Mark | None:
    """Count and return the choice if all ranks see the same step, else None."""
    step = ranks.same("resume", -1 if mark is None else mark.step)
    if step is None:
        say("not resumed: the ranks see different checkpoints")
        return None
    if mark is not None and ranks.local == 0:
        Tries(mark).count(starts=1)
    return mark


def listed(folder: str) -> list[str]:
    return [os.path.join(folder, name) for name in os.listdir(folder)] if os.path.isdir(folder) else []
