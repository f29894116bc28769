"""Shows on a terminal what the cases cost."""

from rich.console import Console
from rich.table import Table

from demonstration.cases import CASES, HOW_TO_AVOID_IT
from demonstration.figures import Figures, Measured

HEAD = ("", "steps lost", "seconds to critical running", "step resumed at", "learned the same")
SAME = {True: "yes", False: "no", None: ""}


def row(figures: Figures) -> tuple[str, ...]:
    """Return the cells below HEAD, except the first."""
    at = "never" if figures.resumed_at is None else str(figures.resumed_at)
    same = SAME[figures.same]
    return str(figures.steps_lost), f"{figures.times.running:.1f}", at, same


def show(measured: Measured, console: Console) -> None:
    """The table, and a sentence about each case."""
    table = Table(title=f"One preemption on a real node, Kubernetes {measured.kubernetes}")
    for index, head in enumerate(HEAD):
        table.add_column(head, justify="right" if index else "left", no_wrap=not index)
    cases = [case for case in CASES if case.letter in measured.cases]
    for case in cases:
        table.add_row(case.name, *row(measured.cases[case.letter]))
    console.print(table)
    for case in cases:
        console.print(f"({case.letter}) {case.because}", highlight=False)
    console.print(HOW_TO_AVOID_IT, highlight=False)
