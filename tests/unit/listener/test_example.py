"""A program of one's own with the example's files: it saves on a wish and trains on, and ends when its pod ends."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from localcluster.waiting import wait_until
from tests.builders.leader import Leader

CODE = Path(__file__).parents[3] / "examples" / "training"
HURRIED = """\
import gpu_tiers_report as report
report.REPORT_SECONDS, report.SOONEST_SECONDS, report.LATEST_SECONDS = 0.3, 0.05, 0.3
"""
ALONE = f"{HURRIED}import train; train.main()\n"
RANKS = 3
IN_STEP = f"""\
{HURRIED}import multiprocessing, os, pathlib, sys, time

def rank(number, votes, meet, folder):
    os.environ |= {{"LOCAL_RANK": str(number), "GPU_TIERS_FOLDER": str(folder / "hook")}}
    from gpu_tiers_checkpoint import checkpoint_requested, checkpoint_saved, listen, step_saved

    def any_rank(mine):
        votes[number] = mine
        meet.wait()
        answer = any(votes)
        meet.wait()
        return answer

    listen()
    for step in range(1, 10**6):
        time.sleep(0.002 * number)
        if checkpoint_requested(any_rank):
            with (folder / f"rank-{{number}}").open("a") as file:
                file.write(f"{{step}}\\n")
            step_saved(step)
            checkpoint_saved(meet.wait)

if __name__ == "__main__":
    votes, meet = multiprocessing.Array("b", {RANKS}), multiprocessing.Barrier({RANKS})
    ranks = [
        multiprocessing.Process(target=rank, args=(each, votes, meet, pathlib.Path(sys.argv[1])))
        for each in range({RANKS})
    ]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join()
    sys.exit(max(each.exitcode for each in ranks))
"""


@pytest.fixture
def leader(tmp_path: Path) -> Iterator[Leader]:
    with Leader(tmp_path / "leader").serving() as serving:
        yield serving


def started(program: str, leader: Leader, folder: Path, **env: str) -> subprocess.Popen[str]:
    (folder / "program.py").write_text(program)
    own = {"PYTHONPATH": str(CODE), "GPU_TIERS_FOLDER": str(folder / "hook")} | leader.pod() | env
    command = [sys.executable, str(folder / "program.py"), str(folder)]
    with (folder / "printed").open("w") as printed:
        return subprocess.Popen(command, env=os.environ | own, stdout=printed, text=True)


def preempted(program: subprocess.Popen[str], folder: Path) -> None:
    """Ask as the hook does, and wait until the program has ended."""
    (folder / "hook" / "request").touch()
    wait_until((folder / "hook" / "done").exists, 20, "the hook's answer")
    (folder / "hook" / "request").unlink()
    assert program.wait(20) == 143


def test_a_program_saves_on_a_wish_and_trains_on_until_its_pod_ends(leader: Leader, tmp_path: Path) -> None:
    checkpoint = tmp_path / "state.json"
    run = {"CHECKPOINT": str(checkpoint), "STEPS": "100000", "STEP_SECONDS": "0.005"}
    program = started(ALONE, leader, tmp_path, **run)
    leader.wish("a", 0)
    first = leader.outcome("a")
    assert first["outcome"] == "saved"
    saved = leader.reports["pod"][-1][1]["last_saved_step"]
    assert first["step"] == saved == json.loads(checkpoint.read_text())["step"]
    leader.wish("already there", saved)
    assert leader.outcome("already there")["step"] == saved
    leader.wish("b", saved + 1)
    second = leader.outcome("b")
    assert second["step"] > saved
    preempted(program, tmp_path)
    steps = [json.loads(line)["step"] for line in (tmp_path / "printed").read_text().splitlines()[1:]]
    assert steps == list(range(1, len(steps) + 1)), "it trained on, each step once"
    assert json.loads(checkpoint.read_text())["step"] == steps[-1] > second["step"]


FAILING = f"""\
{HURRIED}import time
from gpu_tiers_checkpoint import checkpoint_failed, checkpoint_requested, listen

listen()
while True:
    time.sleep(0.01)
    if checkpoint_requested():
        checkpoint_failed("no space left")
"""


def test_a_save_that_failed_is_told_and_ends_nothing(leader: Leader, tmp_path: Path) -> None:
    program = started(FAILING, leader, tmp_path)
    leader.wish("a", 0)
    told = leader.outcome("a")
    assert (told["outcome"], told["why"]) == ("failed", "no space left")
    (tmp_path / "hook" / "request").touch()
    wait_until((tmp_path / "hook" / "failed").exists, 20, "the hook's answer")
    (tmp_path / "hook" / "request").unlink()
    assert program.wait(20) == 143


def test_ranks_agree_on_the_save_and_on_whether_it_is_the_end(leader: Leader, tmp_path: Path) -> None:
    program = started(IN_STEP, leader, tmp_path)
    for name in ("a", "b"):
        leader.wish(name, 1 if name == "a" else leader.outcome("a")["step"] + 1)
        assert leader.outcome(name)["outcome"] == "saved"
    preempted(program, tmp_path)
    steps = [(tmp_path / f"rank-{number}").read_text().split() for number in range(RANKS)]
    assert steps == [steps[0]] * RANKS
    assert len(steps[0]) == 3
