"""The command `python -m demonstration FILE`: measures the cases, shows them, and writes the figures to FILE.

All that it starts ends with it, also at Ctrl-C; it names what it needs and can't have.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from demonstration.again import Again, preempted, show_again
from demonstration.cases import CASES, LISTENED, WITHOUT, Case, plain_priorities
from demonstration.figures import Figures, Measured
from demonstration.frameworks import obstacle
from demonstration.preemption import GPUS, Preemption
from demonstration.report import show
from demonstration.workloads import new_namespace
from installation.fill import prepare, run_in_a_pod
from installation.image import project_image
from localcluster.arguments import EXPECTED_ERRORS
from localcluster.node import NodeCluster
from localcluster.node.images import python_image
from localcluster.versions import DEFAULT_KUBERNETES

SIGNALS = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 130


def measure(console: Console) -> Measured:
    """Run every possible case on one node: WITHOUT before gpu-tiers is installed, the others after."""
    tell = Teller(console)
    with started(tell) as node:
        with plain_priorities(node):
            cases = {WITHOUT.letter: one(node, WITHOUT, tell)}
        install(node, tell)
        cases |= {case.letter: one(node, case, tell) for case in possible(tell) if case != WITHOUT}
        measured = Measured(node.version, cases)
        tell("done; stopping the node")
    return measured


def measure_again(times: int, console: Console) -> dict[str, Again]:
    """Preempt each program that knows nothing of gpu-tiers so many times; return the costs by case."""
    tell = Teller(console)
    cases = [case for case in possible(tell) if case in LISTENED]
    found = {}
    with started(tell) as node:
        install(node, tell)
        for case in cases:
            with prepared(node, case, tell) as preemption:
                found[case.name] = preempted(preemption, times)
    return found


@contextmanager
def started(tell: "Teller") -> Iterator[NodeCluster]:
    """Yield a running node that has the images of all pods; NodeError if this machine can't run one."""
    minor = os.environ.get("K8S") or DEFAULT_KUBERNETES
    tell("having what a real node needs (the first time builds it, which takes minutes)")
    prepare(minor, real=True)
    tell(f"starting a control plane and a node of {GPUS} GPUs")
    with NodeCluster(minor, gpus=GPUS) as node:
        for image in (python_image(), project_image()):
            node.import_image(image)
        yield node


def install(node: NodeCluster, tell: "Teller") -> None:
    """Install the chart as a user does."""
    tell("installing gpu-tiers with helm, in Enforce")
    run_in_a_pod(node)


def possible(tell: "Teller") -> list[Case]:
    """Return the cases that this machine can run, and say why it can't run the others."""
    why = obstacle()
    if why:
        tell(f"cases {', '.join(f'({case.letter})' for case in CASES if case.needs_frameworks)} need frameworks: {why}")
    return [case for case in CASES if not (why and case.needs_frameworks)]


def one(node: NodeCluster, case: Case, tell: "Teller") -> Figures:
    """Run one case, and return its figures."""
    with prepared(node, case, tell) as preemption:
        return preemption.run().figures


@contextmanager
def prepared(node: NodeCluster, case: Case, tell: "Teller") -> Iterator[Preemption]:
    """Yield the preemption of a case, in a namespace and a folder of its own."""
    tell.console.rule(case.name, align="left")
    folder = node.folder / f"data-{case.letter}"
    folder.mkdir()
    with new_namespace(node, "demonstration") as namespace:
        yield Preemption(node, namespace, folder, case, tell)


class Teller:
    """Prints a line with the seconds since the start."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.since = time.monotonic()

    def __call__(self, line: str) -> None:
        """Print the line, with the seconds before it."""
        self.console.print(f"{time.monotonic() - self.since:4.0f} s  {line}", highlight=False, soft_wrap=True)


def end_in_order(number: int, _: object) -> None:
    """Raise KeyboardInterrupt, which stops the node, and ignore further signals, which would cut that off."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    sys.stderr.write("\nstopping the node; some seconds\n")
    raise KeyboardInterrupt(number)


def main(file: Path, times: int = 0) -> int:
    """Measure and show: all cases, stored in `file`, or `times` preemptions of each program, which are not stored.

    Return the exit code: 1 if something could not be had or did not happen, 130 after a signal.
    """
    console = Console()
    try:
        if times:
            show_again(measure_again(times, console), console)
            return 0
        measured = measure(console)
    except EXPECTED_ERRORS as error:
        sys.stderr.write(f"preemption-demo: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("stopped; nothing is left running\n")
        return INTERRUPTED
    show(measured, console)
    measured.write(file)
    return 0


if __name__ == "__main__":
    for each in SIGNALS:
        signal.signal(each, end_in_order)
    parser = argparse.ArgumentParser(prog="python -m demonstration", description="What a preemption costs, measured.")
    parser.add_argument("file", type=Path, nargs="?", default=os.devnull, help="where the figures go, as JSON")
    often = "instead, and kept nowhere: how often the programs are preempted that know nothing of gpu-tiers"
    parser.add_argument("--preemptions", type=int, default=0, metavar="TIMES", help=often)
    given = parser.parse_args()
    sys.exit(main(given.file, given.preemptions))
