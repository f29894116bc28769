"""The colours of the pictures, for GitHub's two themes."""

from collections.abc import Iterator
from dataclasses import astuple

from pictures.svg import Palette

PALETTES = {
    "light": Palette(
        paper="#ffffff",
        line="#d0d7de",
        ink="#1f2328",
        faint="#59636e",
        refused="#cf222e",
        tiers=("#0969da", "#1a7f37", "#9a6700", "#8250df"),
        on_tier="#ffffff",
    ),
    "dark": Palette(
        paper="#161b22",
        line="#3d444d",
        ink="#f0f6fc",
        faint="#9198a1",
        refused="#ff7b72",
        tiers=("#58a6ff", "#3fb950", "#d29922", "#bc8cff"),
        on_tier="#0d1117",
    ),
}


def in_the_dark(light: Palette, dark: Palette) -> str:
    """A style for a picture in the light colours that shows it in the dark ones where the reader prefers those."""
    rules = (f'[{what}="{one}"]{{{what}:{other}}}' for one, other in _pairs(light, dark) for what in ("fill", "stroke"))
    return f"<style>@media (prefers-color-scheme: dark){{{''.join(rules)}}}</style>"


def _pairs(light: Palette, dark: Palette) -> Iterator[tuple[str, str]]:
    """Yield each colour with its counterpart, once."""
    flat = [(*astuple(each)[:5], *each.tiers) for each in (light, dark)]
    return zip(*flat, strict=True)
