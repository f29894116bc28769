"""Remembers in the cache what `helm template` said: from one chart, program and values it says the same each time."""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from localcluster.binaries import cache_folder

LIFETIME_SECONDS = 24 * 3600


def place(chart: Path, command: Sequence[str], values: str) -> Path:
    """The file for the answer to this command about the chart; those to one chart and program share a folder."""
    program = Path(command[0]).resolve().stat()
    made_of = [f"{program.st_size} {program.st_mtime_ns}".encode()]
    for file in sorted(each for each in chart.rglob("*") if each.is_file()):
        made_of += [str(file.relative_to(chart)).encode(), file.read_bytes()]
    folder = cache_folder() / "helm-template" / _digest(made_of)
    if not folder.exists():
        _drop_old(folder.parent)
        folder.mkdir(parents=True, exist_ok=True)
    named = [Path(each.rpartition("=")[2]) for each in command[1:]]
    files = [each.read_bytes() for each in named if each.is_file()]
    return folder / _digest([*(each.encode() for each in command), values.encode(), *files])


def read(file: Path) -> dict[str, object] | None:
    """Return what was stored in a file, or None."""
    try:
        found: dict[str, object] = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return found


def write(file: Path, answer: dict[str, object]) -> None:
    """Remember it; a file is there whole or not at all."""
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(answer), encoding="utf-8")
    unfinished.replace(file)


def _digest(parts: Sequence[bytes]) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(each).digest() for each in parts)).hexdigest()[:32]


def _drop_old(folder: Path) -> None:
    for each in folder.glob("*"):
        if time.time() - each.stat().st_mtime > LIFETIME_SECONDS:
            shutil.rmtree(each, ignore_errors=True)
