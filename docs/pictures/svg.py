"""Shapes of a picture as SVG text."""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

FONT = "ui-sans-serif, system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class Palette:
    """Colours for one of GitHub's two themes; `tiers` from the highest to the lowest."""

    paper: str
    line: str
    ink: str
    faint: str
    refused: str
    tiers: tuple[str, str, str, str]
    on_tier: str


def text(
    x: float,
    y: float,
    words: str,
    colour: str,
    *,
    size: int = 13,
    bold: bool = False,
    middle: bool = False,
    end: bool = False,
) -> str:
    """A line of text; `y` is its baseline, and `x` its start unless it is said to be its middle or its end."""
    weight = ' font-weight="600"' if bold else ""
    anchor = ' text-anchor="middle"' if middle else ' text-anchor="end"' if end else ""
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}"{weight}{anchor}>{escape(words, quote=False)}</text>'
    )


def box(x: float, y: float, width: float, height: float, fill: str, line: str, *, dashed: bool = False) -> str:
    """A rectangle with round corners."""
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    size = f'width="{width}" height="{height}"'
    return f'<rect x="{x}" y="{y}" {size} rx="6" fill="{fill}" stroke="{line}" stroke-width="1.2"{dashes}/>'


def arrow(x: float, y: float, to_x: float, to_y: float, colour: str) -> str:
    """A straight arrow; horizontal or vertical."""
    length, side = 6, 4
    if y == to_y:
        back = to_x - length if to_x > x else to_x + length
        head = f"{to_x},{to_y} {back},{to_y - side} {back},{to_y + side}"
    else:
        back = to_y - length if to_y > y else to_y + length
        head = f"{to_x},{to_y} {to_x - side},{back} {to_x + side},{back}"
    line = f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" stroke="{colour}" stroke-width="1.6"/>'
    return f'{line}<polygon points="{head}" fill="{colour}"/>'


def drawing(width: int, height: int, title: str, shapes: Iterable[str], *, said: str = "") -> str:
    """A whole SVG file; `said` describes the picture for people who can't see it."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img"'
    words = [f"<title>{escape(title)}</title>", *([f"<desc>{escape(said)}</desc>"] if said else [])]
    return "\n".join((f'{head} font-family="{FONT}">', *words, *shapes, "</svg>", ""))
