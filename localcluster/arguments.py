"""The command line that a local cluster's programs share: its commands, its options, and failures in words."""

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

from localcluster.binaries import BinaryError
from localcluster.go_toolchain import GoError
from localcluster.kubectl import KubectlError
from localcluster.node.packages import NodeError
from localcluster.processes import ProcessError
from localcluster.versions import DEFAULT_KUBERNETES, KUBERNETES

EXPECTED_ERRORS = (BinaryError, GoError, NodeError, ProcessError, KubectlError, TimeoutError)
"""Errors of which only the text is printed, without a traceback."""


def add_up_and_down(commands: Any) -> list[argparse.ArgumentParser]:
    """Add `up`, the `keep` that it starts, and `down` to a parser's commands. Return the first two."""
    starting = []
    for name, text in (
        ("up", "start a cluster that stays; the last line says how to use it"),
        ("keep", "what `up` starts: run a cluster until `down`"),
    ):
        command = commands.add_parser(name, help=text)
        add_version(command)
        command.add_argument("--node", choices=("fake", "real"), default="fake", help="real: kubelet and containerd")
        starting.append(command)
    commands.add_parser("down", help="stop that cluster")
    return starting


def add_version(command: argparse.ArgumentParser) -> None:
    """Add the Kubernetes minor version."""
    minor = os.environ.get("K8S", DEFAULT_KUBERNETES)
    command.add_argument("--kubernetes", default=minor, metavar="MINOR", help=f"{', '.join(KUBERNETES)}; else $K8S")


def checked(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Return the arguments; wrong ones, such as a version that isn't in the table, end the program."""
    asked = parser.parse_args()
    if getattr(asked, "kubernetes", DEFAULT_KUBERNETES) not in KUBERNETES:
        parser.error(f"Kubernetes {asked.kubernetes} is not in the table; there are {', '.join(KUBERNETES)}")
    return asked


def exit_code(run: Callable[[], None], program: str) -> int:
    """Call `run` and return the exit code: 1 for one of EXPECTED_ERRORS, whose text is printed, otherwise 0."""
    try:
        run()
    except EXPECTED_ERRORS as error:
        sys.stderr.write(f"{program}: {error}\n")
        return 1
    return 0
