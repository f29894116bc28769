"""Several ranks of one run save the same step, and the hook hears of it when the last one has saved. No node needed."""

import os
import subprocess
import sys
from pathlib import Path

from demonstration.workloads import CODE
from localcluster.waiting import wait_until

RANKS = 3
RUN = f"""\
import multiprocessing, os, pathlib, sys, time
from gpu_tiers_checkpoint import FOLDER, checkpoint_requested, checkpoint_saved, listen

data = pathlib.Path(sys.argv[1])

def rank(number, votes, meet):
    def any_rank(mine):
        votes[number] = mine
        meet.wait()
        answer = any(votes)
        meet.wait()
        return answer

    listen()
    for step in range(10**6):
        time.sleep(0.005 * number)  # some are slower
        if checkpoint_requested(any_rank):
            time.sleep(0.2 * number)  # and save longer
            (data / f"rank-{{number}}").write_text(f"{{step}} {{(FOLDER / 'done').exists()}}")
            checkpoint_saved(meet.wait)

if __name__ == "__main__":
    votes, meet = multiprocessing.Array("b", {RANKS}), multiprocessing.Barrier({RANKS})
    ranks = [multiprocessing.Process(target=rank, args=(each, votes, meet)) for each in range({RANKS})]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join()
    sys.exit(max(each.exitcode for each in ranks))
"""


def test_all_ranks_save_the_same_step_before_the_hook_hears_of_it(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(RUN)
    folder = tmp_path / "hook"
    environment = {**os.environ, "GPU_TIERS_FOLDER": str(folder), "PYTHONPATH": str(CODE)}
    with subprocess.Popen([sys.executable, str(program), str(tmp_path)], env=environment) as run:
        wait_until((folder / "listening").exists, 20, "the listener")
        (folder / "request").touch()
        wait_until((folder / "done").exists, 20, "the answer")
        (folder / "request").unlink()  # as the hook does
        assert run.wait(20) == 143
    saved = [(tmp_path / f"rank-{number}").read_text().split() for number in range(RANKS)]
    assert len({step for step, _ in saved}) == 1
    assert {seen for _, seen in saved} == {"False"}, "no rank found the hook told before it had saved itself"
