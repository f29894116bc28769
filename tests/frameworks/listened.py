"""Starts a program that knows nothing of gpu-tiers with the listener on its path, as in a pod of the hook `listen`."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.builders.leader import Leader
from webhook.policy.checkpoint.listen import LISTENER, listener_texts

from .environments import environment
from .training import ABORTED, Line, Run, Training

PROGRAMS = Path(__file__).parent / "programs"
TERMINATED = 143
Record = Callable[[str, object], None]
"""pytest's record_property. A row that is recorded under a title is printed with its table at the end."""


def delivered(folder: Path) -> Path:
    """The listener's files, as the kubelet writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in listener_texts().items():
        (folder / name).write_text(text)
    return folder


def alone(program: str, framework: str = "torch") -> list[list[str]]:
    return [[str(environment(framework) / "python"), str(PROGRAMS / program)]]


def hurried(folder: Path) -> Path:
    """The same with a tenth of the time between reports, so that tests need not wait for the next one."""
    text = delivered(folder) / LISTENER
    for name, value in (("REPORT_SECONDS = ", "1.0"), ("SOONEST_SECONDS, LATEST_SECONDS = ", "0.3, 1.0")):
        lines = [f"{name}{value}" if line.startswith(name) else line for line in text.read_text().splitlines()]
        text.write_text("\n".join(lines))
    return folder


@dataclass
class Workload:
    """A program that is started again and again, as its Job does it: one run, one output."""

    commands: Sequence[Sequence[str]]
    folder: Path
    options: dict[str, Any] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    listens: bool = True
    leader: Leader | None = None
    """Whom its pods report to, each by the name of its hook folder."""

    @contextmanager
    def started(self, **options: Any) -> Iterator[Run]:
        """One try. Each of its pods has a hook folder of its own."""
        self.folder.mkdir(parents=True, exist_ok=True)
        pods = [self.folder / f"hook-{number}" for number in range(len(self.commands))]
        for pod in pods:
            pod.mkdir(exist_ok=True)
        code = self.folder.parent / "python"
        path = [str(delivered(code) if self.leader is None else hurried(code))] if self.listens else []
        own = {"PYTHONPATH": ":".join([*path, str(PROGRAMS)]), "GPU_TIERS_RUN": f"uid-{self.folder.name}"}
        own |= {"OMP_NUM_THREADS": "1", "GPU_TIERS_TERMINATION_LOG": str(self.folder / "termination-log")} | self.env
        commands = [[*each, json.dumps(self.options | options)] for each in self.commands]
        reports = self.leader.pod if self.leader else lambda _: {}
        each_own = [{"GPU_TIERS_FOLDER": str(pod)} | reports(pod.name) for pod in pods]
        with Training(commands, self.folder).begun(own, each_own, pods[0]) as run:
            yield run

    def finished(self, **options: Any) -> Line:
        """The last line of a try that nobody disturbed: what the program has learned."""
        with self.started(**options) as run:
            codes = run.wait()
            assert codes == {0} or ABORTED in run.said(), f"it ended with {codes}: {run.said()[-2000:]}"
            return run.lines()[-1]
