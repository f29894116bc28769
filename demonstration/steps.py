"""Reads what training runs printed and saved: those of examples/training, and those that know nothing of gpu-tiers."""

import json
from pathlib import Path
from typing import Any


def lines(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of JSON that the runs printed, in order."""
    file = folder / "steps"
    text = file.read_text() if file.exists() else ""
    whole = (line for line in text.splitlines(keepends=True) if line.startswith('{"') and line.endswith("\n"))
    return [json.loads(line) for line in whole]


def last_step(folder: Path) -> int:
    """Return the last step that any run made."""
    return max((int(line["step"]) for line in lines(folder) if "step" in line), default=0)


def starts(folder: Path) -> list[int]:
    """The step at which each run began."""
    return [int(line["resumed"]) for line in lines(folder) if "resumed" in line]


def saved_step(folder: Path) -> int:
    """The step of the checkpoint; 0 where there is none."""
    file = folder / "state.json"
    return int(json.loads(file.read_text())["step"]) if file.exists() else 0


def learned(folder: Path) -> list[float] | None:
    """The last loss and the sum of weights that a run ended with; None before one did."""
    return next((line["learned"] for line in lines(folder) if "learned" in line), None)
