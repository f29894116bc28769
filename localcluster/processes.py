"""Starts child processes with a log file each, and stops those and no others."""

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from localcluster.environment import without_a_persons

REAPER = Path(__file__).with_name("reaper.py")
STOP_SECONDS = 20.0
TAIL_LINES = 20


class ProcessError(Exception):
    """A process ended, or was not ready in time; the text ends with the tail of its log."""


class Process:
    """A child process, its name and its log. One that `restarts` is started again by the next `check` of its group."""

    def __init__(self, name: str, command: Sequence[str], folder: Path, *, restarts: bool = False) -> None:
        self.name = name
        self.command = command
        self.log = folder / f"{name}.log"
        self.restarts = restarts
        self.start()

    def start(self) -> None:
        """Start the process, for the first time or again; its log is appended to."""
        with self.log.open("ab") as output:
            self.popen = detached(self.command, self.log.parent, output)

    def check(self) -> None:
        """Raise ProcessError if the process ended."""
        if self.popen.poll() is not None:
            raise self.failure(f"ended with {self.popen.returncode}")

    def failure(self, what: str) -> ProcessError:
        """Return an error that shows the last lines of the log."""
        tail = self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:]
        return ProcessError("\n".join([f"{self.name} {what}; the end of {self.log}:", *tail]))

    def stop(self) -> None:
        """Ask the process to end, a paused one too, and kill it after STOP_SECONDS."""
        self.popen.terminate()
        self.popen.send_signal(signal.SIGCONT)
        try:
            self.popen.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()


class ProcessGroup:
    """Processes that are stopped in the reverse order of their start, also if this process is killed.

    Their command lines must name the group's folder: the reaper knows them by it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[Process] = []
        self._reaper: subprocess.Popen[bytes] | None = None

    def start(self, name: str, command: Sequence[str], *, restarts: bool = False) -> Process:
        """Start a process of the group; its log is <name>.log in the folder."""
        process = Process(name, command, self.folder, restarts=restarts)
        self._running.append(process)
        self._tell_reaper(f"{process.popen.pid}\n")
        return process

    def check(self) -> None:
        """Start again each ended process that `restarts`; raise ProcessError if another one ended."""
        for process in self._running:
            if process.restarts and process.popen.poll() is not None:
                process.start()
                self._tell_reaper(f"{process.popen.pid}\n")
            process.check()

    def adopt(self, pid: int) -> None:
        """Have the reaper also stop `pid`, a child of a process of the group, if this process is killed."""
        self._tell_reaper(f"{pid}\n")

    def named(self, name: str) -> Process:
        """Return the running process of that name; StopIteration if there is none."""
        return next(each for each in self._running if each.name == name)

    def restart(self, name: str) -> Process:
        """Stop a process by its name, and start it again with the same command line, but not as one that `restarts`."""
        process = self.named(name)
        self.end(process)
        return self.start(name, process.command)

    def end(self, process: Process) -> None:
        """Stop a process, if it still runs, and remove it from the group, so that its end is no failure."""
        process.stop()
        self._running.remove(process)

    def stop(self) -> None:
        """Stop all processes of the group, the last one first, and then the reaper."""
        while self._running:
            self.end(self._running[-1])
        if self._reaper and self._reaper.stdin:
            self._tell_reaper("done\n")
            self._reaper.stdin.close()
            self._reaper.wait()
            self._reaper = None

    def _tell_reaper(self, line: str) -> None:
        if not self._reaper:
            self._reaper = detached([sys.executable, "-I", str(REAPER), str(self.folder)], Path("/"), None)
        if self._reaper.stdin:
            self._reaper.stdin.write(line.encode())
            self._reaper.stdin.flush()


def detached(command: Sequence[str], folder: Path, log: IO[bytes] | None) -> subprocess.Popen[bytes]:
    """Start `command` in a session of its own, out of reach of Ctrl-C. Without a log, stdin is a pipe."""
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL if log else subprocess.PIPE,
        stdout=log or subprocess.DEVNULL,
        stderr=log or subprocess.DEVNULL,
        cwd=folder,
        env=without_a_persons(),
        start_new_session=True,
    )
