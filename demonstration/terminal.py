"""Draws a terminal: commands, and what they printed, as an SVG that fetches nothing."""

import io
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

WIDTH = 104
"""Characters in a line, where not more are asked for."""
LEFT_OUT = "…"
_NORMAL = ("484f58", "ff7b72", "3fb950", "d29922", "58a6ff", "bc8cff", "39c5cf", "b1bac4")
_BRIGHT = ("6e7681", "ffa198", "56d364", "e3b341", "79c0ff", "d2a8ff", "56d4dd", "f0f6fc")
PAPER, INK = "161b22", "e6edf3"
FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" width="{width}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace;
font-size: {char_height}px; line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 16px; font-family: ui-sans-serif, system-ui, 'Segoe UI', Arial, sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal"><rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>{lines}</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""Rich's own, but for the fonts, which it would fetch."""


@dataclass(frozen=True, slots=True)
class Said:
    """A command as a person types it, and what was printed, with its colours."""

    command: str
    printed: str


def terminal(title: str, said: Sequence[Said], width: int = WIDTH) -> str:
    """Return the picture as SVG; the same input gives the same picture."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for each in said:
        console.print(Text.assemble(("$ ", "bold green"), (each.command, "bold")), overflow="fold")
        for line in each.printed.rstrip("\n").split("\n"):
            console.print(Text(line, "dim") if line == LEFT_OUT else Text.from_ansi(line), overflow="fold")
    drawn = console.export_svg(title=title, theme=_theme(), code_format=FORMAT, unique_id="terminal")
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


def _theme() -> TerminalTheme:
    return TerminalTheme(_rgb(PAPER), _rgb(INK), [*map(_rgb, _NORMAL)], [*map(_rgb, _BRIGHT)])


def _rgb(colour: str) -> tuple[int, int, int]:
    red, green, blue = bytes.fromhex(colour)
    return red, green, blue
