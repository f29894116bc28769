"""`python -m localcluster.operators`: have every operator's program in the cache; print the paths."""

import sys

from localcluster import arguments
from localcluster.binaries import find
from localcluster.operators.binaries import OPERATOR_BINARIES


def build() -> None:
    """Find or build them, one after the other."""
    for binary in OPERATOR_BINARIES:
        print(find(binary))


if __name__ == "__main__":
    sys.exit(arguments.told(build, "localcluster.operators"))
