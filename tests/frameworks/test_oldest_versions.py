"""The oldest versions that the listener saves: which of them it resumes too, and which it leaves alone."""

from pathlib import Path
from typing import Any

import pytest

from .listened import TERMINATED, Record, Workload, alone

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(3600)]  # the first test installs

STEPS = 120
HERE = "gpu-tiers listen: "


def killed(program: str, framework: str, folder: Path, record: Record) -> tuple[dict[str, Any], list[str]]:
    """A program that is asked once and started again: what became of it, and what the listener said."""
    undisturbed = Workload(alone(program, framework), folder / "other", listens=False).finished(steps=STEPS)
    work = Workload(alone(program, framework), folder / "work")
    with work.started(steps=STEPS, sleep=0.02) as run:
        run.train_to(45)
        assert run.preempt() == 0, run.said()[-3000:]
        code = run.wait()
        made = run.steps()[-1]["step"]
    with work.started(steps=STEPS) as run:
        assert run.wait() == {0}, run.said()[-3000:]
        resumed, *_, learned = run.lines()
    row = {"program": program, "frameworks": framework, "ended": code, "lost": made - resumed["resumed"]}
    row["same"] = learned == undisturbed
    record("The oldest versions", {name: str(value) for name, value in row.items()})
    said = [line.removeprefix(HERE) for line in run.said().splitlines() if line.startswith(HERE)]
    return row, [line for line in said if not line.startswith(("saved step", "resuming at"))]


def test_transformers_4_40_is_saved_and_resumed(tmp_path: Path, record_property: Record) -> None:
    row, said = killed("stock_huggingface.py", "oldest", tmp_path, record_property)
    assert (row["ended"], row["lost"], row["same"]) == ({TERMINATED}, 0, True)
    assert said == []


def test_lightning_2_2_is_saved_and_begins_again(tmp_path: Path, record_property: Record) -> None:
    row, said = killed("stock_lightning.py", "oldest", tmp_path, record_property)
    assert row["ended"] == {TERMINATED}
    assert row["lost"] > 40
    assert said == ["saves, but does not resume: Lightning is older than 2.6"] * 2
