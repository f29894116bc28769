"""Who can evict whom, as a picture: a box for each tier, the highest above, and beside it whom it evicts."""

from collections.abc import Iterator
from html import escape

from webhook.readmodel.posture import Posture, TierPosture

ROW, TOP, BOX = 64, 8, 300
LANE, APART = 26, 9
"""Between the lines of two tiers: beside the boxes, and where they end at one box."""


def posture_picture(posture: Posture) -> str:
    """An SVG whose colours are those of the text around it, and of the classes tier-0, tier-1, …"""
    height = TOP * 2 + ROW * len(posture.tiers)
    width = BOX + 30 + LANE * len(posture.tiers)
    title = "; ".join(_sentence(each) for each in posture.tiers)
    head = f'<svg viewBox="0 0 {width} {height}" role="img" xmlns="http://www.w3.org/2000/svg">'
    return "".join((head, f"<title>{escape(title)}</title>", *_shapes(posture), "</svg>"))


def _sentence(tier: TierPosture) -> str:
    return f"{tier.name} evicts {', '.join(tier.evicts) or 'nobody'}"


def _shapes(posture: Posture) -> Iterator[str]:
    rows = {each.name: index for index, each in enumerate(posture.tiers)}
    for index, tier in enumerate(posture.tiers):
        yield from _box(tier, index)
    evicting = [each for each in posture.tiers if each.evicts]
    for lane, tier in enumerate(evicting):
        ends = sorted(rows[name] for name in tier.evicts)
        yield from _arrows(lane, rows[tier.name], ends, APART * (lane - (len(evicting) - 1) / 2))


def _box(tier: TierPosture, index: int) -> Iterator[str]:
    y = TOP + index * ROW
    yield f'<rect class="tier tier-{index % 6}" x="1" y="{y}" width="{BOX}" height="{ROW - 12}" rx="6"/>'
    yield _text(14, y + 22, f"{tier.name}  {tier.value}", "name")
    what = ", ".join(tier.workloads) or "only by name"
    yield _text(14, y + 41, what if tier.evicts else f"{what}; evicts nobody", "what")


def _arrows(lane: int, start: int, ends: list[int], aside: float) -> Iterator[str]:
    """One line down from a tier, with a head at each tier that it evicts, some units above or below its middle."""
    x, middle = BOX + 30 + lane * LANE, TOP + (ROW - 12) / 2
    line = f'<path class="arrow tier-{start % 6}" d="'
    yield f'{line}M{BOX + 1} {middle + start * ROW} H{x} V{middle + ends[-1] * ROW + aside}"/>'
    for end in ends:
        y = middle + end * ROW + aside
        yield f'{line}M{x} {y} H{BOX + 8}"/>'
        yield f'<path class="head tier-{start % 6}" d="M{BOX + 3} {y} l8 -4 v8 z"/>'


def _text(x: int, y: int, words: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{escape(words)}</text>'
