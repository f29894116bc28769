"""Reads what the training runs of examples/training printed and saved."""

import json
from pathlib import Path


def lines(folder: Path) -> list[dict[str, float]]:
    """What the runs printed, one after the other."""
    file = folder / "steps"
    text = file.read_text() if file.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def last_step(folder: Path) -> int:
    """The last step that any run made."""
    return max((int(line["step"]) for line in lines(folder) if "step" in line), default=0)


def starts(folder: Path) -> list[int]:
    """The step at which each run began."""
    return [int(line["resumed"]) for line in lines(folder) if "resumed" in line]


def saved_step(folder: Path) -> int:
    """The step of the checkpoint; 0 where there is none."""
    file = folder / "state.json"
    return int(json.loads(file.read_text())["step"]) if file.exists() else 0
