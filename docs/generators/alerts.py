"""Makes docs/alerts.md of the chart's alerts."""

from pathlib import Path
from typing import Any

import yaml

from generators.tables import page, wrapped

ALERTS = Path(__file__).parents[2] / "charts" / "gpu-tiers" / "files" / "alerts.yaml"

_HEAD = """\
Each alert says what it means and what to do. The chart ships them as a PrometheusRule
(`metrics.prometheusRule.enabled`); a Prometheus without its operator reads
`charts/gpu-tiers/files/alerts.yaml` (`rule_files`)."""

_SEVERITIES = """\
`critical`: GPU pods are not created, or not reviewed; act now. `warning`: act today. `info`: for planning."""


def alerts() -> str:
    """Return the whole page: a section for each alert of the chart."""
    return page("Alerts", "`charts/gpu-tiers/files/alerts.yaml`", _HEAD, _SEVERITIES, *map(_section, rules()))


def rules() -> list[dict[str, Any]]:
    """Return all alerts, in the file's order."""
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def _section(rule: dict[str, Any]) -> str:
    waits = f", after {rule['for']}" if "for" in rule else ""
    text = wrapped(rule["annotations"]["description"])
    return f"## {rule['alert']}\n\nSeverity {rule['labels']['severity']}{waits}.\n\n{text}\n\n```\n{rule['expr']}\n```"
