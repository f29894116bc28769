"""The mark of a whole checkpoint: its run, call and step, and the size of each of its files.

The mark is written last. It has sizes because a disk that lost power, or a rotation, may have lost files since.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable

from listener.protocol import RUN, read_json, remove, write_json

MARK = "gpu-tiers.json"


def sizes(path: str) -> dict[str, int]:
    """Return the size of each file of a checkpoint by relative path, "" if it is one file; marks are left out."""
    if os.path.isfile(path):
        return {"": os.path.getsize(path)}
    found = {}
    for folder, _, names in os.walk(path):
        for name in names:
            if not name.startswith(MARK):
                file = os.path.join(folder, name)
                found[os.path.relpath(file, path)] = os.path.getsize(file)
    return found


def flush(path: str) -> None:
    """Wait until a checkpoint is on the disk, because another is deleted for it, and the node may die."""
    for name in sizes(path):
        with open(os.path.join(path, name) if name else path, "rb") as file:
            os.fsync(file)


def discard(path: str) -> None:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        remove(path)


def write_mark(mark: str, path: str, call: int, step: int, *, wished: bool = False) -> None:
    """Write the mark; `call` numbers the calls of train() or fit(): a program may train several models."""
    where, files = os.path.relpath(path, os.path.dirname(mark)), sizes(path)
    write_json(mark, {"run": RUN, "call": call, "step": step, "path": where, "files": files, "wished": wished})


class Mark:
    """A mark that was found, whatever became of its checkpoint."""

    def __init__(self, file: str) -> None:
        tree = read_json(file)
        self.file, self.run, self.call = file, tree.get("run"), tree.get("call")
        self.step, self.files = int(tree.get("step", -1)), tree.get("files")
        self.wished = bool(tree.get("wished"))
        """Made because an answer wished for it, and not by the program."""
        self.path = os.path.normpath(os.path.join(os.path.dirname(file), str(tree.get("path", "."))))

    def is_of(self, call: int) -> bool:
        return self.run == RUN and self.call == call and self.step >= 0

    def is_whole(self) -> bool:
        if not isinstance(self.files, dict) or not self.files:
            return False
        there = sizes(self.path)
        return all(there.get(name) == size for name, size in self.files.items())


def marks_of(files: Iterable[str], call: int) -> list[Mark]:
    """Return the marks of this run and call, the latest step first."""
    return sorted((each for each in map(Mark, files) if each.is_of(call)), key=lambda each: -each.step)
