"""What the tiers held in the last day, a line for each, and below it how many pods each lost to preemptions."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from webhook.report.latest import Preemption
from webhook.report.use_over_time import Evicted, UseAt

WIDTH, HEIGHT, BOTTOM = 720, 120, 30
"""Of the lines, and below them of the preemptions; stretched to the width of a window, which texts could not be."""
TOP = 4
POINTS = 144
SHORTEST = 600.0
"""Seconds that have to be seen first: of less there is nothing to tell."""
GAP = 1.5
"""So many times the usual distance between two looks, and nobody knows what was between them."""


def use_chart(seen: Sequence[UseAt], tiers: Sequence[str], evicted: Iterable[Evicted]) -> str:
    """An SVG and its texts, within a page whose styles say its colours; "" as long as too little was seen."""
    if not seen or seen[-1].time - seen[0].time < SHORTEST:
        return ""
    most = max((each.gpus.get(tier, 0.0) for each in seen for tier in tiers), default=0.0) or 1.0
    bars, at_once = _bars([each for each in evicted if each.time >= seen[0].time], tiers, seen)
    below = f"preempted pods, at most {at_once}" if at_once else "no preempted pods"
    since, until = (
        datetime.fromtimestamp(each.time, UTC).strftime("%Y-%m-%d %H:%M UTC") for each in (seen[0], seen[-1])
    )
    size = f'viewBox="0 0 {WIDTH} {HEIGHT + BOTTOM}" preserveAspectRatio="none"'
    return (
        f'<div class="chart"><p><span>{most:g} GPUs</span><span>since {since}</span></p>'
        f'<svg {size} role="img" xmlns="http://www.w3.org/2000/svg">'
        f"<title>GPUs held by tier, at most {most:g}; below, {below}</title>"
        f'<path class="axis" d="M0 {TOP}H{WIDTH}M0 {HEIGHT}H{WIDTH}"/>'
        f"{''.join((*_lines(seen, tiers, most), *bars))}</svg>"
        f"<p><span>{below}</span><span>until {until[11:]}</span></p></div>"
    )


def _lines(seen: Sequence[UseAt], tiers: Sequence[str], most: float) -> Iterator[str]:
    stretches = list(_stretches(seen[:: -(-len(seen) // POINTS)]))
    for index, tier in enumerate(tiers):
        for stretch in stretches:
            points = (
                f"{_x(each.time, seen)},{HEIGHT - each.gpus.get(tier, 0.0) / most * (HEIGHT - TOP):.1f}"
                for each in stretch
            )
            yield f'<polyline class="line tier-{index % 6}" points="{" ".join(points)}"/>'


def _stretches(seen: Sequence[UseAt]) -> Iterator[Sequence[UseAt]]:
    """Looks that follow one another: no line is drawn through a time of which nobody knows."""
    distance = min(after.time - before.time for before, after in pairwise(seen))
    begin = 0
    for index, (before, after) in enumerate(pairwise(seen), start=1):
        if after.time - before.time > GAP * distance:
            yield seen[begin:index]
            begin = index
    yield seen[begin:]


def _bars(evicted: Iterable[Evicted], tiers: Sequence[str], seen: Sequence[UseAt]) -> tuple[Sequence[str], str]:
    """Those of one time one above the other, each in its tier's colour; and how many there were at most at a time."""
    counted: defaultdict[int, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for each in evicted:
        counted[round(_x(each.time, seen) / WIDTH * POINTS)][each.tier] += each.pods
    most = float(max((sum(pods.values()) for pods in counted.values()), default=0))
    bars = []
    for place, pods in sorted(counted.items()):
        bottom, x = float(HEIGHT + BOTTOM), round(place / POINTS * WIDTH)
        for tier, many in pods.items():
            height = round(many / most * (BOTTOM - 6), 1)
            bottom = round(bottom - height, 1)
            colour = f" t{tiers.index(tier) % 6}" if tier in tiers else ""
            bars.append(
                f'<rect class="preempted{colour}" x="{x}" y="{bottom}" width="{WIDTH // POINTS}" height="{height}"/>'
            )
    about = "" if most.is_integer() else "about "  # a Prometheus reckons between its samples
    return bars, f"{about}{most:.0f}" if most else ""


def _x(time: float, seen: Sequence[UseAt]) -> float:
    first, last = seen[0].time, seen[-1].time
    return round(min((time - first) / (last - first), 1.0) * (WIDTH - 4), 1)


def evicted_of(preemptions: Iterable[Preemption]) -> Iterator[Evicted]:
    """Those whose time can be read."""
    for each in preemptions:
        try:
            yield Evicted(datetime.fromisoformat(each.time).timestamp(), each.victim.tier)
        except ValueError:
            continue
