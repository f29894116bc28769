"""The page's last 24 hours, by a real Prometheus that knows a day of two replicas."""

import re
import time
from collections.abc import Iterator

import pytest
import yaml

from localcluster.ports import free_ports
from localcluster.prometheus import Backfilled, Sample
from tests.unit.page.samples import a_content
from tests.unit.page.test_render import text_of
from webhook.page.routes import rendered, use_chart
from webhook.report.gpus_now import UseAt
from webhook.server.page_ports import AskedPrometheus, evicted_by_tier
from webhook.server.settings import PrometheusServer

from .promtool import promtool
from .test_alerts import ALERTS

END = float(int(time.time()))
NOON, AWAY, BACK = 720, 1000, 1100
"""Minutes: the leader changes; both replicas are not scraped for a while."""


def in_use(gpus: float, since: int, until: int = 10_000) -> Sample:
    """GPU-seconds of so many GPUs that one replica counts in that time."""
    return lambda minute: None if AWAY < minute < BACK or minute < since else gpus * 60 * (min(minute, until) - since)


def evicted(pods: int, at: int) -> Sample:
    """Return a series with this many pods at that minute and none before and after."""
    return lambda minute: None if AWAY < minute < BACK else float(pods * (minute >= at))


def of(metric: str, **labels: str) -> str:
    selector = ",".join(f'{label}="{value}"' for label, value in labels.items())
    return f"gpu_tiers_{metric}_total{{{selector}}}"


A, B = {"instance": "a", "cluster": "eu"}, {"instance": "b", "cluster": "eu"}
SERIES: dict[str, Sample] = {
    of("gpu_seconds", tenant="alpha", tier="gpu-training", flavor="", **A): in_use(8, 0, NOON),
    of("gpu_seconds", tenant="alpha", tier="gpu-training", flavor="", **B): in_use(8, NOON),
    of("gpu_seconds", tenant="beta", tier="gpu-training", flavor="h100", **B): in_use(4, NOON),
    of("gpu_seconds", tenant="beta", tier="gpu-batch", flavor="", **A): in_use(2.5, 0, NOON),
    of("checkpoints", tier="gpu-batch", outcome="saved", **A): evicted(1, 300),
    of("checkpoints", tier="gpu-batch", outcome="not-saved", **A): evicted(2, 300),
    of("checkpoints", tier="gpu-batch", outcome="saved", **B): evicted(0, 0),
    of("checkpoints", tier="gpu-interactive", outcome="unknown", **B): evicted(1, 1300),
    of("gpu_seconds", tenant="omega", tier="gpu-training", flavor="", instance="c", cluster="us"): in_use(512, 0),
    of("checkpoints", tier="gpu-batch", outcome="saved", instance="c", cluster="us"): evicted(99, 600),
}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backfilled]:
    promtool()  # without it the tests are skipped
    with Backfilled(tmp_path_factory.mktemp("prometheus"), *free_ports(1), SERIES, END) as running:
        yield running


def asked(prometheus: Backfilled, **labels: str) -> AskedPrometheus:
    return AskedPrometheus(PrometheusServer(f"http://127.0.0.1:{prometheus.port}", labels, None, None), lambda: END)


def minute(look: UseAt) -> int:
    return round(24 * 60 - (END - look.time) / 60)


async def test_each_tier_has_what_its_pods_used_of_all_tenants_whoever_led(prometheus: Backfilled) -> None:
    day = await asked(prometheus, cluster="eu").day()
    assert not day.problem
    use = {minute(each): {tier: round(gpus, 1) for tier, gpus in each.gpus.items()} for each in day.seen}
    assert use[300] == {"gpu-training": 8, "gpu-batch": 2.5}
    assert use[NOON + 100] == {"gpu-training": 12, "gpu-batch": 0}, "two replicas show it, and it counts once"
    assert max(each["gpu-training"] for each in use.values()) == 12
    assert [each for each in use if AWAY + 10 < each < BACK] == [], "nobody knows of that time"
    assert len(use) > 120


async def test_the_first_preemption_of_all_is_counted_too(prometheus: Backfilled) -> None:
    day = await asked(prometheus, cluster="eu").day()
    found = {(round(24 * 60 - (END - each.time) / 60), each.tier): round(each.pods) for each in day.evicted}
    assert found == {(300, "gpu-batch"): 3, (1300, "gpu-interactive"): 1}


async def test_without_a_label_another_cluster_counts_too(prometheus: Backfilled) -> None:
    day = await asked(prometheus).day()
    assert round(max(each.gpus["gpu-training"] for each in day.seen)) == 524


async def test_the_page_of_a_replica_that_does_not_lead_draws_that_day(prometheus: Backfilled) -> None:
    by = asked(prometheus, cluster="eu")
    content = a_content(leads=False, gpus=None, prometheus=by.name, day=await by.day())
    selector = text_of(rendered(content))
    assert re.search("GPUs used by tier, at most 12; below, preempted pods, at most (about )?3", selector)
    assert f"By the Prometheus at 127.0.0.1:{prometheus.port}" in selector
    day = await by.day()
    assert use_chart(day.seen, ["gpu-training"], ()).count("<polyline") == 2, "one on each side of the gap"


async def test_one_that_knows_nothing_of_gpu_tiers_says_so(prometheus: Backfilled) -> None:
    day = await asked(prometheus, cluster='e"u').day()
    assert day.problem == 'no metric of gpu-tiers{cluster="e\\"u"}'


async def test_what_it_refuses_is_reported_by_its_code(prometheus: Backfilled) -> None:
    assert (await asked(prometheus, **{"no label": "x"}).day()).problem == "GET /api/v1/query_range: HTTP 400"


def test_the_alert_of_lost_work_counts_the_same() -> None:
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
    (alert,) = [each["expr"] for each in rules if each["alert"] == "GpuTiersWorkLost"]
    assert alert == evicted_by_tier('{outcome="not-saved"}', "1h") + " > 0"
