"""The longer form of the demonstration: a program that knows nothing of gpu-tiers, preempted again and again.

Each time at a random step of one run, whose end is compared with that of a run that nobody disturbed.
"""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import mean

from rich.console import Console
from rich.table import Table

from demonstration import programs
from demonstration.preemption import GPUS, SECONDS, Preemption
from demonstration.steps import last_step, starts
from demonstration.workloads import create, gpu_pod, keeping_data
from localcluster.waiting import wait_until

STEPS = (5, 20)
"""From the start of a run to its preemption, at least and at most."""
HEAD = ("", "preemptions", "steps lost in all", "seconds to critical running, mean", "most", "learned the same")


@dataclass
class Again:
    """The costs of the preemptions of one run."""

    lost: list[int] = field(default_factory=list)
    running: list[float] = field(default_factory=list)
    same: bool = False


def preempted(run: Preemption, times: int) -> Again:
    """Preempt a run `times` times, let it come to its end, and return the costs."""
    found = Again()
    undisturbed = run.begin()
    for number in range(1, times + 1):
        wait_until(lambda: len(starts(run.folder)) == number, SECONDS, f"run {number}")  # noqa: B023 - called at once
        goal = starts(run.folder)[-1] + random.randint(*STEPS)  # noqa: S311 - no secret
        wait_until(lambda: last_step(run.folder) >= goal, SECONDS, f"step {goal}")  # noqa: B023 - called at once
        found.running.append(evict(run))
        reached = last_step(run.folder)
        run.node.api.delete("pod/critical", namespace=run.namespace)
        run.node.processes.restart("kube-controller-manager")  # it would wait 10 s, 20, 40 ...
        wait_until(lambda: len(starts(run.folder)) > number, SECONDS, "the next run")  # noqa: B023 - called at once
        found.lost.append(reached - starts(run.folder)[-1])
        run.tell(f"{number}: critical after {found.running[-1]:.1f} s, {found.lost[-1]} steps lost at step {reached}")
    found.same = run.learned(run.folder) == undisturbed
    return found


def evict(run: Preemption) -> float:
    """Create the critical pod; return the seconds until its program ran."""
    started, asked = run.folder / "critical", time.time()
    started.unlink(missing_ok=True)
    pod = gpu_pod("critical", "python3", "-c", programs.CRITICAL, gpus=GPUS, **run.case.critical)
    create(run.node, run.namespace, keeping_data(pod, run.folder))
    wait_until(lambda: started.exists() and bool(started.read_text()), SECONDS, "the critical pod", pause=0.05)
    return float(started.read_text()) - asked


def show_again(found: Mapping[str, Again], console: Console) -> None:
    """Print the table of the costs by case."""
    table = Table(*HEAD)
    for name, again in found.items():
        seconds = (f"{mean(again.running):.1f}", f"{max(again.running):.1f}")
        table.add_row(name, str(len(again.lost)), str(sum(again.lost)), *seconds, "yes" if again.same else "no")
    console.print(table)
