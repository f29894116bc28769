"""Run as `python -m website` with docs/ on the path: builds the site into build/site, or prints what is wrong."""

import sys

from website.build import SITE, built
from website.layout import ROOT


def main() -> int:
    """Build the site, print zensical's output and where the site is, and return zensical's exit code."""
    run = built(ROOT)
    print(run.stdout, end="")
    if run.returncode == 0:
        print(f"the site: {(ROOT / SITE / 'index.html').as_uri()}")
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
