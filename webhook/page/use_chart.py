"""What the tiers held in the last day, a line for each, and below it when pods were preempted."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape

from webhook.readmodel.latest import Preemption
from webhook.readmodel.use_over_time import UseAt

WIDTH, HEIGHT, BOTTOM = 720, 120, 30
"""Of the lines, and below them of the preemptions."""
POINTS = 144
SHORTEST = 600.0
"""Seconds that have to be seen first: of less there is nothing to tell."""


def use_chart(seen: Sequence[UseAt], tiers: Sequence[str], preemptions: Iterable[Preemption]) -> str:
    """An SVG within a page, whose styles say its colours; "" as long as too little was seen."""
    if not seen or seen[-1].time - seen[0].time < SHORTEST:
        return ""
    most = max((gpus for each in seen for gpus in each.gpus.values()), default=0.0) or 1.0
    title = f"GPUs held by tier, at most {most:g}, and preemptions"
    head = f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT + BOTTOM}" role="img" xmlns="http://www.w3.org/2000/svg">'
    bars = _bars([each for each in map(_seconds, preemptions) if each >= seen[0].time], seen)
    return "".join((head, f"<title>{escape(title)}</title>", *_lines(seen, tiers, most), *bars, "</svg>"))


def _lines(seen: Sequence[UseAt], tiers: Sequence[str], most: float) -> Iterator[str]:
    yield f'<path class="axis" d="M0 {HEIGHT} H{WIDTH}"/><text class="what" x="2" y="11">{most:g}</text>'
    since = datetime.fromtimestamp(seen[0].time, UTC).strftime("%Y-%m-%d %H:%M UTC")
    yield f'<text class="what" x="{WIDTH - 4}" y="11" text-anchor="end">since {since}</text>'
    shown = seen[:: -(-len(seen) // POINTS)]
    for index, tier in enumerate(tiers):
        points = (
            f"{_x(each.time, seen)},{HEIGHT - each.gpus.get(tier, 0.0) / most * (HEIGHT - 18):.1f}" for each in shown
        )
        yield f'<polyline class="line tier-{index % 6}" points="{" ".join(points)}"/>'


def _bars(times: Iterable[float], seen: Sequence[UseAt]) -> Iterator[str]:
    """As high as there were many at a time."""
    counted = Counter(round(_x(each, seen) / WIDTH * POINTS) for each in times)
    most = max(counted.values(), default=1)
    for place, count in sorted(counted.items()):
        height = round(count / most * (BOTTOM - 6), 1)
        x = round(place / POINTS * WIDTH)
        yield f'<rect class="preempted" x="{x}" y="{HEIGHT + BOTTOM - height}" width="3" height="{height}"/>'


def _x(time: float, seen: Sequence[UseAt]) -> float:
    first, last = seen[0].time, seen[-1].time
    return round(min((time - first) / (last - first), 1.0) * (WIDTH - 4), 1)


def _seconds(preemption: Preemption) -> float:
    """0 for a time that can't be read."""
    try:
        return datetime.fromisoformat(preemption.time).timestamp()
    except ValueError:
        return 0.0
