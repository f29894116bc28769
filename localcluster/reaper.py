"""Stops the processes of a parent that died without stopping them itself.

Run as a script, it reads process ids from stdin, one a line, which its parent writes as it starts them. The word
"done" ends it, and nothing is stopped. An end of file before that means that the parent was killed: it stops them, last
started first, and removes the folder. A process is only taken for one of them if its command line names the folder.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

STOP_SECONDS = 20.0


def pids_of_dead_parent(lines: Iterable[str]) -> list[int]:
    """Read until the end; return the ids to stop, none after a "done"."""
    pids: list[int] = []
    for line in lines:
        if line.strip() == "done":
            return []
        pids.append(int(line))
    return pids


def runs(pid: int, folder: str) -> bool:
    """Return True if that process lives and its command line names the folder; a zombie has none."""
    if Path("/proc/self").exists():
        try:
            return folder in Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        except OSError:
            return False
    ps = ["ps", "-o", "command=", "-p", str(pid)]
    return folder in subprocess.run(ps, capture_output=True, text=True, check=False).stdout


def stop(pid: int, folder: str) -> None:
    """Ask a process to end, and kill it after STOP_SECONDS."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + STOP_SECONDS
        if runs(pid, folder):
            os.kill(pid, number)
        while runs(pid, folder) and time.monotonic() < deadline:
            time.sleep(0.1)


def main(folder: str) -> None:
    """Wait for the parent's end; if it left processes, stop them and remove the folder."""
    pids = pids_of_dead_parent(sys.stdin)
    for pid in reversed(pids):
        stop(pid, folder)
    if pids:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
