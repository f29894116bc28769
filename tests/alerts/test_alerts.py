"""The alerts: each fires for what it is about, and all are silent in a cluster in which all is well."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.alerts.promtool import promtool
from tests.alerts.stories import STORIES, WELL, Story
from webhook.server.metric_table import TABLE

ALERTS = Path(__file__).parents[2] / "charts" / "gpu-tiers" / "files" / "alerts.yaml"
RULES = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
SUFFIXES = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
SERIES = {f"{row.name}{suffix}" for row in TABLE.values() for suffix in SUFFIXES[row.kind]}


def run(*arguments: str) -> str:
    done = subprocess.run([promtool(), *arguments], capture_output=True, text=True, check=False, timeout=600)
    assert not done.returncode, done.stdout + done.stderr
    return done.stdout


def test_prometheus_reads_them() -> None:
    assert f"{len(RULES)} rules found" in run("check", "rules", str(ALERTS))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_metrics_that_exist_and_says_what_to_do(rule: dict[str, Any]) -> None:
    asked = set(re.findall(r"gpu_tiers_\w+", rule["expr"]))
    assert asked
    assert asked <= SERIES
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert rule["annotations"]["summary"].endswith(".")
    assert len(rule["annotations"]["description"]) > 100


def test_each_alert_has_a_story() -> None:
    assert [story.alert for story in STORIES] == [rule["alert"] for rule in RULES]


def test_each_alert_fires_and_none_fires_without_cause(tmp_path: Path) -> None:
    """One run of promtool: of each story all alerts are asked for, and only the story's may be there."""
    tests = [_test_of(story) for story in STORIES] + [_silent()]
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(_with_summaries_alone()))
    stories = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": tests}
    (tmp_path / "stories.yaml").write_text(yaml.safe_dump(stories))
    assert "SUCCESS" in run("test", "rules", str(tmp_path / "stories.yaml"))


def _with_summaries_alone() -> dict[str, Any]:
    """The rules without their descriptions, which would have to be repeated word by word."""
    bare = [rule | {"annotations": {"summary": rule["annotations"]["summary"]}} for rule in RULES]
    return {"groups": [{"name": "all", "rules": bare}]}


def _test_of(story: Story) -> dict[str, Any]:
    series = {**WELL, **story.series}
    severity = next(rule["labels"]["severity"] for rule in RULES if rule["alert"] == story.alert)
    fires = {"exp_labels": {"severity": severity, **story.labels}, "exp_annotations": {"summary": story.summary}}
    return {
        "name": story.alert,
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items() if values],
        "alert_rule_test": [
            {
                "eval_time": story.at,
                "alertname": rule["alert"],
                "exp_alerts": [fires] if rule["alert"] == story.alert else [],
            }
            for rule in RULES
        ],
    }


def _silent() -> dict[str, Any]:
    """Return series of a healthy webhook, at several times of two days."""
    quiet = [
        {"eval_time": at, "alertname": rule["alert"], "exp_alerts": []} for at in ("10m", "3h", "26h") for rule in RULES
    ]
    series = [{"series": name, "values": values} for name, values in WELL.items()]
    return {"name": "all is well", "interval": "1m", "input_series": series, "alert_rule_test": quiet}
