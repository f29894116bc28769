"""A fault of the listener: each of its functions is broken in turn, and the training ends as without it."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from .environments import environment
from .listened import PROGRAMS, Record, delivered

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(3600)]  # the first test installs

NUMBERS = {"random_numbers", "set_random_numbers", "Lightning.recall", "Lightning.own"}
"""Without these Lightning resumes as it does by itself: with other random numbers, in another order of the data."""


@pytest.mark.parametrize(
    ("framework", "options"),
    [
        ("huggingface", {"steps": 12, "sleep": 0.01, "arguments": {"logging_steps": 1}}),
        ("lightning", {"steps": 12, "sleep": 0.01}),
    ],
)
def test_each_function_is_broken_in_turn(
    framework: str, options: dict[str, object], tmp_path: Path, record_property: Record
) -> None:
    (tmp_path / "hook").mkdir()
    text = delivered(tmp_path / "python") / "gpu_tiers_listen.py"
    own = {"GPU_TIERS_FOLDER": str(tmp_path / "hook"), "GPU_TIERS_RUN": "uid-1", "OMP_NUM_THREADS": "1"}
    own |= {"GPU_TIERS_TERMINATION_LOG": str(tmp_path / "termination-log")}
    python, program = environment("torch") / "python", PROGRAMS / "broken_listener.py"
    command = [str(python), str(program), json.dumps(options), framework, str(text)]
    run = subprocess.run(command, env=os.environ | own, cwd=tmp_path, capture_output=True, text=True, check=False)
    rows = [json.loads(line) for line in run.stdout.splitlines() if line.startswith('{"broken"')]
    for row in rows:
        record_property(f"{framework}: a training that is asked, and one that has a checkpoint", row)
    assert run.returncode == 0, run.stderr[-3000:]
    assert rows[0] | {"seconds": 0} == {
        "broken": "none of them",
        "asked": "saved",
        "resumed": "at its step",
        "learned the same": True,
        "seconds": 0,
    }
    assert len(rows) > 90
    assert {row["asked"] for row in rows} == {"as without us", "saved"}
    assert {row["resumed"] for row in rows} == {"at its step", "from the start"}
    other = {row["broken"] for row in rows if not row["learned the same"]}
    assert {each for each in other if not each.startswith("Replay.")} <= NUMBERS
