"""Puts what bench/creates.py measured into docs/performance.md."""

import re
from collections.abc import Iterator
from pathlib import Path

from bench.figures import DRY_RUN, GANG, OTHER, PANELS, REAL, Key, Measured, spread
from generators.tables import table

PAGE = Path(__file__).resolve().parents[1] / "performance.md"
_MEASURED = re.compile(r"(?<=<!-- measured: )(.+?) -->\n.*?(?=<!-- /measured -->)", re.DOTALL)
_LOADS = {"dry run": DRY_RUN, "without GPUs": OTHER, "booked": REAL, "gangs": GANG}


def performance(measured: Measured) -> str:
    """Return the page with new tables."""
    made = tables(measured)
    return _MEASURED.sub(lambda found: f"{found[1]} -->\n\n{made[found[1]]}\n\n", PAGE.read_text(encoding="utf-8"))


def tables(measured: Measured) -> dict[str, str]:
    """Return the tables by name: the goals, and all figures."""
    goals = table(("", "compared", "goal", "ratio", ""), _goals(measured))
    return {"goals": goals, **{name: _figures(measured, what) for name, what in _LOADS.items()}}


def _goals(measured: Measured) -> Iterator[tuple[str, ...]]:
    for panel in PANELS:
        for goal in panel.goals:
            wanted = f"at {'least' if goal.at_least else 'most'} {goal.times:g}"
            verdict = "met" if goal.is_met(measured.runs) else "MISSED"
            compared = f"{goal.of.label} / {goal.against.label}"
            yield panel.title, compared, wanted, goal.ratio(measured.runs).text(2), verdict


def _figures(measured: Measured, what: str) -> str:
    keys = [each.key for each in measured.runs[0].figures if each.key.what == what]
    return table(
        (what, "clients", "creates/s", "p50 ms", "p99 ms"),
        ((_case(measured, key), str(key.clients), *_row(measured, key)) for key in keys),
    )


def _case(measured: Measured, key: Key) -> str:
    again = sum(run.of(key).again for run in measured.runs)
    return f"{key.case} ({again} told to try again)" if again else key.case


def _row(measured: Measured, key: Key) -> Iterator[str]:
    for field, digits in (("rate", 0), ("p50", 2 if key.what == OTHER else 1), ("p99", 1)):
        yield spread([getattr(run.of(key), field) for run in measured.runs]).text(digits)
