"""One preemption, measured: a Job trains on all GPUs, a critical pod takes them, goes, and the Job trains on."""

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demonstration import programs
from demonstration.cases import Case
from demonstration.containers import Containers
from demonstration.figures import Figures, Times, times_since
from demonstration.frameworks import stock_programs, with_frameworks
from demonstration.steps import last_step, learned, starts
from demonstration.watching import Watched, reasons
from demonstration.workloads import Tree, create, gpu_pod, keeping_data, publish_code, training_job
from localcluster.node import NodeCluster
from localcluster.waiting import wait_until

GPUS = 4
STEPS_BEFORE = programs.SAVE_EVERY // 2
"""The critical pod comes once the run has made so many: half-way to a checkpoint."""
CRITICAL_SECONDS = 5
SECONDS = 120
TELL_EVERY = 10
KILLED = 128 + signal.SIGKILL
PROGRAMS = {"interval_only.py": programs.INTERVAL_ONLY, "trains_on.py": programs.TRAINS_ON}

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """The cost of a preemption, and the observations of the evicted pod."""

    figures: Figures
    exit_codes: set[int]
    disruptions: set[str]
    events: list[str]


class Preemption:
    """One case in a namespace; /data in its pods is `folder`. `tell` hears what happens while it does."""

    def __init__(self, node: NodeCluster, namespace: str, folder: Path, case: Case, tell: Tell) -> None:
        self.node = node
        self.namespace = namespace
        self.folder = folder
        self.case = case
        self.tell = tell
        self.checkpoints: list[float] = []
        """When each checkpoint was written, of those that were seen; checkpoints are rarer than looks."""

    def run(self) -> Outcome:
        """Run the case; TimeoutError names what didn't happen."""
        watched, containers = Watched(self.node, self.namespace), Containers(self.node, self.namespace)
        try:
            return self._run(watched, containers)
        finally:
            containers.end()
            watched.end()

    def _run(self, watched: Watched, containers: Containers) -> Outcome:
        undisturbed = self.begin()
        victim = self._steps()
        asked = time.time()
        critical = self._take_the_gpus(asked)
        reached = last_step(self.folder)
        resumed = self._give_them_back()
        codes = watched.exit_codes(victim)
        at = starts(self.folder)[1] if resumed else None
        times = self._times(asked, resumed, containers, *map(watched.container, (victim, critical)))
        same = self.learned(self.folder) == undisturbed if undisturbed else None
        return Outcome(
            Figures(reached - (at or 0), at, KILLED in codes, times, same),
            codes,
            watched.disruptions(victim),
            reasons(self.node, self.namespace, victim),
        )

    def _times(self, asked: float, resumed: float | None, containers: Containers, victim: str, critical: str) -> Times:
        return times_since(
            asked,
            self.checkpoints,
            hook=containers.hook_started(victim),
            sigterm=containers.terminated(victim),
            gone=containers.ended(victim),
            running=float((self.folder / "critical").read_text()),
            ended=containers.ended(critical),
            resumed=resumed,
        )

    def begin(self) -> list[float] | None:
        """Start the Job; return what its program learns undisturbed, None if it never ends."""
        publish_code(self.node, self.namespace, **PROGRAMS, **stock_programs())
        undisturbed = self._undisturbed() if self.case.undisturbed else None
        self.tell(f"a Job begins to train on all {GPUS} GPUs, with a checkpoint every {programs.SAVE_EVERY} steps")
        pod = self._pod("unused", self.case.shell, self.folder, gpus=GPUS, **self.case.training)
        create(self.node, self.namespace, training_job(pod, dict(self.case.annotations)))
        return undisturbed

    def _undisturbed(self) -> list[float]:
        """Run the program once without GPUs and without waits in its steps; return what it learned."""
        self.tell("the program runs once undisturbed, to know what it learns")
        folder = self.folder / "undisturbed"
        folder.mkdir()
        pod = self._pod("undisturbed", self.case.undisturbed, folder)
        create(self.node, self.namespace, pod)
        return self.learned(folder)

    def learned(self, folder: Path) -> list[float]:
        """Wait for the end of a run; return its last loss and the sum of its weights."""
        self._wait(lambda: learned(folder) is not None, "the end of the run")
        return learned(folder) or []

    def _pod(self, name: str, command: str, folder: Path, **described: Any) -> Tree:
        shell = ("sh", "-c", f"{{ {command}; }} >> /data/steps")
        pod = keeping_data(gpu_pod(name, *shell, **{"gpus": 0, **described}), folder)
        return with_frameworks(pod) if self.case.needs_frameworks else pod

    def _steps(self) -> str:
        """Wait until the run has made STEPS_BEFORE steps; return the UID of its pod."""
        self._wait(lambda: last_step(self.folder) >= STEPS_BEFORE, f"{STEPS_BEFORE} steps of training")
        return self._uid(labelSelector="job-name=training")

    def _take_the_gpus(self, asked: float) -> str:
        """Create the critical pod, wait until its program runs, and return its UID."""
        self.tell(f"at step {last_step(self.folder)} a critical pod asks for the {GPUS} GPUs")
        command = ("python3", "-c", programs.CRITICAL)
        pod = keeping_data(gpu_pod("critical", *command, gpus=GPUS, **self.case.critical), self.folder)
        create(self.node, self.namespace, pod)
        started = self.folder / "critical"
        self._wait(lambda: started.exists() and bool(started.read_text()), "the critical pod", asked)
        self.tell(f"the critical pod runs after {float(started.read_text()) - asked:.1f} s")
        return self._uid(fieldSelector="metadata.name=critical")

    def _give_them_back(self) -> float | None:
        """End the critical pod; return when the Job's next pod trained, None if the Job wants none."""
        time.sleep(CRITICAL_SECONDS)
        self.node.api.delete("pod/critical", namespace=self.namespace)
        self.tell("the critical pod is done; the Job makes its next pod, 10 s after the end of the last one")
        self._wait(lambda: len(starts(self.folder)) > 1 or self._is_complete(), "the Job's next pod")
        if len(starts(self.folder)) == 1:
            self.tell(f"the Job is Complete at step {last_step(self.folder)}: its program ended with 0")
            return None
        self.tell(f"training resumes at step {starts(self.folder)[1]}")
        return time.time()

    def _is_complete(self) -> bool:
        job = self.node.api.get("job/training", self.namespace)
        return any(each["type"] == "Complete" for each in job["status"].get("conditions", []))

    def _wait(self, happened: Callable[[], bool], what: str, since: float | None = None) -> None:
        """Wait and record checkpoints; with `since`, report every ten seconds from then on that it takes long."""
        reports = 0

        def look() -> bool:
            nonlocal reports
            self._look_for_a_checkpoint()
            if since and time.time() - since > (reports + 1) * TELL_EVERY:
                reports += 1
                self.tell(f"{what} waits for {reports * TELL_EVERY} s now: the training process is still there")
            return happened()

        wait_until(look, SECONDS, what, pause=0.05)

    def _look_for_a_checkpoint(self) -> None:
        for file in self.folder.glob(self.case.checkpoints):
            with suppress(FileNotFoundError):  # some keep the latest only
                if (written := file.stat().st_mtime) not in self.checkpoints:
                    self.checkpoints.append(written)

    def _uid(self, **selector: str) -> str:
        found = self.node.api.get("pods", self.namespace, **selector)
        return str(found["items"][0]["metadata"]["uid"])
