"""The use of a day as lines, from looks that a replica has kept."""

import re
from dataclasses import replace

from msgspec import structs

from tests.unit.page.samples import a_content, a_preemption
from tests.unit.page.test_render import Balanced, sources_of, text_of
from webhook.page.routes import rendered
from webhook.page.use_chart import POINTS, WIDTH, use_chart
from webhook.readmodel.use_over_time import DAY, EVERY, UseOverTime

TIERS = ("gpu-training", "gpu-batch")
BEGAN = 1_795_305_600.0
"""2026-11-22 00:00 UTC."""


class Seen(UseOverTime):
    """Looks every ten seconds, as many minutes as a story lasts."""

    def __init__(self) -> None:
        self.now = BEGAN
        super().__init__(lambda: self.now)

    def hold(self, minutes: int, **gpus: float) -> None:
        for _ in range(minutes * 6):
            self.add({("alpha", tier.replace("_", "-"), ""): each for tier, each in gpus.items()})
            self.now += 10


def lines(chart: str) -> list[list[tuple[float, float]]]:
    found = re.findall(r'<polyline class="line tier-\d" points="([^"]*)"', chart)
    return [[tuple(map(float, point.split(","))) for point in each.split()] for each in found]  # type: ignore[misc]


def test_each_tier_has_a_line_that_rises_as_it_takes_gpus_and_falls_as_it_loses_them() -> None:
    seen = Seen()
    seen.hold(60, gpu_batch=8)
    seen.hold(60, gpu_training=8)
    training, batch = lines(use_chart(tuple(seen), TIERS, ()))
    assert (training[0][1], training[-1][1]) == (batch[-1][1], batch[0][1])
    assert training[-1][1] < training[0][1], "up is less in an SVG"


def test_of_ten_minutes_nothing_is_told_yet() -> None:
    seen = Seen()
    seen.hold(9, gpu_batch=8)
    assert use_chart(tuple(seen), TIERS, ()) == ""
    assert use_chart((), TIERS, ()) == ""


def test_memory_and_page_are_bounded_by_a_day() -> None:
    seen = Seen()
    seen.hold(60 * 60, gpu_batch=8)
    kept = tuple(seen)
    assert len(kept) == DAY / EVERY
    assert kept[-1].time - kept[0].time < DAY
    chart = use_chart(kept, TIERS, ())
    assert all(len(each) <= POINTS for each in lines(chart))
    assert len(chart) < 10_000


def test_who_no_longer_leads_forgets_so_that_no_line_bridges_a_gap() -> None:
    seen = Seen()
    seen.hold(60, gpu_batch=8)
    seen.forget()
    assert not tuple(seen)


def test_preemptions_stand_where_they_happened_the_higher_the_more_there_were() -> None:
    seen = Seen()
    seen.hold(24 * 60, gpu_batch=8)
    noon = a_preemption()
    evening = structs.replace(noon, time="2026-11-22T18:00:00Z")
    earlier, broken = structs.replace(noon, time="2026-11-20T18:00:00Z"), structs.replace(noon, time="soon")
    chart = use_chart(tuple(seen), TIERS, [noon, noon, evening, earlier, broken])
    found = re.findall(r'class="preempted" x="(\d+)" y="[^"]*" width="3" height="([^"]*)"', chart)
    assert [(round(int(x) / WIDTH, 1), float(height)) for x, height in found] == [(0.5, 24.0), (0.7, 12.0)]


async def test_the_page_shows_it_with_its_colours() -> None:
    seen = Seen()
    seen.hold(60, gpu_batch=8)
    sources = sources_of(a_content())
    assert "Use by tier in the last 24 hours" not in text_of(rendered(await sources.content()))
    page = rendered(await replace(sources, use=tuple(seen)).content())
    Balanced(page)
    assert page.count('<polyline class="line tier-') == 4
    assert "since 2026-11-22 00:00 UTC" in text_of(page)
