"""The commands of `python -m installation`: build, up, down. It fills localcluster's cluster with gpu-tiers."""

import argparse
import sys
from functools import partial

from installation.fill import fill, prepare, way_to_page
from installation.policy_file import PolicyFile
from localcluster import arguments, keeper
from localcluster.binaries import find, release_binaries
from localcluster.versions import KUBERNETES


def run(asked: argparse.Namespace) -> None:
    """Do it; the last line of `up` is for a shell's eval."""
    real = getattr(asked, "node", "fake") == "real"
    match asked.command:
        case "build":
            prepare(asked.kubernetes, real=False)
            prepare(asked.kubernetes, real=True)
            for minor in KUBERNETES if asked.all else ():
                prepare(minor, real=False)
            for binary in release_binaries().values() if asked.all else ():
                find(binary)
        case "up":
            prepare(asked.kubernetes, real=real)
            replicas = f"--replicas={asked.replicas}"
            kubeconfig = keeper.up(asked.kubernetes, "installation", replicas, real=real)
            print(f"The page: {way_to_page(kubeconfig)}")
            print(f"export KUBECONFIG={kubeconfig}")
        case "keep":
            keeper.keep(asked.kubernetes, partial(fill, replicas=asked.replicas), PolicyFile(), real=real)
        case _:
            keeper.down()


def main() -> int:
    """Return the exit code: 1 for an expected error, whose text is printed."""
    parser = argparse.ArgumentParser(prog="python -m installation", description="gpu-tiers in a local cluster.")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="have in the cache what clusters are made of")
    arguments.add_version(build)
    build.add_argument("--all", action="store_true", help="the other Kubernetes, Helm 4 and actionlint too")
    for command in arguments.add_up_and_down(commands):
        command.add_argument("--replicas", type=int, default=1, metavar="COUNT", help="of gpu-tiers")
    return arguments.exit_code(lambda: run(arguments.checked(parser)), "installation")


if __name__ == "__main__":
    sys.exit(main())
