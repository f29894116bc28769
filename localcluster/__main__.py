"""The commands of `python -m localcluster`: build, up, down. Reads arguments and prints; the work is elsewhere."""

import argparse
import os
import sys

from localcluster.binaries import BinaryError, binaries, find
from localcluster.go_toolchain import GoError
from localcluster.keeper import down, keep, up
from localcluster.kubectl import KubectlError
from localcluster.node.packages import NodeError
from localcluster.processes import ProcessError
from localcluster.versions import DEFAULT_KUBERNETES, KUBERNETES


def arguments() -> argparse.Namespace:
    """Return what was asked."""
    parser = argparse.ArgumentParser(prog="python -m localcluster", description="A real control plane on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    minor = os.environ.get("K8S", DEFAULT_KUBERNETES)
    for name, text in (
        ("build", "have every binary in the cache; print the paths"),
        ("up", "start a cluster that stays; the last line says how to use it"),
        ("keep", "what `up` starts: run a cluster until `down`"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--kubernetes", default=minor, metavar="MINOR", help=f"{', '.join(KUBERNETES)}; else $K8S")
        if name != "build":
            command.add_argument("--bare", action="store_true", help="without the chart and the webhook")
            command.add_argument(
                "--node", choices=("fake", "real"), default="fake", help="real: kubelet and containerd"
            )
    commands.add_parser("down", help="stop that cluster")
    asked = parser.parse_args()
    if getattr(asked, "kubernetes", minor) not in KUBERNETES:
        parser.error(f"Kubernetes {asked.kubernetes} is not in the table; there are {', '.join(KUBERNETES)}")
    return asked


def run(asked: argparse.Namespace) -> None:
    """Do it; the last line of `up` is for a shell's eval."""
    match asked.command:
        case "build":
            for binary in binaries(asked.kubernetes).values():
                print(find(binary))
        case "up":
            print(f"export KUBECONFIG={up(asked.kubernetes, bare=asked.bare, real=asked.node == 'real')}")
        case "keep":
            keep(asked.kubernetes, bare=asked.bare, real=asked.node == "real")
        case _:
            down()


def main() -> int:
    """Return the exit code: 1 for a failure that is told in words."""
    try:
        run(arguments())
    except (BinaryError, GoError, NodeError, ProcessError, KubectlError, TimeoutError) as error:
        sys.stderr.write(f"localcluster: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
