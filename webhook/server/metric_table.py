"""Every metric by its name in the code. The table is metrics.yaml in this folder; docs/metrics.md has the prose."""

from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from webhook.objects.data_files import data_file
from webhook.objects.refusal import Reason


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """A row of the table. Counters and histograms are fed by the code, and gauges are read at each scrape."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    starts: tuple[tuple[str, ...], ...] = ()


_ROWS = {row.name: row for row in msgspec.convert(data_file(__name__, "metrics.yaml"), tuple[Metric, ...])}

REVIEWS = _ROWS["gpu_tiers_reviews_total"]
REVIEW_SECONDS = _ROWS["gpu_tiers_review_seconds"]
ANSWERS = _ROWS["gpu_tiers_http_answers_total"]
REFUSALS = _ROWS["gpu_tiers_refusals_total"]
WOULD_REFUSE = _ROWS["gpu_tiers_would_refuse_total"]
ADMISSIONS = _ROWS["gpu_tiers_admissions_total"]
DENIALS = replace(_ROWS["gpu_tiers_denials_total"], starts=tuple((str(each), "Enforce") for each in Reason))
WEAK_GUESSES = _ROWS["gpu_tiers_weak_guesses_total"]
POLICY_RELOADS = _ROWS["gpu_tiers_policy_reloads_total"]
POLICY_INFO = _ROWS["gpu_tiers_policy_info"]
POLICY_TAKEN = _ROWS["gpu_tiers_policy_taken"]
POLICY_LOADED = _ROWS["gpu_tiers_policy_loaded_timestamp_seconds"]
CERTIFICATE_EXPIRY = _ROWS["gpu_tiers_certificate_not_after_timestamp_seconds"]
CONFIGURATIONS = _ROWS["gpu_tiers_webhook_configurations_registered"]
LEDGER_GPUS = _ROWS["gpu_tiers_ledger_gpus"]
RESERVED_GPUS = _ROWS["gpu_tiers_reserved_gpus"]
QUEUE_RESERVED_GPUS = _ROWS["gpu_tiers_queue_reserved_gpus"]
QUOTA_GPUS = _ROWS["gpu_tiers_quota_gpus"]
GPU_SECONDS = _ROWS["gpu_tiers_gpu_seconds_total"]
LEDGER_ROUND = _ROWS["gpu_tiers_ledger_round_timestamp_seconds"]
LEDGER_WRITES = _ROWS["gpu_tiers_ledger_writes_total"]
BOOKINGS_HANDED_OVER = _ROWS["gpu_tiers_bookings_handed_over_total"]
BOOKINGS_TAKEN = _ROWS["gpu_tiers_bookings_taken_total"]
LEADING = _ROWS["gpu_tiers_leading"]
CACHE_SYNCED = _ROWS["gpu_tiers_cache_synced"]
PREEMPTIONS = _ROWS["gpu_tiers_preemptions_total"]
LOST_GPU_SECONDS = _ROWS["gpu_tiers_lost_gpu_seconds_total"]
AT_RISK = _ROWS["gpu_tiers_at_risk_gpu_seconds"]
RESERVATIONS = _ROWS["gpu_tiers_reservations_total"]
RESERVED_NODES = _ROWS["gpu_tiers_reserved_nodes"]
EVICTION_COST_WRITES = _ROWS["gpu_tiers_eviction_cost_writes_total"]
CHECKPOINTS = _ROWS["gpu_tiers_checkpoints_total"]
CHECKPOINT_SECONDS = _ROWS["gpu_tiers_checkpoint_seconds"]
REPORTS = _ROWS["gpu_tiers_reports_total"]
REPORTING_PODS = _ROWS["gpu_tiers_reporting_pods"]
PENDING_SECONDS = _ROWS["gpu_tiers_pending_seconds"]
EVICTION_SECONDS = _ROWS["gpu_tiers_eviction_seconds"]
PENDING_OLDEST = _ROWS["gpu_tiers_pending_oldest_seconds"]
PENDING_GPUS = _ROWS["gpu_tiers_pending_gpus"]
QUEUED_PODS = _ROWS["gpu_tiers_queued_pods"]
QUEUED_GPUS = _ROWS["gpu_tiers_queued_gpus"]
QUEUE_HEAD = _ROWS["gpu_tiers_queue_head_seconds"]
HEAD_WITH_ROOM = _ROWS["gpu_tiers_queue_head_with_room_seconds"]
QUEUED_SECONDS = _ROWS["gpu_tiers_queued_seconds"]
INVERTED = _ROWS["gpu_tiers_inverted_seconds"]
STRANDED = _ROWS["gpu_tiers_stranded_gpus"]
BUILD_INFO = _ROWS["gpu_tiers_build_info"]
CUT_CONNECTIONS = _ROWS["gpu_tiers_cut_connections_total"]

TABLE = tuple(each for each in tuple(globals().values()) if isinstance(each, Metric))
"""All metrics, in the order of this file."""
