"""Draws when the trainings of a rack save that share one volume. `python docs/generate.py` writes the file.

It asks the code that chooses who saves. The volume writes one checkpoint in ten seconds, shared by all that write.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from pictures.palettes import PALETTES, in_the_dark
from pictures.svg import box, drawing, text
from webhook.policy.saves.save_requests import Due, Training, chosen
from webhook.policy.values.tier_policy import AtOnce

LIGHT = PALETTES["light"]
DARK = replace(PALETTES["dark"], paper=PALETTES["dark"].on_tier)
RUNS, BOUND, WRITES, PLACES, AHEAD = 64, 1200, 10.0, 4, 10.0
"""Trainings; seconds of work that each may lose; seconds of one checkpoint; saves at once; seconds between reports."""
TITLE = f"{RUNS} trainings on one volume, each with maxAtRiskSeconds: {BOUND}"
LEGEND = "A line for each training, from the start to the end of its save. Below: saves under way."
EDGE, TOP, LINE, PANEL, GAP, LOAD, HEAD = 16, 66, 3, 440, 36, 44, 24
FIRST, LAST = 480, 1920
"""Seconds that the picture shows."""


class Span(NamedTuple):
    """A save, in seconds since the trainings began."""

    begins: float
    ends: float


@cache
def spans(places: int) -> list[Span]:
    """Return the save of each training if so many may save at once."""
    seconds = WRITES * places
    free = {f"{number}": _training(f"{number}", seconds) for number in range(RUNS)}
    asked: dict[str, Due] = {}
    found: list[Span] = []
    for now in range(LAST):
        for uid in [uid for uid, due in asked.items() if due.request.at + seconds <= now]:
            begins = asked.pop(uid).request.at
            found.append(Span(begins, begins + seconds))
        limits = AtOnce(places, places, places)
        for due in [*chosen(free.values(), [*asked.values()], limits, float(now), AHEAD)]:
            asked[due.training.uid] = due
            del free[due.training.uid]
    return found


def _training(uid: str, seconds: float) -> Training:
    shares = frozenset({("volumeClaim", "checkpoints")})
    return Training(uid, ("team", uid), 8.0, 0.0, 0, save_seconds=seconds, shares=shares, max_at_risk=BOUND)


def picture() -> str:
    """Two panels: all save when they are due, and a few at once, the first ones earlier."""
    shapes, foot = [in_the_dark(LIGHT, DARK)], TOP + HEAD + RUNS * LINE + LOAD + 48
    width = 2 * EDGE + 2 * PANEL + GAP
    shapes += [
        box(0.6, 0.6, width - 1.2, foot - 1.2, LIGHT.paper, LIGHT.line),
        text(EDGE, 28, TITLE, LIGHT.ink, size=16, bold=True),
        text(EDGE, 50, LEGEND, LIGHT.faint),
    ]
    for column, places in enumerate((RUNS, PLACES)):
        shapes += _panel(EDGE + column * (PANEL + GAP), places)
    return drawing(width, foot, TITLE, shapes, said=said())


def said() -> str:
    """The picture in words."""
    return " ".join(_heading(places) + "." for places in (RUNS, PLACES))


def _heading(places: int) -> str:
    latest = max(each.ends for each in spans(places))
    first = min(each.begins for each in spans(places))
    at_once = "all at once" if places == RUNS else f"volumeClaim: {places}"
    return f"{at_once}: from {_minutes(first)} to {_minutes(latest)}, at most {_minutes(latest)} of work at risk"


def _minutes(seconds: float) -> str:
    return f"{seconds // 60:.0f}:{seconds % 60:02.0f}"


def _panel(x: float, places: int) -> Iterator[str]:
    found, scale = spans(places), PANEL / (LAST - FIRST)

    def at(seconds: float) -> float:
        return round(x + (seconds - FIRST) * scale, 1)

    yield text(x, TOP + 14, _heading(places), LIGHT.ink, bold=True)
    top = TOP + HEAD
    for row, each in enumerate(found):
        late = LIGHT.refused if each.ends > BOUND + WRITES * PLACES else LIGHT.tiers[1]
        wide = round(at(each.ends) - at(each.begins), 1)
        yield f'<rect x="{at(each.begins)}" y="{top + row * LINE}" width="{wide}" height="{LINE - 1}" fill="{late}"/>'
    foot = top + RUNS * LINE + LOAD
    for begins, ends, count in _load(found):
        high = round(count / RUNS * (LOAD - 8), 1)
        wide = round(at(ends) - at(begins), 1)
        yield f'<rect x="{at(begins)}" y="{foot - high}" width="{wide}" height="{high}" fill="{LIGHT.tiers[0]}"/>'
    due = at(BOUND)
    yield f'<line x1="{due}" y1="{top}" x2="{due}" y2="{foot}" stroke="{LIGHT.ink}" stroke-dasharray="3 2"/>'
    yield f'<line x1="{x}" y1="{foot}" x2="{x + PANEL}" y2="{foot}" stroke="{LIGHT.line}"/>'
    for seconds in range(FIRST + 120, LAST, 240):
        yield text(at(seconds), foot + 20, f"{seconds // 60} min", LIGHT.faint, middle=True)


def _load(found: list[Span]) -> Iterator[tuple[float, float, int]]:
    """Yield the number of saves under way, from one change to the next."""
    times = sorted({moment for each in found for moment in each})
    for begins, ends in pairwise(times):
        yield begins, ends, sum(each.begins <= begins < each.ends for each in found)
