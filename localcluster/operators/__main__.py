"""`python -m localcluster.operators`: have every operator's program in the cache; print the paths."""

import sys

from localcluster import arguments
from localcluster.binaries import find
from localcluster.operators.rows import OPERATORS


def build() -> None:
    """Find or build the program of each operator, one after the other, and print its path."""
    for row in OPERATORS:
        print(find(row.binary))


if __name__ == "__main__":
    sys.exit(arguments.exit_code(build, "localcluster.operators"))
