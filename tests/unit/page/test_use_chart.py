"""The use of a day as lines, from looks that a replica has kept."""

import re
from typing import Any

from msgspec import structs

from tests.unit.page.samples import a_content, a_preemption
from tests.unit.page.test_render import Balanced, text_of
from webhook.page.routes import POINTS, TOP, WIDTH, rendered, use_chart
from webhook.report.gpus_now import DAY, EVERY, DayOfUse, Evicted, UseAt, UseOverTime

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


def test_what_has_no_line_does_not_press_the_others_down() -> None:
    """Pods without a tier, or of a tier that the policy has no more."""
    seen = Seen()
    seen.hold(60, gpu_batch=8, retired=64)
    chart = use_chart(tuple(seen), TIERS, ())
    assert "8 GPUs" in text_of(chart)
    assert lines(chart)[1][0][1] == TOP


def test_of_ten_minutes_nothing_is_shown_yet() -> None:
    seen = Seen()
    seen.hold(9, gpu_batch=8)
    assert use_chart(tuple(seen), TIERS, ()) == ""
    assert use_chart((), TIERS, ()) == ""


def test_memory_and_page_are_bounded_by_a_day() -> None:
    seen = Seen()
    seen.hold(60 * 60, gpu_batch=8)
    samples = tuple(seen)
    assert len(samples) == DAY / EVERY
    assert samples[-1].time - samples[0].time < DAY
    chart = use_chart(samples, TIERS, ())
    assert all(len(each) <= POINTS for each in lines(chart))
    assert len(chart) < 10_000


def test_who_no_longer_leads_forgets_so_that_no_line_bridges_a_gap() -> None:
    seen = Seen()
    seen.hold(60, gpu_batch=8)
    seen.forget()
    assert not tuple(seen)


def test_no_line_is_drawn_through_a_time_of_which_nobody_knows() -> None:
    """A Prometheus that was away from one o'clock to three."""
    hours = [hour for hour in range(6) if hour not in (1, 2)]
    looks = [UseAt(BEGAN + hour * 3600 + ten * 600, {"gpu-batch": 8.0}) for hour in hours for ten in range(6)]
    chart = use_chart(looks, TIERS, ())
    assert [len(each) for each in lines(chart)] == [6, 18] * 2


def test_preemptions_stand_where_they_happened_the_higher_the_more_there_were() -> None:
    seen = Seen()
    seen.hold(24 * 60, gpu_batch=8)
    noon = a_preemption()
    evening = structs.replace(noon, time="2026-11-22T18:00:00Z")
    earlier, broken = structs.replace(noon, time="2026-11-20T18:00:00Z"), structs.replace(noon, time="soon")
    happened = (noon, noon, evening, earlier, broken)
    chart, _ = a_content(use=tuple(seen), preemptions=happened).chart()
    found = re.findall(r'class="preempted t2" x="(\d+)" y="[^"]*" width="5" height="([^"]*)"', chart)
    assert [(round(int(x) / WIDTH, 1), float(height)) for x, height in found] == [(0.5, 24.0), (0.7, 12.0)]
    assert "preempted pods, at most 2" in text_of(chart)


def test_pods_that_two_tiers_lose_at_once_stand_one_above_the_other_in_their_colours() -> None:
    seen = Seen()
    seen.hold(24 * 60, gpu_batch=8)
    noon = BEGAN + DAY / 2
    lost = [Evicted(noon, "gpu-training", 1.02), Evicted(noon, "gpu-batch", 3.06), Evicted(noon, "", 2)]
    found = re.findall(
        r'class="preempted( t\d)?" x="\d+" y="([^"]*)" width="5" height="([^"]*)"', use_chart(tuple(seen), TIERS, lost)
    )
    assert [each[0].strip() for each in found] == ["t0", "t1", ""]
    tops, heights = [float(each[1]) for each in found], [float(each[2]) for each in found]
    assert tops[0] == tops[1] + heights[1]
    assert tops[1] == tops[2] + heights[2]
    assert round(sum(heights)) == 24


def test_the_page_shows_it_with_its_colours() -> None:
    seen = Seen()
    seen.hold(60, gpu_batch=8)
    assert "Use by tier in the last 24 hours" not in text_of(rendered(a_content()))
    page = rendered(a_content(use=tuple(seen)))
    Balanced(page)
    assert page.count('<polyline class="line tier-') == 4
    assert "since 2026-11-22 00:00 UTC" in text_of(page)
    assert "As far as this replica has counted: since it began to lead." in text_of(page)


def a_day(problem: str = "") -> dict[str, Any]:
    """Return the answer of a Prometheus: 16 GPUs of gpu-batch, and 3 evicted pods of it."""
    looks = tuple(UseAt(BEGAN + each * 600, {"gpu-batch": 16.0}) for each in range(144))
    text = DayOfUse(problem=problem) if problem else DayOfUse(looks, (Evicted(BEGAN + DAY / 2, "gpu-batch", 3.0),))
    return {"prometheus": "prometheus.monitoring:9090", "day": text}


def test_where_a_prometheus_is_named_the_page_of_every_replica_shows_its_day() -> None:
    page = rendered(a_content(leads=False, gpus=None, preemptions=(), **a_day()))
    Balanced(page)
    text = text_of(page)
    assert "By the Prometheus at prometheus.monitoring:9090; each point is the average of ten minutes." in text
    assert "GPUs used by tier, at most 16; below, preempted pods, at most 3" in text
    assert "As far as this replica has counted" not in text
    assert '<i class="t2"></i>gpu-batch</li>' in page, "the bar, whose colours these are, is not there"


def test_a_prometheus_that_tells_nothing_is_named_and_what_this_replica_has_counted_is_shown() -> None:
    seen = Seen()
    seen.hold(60, gpu_batch=8)
    asked = a_content(use=tuple(seen), **a_day("Cannot connect: Connection refused"))
    text = text_of(rendered(asked))
    why = "The Prometheus at prometheus.monitoring:9090 tells nothing: Cannot connect: Connection refused."
    assert f"{why} As far as this replica has counted: since it began to lead." in text
    assert "GPUs used by tier, at most 8;" in text
    follower = a_content(leads=False, gpus=None, **a_day("no answer within 2 s"))
    text = text_of(rendered(follower))
    assert "tells nothing: no answer within 2 s." in text
    assert "As far as this replica" not in text
