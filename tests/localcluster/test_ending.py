"""However a control plane ends, nothing of it stays behind, and a failed start says why."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from localcluster import ControlPlane, components
from localcluster.processes import ProcessError
from localcluster.waiting import wait_until

pytestmark = [pytest.mark.apiserver, pytest.mark.release]

ROOT = Path(__file__).parents[2]
KILLED_WHILE_UP = """
import os, signal, sys
from pathlib import Path
from localcluster import ControlPlane
signal.signal(signal.SIGINT, signal.default_int_handler)  # a pipeline may run its jobs with SIGINT ignored
few = {"controller_manager": False, "scheduler": False, "kwok": False}
with ControlPlane(sys.argv[1], folder=Path(sys.argv[2]), **few):
    os.kill(os.getpid(), int(sys.argv[3]))
"""


def processes_of(folder: Path) -> list[str]:
    """The command lines of all processes that name the folder, the reaper's among them."""
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if os.access(path, os.R_OK)]
    return [line.decode(errors="replace") for line in lines if str(folder).encode() in line]


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda each: each.name)
def test_a_killed_test_run_leaves_no_process_and_no_folder(minor: str, tmp_path: Path, number: signal.Signals) -> None:
    folder = tmp_path / "control-plane"
    command = [sys.executable, "-c", KILLED_WHILE_UP, minor, str(folder), str(int(number))]
    run = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, check=False)
    assert run.returncode != 0, run.stderr
    wait_until(lambda: not processes_of(folder), 240, "the end of its processes")
    assert not folder.exists()


def test_a_start_that_fails_shows_the_log_and_keeps_the_folder(
    minor: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(components, "SERVICE_ADDRESSES", "not a range")
    folder = tmp_path / "control-plane"
    with pytest.raises(ProcessError) as failure, ControlPlane(minor, folder=folder):
        pass
    assert "kube-apiserver ended with 1" in str(failure.value)
    assert "service-cluster-ip-range[0] is not a valid cidr" in str(failure.value)
    assert (folder / "kube-apiserver.log").exists()
    assert processes_of(folder) == []


def test_a_part_that_dies_is_named_by_the_next_call(minor: str) -> None:
    with ControlPlane(minor, kwok=False, scheduler=False, controller_manager=False) as cluster:
        cluster.processes.start("dies", [sys.executable, "-c", "print('no reason to live')", str(cluster.folder)])
        with pytest.raises(ProcessError, match="no reason to live"):
            wait_until(lambda: bool(cluster.kubectl("get", "--raw=/readyz").code), 20, "its end")
