"""Draws what bench/creates.py measured, with the goals. `python docs/generate.py` writes the file."""

from collections.abc import Iterator
from dataclasses import replace

from bench.figures import PANELS, Bar, Goal, Measured, Panel, Run
from pictures.palettes import PALETTES, in_the_dark
from pictures.svg import box, drawing, text

LIGHT = PALETTES["light"]
DARK = replace(PALETTES["dark"], paper=PALETTES["dark"].on_tier)  # one colour in the light is one in the dark
MET, MISSED, FLOOR = LIGHT.tiers[1], LIGHT.refused, LIGHT.line
TITLE = "What a create costs, beside what Kubernetes itself has and beside constant answers"
LEGEND = "Dashed: a goal, where a bar should end at most, or at least where more is better. Green: met; red: missed."

WIDTH, EDGE, TOP, MIDDLE = 968, 16, 70, 32
PANEL = (WIDTH - 2 * EDGE - MIDDLE) // 2
NAME, BAR = 170, 150
"""Widths of a label and of the longest bar; the value stands behind it."""
HEAD, ROW, HIGH, BELOW = 30, 24, 14, 16
SIZE = 12


def picture(measured: Measured) -> str:
    """Two panels in a row, as high as the higher one."""
    shapes: list[str] = []
    y = TOP
    for pair in zip(PANELS[::2], PANELS[1::2], strict=True):
        for column, panel in enumerate(pair):
            shapes += _panel(EDGE + column * (PANEL + MIDDLE), y, panel, measured.runs)
        y += HEAD + max(len(each.bars) for each in pair) * ROW + BELOW
    frame = [
        in_the_dark(LIGHT, DARK),
        box(0.6, 0.6, WIDTH - 1.2, y - 1.2, LIGHT.paper, LIGHT.line),
        text(EDGE, 28, TITLE, LIGHT.ink, size=16, bold=True),
        text(EDGE, 48, LEGEND, LIGHT.faint),
    ]
    return drawing(WIDTH, y, TITLE, [*frame, *shapes], said=said(measured))


def said(measured: Measured) -> str:
    """The picture in words."""
    return " ".join(
        f"{panel.title}, {panel.unit}: "
        + "; ".join(f"{bar.label} {_value(panel, bar, measured.runs)}" for bar in panel.bars)
        + "."
        for panel in PANELS
    )


def _value(panel: Panel, bar: Bar, runs: list[Run]) -> str:
    """The value of a bar, and whether its goals are met."""
    goals = _goals_of(panel, bar)
    verdict = "" if not goals else " \N{CHECK MARK}" if _are_met(goals, runs) else " \N{BALLOT X}"
    return bar.spread(runs).text(panel.digits) + verdict


def _goals_of(panel: Panel, bar: Bar) -> list[Goal]:
    return [goal for goal in panel.goals if goal.of == bar]


def _are_met(goals: list[Goal], runs: list[Run]) -> bool:
    return all(goal.is_met(runs) for goal in goals)


def _line(goal: Goal, runs: list[Run]) -> float:
    """Draw the goal as a line."""
    return goal.times * goal.against.spread(runs).median


def _panel(x: float, y: float, panel: Panel, runs: list[Run]) -> Iterator[str]:
    more = any(goal.at_least for goal in panel.goals)
    yield text(x, y + 14, panel.title, LIGHT.ink, size=14, bold=True)
    yield text(
        x + PANEL, y + 14, f"{panel.unit}, {'more' if more else 'less'} is better", LIGHT.faint, size=SIZE, end=True
    )
    longest = max(*(bar.spread(runs).most for bar in panel.bars), *(_line(goal, runs) for goal in panel.goals))
    for row, bar in enumerate(panel.bars):
        yield from _row(x, y + HEAD + row * ROW, panel, bar, runs, BAR / longest)


def _row(x: float, y: float, panel: Panel, bar: Bar, runs: list[Run], scale: float) -> Iterator[str]:
    """A label, its bar with the least and the most of all runs, its goals, its value."""
    goals, found, left = _goals_of(panel, bar), bar.spread(runs), x + NAME

    def at(value: float) -> float:
        return round(left + max(value, 0) * scale, 1)

    colour = FLOOR if not goals else MET if _are_met(goals, runs) else MISSED
    yield text(left - 8, y + 11, bar.label, LIGHT.ink, size=SIZE, end=True)
    yield f'<rect x="{left}" y="{y}" width="{round(at(found.median) - left, 1)}" height="{HIGH}" fill="{colour}"/>'
    middle = y + HIGH / 2
    yield f'<line x1="{at(found.least)}" y1="{middle}" x2="{at(found.most)}" y2="{middle}" stroke="{LIGHT.ink}"/>'
    for goal in goals:
        place, dashes = at(_line(goal, runs)), 'stroke-dasharray="3 2" stroke-width="1.6"'
        yield f'<line x1="{place}" y1="{y - 4}" x2="{place}" y2="{y + HIGH + 4}" stroke="{LIGHT.ink}" {dashes}/>'
    yield text(x + PANEL, y + 11, _value(panel, bar, runs), LIGHT.ink, size=SIZE, end=True)
