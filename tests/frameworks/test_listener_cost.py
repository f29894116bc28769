"""The cost of the listener: a start of Python, the import of a trainer, a step. The end of the run prints it."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from webhook.policy.checkpoint.listen import LISTENER

from .environments import environment
from .listened import PROGRAMS, Record, delivered
from .training import ABORTED

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(3600)]  # the first test installs

TITLE = "What the listener costs"
FAR_TOO_MUCH = 10
"""The times that docs state: a loaded machine is slow, and a listener that waits at each step is slower."""

LOADED_BY_A_TRAINER = "ast, json, random, re, shutil, signal, threading, typing"
"""What has been imported anyway by the time that the listener is."""


def milliseconds(command: list[str], env: dict[str, str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, env=env, check=True)
    return (time.perf_counter() - begun) * 1000


def test_a_start(tmp_path: Path, record_property: Record) -> None:
    """The folder is read-only as in a pod, so nothing is compiled beforehand."""
    python = str(environment("torch") / "python")
    plain = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": ""}
    ours = plain | {"PYTHONPATH": str(delivered(tmp_path / "python"))}
    for what, code in (("a start of Python", "pass"), ("the import of a trainer, once", "import gpu_tiers_listen")):
        known = [python, "-c", f"import {LOADED_BY_A_TRAINER}" if code != "pass" else "pass"]
        pairs = [
            (milliseconds(known, plain), milliseconds([*known[:2], f"{known[2]}; {code}"], ours)) for _ in range(40)
        ]
        least, listening = (min(column) for column in zip(*pairs, strict=True))
        more = listening - least
        row = {"what": what, "without": f"{least:.1f} ms", "more": f"{more:.1f} ms"}
        record_property(TITLE, row)
        assert more < 6 * FAR_TOO_MUCH, (LISTENER, pairs)


@pytest.mark.parametrize(("ranks", "limit"), [(1, 5), (2, 100)])
def test_a_step(ranks: int, limit: int, tmp_path: Path, record_property: Record) -> None:
    start = [str(environment("torch") / "python")]
    if ranks > 1:
        start = [str(environment("torch") / "torchrun"), "--standalone", f"--nproc-per-node={ranks}"]
    (tmp_path / "hook").mkdir()
    own = {"PYTHONPATH": str(delivered(tmp_path / "python")), "OMP_NUM_THREADS": "1"}
    own |= {"GPU_TIERS_FOLDER": str(tmp_path / "hook"), "GPU_TIERS_TERMINATION_LOG": str(tmp_path / "log")}
    command = [*start, str(PROGRAMS / "cost.py"), str(2_000 // ranks**2)]
    run = subprocess.run(command, env=os.environ | own, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0 or ABORTED in run.stderr, run.stderr[-3000:]
    took = json.loads(run.stdout.splitlines()[-1])
    more = took["with"] - took["without"]
    row = {"what": f"a step of {ranks} ranks", "without": f"{took['without']:.1f} us", "more": f"{more:.1f} us"}
    record_property(TITLE, row)
    assert "not listening" not in run.stderr
    assert more < limit * FAR_TOO_MUCH
