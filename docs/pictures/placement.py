"""Draws the nodes of the gangs in `make placement-demo`. `python docs/generate.py` writes the file."""

from collections.abc import Iterator
from dataclasses import replace

from demonstration.placement_figures import Layouts, Numbers, Place
from pictures.palettes import PALETTES, in_the_dark
from pictures.svg import box, drawing, text

LIGHT = PALETTES["light"]
DARK = replace(PALETTES["dark"], paper=PALETTES["dark"].on_tier)  # one colour in the light is one in the dark
TOGETHER, CROSSING = LIGHT.tiers[0], LIGHT.refused
TITLE = "The same gangs on the same nodes, without placement and with Pack"
LEGEND = "A box is a pod, as wide as its GPUs, with its gang's number; red: the gang crosses racks. L comes last."

CELL, HIGH, BETWEEN = 11, 24, 9
"""A GPU's width and height, and what lies between two nodes."""
EDGE, RACK_NAME, ROW, TOP = 16, 52, 40, 96
MIDDLE = 24
"""Between the panels."""


def picture(layouts: Layouts) -> str:
    """The picture of the first run of each arrangement, with the numbers of all."""
    wide = RACK_NAME + _longest(layouts) * (layouts.gpus_per_node * CELL + BETWEEN)
    width = 2 * EDGE + len(layouts.runs) * wide + MIDDLE
    height = TOP + len(layouts.racks) * ROW + 4 * 20 + 16
    shapes = [
        in_the_dark(LIGHT, DARK),
        box(0.6, 0.6, width - 1.2, height - 1.2, LIGHT.paper, LIGHT.line),
        text(EDGE, 28, TITLE, LIGHT.ink, size=16, bold=True),
        text(EDGE, 50, LEGEND, LIGHT.faint),
    ]
    for column, name in enumerate(layouts.runs):
        shapes += _panel(EDGE + column * (wide + MIDDLE), name, layouts)
    return drawing(width, height, TITLE, shapes, said=said(layouts))


def said(layouts: Layouts) -> str:
    """The picture in words."""
    return " ".join(f"{name}: {'; '.join(lines(layouts, name))}." for name in layouts.runs)


def lines(layouts: Layouts, name: str) -> list[str]:
    """Return the numbers of all runs of an arrangement, a line each."""
    found = [layouts.numbers(places) for places in layouts.runs[name]]
    gangs = len({each.gang for each in layouts.runs[name][0]})
    return [
        f"nodes that gangs 1 to {gangs - 1} use: {_each(found, 'nodes')} of {sum(map(len, layouts.racks.values()))}",
        f"gangs that cross racks: {_each(found, 'crossing')} of {gangs}",
        f"GPUs stranded: {_each(found, 'stranded')}",
        f"gangs that wait: {_each(found, 'waiting')}",
    ]


def _each(found: list[Numbers], field: str) -> str:
    """A number of every run, or the one that all have."""
    values = [str(getattr(each, field)) for each in found]
    return values[0] if len(set(values)) == 1 else ", ".join(values)


def _panel(x: float, name: str, layouts: Layouts) -> Iterator[str]:
    places = layouts.runs[name][0]
    title = "without placement" if name == "without" else f"with {name} by rack"
    yield text(x, TOP - 18, title, LIGHT.ink, size=14, bold=True)
    for row, (rack, nodes) in enumerate(layouts.racks.items()):
        y = TOP + row * ROW
        yield text(x, y + 17, rack, LIGHT.faint)
        for column, node in enumerate(nodes):
            left = x + RACK_NAME + column * (layouts.gpus_per_node * CELL + BETWEEN)
            yield from _node(left, y, [each for each in places if each.node == node], layouts, places)
    below = TOP + len(layouts.racks) * ROW + 18
    for row, line in enumerate(lines(layouts, name)):
        yield text(x, below + row * 20, line, LIGHT.ink)


def _node(x: float, y: float, pods: list[Place], layouts: Layouts, places: list[Place]) -> Iterator[str]:
    """A node with its pods; what is free stays empty."""
    yield box(x, y, layouts.gpus_per_node * CELL, HIGH, LIGHT.paper, LIGHT.line, dashed=True)
    for pod in pods:
        alone = [each for each in places if each.gang == pod.gang]
        colour = CROSSING if layouts.numbers(alone).crossing else TOGETHER
        wide = pod.gpus * CELL
        yield box(x + 1, y + 1, wide - 2, HIGH - 2, colour, LIGHT.paper)
        name = pod.gang.removeprefix("gang-") if pod.gang != "large" else "L"
        yield text(x + wide / 2, y + 16, name, LIGHT.on_tier, size=11, middle=True)
        x += wide


def _longest(layouts: Layouts) -> int:
    return max(map(len, layouts.racks.values()))
