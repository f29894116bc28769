"""Every metric in one table. docs/metrics.md says at length what each means."""

from dataclasses import dataclass
from typing import Literal

from webhook.objects.refusal import Reason

SECONDS = (0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Bounds of the review histogram: the API server's own begin at 5 ms, where ours should have ended."""
SAVE_SECONDS = (1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Bounds of the histogram of saves: up to the grace period that autoscalers allow."""

WAIT_SECONDS = (1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14400.0, 43200.0, 86400.0, 259200.0)
"""Bounds of the histogram of waits: from a free node to a long weekend."""
EVICTION_BOUNDS = (1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 300.0, 600.0, 1800.0)
"""Of evictions: half a minute is what a pod has to end unless somebody says more."""


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One row of the table. Counters and histograms are fed as things happen, gauges are read at each scrape.

    `starts`: labels of a counter that stand at 0 from the beginning. Prometheus sees no increase in a series that
    begins at 1, so an alert would miss the first.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = SECONDS
    starts: tuple[tuple[str, ...], ...] = ()


REVIEWS = Metric(
    "gpu_tiers_reviews_total",
    "counter",
    ("path", "operation", "outcome"),
    "Reviews, dry runs too, by outcome.",
    starts=tuple((path, "CREATE", outcome) for path in ("/mutate", "/validate") for outcome in ("error", "undecided")),
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
    "HTTP answers on the admission port by path and status code.",
)
REFUSALS = Metric(
    "gpu_tiers_refusals_total",
    "counter",
    ("tier", "tenant"),
    "Refused objects, dry runs aside; tier and tenant are empty where there is none.",
)
WOULD_REFUSE = Metric(
    "gpu_tiers_would_refuse_total",
    "counter",
    ("mode", "tier", "tenant"),
    "Objects that Enforce would have refused, let through by Audit or Warn; dry runs aside.",
)
ADMISSIONS = Metric(
    "gpu_tiers_admissions_total",
    "counter",
    ("tier", "step", "grade", "mode"),
    "Pods let in, by the step that decided their tier, and by the grade of evidence of their type.",
)
DENIALS = Metric(
    "gpu_tiers_denials_total",
    "counter",
    ("reason", "mode"),
    "Objects that Enforce refused, or would have refused, dry runs aside, by reason.",
    starts=tuple((str(reason), "Enforce") for reason in Reason),
)
HELD_BACK = Metric(
    "gpu_tiers_guesses_held_back_total",
    "counter",
    ("tier",),
    "Objects of which a guess was too weak to raise their tier, by the tier that they got.",
)
POLICY_RELOADS = Metric(
    "gpu_tiers_policy_reloads_total",
    "counter",
    ("result",),
    "Changes of the policy file: success, or failure (the last good policy stays in force).",
    starts=(("success",), ("failure",)),
)
POLICY_INFO = Metric(
    "gpu_tiers_policy_info",
    "gauge",
    ("mode", "adoption", "digest"),
    "The policy in force, with the digest of its text; always 1.",
)
POLICY_TAKEN = Metric(
    "gpu_tiers_policy_taken",
    "gauge",
    (),
    "Whether the policy file is in force as it should be (1) or not (0).",
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
    "Whether the webhook configuration exists and has webhooks (1) or not (0): at 0 the API server does not ask.",
)
LEDGER_GPUS = Metric(
    "gpu_tiers_ledger_gpus",
    "gauge",
    ("tenant", "tier", "flavor"),
    "GPUs booked on a tenant's quota row; tier and flavor are empty where the row bounds all of them.",
)
RESERVED_GPUS = Metric(
    "gpu_tiers_reserved_gpus",
    "gauge",
    ("tenant", "tier", "flavor"),
    "GPUs of a quota row that are booked for pods which were admitted and are not seen yet; a part of "
    "gpu_tiers_ledger_gpus.",
)
QUEUE_RESERVED_GPUS = Metric(
    "gpu_tiers_queue_reserved_gpus",
    "gauge",
    ("tenant", "tier", "flavor"),
    "GPUs of a quota row that are free and reserved for the head of the queue (onExceed: Hold); a part of "
    "gpu_tiers_ledger_gpus.",
)
QUOTA_GPUS = Metric(
    "gpu_tiers_quota_gpus",
    "gauge",
    ("tenant", "tier", "flavor"),
    "GPUs that a tenant's quota row allows; tier and flavor are empty where the row bounds all of them.",
)
GPU_SECONDS = Metric(
    "gpu_tiers_gpu_seconds_total",
    "counter",
    ("tenant", "tier", "flavor"),
    "Seconds times GPUs that pods held on their nodes.",
)
LEDGER_ROUND = Metric(
    "gpu_tiers_ledger_round_timestamp_seconds",
    "gauge",
    (),
    "When the replica that leads last brought the accounts in line with the pods, as a Unix time.",
)
LEDGER_WRITES = Metric(
    "gpu_tiers_ledger_writes_total",
    "counter",
    ("outcome",),
    "Writes of TenantQuotas' statuses, by outcome.",
    starts=(("written",), ("conflict",), ("failed",)),
)
BOOKINGS_HANDED_OVER = Metric(
    "gpu_tiers_bookings_handed_over_total",
    "counter",
    ("outcome",),
    "Bookings that a replica handed to the leader, by outcome.",
    starts=(("booked",), ("declined",), ("failed",)),
)
BOOKINGS_TAKEN = Metric(
    "gpu_tiers_bookings_taken_total",
    "counter",
    ("outcome",),
    "Bookings that other replicas handed to this one, by outcome.",
    starts=(("booked",), ("declined",), ("refused",)),
)
LEADING = Metric(
    "gpu_tiers_leading",
    "gauge",
    (),
    "Whether this replica leads (1).",
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
    ("victim_tier", "preemptor_tier", "tenant", "outcome"),
    "GPU pods that the scheduler evicted for another pod, by the victim's tenant.",
)
LOST_GPU_SECONDS = Metric(
    "gpu_tiers_lost_gpu_seconds_total",
    "counter",
    ("victim_tier", "preemptor_tier", "tenant", "outcome", "exact"),
    "GPU-seconds that evicted training pods had worked since their last save.",
)
AT_RISK = Metric(
    "gpu_tiers_at_risk_gpu_seconds",
    "gauge",
    ("tenant", "tier", "exact"),
    "GPU-seconds that training pods have worked since their last save.",
)
EVICTION_COST_WRITES = Metric(
    "gpu_tiers_eviction_cost_writes_total",
    "counter",
    ("scheduler", "outcome"),
    "Annotations by which Kueue and Volcano are told what an eviction would lose, by outcome.",
)
CHECKPOINTS = Metric(
    "gpu_tiers_checkpoints_total",
    "counter",
    ("tier", "outcome"),
    "What became of the work of evicted pods, by outcome.",
)
CHECKPOINT_SECONDS = Metric(
    "gpu_tiers_checkpoint_seconds",
    "histogram",
    ("tier",),
    "Seconds that an evicted pod took to save, where its hook tells.",
    SAVE_SECONDS,
)
REPORTS = Metric(
    "gpu_tiers_reports_total",
    "counter",
    ("outcome",),
    "Reports of trainings on how far they are, by outcome.",
    starts=(("heard",),),
)
REPORTING_PODS = Metric(
    "gpu_tiers_reporting_pods",
    "gauge",
    (),
    "Pods whose last report was heard within an hour.",
)
PENDING_SECONDS = Metric(
    "gpu_tiers_pending_seconds",
    "histogram",
    ("tier",),
    "Seconds from a GPU pod's creation to the moment it was bound to a node, behind scheduling gates too.",
    WAIT_SECONDS,
)
EVICTION_SECONDS = Metric(
    "gpu_tiers_eviction_seconds",
    "histogram",
    ("preemptor_tier", "hook"),
    "Seconds from an eviction to the moment the pod that it was for was bound to a node.",
    EVICTION_BOUNDS,
)
PENDING_OLDEST = Metric(
    "gpu_tiers_pending_oldest_seconds",
    "gauge",
    ("tier",),
    "Seconds since the creation of the GPU pod that waits longest for a node, by tier; 0 where none waits.",
)
PENDING_GPUS = Metric(
    "gpu_tiers_pending_gpus",
    "gauge",
    ("tenant", "tier", "flavor"),
    "GPUs of a quota row that pods use which have no node yet; a part of gpu_tiers_ledger_gpus.",
)
HELD_PODS = Metric(
    "gpu_tiers_held_pods",
    "gauge",
    ("tenant", "tier"),
    "GPU pods that wait behind the gate of gpu-tiers for their turn (onExceed: Hold), by tenant and tier.",
)
HELD_GPUS = Metric(
    "gpu_tiers_held_gpus",
    "gauge",
    ("tenant", "tier"),
    "GPUs that these pods ask for.",
)
LINE_HEAD = Metric(
    "gpu_tiers_line_head_seconds",
    "gauge",
    ("tenant",),
    "Seconds since the creation of the first pod of a tenant's line; 0 where nobody waits.",
)
HEAD_WITH_ROOM = Metric(
    "gpu_tiers_line_head_with_room_seconds",
    "gauge",
    ("tenant",),
    "Seconds for which the first of a tenant's line has waited though it could run; 0 as it should be.",
)
HELD_SECONDS = Metric(
    "gpu_tiers_held_seconds",
    "histogram",
    ("tier",),
    "Seconds from the creation of a held pod to the moment its gate was opened.",
    WAIT_SECONDS,
)
INVERTED = Metric(
    "gpu_tiers_inverted_seconds",
    "gauge",
    ("tier", "lower_tier"),
    "Seconds that a pod has waited while a pod of a lower tier, which it could evict, holds GPUs.",
)
STRANDED = Metric(
    "gpu_tiers_stranded_gpus",
    "gauge",
    (),
    "GPUs that are free, on each node too few for any pod that waits, and together enough for one.",
)
BUILD_INFO = Metric(
    "gpu_tiers_build_info",
    "gauge",
    ("version", "python"),
    "The version of gpu-tiers and of Python; always 1.",
)
CUT_CONNECTIONS = Metric(
    "gpu_tiers_cut_connections_total",
    "counter",
    ("cause",),
    "Connections cut, by cause.",
)

TABLE = tuple(each for each in tuple(globals().values()) if isinstance(each, Metric))
"""All of them, in the order of this file."""
