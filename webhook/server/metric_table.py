"""Every metric in one table. docs/metrics.md is made from it."""

from dataclasses import dataclass
from typing import Literal

SECONDS = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Bounds of the review histogram: the API server's own begin at 5 ms, where ours should have ended."""
SAVE_SECONDS = (1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Bounds of the histogram of saves: up to the grace period that autoscalers allow."""


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One row of the table. Counters and histograms are fed as things happen, gauges are read at each scrape."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = SECONDS


REVIEWS = Metric(
    "gpu_tiers_reviews_total",
    "counter",
    ("path", "operation", "outcome"),
    "Reviews by outcome: allowed, patched, denied, undecided (try again: the ledger could not be asked), error (a "
    "fault of gpu-tiers: failurePolicy decided), bad (not a review).",
)
REVIEW_SECONDS = Metric(
    "gpu_tiers_review_seconds",
    "histogram",
    ("path",),
    "Seconds from a request's headers to its answer, slow clients included.",
)
ANSWERS = Metric(
    "gpu_tiers_http_answers_total",
    "counter",
    ("path", "code"),
    "HTTP answers on the admission paths by status code; 499: the client left before its body was read.",
)
REFUSALS = Metric(
    "gpu_tiers_refusals_total",
    "counter",
    ("tier", "tenant"),
    "Refused objects; tier and tenant are empty where there is none.",
)
WOULD_REFUSE = Metric(
    "gpu_tiers_would_refuse_total",
    "counter",
    ("mode", "tier", "tenant"),
    "Objects that Enforce would have refused, let through by Audit or Warn.",
)
POLICY_RELOADS = Metric(
    "gpu_tiers_policy_reloads_total",
    "counter",
    ("result",),
    "Changes of the policy file: success, or failure (the last good policy stays in force).",
)
POLICY_INFO = Metric(
    "gpu_tiers_policy_info",
    "gauge",
    ("mode", "adoption"),
    "The policy in force; always 1.",
)
POLICY_LOADED = Metric(
    "gpu_tiers_policy_loaded_timestamp_seconds",
    "gauge",
    (),
    "When the policy in force was loaded, as a Unix time.",
)
CERTIFICATE_EXPIRY = Metric(
    "gpu_tiers_certificate_not_after_timestamp_seconds",
    "gauge",
    (),
    "When the serving certificate expires, as a Unix time.",
)
CONFIGURATIONS = Metric(
    "gpu_tiers_webhook_configurations_registered",
    "gauge",
    ("kind",),
    "Whether the webhook configuration exists and has webhooks (1) or not (0): at 0 nothing is reviewed.",
)
LEDGER_GPUS = Metric(
    "gpu_tiers_ledger_gpus",
    "gauge",
    ("tenant", "tier", "flavor"),
    "GPUs booked on a tenant's quota row; tier and flavor are empty where the row bounds all of them.",
)
LEDGER_WRITES = Metric(
    "gpu_tiers_ledger_writes_total",
    "counter",
    ("outcome",),
    "Writes of TenantQuotas' statuses: written, conflict (another replica was faster), failed; tried again.",
)
LEADING = Metric(
    "gpu_tiers_leading",
    "gauge",
    (),
    "Whether this replica leads (1): it counts pods and moves namespaces between tenants. One replica should.",
)
CACHE_SYNCED = Metric(
    "gpu_tiers_cache_synced",
    "gauge",
    ("resource",),
    "Whether the cache follows the cluster (1), or is not filled yet or can no longer be watched (0).",
)
PREEMPTIONS = Metric(
    "gpu_tiers_preemptions_total",
    "counter",
    ("victim_tier", "preemptor_tier", "tenant"),
    "GPU pods that the scheduler evicted for another pod, by the victim's tenant; a tier is empty where a pod has none "
    "or was gone. The replica that leads counts them.",
)
CHECKPOINTS = Metric(
    "gpu_tiers_checkpoints_total",
    "counter",
    ("tier", "outcome"),
    "What became of the work of evicted pods: saved, not-saved, nothing-listens (their program knows no hook), "
    "hook-ended (without an error), no-hook, unknown.",
)
CHECKPOINT_SECONDS = Metric(
    "gpu_tiers_checkpoint_seconds",
    "histogram",
    ("tier",),
    "Seconds that an evicted pod took to save, where its hook tells.",
    SAVE_SECONDS,
)
CUT_CONNECTIONS = Metric(
    "gpu_tiers_cut_connections_total",
    "counter",
    ("cause",),
    "Connections cut: slow headers, slow body, an answer left unread (answer), too many bytes (size) or requests at "
    "once (pipelined).",
)

TABLE = (
    REVIEWS,
    REVIEW_SECONDS,
    ANSWERS,
    REFUSALS,
    WOULD_REFUSE,
    POLICY_RELOADS,
    POLICY_INFO,
    POLICY_LOADED,
    CERTIFICATE_EXPIRY,
    CONFIGURATIONS,
    LEDGER_GPUS,
    LEDGER_WRITES,
    LEADING,
    CACHE_SYNCED,
    PREEMPTIONS,
    CHECKPOINTS,
    CHECKPOINT_SECONDS,
    CUT_CONNECTIONS,
)
