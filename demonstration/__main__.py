"""The command `python -m demonstration FILE`: measures the cases, shows them, and writes the figures to FILE.

All that it starts ends with it, also at Ctrl-C; what it needs and can't have is told in a line.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from rich.console import Console

from demonstration.cases import CASES, WITHOUT, Case, plain_priorities
from demonstration.figures import Figures, Measured
from demonstration.preemption import GPUS, Preemption
from demonstration.report import show
from demonstration.workloads import new_namespace
from installation.fill import prepare, run_in_a_pod
from installation.image import project_image
from localcluster.arguments import TOLD
from localcluster.node import NodeCluster
from localcluster.node.images import python_image
from localcluster.versions import DEFAULT_KUBERNETES

SIGNALS = (signal.SIGINT, signal.SIGTERM)
INTERRUPTED = 130


def measure(console: Console) -> Measured:
    """Run every case on one node: the first before gpu-tiers is installed, the others after."""
    minor = os.environ.get("K8S") or DEFAULT_KUBERNETES
    tell = Teller(console)
    tell("having what a real node needs (the first time builds it, which takes minutes)")
    prepare(minor, real=True)
    tell(f"starting a control plane and a node of {GPUS} GPUs")
    with NodeCluster(minor, gpus=GPUS) as node:
        for image in (python_image(), project_image()):
            node.import_image(image)
        with plain_priorities(node):
            cases = {WITHOUT.letter: one(node, WITHOUT, tell)}
        tell("installing gpu-tiers with helm, in Enforce")
        run_in_a_pod(node)
        cases |= {case.letter: one(node, case, tell) for case in CASES if case != WITHOUT}
        measured = Measured(node.version, cases)
        tell("done; stopping the node")
    return measured


def one(node: NodeCluster, case: Case, tell: "Teller") -> Figures:
    """Run one case in a namespace and a folder of its own."""
    tell.console.rule(case.name, align="left")
    folder = node.folder / f"data-{case.letter}"
    folder.mkdir()
    with new_namespace(node, "demonstration") as namespace:
        return Preemption(node, namespace, folder, case, tell).run().figures


class Teller:
    """Prints a line with the seconds since the start."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.since = time.monotonic()

    def __call__(self, line: str) -> None:
        """Print it."""
        self.console.print(f"{time.monotonic() - self.since:4.0f} s  {line}", highlight=False, soft_wrap=True)


def end_in_order(number: int, _: object) -> None:
    """Stop the node, once: a second signal would cut that off."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    sys.stderr.write("\nstopping the node; some seconds\n")
    raise KeyboardInterrupt(number)


def main(file: Path) -> int:
    """Return the exit code: 1 where something could not be had or did not happen."""
    console = Console()
    try:
        measured = measure(console)
    except TOLD as error:
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
    parser.add_argument("file", type=Path, help="where the figures go, as JSON")
    sys.exit(main(parser.parse_args().file))
