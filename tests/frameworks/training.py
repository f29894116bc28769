"""Starts a training example as a user would, asks it to save as the kubelet does, and reads what it printed."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from localcluster.waiting import wait_until
from webhook.policy.checkpoint.hook_kinds import TERMINATION_LOG, file_handler

CODE = Path(__file__).parents[2] / "examples" / "training"
SECONDS = 120
"""For a start, a save or an end; a loaded machine takes its time to import a framework."""
ABORTED = "terminate called without an active exception"
"""What a rank of gloo says whose own threads abort it once all is done: seldom, and also after the end of its group."""
Line = dict[str, float]


@dataclass
class Run:
    """One run of a program: the processes that a user or a pod starts, and the first one's output."""

    processes: list[subprocess.Popen[bytes]]
    folder: Path
    hook: Path

    def lines(self) -> list[Line]:
        """Return the lines printed so far; frameworks print among them."""
        text = (self.folder / "stdout-0").read_text()
        whole = [line for line in text.splitlines(keepends=True) if line.startswith('{"') and line.endswith("\n")]
        return [json.loads(line) for line in whole]

    def steps(self) -> list[Line]:
        """The steps that it made."""
        return [line for line in self.lines() if "step" in line]

    def train_a_little(self) -> None:
        """Wait until it has made some steps."""
        wait_until(lambda: len(self.steps()) >= 3 or self.ended(), SECONDS, "the first steps")

    def ended(self) -> bool:
        return any(each.poll() is not None for each in self.processes)

    def said(self) -> str:
        """Return what its tries have written to stderr."""
        return (self.folder / "stderr").read_text(errors="replace")

    def train_to(self, step: int) -> None:
        """Wait until it has made that step."""
        made = lambda: [line["step"] for line in self.steps()[-1:]] >= [step]  # noqa: E731
        wait_until(lambda: made() or self.ended(), SECONDS, f"step {step}")

    def preempt(self, seconds: int = SECONDS) -> int:
        """Run the preStop handler in this run's folder; its exit code."""
        handler = file_handler(str(self.hook), seconds)["exec"]["command"]
        handler = [each.replace(TERMINATION_LOG, "/dev/null") for each in handler]
        return subprocess.run(handler, check=False).returncode

    def terminate(self) -> None:
        """Send the signal that a pod with hook `sigterm` gets."""
        for each in self.processes:
            each.send_signal(signal.SIGTERM)

    def wait(self) -> set[int]:
        """The exit codes, once all have ended."""
        return {each.wait(SECONDS) for each in self.processes}


@dataclass(frozen=True)
class Training:
    """A program with its checkpoint, run again and again in one folder."""

    commands: list[list[str]]
    folder: Path

    @contextmanager
    def started(self, *, steps: int, seconds: float) -> Iterator[Run]:
        """A run up to a step, with steps of that length; what still runs at the end is killed."""
        own = {
            "GPU_TIERS_FOLDER": str(self.folder / "hook"),
            "CHECKPOINT": str(self.folder / "checkpoint"),
            "STEPS": str(steps),
            "STEP_SECONDS": str(seconds),
            "PYTHONPATH": str(CODE),
        }
        with self.begun(own, [{} for _ in self.commands], self.folder / "hook") as run:
            yield run

    @contextmanager
    def begun(self, own: Mapping[str, str], each_own: Sequence[Mapping[str, str]], hook: Path) -> Iterator[Run]:
        """A run with these variables for all processes, and those for each."""
        processes = []
        try:
            for number, (command, more) in enumerate(zip(self.commands, each_own, strict=True)):
                with (self.folder / f"stdout-{number}").open("wb") as out, (self.folder / "stderr").open("ab") as err:
                    env = {**os.environ, **own, **more}
                    start = subprocess.Popen(command, env=env, cwd=self.folder, stdout=out, stderr=err)
                    processes.append(start)
            yield Run(processes, self.folder, hook)
        finally:
            end(processes)

    def finished(self, *, steps: int) -> list[Line]:
        """Return what an undisturbed run printed."""
        with self.started(steps=steps, seconds=0) as run:
            codes, printed = run.wait(), run.lines()
            whole = printed[-1].get("step") == steps and ABORTED in run.said()
            assert codes == {0} or whole, f"it ended with {codes} after {printed[-1:]}"
            return printed


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """End the processes that still run, with SIGTERM first, because the ranks of a killed torchrun would live on."""
    for each in processes:
        each.terminate()
    for each in processes:
        try:
            each.wait(SECONDS)
        except subprocess.TimeoutExpired:
            each.kill()
            each.wait()
