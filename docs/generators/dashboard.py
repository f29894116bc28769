"""Makes the chart's Grafana dashboard of the table of panels below."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webhook.cli.prometheus import growth
from webhook.server.page_ports import used_by_tier

WIDTH = 24
"""Columns of Grafana's grid."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel of the dashboard. `queries` are pairs of a query and the legend of its lines; `unit` is Grafana's name.

    `colors` are pairs of the value from which on a color is used, and the color. Without `colors`, Grafana makes every
    number from 80 on red.
    """

    title: str
    about: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 12
    height: int = 8
    colors: tuple[tuple[float | None, str], ...] = ((None, "green"),)


def _number(title: str, about: str, query: str, *colors: tuple[float | None, str], unit: str = "short") -> Panel:
    return Panel(title, about, ((query, ""),), unit, "stat", width=4, height=4, colors=colors)


def _in_an_hour(metric: str, *labels: str, matchers: str = "") -> str:
    return f"sum by ({', '.join(labels)}) ({growth(f'gpu_tiers_{metric}{matchers}', '1h')})"


def _at_risk(matchers: str) -> str:
    """Return a query of GPU-hours at risk by tier. The maximum covers a change of leaders, who alone report them."""
    return f"sum by (tier) (max by (tenant, tier) (gpu_tiers_at_risk_gpu_seconds{matchers})) / 3600"


def _lost(matchers: str) -> str:
    return f"{_in_an_hour('lost_gpu_seconds_total', 'victim_tier', matchers=matchers)} / 3600"


_TENANT = '{tenant=~"$tenant"}'
_KNOWN = '{tenant=~"$tenant", exact="true"}'
_AT_MOST = '{tenant=~"$tenant", exact="false"}'
_SAVES = _in_an_hour("checkpoint_seconds_bucket", "le")
_PENDING = _in_an_hour("pending_seconds_bucket", "le", "tier")
_EVICTIONS = _in_an_hour("eviction_seconds_bucket", "le", "preemptor_tier")
_REVIEWS = "sum by (le) (rate(gpu_tiers_review_seconds_bucket[$__rate_interval]))"

ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Does it work?",
        (
            _number(
                "Replicas",
                "Replicas that are scraped.",
                "count(gpu_tiers_build_info)",
                (None, "red"),
                (1, "green"),
            ),
            _number(
                "Leaders",
                "One replica should lead.",
                "sum(gpu_tiers_leading)",
                (None, "red"),
                (1, "green"),
                (2, "red"),
            ),
            _number(
                "Webhooks registered",
                "Of the two webhook configurations. Below 2 pods get no tier, or no quota holds.",
                "sum(max by (kind) (gpu_tiers_webhook_configurations_registered))",
                (None, "red"),
                (2, "green"),
            ),
            _number(
                "Certificate expires in",
                "It is renewed long before.",
                "min(gpu_tiers_certificate_not_after_timestamp_seconds) - time()",
                (None, "red"),
                (7 * 86400, "green"),
                unit="s",
            ),
            _number(
                "Faults",
                "Reviews that failed by a fault of gpu-tiers.",
                'round(sum(increase(gpu_tiers_reviews_total{outcome="error"}[$__range])))',
                (None, "green"),
                (1, "red"),
            ),
            _number(
                "Accounts are behind by",
                "Since the leader last counted the pods.",
                "time() - max(gpu_tiers_ledger_round_timestamp_seconds)",
                (None, "green"),
                (120, "red"),
                unit="s",
            ),
        ),
    ),
    (
        "Tenants",
        (
            Panel(
                "GPUs booked beside the quota",
                "Each row of a quota, and what is booked on it.",
                (
                    (
                        f"max by (tenant, tier, flavor) (gpu_tiers_ledger_gpus{_TENANT})",
                        "{{tenant}} {{tier}} {{flavor}}",
                    ),
                    (
                        f"max by (tenant, tier, flavor) (gpu_tiers_quota_gpus{_TENANT})",
                        "quota: {{tenant}} {{tier}} {{flavor}}",
                    ),
                ),
            ),
            Panel(
                "GPU-hours",
                "GPU time that pods used on nodes in the time shown, for chargeback.",
                (
                    (
                        (
                            "sum by (tenant, tier, flavor) "
                            f"(increase(gpu_tiers_gpu_seconds_total{_TENANT}[$__range])) / 3600"
                        ),
                        "{{tenant}} {{tier}} {{flavor}}",
                    ),
                ),
                kind="bargauge",
            ),
            Panel(
                "GPUs used by tier",
                "GPUs that pods use on nodes; the page draws the same.",
                ((used_by_tier(_TENANT, "$__rate_interval"), "{{tier}}"),),
                width=WIDTH,
            ),
        ),
    ),
    (
        "What is admitted, and what is refused",
        (
            Panel(
                "Pods admitted by tier",
                "In an hour. In Audit: the tier that they would get.",
                ((_in_an_hour("admissions_total", "tier"), "{{tier}}"),),
            ),
            Panel(
                "Pods admitted by step and evidence",
                "In an hour: which step decided the tier, and the grade of evidence of the type.",
                ((_in_an_hour("admissions_total", "step", "grade"), "{{step}} {{grade}}"),),
            ),
            Panel(
                "Refusals by reason",
                "In an hour, also those that Audit and Warn let through.",
                ((_in_an_hour("denials_total", "reason", "mode"), "{{reason}} ({{mode}})"),),
            ),
            Panel(
                "Guesses too weak to raise a tier",
                "In an hour. A label settles each.",
                ((_in_an_hour("weak_guesses_total", "tier"), "stays {{tier}}"),),
            ),
        ),
    ),
    (
        "Preemptions, and what they cost",
        (
            Panel(
                "Which tier evicts which",
                "GPU pods evicted in an hour, by both tiers.",
                (
                    (
                        _in_an_hour("preemptions_total", "victim_tier", "preemptor_tier", matchers=_TENANT),
                        "{{preemptor_tier}} evicts {{victim_tier}}",
                    ),
                ),
            ),
            Panel(
                "What became of their work",
                "In an hour, by the checkpoint hook of each evicted pod.",
                ((_in_an_hour("checkpoints_total", "outcome"), "{{outcome}}"),),
            ),
            Panel(
                "GPU-hours at risk",
                "What to evict all training pods now would lose: since the last save where that is known, else at most "
                "so many.",
                ((_at_risk(_KNOWN), "{{tier}}"), (_at_risk(_AT_MOST), "{{tier}}, at most")),
            ),
            Panel(
                "GPU-hours lost to preemption",
                "In an hour, by the tier of the evicted pod; at most, where its last save is not known.",
                ((_lost(_KNOWN), "{{victim_tier}}"), (_lost(_AT_MOST), "{{victim_tier}}, at most")),
            ),
            Panel(
                "Seconds to save",
                "Of evicted pods whose hook tells, in an hour.",
                (
                    (f"histogram_quantile(0.5, {_SAVES})", "half of them"),
                    (f"histogram_quantile(0.95, {_SAVES})", "95 %"),
                ),
                "s",
            ),
            Panel(
                "Seconds from an eviction to a node",
                "Until the pod that it was for has its node, by that pod's tier; nine of ten are faster.",
                ((f"histogram_quantile(0.9, {_EVICTIONS})", "{{preemptor_tier}}"),),
                "s",
            ),
        ),
    ),
    (
        "Who waits, and why",
        (
            Panel(
                "Who waits longest",
                "Since the creation of the pod that waits longest for a node, by tier.",
                (("max by (tier) (gpu_tiers_pending_oldest_seconds)", "{{tier}}"),),
                "s",
            ),
            Panel(
                "Seconds until a node",
                "From a pod's creation, by tier; nine of ten are faster.",
                ((f"histogram_quantile(0.9, {_PENDING})", "{{tier}}"),),
                "s",
            ),
            Panel(
                "Waits while a lower tier runs",
                "The pod that waits could evict one of the lower tier, and no scheduler has said why it does not.",
                (
                    (
                        "max by (tier, lower_tier) (gpu_tiers_inverted_seconds)",
                        "{{tier}} waits, {{lower_tier}} runs",
                    ),
                ),
                "s",
            ),
            Panel(
                "Free GPUs that fit nobody",
                "On each node too few for any pod that waits, and together enough for one.",
                (("max(gpu_tiers_stranded_gpus)", "GPUs"),),
            ),
        ),
    ),
    (
        "The webhook",
        (
            Panel(
                "Reviews by outcome",
                "",
                (
                    (
                        "sum by (path, outcome) (rate(gpu_tiers_reviews_total[$__rate_interval]))",
                        "{{path}} {{outcome}}",
                    ),
                ),
                "reqps",
            ),
            Panel(
                "Seconds of a review",
                "From a request's headers to its answer.",
                (
                    (f"histogram_quantile(0.5, {_REVIEWS})", "half of them"),
                    (f"histogram_quantile(0.99, {_REVIEWS})", "99 %"),
                ),
                "s",
            ),
            Panel(
                "Writes of accounts",
                "A conflict is tried again: another replica was faster.",
                (("sum by (outcome) (rate(gpu_tiers_ledger_writes_total[$__rate_interval]))", "{{outcome}}"),),
                "wps",
            ),
            Panel(
                "Watches",
                "0: a replica can't follow the cluster.",
                (("min by (resource) (gpu_tiers_cache_synced)", "{{resource}}"),),
            ),
        ),
    ),
)


def dashboard() -> str:
    """Return the dashboard as JSON, with the panels of ROWS."""
    found = {
        "uid": "gpu-tiers",
        "title": "gpu-tiers",
        "tags": ["gpu-tiers"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": [_DATASOURCE, _TENANTS]},
        "panels": list(_panels()),
    }
    return json.dumps(found, indent=1) + "\n"


_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_DATASOURCE = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
_TENANTS = {
    "name": "tenant",
    "label": "Tenant",
    "type": "query",
    "datasource": _SOURCE,
    "query": "label_values(gpu_tiers_quota_gpus, tenant)",
    "refresh": 2,
    "multi": True,
    "includeAll": True,
    "allValue": ".*",
}


def _panels() -> Iterator[dict[str, Any]]:
    """Yield the panels with their places, after the title of their row. A panel that is too wide begins a new line."""
    number, top = 0, 0
    for title, panels in ROWS:
        number += 1
        yield {"id": number, "type": "row", "title": title, "gridPos": _place(0, top, WIDTH, 1), "panels": []}
        top, left = top + 1, 0
        for panel in panels:
            if left + panel.width > WIDTH:
                top, left = top + panel.height, 0
            number += 1
            yield _panel(number, panel) | {"gridPos": _place(left, top, panel.width, panel.height)}
            left += panel.width
        top += panels[-1].height


def _place(left: int, top: int, width: int, height: int) -> dict[str, int]:
    return {"x": left, "y": top, "w": width, "h": height}


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    targets = [_target(ref, query, legend, panel) for ref, (query, legend) in zip("ABCD", panel.queries, strict=False)]
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": _SOURCE,
        "targets": targets,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "thresholds": _steps(panel)}, "overrides": []},
    }


def _steps(panel: Panel) -> dict[str, Any]:
    return {"mode": "absolute", "steps": [{"color": color, "value": value} for value, color in panel.colors]}


def _target(ref: str, query: str, legend: str, panel: Panel) -> dict[str, Any]:
    only_now = {} if panel.kind == "timeseries" else {"instant": True}
    return {"refId": ref, "expr": query, "legendFormat": legend, "datasource": _SOURCE, **only_now}
