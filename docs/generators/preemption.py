"""Puts what `make preemption-demo` measured into docs/checkpointing.md."""

import re
from pathlib import Path

from demonstration.cases import CASES
from demonstration.figures import Measured
from demonstration.report import HEAD, row
from generators.tables import table

PAGE = Path(__file__).resolve().parents[1] / "checkpointing.md"
_MEASURED = re.compile(r"(?<=<!-- measured -->\n).*?(?=<!-- /measured -->)", re.DOTALL)


def checkpointing(measured: Measured) -> str:
    """Return docs/checkpointing.md with a new table; AssertionError if its comments do not stand there once."""
    rows = [(case.name, *row(measured.cases[case.letter])) for case in CASES if case.letter in measured.cases]
    said = f"{table(HEAD, rows)}\n\nThis is one run on Kubernetes {measured.kubernetes}, drawn on one time axis:\n"
    page, times = _MEASURED.subn(said, PAGE.read_text(encoding="utf-8"))
    assert times == 1  # noqa: S101
    return page
