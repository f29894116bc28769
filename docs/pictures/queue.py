"""Draws the queued gangs of `make queue-demo`. `python docs/generate.py` writes the file."""

from collections.abc import Iterator
from dataclasses import replace

from demonstration.queue_figures import QueueRun, Span
from pictures.palettes import PALETTES, in_the_dark
from pictures.svg import box, drawing, text

LIGHT = PALETTES["light"]
DARK = replace(PALETTES["dark"], paper=PALETTES["dark"].on_tier)
TITLE = "Ten gangs of four GPUs wait for eight"
LEGEND = "Dashed: queued behind the gate. Filled: all pods run. Red: admitted, and a pod is missing."
EDGE, NAME, SECOND, ROW, HIGH, TOP, BELOW = 16, 68, 17, 26, 18, 74, 34
TICK = 5
"""Seconds between two marks of the axis."""


def picture(run: QueueRun) -> str:
    """Draw a row for each workload, in the order of their admission; time goes to the right."""
    names = [*run.gangs, run.evictor]
    last = max(each.ends for each in run.spans)
    width = round(2 * EDGE + NAME + last * SECOND)
    height = TOP + len(names) * ROW + BELOW
    shapes = [
        in_the_dark(LIGHT, DARK),
        box(0.6, 0.6, width - 1.2, height - 1.2, LIGHT.paper, LIGHT.line),
        text(EDGE, 28, TITLE, LIGHT.ink, size=16, bold=True),
        text(EDGE, 50, LEGEND, LIGHT.faint),
    ]
    for row, name in enumerate(names):
        shapes += _row(TOP + row * ROW, name, run)
    axis = TOP + len(names) * ROW + 18
    for second in range(0, int(last) + 1, TICK):
        shapes.append(text(EDGE + NAME + second * SECOND, axis, f"{second} s", LIGHT.faint, middle=True))
    return drawing(width, height, TITLE, shapes, said=said(run))


def said(run: QueueRun) -> str:
    """The picture in words."""
    first = {name: next(each.begins for each in run.of(name) if each.state == "runs") for name in run.gangs}
    starts = ", ".join(f"{name} after {seconds:.0f} s" for name, seconds in first.items())
    return f"All {len(run.gangs)} are created at once. Their pods run: {starts}. {run.evictor} evicts a pod of one."


def _row(y: float, name: str, run: QueueRun) -> Iterator[str]:
    yield text(EDGE, y + HIGH - 4, name, LIGHT.ink)
    for span in run.of(name):
        yield _box(y, span, evictor=name == run.evictor)


def _box(y: float, span: Span, *, evictor: bool) -> str:
    runs, missing = LIGHT.tiers[0] if evictor else LIGHT.tiers[2], LIGHT.refused
    fill = {"waits": LIGHT.paper, "starts": missing, "runs": runs}[span.state]
    x, wide = EDGE + NAME + span.begins * SECOND, max((span.ends - span.begins) * SECOND, 2)
    waits = span.state == "waits"
    return box(round(x, 1), y, round(wide, 1), HIGH, fill, LIGHT.line if waits else LIGHT.paper, dashed=waits)
