"""The picture of evictions: a box for each tier, the highest at the top, with arrows to its victims."""

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path

from msgspec.structs import replace

from webhook.report.posture import Posture, TierPosture, nodes_said

ROW, TOP, LINE = 64, 8, 20
NARROWEST = 300
"""The width of a box; longer words make it wider."""
NAME, WHAT = 8.6, 6.6
"""The widths of a character in a box's two lines."""
LANE, GAP, LEAVES = 26, 9, 18
"""Distances: between the lines of two tiers, between their ends at a box, and from a box's middle to a line's start."""


TEMPLATES = Path(__file__).parent / "templates"
FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"


def posture_picture(posture: Posture) -> str:
    """Return an SVG within a page, whose styles have its colours: of the text, and of the classes tier-0, tier-1, …

    It leaves out the exceptions for DRA, because the page lists them next to it.
    """
    return _drawn(replace(posture, dra=()), "", "")


def posture_file(posture: Posture) -> str:
    """Return the picture as a file of its own, in the colours of the page, for a light and a dark theme."""
    width, height = _size(posture)
    paper = '<rect class="paper" width="100%" height="100%"/>'
    return _drawn(posture, f' width="{width}" height="{height}" font-family="{FONT}"', f"{_style()}{paper}") + "\n"


def _drawn(posture: Posture, attributes: str, within: str) -> str:
    width, height = _size(posture)
    title = "; ".join(f"{each.name} evicts {', '.join(each.evicts) or 'nobody'}" for each in posture.tiers)
    head = f'<svg viewBox="0 0 {width} {height}" role="img" xmlns="http://www.w3.org/2000/svg"{attributes}>'
    shapes: list[str] = []
    rows, box = {each.name: index for index, each in enumerate(posture.tiers)}, _box_width(posture)
    for index, tier in enumerate(posture.tiers):
        y = TOP + index * ROW
        shapes.append(f'<rect class="tier tier-{index % 6}" x="1" y="{y}" width="{box}" height="{ROW - 12}" rx="6"/>')
        shapes += [_text(14, y + 22, _name(tier), "name"), _text(14, y + 41, _what(tier), "what")]
    evicting = [each for each in posture.tiers if each.evicts]
    for lane, tier in enumerate(evicting):
        ends = sorted(rows[name] for name in tier.evicts)
        shapes += _arrows(box, lane, rows[tier.name], ends, GAP * (lane - (len(evicting) - 1) / 2))
    for index, line in enumerate(_exceptions(posture)):
        shapes.append(_text(14, TOP + ROW * len(posture.tiers) + LINE * index + 10, line, "what"))
    return "".join((head, f"<title>{escape(title)}</title>", within, *shapes, "</svg>"))


def _size(posture: Posture) -> tuple[int, int]:
    height = TOP * 2 + ROW * len(posture.tiers) + LINE * len(_exceptions(posture))
    widths = (round(28 + WHAT * len(each)) for each in _exceptions(posture))
    return max(_box_width(posture) + 30 + LANE * len(posture.tiers), 0, *widths), height


def _exceptions(posture: Posture) -> list[str]:
    """Return the lines below the tiers: the nodes on which nobody is evicted for GPUs by DRA."""
    return [f"Not for GPUs by DRA: {each.device_class} on {nodes_said(each.evicts_nobody_on)}" for each in posture.dra]


def _style() -> str:
    """Return the page's style with plain colours, because not every SVG viewer knows variables."""
    colours = (TEMPLATES / "colours.css").read_text(encoding="utf-8")
    rules = (TEMPLATES / "picture.css").read_text(encoding="utf-8")
    rules += (
        "svg .paper { fill: var(--paper); }\nsvg text.name { font-family: ui-monospace, Menlo, Consolas, monospace; }"
    )
    light, dark = (_painted(rules, part) for part in colours.split("@media"))
    return f"<style>\n{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n</style>"


def _painted(rules: str, colours: str) -> str:
    palette = dict(re.findall(r"--(\w+): (#\w+)", colours))
    return re.sub(r"var\(--(\w+)\)", lambda found: palette[found[1]], rules)


def _box_width(posture: Posture) -> int:
    words = [NAME * len(_name(each)) for each in posture.tiers] + [WHAT * len(_what(each)) for each in posture.tiers]
    return round(max(NARROWEST, 28 + max(words, default=0)))


def _name(tier: TierPosture) -> str:
    return f"{tier.name}  {tier.value}"


def _what(tier: TierPosture) -> str:
    what = ", ".join(tier.workloads) or "only by name"
    return what if tier.evicts else f"{what}; evicts nobody"


def _arrows(box: int, lane: int, start: int, ends: list[int], aside: float) -> Iterator[str]:
    """Yield one line down from a tier, with a head at each tier that it evicts, `aside` units from its middle."""
    x, middle = box + 30 + lane * LANE, TOP + (ROW - 12) / 2
    line = f'<path class="arrow tier-{start % 6}" d="'
    yield f'{line}M{box + 1} {middle + start * ROW + LEAVES} H{x} V{middle + ends[-1] * ROW + aside}"/>'
    for end in ends:
        y = middle + end * ROW + aside
        yield f'{line}M{x} {y} H{box + 8}"/>'
        yield f'<path class="head tier-{start % 6}" d="M{box + 3} {y} l8 -4 v8 z"/>'


def _text(x: int, y: int, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(words)}</text>'
