"""The commands of `python -m installation`: up, down. The cluster is localcluster's; this fills it with gpu-tiers."""

import argparse
import sys

from installation.fill import fill
from installation.image import project_image
from localcluster import arguments, keeper


def run(asked: argparse.Namespace) -> None:
    """Do it; the last line of `up` is for a shell's eval."""
    real = getattr(asked, "node", "fake") == "real"
    match asked.command:
        case "up":
            keeper.prepare(asked.kubernetes, real=real)
            if real:
                project_image()
            print(f"export KUBECONFIG={keeper.up(asked.kubernetes, 'installation', real=real)}")
        case "keep":
            keeper.keep(asked.kubernetes, fill, real=real)
        case _:
            keeper.down()


def main() -> int:
    """Return the exit code: 1 for a failure that is told in words."""
    parser = argparse.ArgumentParser(prog="python -m installation", description="gpu-tiers in a local cluster.")
    arguments.add_up_and_down(parser.add_subparsers(dest="command", required=True))
    return arguments.told(lambda: run(arguments.checked(parser)), "installation")


if __name__ == "__main__":
    sys.exit(main())
