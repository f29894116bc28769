"""The commands of `python -m localcluster`: build, up, down."""

import argparse
import sys

from localcluster import arguments, keeper
from localcluster.binaries import binaries, find


def run(asked: argparse.Namespace) -> None:
    """Run the command. `build` prints the path of each binary; the last line of `up` is for a shell's eval."""
    real = getattr(asked, "node", "fake") == "real"
    match asked.command:
        case "build":
            for binary in binaries(asked.kubernetes).values():
                print(find(binary))
        case "up":
            keeper.prepare(asked.kubernetes, real=real)
            print(f"export KUBECONFIG={keeper.up(asked.kubernetes, 'localcluster', real=real)}")
        case "keep":
            keeper.keep(asked.kubernetes, real=real)
        case _:
            keeper.down()


def main() -> int:
    """Return the exit code: 1 for an expected error, whose text is printed."""
    parser = argparse.ArgumentParser(prog="python -m localcluster", description="A real control plane on this machine.")
    commands = parser.add_subparsers(dest="command", required=True)
    arguments.add_version(commands.add_parser("build", help="have every binary in the cache; print the paths"))
    arguments.add_up_and_down(commands)
    return arguments.exit_code(lambda: run(arguments.checked(parser)), "localcluster")


if __name__ == "__main__":
    sys.exit(main())
