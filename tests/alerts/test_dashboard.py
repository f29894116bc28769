"""The Grafana dashboard: what a real Prometheus answers to its queries, and how its panels lie."""

import json
import re
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from localcluster.ports import free_ports
from localcluster.prometheus import Backfilled, Sample
from tests.alerts.promtool import promtool
from tests.alerts.test_alerts import SERIES
from webhook.server.metric_table import TABLE

FILE = Path(__file__).parents[2] / "charts" / "gpu-tiers" / "files" / "dashboard.json"
DASHBOARD = json.loads(FILE.read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {"$__rate_interval": "5m", "$__range": "1h", "$tenant": ".*"}
END = float(int(time.time()))
VALUES = {"exact": ("true", "false"), "outcome": ("error", "saved")}
"""Of labels that a query names by value; of others any will do."""
SUFFIXES = {"counter": "", "gauge": "", "histogram": "_bucket"}


def since_then(minute: int) -> float | None:
    """A series that begins twenty minutes before the end with its first event, and grows by one a minute."""
    return minute - 1419.0 if minute >= 1420 else None


def a_day() -> dict[str, Sample]:
    """Every metric of the table with all of its labels. What counts begins with its first event; none stood at 0."""
    found = {}
    for row in TABLE.values():
        labels = {name: VALUES.get(name, (f"a-{name}",)) for name in row.labels}
        if row.kind == "histogram":
            labels["le"] = ("1", "+Inf")
        for number in range(max(map(len, labels.values()), default=1)):
            chosen = ",".join(f'{name}="{each[number % len(each)]}"' for name, each in labels.items())
            found[f"{row.name}{SUFFIXES[row.kind]}{{{chosen}}}"] = since_then
    return found


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    promtool()  # without it the tests are skipped
    with Backfilled(tmp_path_factory.mktemp("prometheus"), *free_ports(1), a_day(), END) as running:
        yield f"http://127.0.0.1:{running.port}"


def queries() -> list[str]:
    return [target["expr"] for panel in PANELS for target in panel["targets"]]


def asked(prometheus: str, query: str) -> list[dict[str, Any]]:
    for variable, value in VARIABLES.items():
        query = query.replace(variable, value)
    with urlopen(f"{prometheus}/api/v1/query?{urlencode({'query': query, 'time': END})}", timeout=20) as answer:  # noqa: S310
        found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    return found


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_shows_what_replicas_tell_and_calls_its_lines_by_their_labels(
    panel: dict[str, Any], prometheus: str
) -> None:
    for target in panel["targets"]:
        lines = asked(prometheus, target["expr"])
        assert lines, target["expr"]
        for line in lines:
            assert line["value"][1] != "NaN", line
            assert {*re.findall(r"{{(\w+)}}", target["legendFormat"])} == {*line["metric"]}, "no line is called twice"


def test_the_first_preemption_of_all_is_seen(prometheus: str) -> None:
    (target,) = next(each["targets"] for each in PANELS if each["title"] == "Which tier evicts which")
    assert [float(line["value"][1]) for line in asked(prometheus, target["expr"])] == [2 * 21], "of both outcomes"


def test_every_query_asks_for_metrics_that_exist() -> None:
    for query in [*queries(), *(each["query"] for each in DASHBOARD["templating"]["list"][1:])]:
        asked = set(re.findall(r"gpu_tiers_\w+", query))
        assert asked, query
        assert asked <= SERIES, query


def test_no_panel_lies_on_another() -> None:
    for one, other in combinations(DASHBOARD["panels"], 2):
        assert not overlap(one["gridPos"], other["gridPos"]), f"{one['title']} and {other['title']}"
    assert max(each["gridPos"]["x"] + each["gridPos"]["w"] for each in PANELS) <= 24
    assert {each["gridPos"]["x"] + each["gridPos"]["w"] for each in last_of_their_lines()} == {24}, "no line has a gap"
    assert len({each["id"] for each in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_no_number_is_red_by_default() -> None:
    """Grafana's own threshold is 80, be it seconds until the certificate expires."""
    shown = [each for each in PANELS if each["type"] != "timeseries"]
    reds = {each["title"]: each["fieldConfig"]["defaults"]["thresholds"]["steps"][0]["color"] for each in shown}
    assert reds == {
        "Replicas": "red",
        "Leaders": "red",
        "Webhooks registered": "red",
        "Certificate expires in": "red",
        "Faults": "green",
        "Accounts are behind by": "green",
        "GPU-hours": "green",
    }


def last_of_their_lines() -> list[dict[str, Any]]:
    lines = {each["gridPos"]["y"]: each for each in sorted(DASHBOARD["panels"], key=lambda each: each["gridPos"]["x"])}
    return [*lines.values()]


def overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(
        one[at] < other[at] + other[size] and other[at] < one[at] + one[size] for at, size in (("x", "w"), ("y", "h"))
    )
