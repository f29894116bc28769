"""The commands of `python -m installation`: build, up, down. It fills localcluster's cluster with gpu-tiers."""

import argparse
import sys
from functools import partial

from installation.fill import fill, parts, prepare, way_to_page
from installation.policy_file import PolicyFile
from localcluster import arguments, keeper
from localcluster.binaries import release_binaries, say
from localcluster.node.packages import NodeError, have_packages
from localcluster.parts import Part, have, of_binary
from localcluster.versions import KUBERNETES


def run(asked: argparse.Namespace) -> None:
    """Run the command. The last line that `up` prints is for a shell's eval."""
    real = getattr(asked, "node", "fake") == "real"
    match asked.command:
        case "build":
            build(asked.kubernetes, everything=asked.all)
        case "up":
            prepare(asked.kubernetes, real=real)
            options = f"--replicas={asked.replicas}", f"--devices={asked.devices}"
            kubeconfig = keeper.up(asked.kubernetes, "installation", *options, real=real)
            print(f"The page: {way_to_page(kubeconfig)}")
            print(f"export KUBECONFIG={kubeconfig}")
        case "keep":
            keeper.keep(
                asked.kubernetes, partial(fill, replicas=asked.replicas, devices=asked.devices), PolicyFile(), real=real
            )
        case _:
            keeper.down()


def build(minor: str, *, everything: bool) -> None:
    """Make the parts of the tests' clusters that the cache lacks, and install what a real node needs.

    If no real node can run here, print why, and make the other parts. `everything` adds what only the tests of a
    release run: the other Kubernetes versions and `release_binaries`.
    """
    wanted: list[Part] = []
    try:
        have_packages()
        wanted += parts(minor, real=True)
    except NodeError as error:
        say(str(error))
        wanted += parts(minor, real=False)
    if everything:
        for other in KUBERNETES.keys() - {minor}:
            wanted += parts(other, real=False)
        wanted += map(of_binary, release_binaries().values())
    have(wanted)


def main() -> int:
    """Return the exit code: 1 for an expected error, whose text is printed."""
    parser = argparse.ArgumentParser(prog="python -m installation", description="gpu-tiers in a local cluster.")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="have in the cache what clusters are made of")
    arguments.add_version(build)
    build.add_argument("--all", action="store_true", help="what the tests of a release run too")
    for command in arguments.add_up_and_down(commands):
        command.add_argument("--replicas", type=int, default=1, metavar="COUNT", help="of gpu-tiers")
        command.add_argument(
            "--devices", type=int, default=0, metavar="COUNT", help="GPUs by DRA, on one more fake node"
        )
    asked = arguments.checked(parser)
    if getattr(asked, "devices", 0) and asked.node == "real":
        parser.error("--devices: fake nodes alone have them; leave out --node=real")
    return arguments.exit_code(lambda: run(asked), "installation")


if __name__ == "__main__":
    sys.exit(main())
