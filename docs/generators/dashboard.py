"""Makes the chart's Grafana dashboard of the table of panels below."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webhook.server.prometheus import held_by_tier

WIDTH = 24
"""Columns of Grafana's grid."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A panel: its queries, each with the legend of its lines. `unit` is Grafana's name of one."""

    title: str
    about: str
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 12
    height: int = 8


def _number(title: str, about: str, query: str, unit: str = "short") -> Panel:
    return Panel(title, about, ((query, ""),), unit, "stat", width=4, height=4)


_TENANT = '{tenant=~"$tenant"}'
_SAVES = "sum by (le) (rate(gpu_tiers_checkpoint_seconds_bucket[$__range]))"
_PENDING = "sum by (le, tier) (rate(gpu_tiers_pending_seconds_bucket[1h]))"
_EVICTIONS = "sum by (le, preemptor_tier) (rate(gpu_tiers_eviction_seconds_bucket[1h]))"
_REVIEWS = "sum by (le) (rate(gpu_tiers_review_seconds_bucket[$__rate_interval]))"

ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Does it work?",
        (
            _number("Replicas", "Replicas that are scraped.", "count(gpu_tiers_build_info)"),
            _number("Leaders", "One replica should lead.", "sum(gpu_tiers_leading)"),
            _number(
                "Webhooks registered",
                "Of the two webhook configurations. Below 2 pods get no tier, or no quota holds.",
                "sum(max by (kind) (gpu_tiers_webhook_configurations_registered))",
            ),
            _number(
                "Certificate expires in",
                "It is renewed long before.",
                "min(gpu_tiers_certificate_not_after_timestamp_seconds) - time()",
                "s",
            ),
            _number(
                "Faults",
                "Reviews that failed by a fault of gpu-tiers.",
                'sum(increase(gpu_tiers_reviews_total{outcome="error"}[$__range]))',
            ),
            _number(
                "Accounts are behind by",
                "Since the leader last brought them in line with the pods.",
                "time() - max(gpu_tiers_ledger_round_timestamp_seconds)",
                "s",
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
                "What pods held on nodes in the time shown, for chargeback.",
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
                "GPUs held by tier",
                "What pods hold on nodes; the page draws the same.",
                ((held_by_tier(_TENANT, "$__rate_interval"), "{{tier}}"),),
                width=WIDTH,
            ),
        ),
    ),
    (
        "What is let in, and what is refused",
        (
            Panel(
                "Pods let in by tier",
                "In Audit: the tier that they would get.",
                (("sum by (tier) (rate(gpu_tiers_admissions_total[$__rate_interval]))", "{{tier}}"),),
                "reqps",
            ),
            Panel(
                "Pods let in by step and evidence",
                "Which step decided the tier, and the grade of evidence of the type.",
                (("sum by (step, grade) (rate(gpu_tiers_admissions_total[$__rate_interval]))", "{{step}} {{grade}}"),),
                "reqps",
            ),
            Panel(
                "Refusals by reason",
                "Also those that Audit and Warn let through.",
                (("sum by (reason, mode) (increase(gpu_tiers_denials_total[1h]))", "{{reason}} ({{mode}})"),),
            ),
            Panel(
                "Guesses held back",
                "Too weak to raise a tier: a label settles each.",
                (("sum by (tier) (increase(gpu_tiers_guesses_held_back_total[1h]))", "stays {{tier}}"),),
            ),
        ),
    ),
    (
        "Preemptions",
        (
            Panel(
                "Who evicts whom",
                "GPU pods evicted in an hour, by both tiers.",
                (
                    (
                        f"sum by (victim_tier, preemptor_tier) (increase(gpu_tiers_preemptions_total{_TENANT}[1h]))",
                        "{{preemptor_tier}} evicts {{victim_tier}}",
                    ),
                ),
            ),
            Panel(
                "What became of their work",
                "By the checkpoint hook of each evicted pod.",
                (("sum by (outcome) (increase(gpu_tiers_checkpoints_total[1h]))", "{{outcome}}"),),
            ),
            Panel(
                "Seconds to save",
                "Of evicted pods whose hook tells.",
                (
                    (f"histogram_quantile(0.5, {_SAVES})", "half of them"),
                    (f"histogram_quantile(0.95, {_SAVES})", "95 %"),
                ),
                "s",
            ),
            Panel(
                "Seconds from an eviction to a place",
                "Until the pod that it was for has its node, by that pod's tier; nine of ten are faster.",
                ((f"histogram_quantile(0.9, {_EVICTIONS})", "{{preemptor_tier}}"),),
                "s",
            ),
        ),
    ),
    (
        "Who waits",
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
    """The file, whole."""
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
    """Rows of panels, one below the other; a panel that does not fit beside the last begins a new line."""
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
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
    }


def _target(ref: str, query: str, legend: str, panel: Panel) -> dict[str, Any]:
    only_now = {} if panel.kind == "timeseries" else {"instant": True}
    return {"refId": ref, "expr": query, "legendFormat": legend, "datasource": _SOURCE, **only_now}
