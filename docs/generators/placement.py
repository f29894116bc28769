"""Puts what `make placement-demo` counted into docs/placement.md."""

import re
from pathlib import Path

from pictures.placement import lines

from demonstration.placement_figures import Layouts
from generators.tables import table

PAGE = Path(__file__).resolve().parents[1] / "placement.md"
_MEASURED = re.compile(r"(?<=<!-- measured -->\n).*?(?=<!-- /measured -->)", re.DOTALL)


def placement(layouts: Layouts) -> str:
    """Return docs/placement.md with a new table; AssertionError if its comments do not stand there once."""
    counted = [[line.partition(": ") for line in lines(layouts, name)] for name in layouts.runs]
    rows = [(what, *(column[row][2] for column in counted)) for row, (what, _, _) in enumerate(counted[0])]
    runs = len(next(iter(layouts.runs.values())))
    said = f"{table(('', *layouts.runs), rows)}\n\nThese are {runs} runs each on Kubernetes {layouts.kubernetes}; "
    said += "the picture shows the first. Where runs differ, each has its number.\n"
    page, times = _MEASURED.subn(said, PAGE.read_text(encoding="utf-8"))
    assert times == 1  # noqa: S101
    return page
