"""The Grafana dashboard: its queries are ones that Prometheus reads, on metrics that exist."""

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from tests.alerts.test_alerts import SERIES, run

FILE = Path(__file__).parents[2] / "charts" / "gpu-tiers" / "files" / "dashboard.json"
DASHBOARD = json.loads(FILE.read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {"$__rate_interval": "5m", "$__range": "1h", "$tenant": ".*"}


def queries() -> list[str]:
    return [target["expr"] for panel in PANELS for target in panel["targets"]]


def test_prometheus_reads_every_query(tmp_path: Path) -> None:
    """promtool reads rules; each query goes in as one that records."""
    rules = []
    for number, query in enumerate(queries()):
        for variable, value in VARIABLES.items():
            query = query.replace(variable, value)  # noqa: PLW2901
        assert "$" not in query
        rules.append({"record": f"panel:query{number}", "expr": query})
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    assert f"{len(rules)} rules found" in run("check", "rules", str(tmp_path / "rules.yaml"))


def test_every_query_asks_for_metrics_that_exist() -> None:
    for query in [*queries(), *(each["query"] for each in DASHBOARD["templating"]["list"][1:])]:
        asked = set(re.findall(r"gpu_tiers_\w+", query))
        assert asked, query
        assert asked <= SERIES, query


def test_no_panel_lies_on_another() -> None:
    for one, other in combinations(DASHBOARD["panels"], 2):
        assert not overlap(one["gridPos"], other["gridPos"]), f"{one['title']} and {other['title']}"
    assert max(each["gridPos"]["x"] + each["gridPos"]["w"] for each in PANELS) <= 24
    assert len({each["id"] for each in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def overlap(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(
        one[at] < other[at] + other[size] and other[at] < one[at] + one[size] for at, size in (("x", "w"), ("y", "h"))
    )
