"""Stories of metrics as Prometheus sees them, and the alerts that they raise."""

from collections.abc import Mapping
from dataclasses import dataclass, field

WELL = {
    "gpu_tiers_build_info": "1x1600",
    'gpu_tiers_leading{instance="one"}': "1x1600",
    'gpu_tiers_leading{instance="two"}': "0x1600",
    'gpu_tiers_webhook_configurations_registered{kind="ValidatingWebhookConfiguration"}': "1x1600",
    "gpu_tiers_certificate_not_after_timestamp_seconds": "7776000x1600",
    "gpu_tiers_ledger_round_timestamp_seconds": "0+60x1600",
    'gpu_tiers_reviews_total{path="/validate",outcome="error"}': "0x1600",
    'gpu_tiers_reviews_total{path="/validate",outcome="undecided"}': "0x1600",
    'gpu_tiers_reviews_total{path="/validate",outcome="allowed"}': "0+60x1600",
    'gpu_tiers_ledger_writes_total{outcome="failed"}': "0x1600",
    'gpu_tiers_ledger_writes_total{outcome="conflict"}': "0+5x1600",
    'gpu_tiers_review_seconds_bucket{path="/validate",le="0.01"}': "0+60x1600",
    'gpu_tiers_review_seconds_bucket{path="/validate",le="5"}': "0+60x1600",
    'gpu_tiers_review_seconds_bucket{path="/validate",le="+Inf"}': "0+60x1600",
    'gpu_tiers_cache_synced{resource="pods"}': "1x1600",
    'gpu_tiers_policy_taken{instance="one"}': "1x1600",
    'gpu_tiers_policy_info{instance="one",mode="Enforce",digest="a1"}': "1x1600",
    'gpu_tiers_policy_info{instance="two",mode="Enforce",digest="a1"}': "1x1600",
    'gpu_tiers_checkpoints_total{tier="gpu-training",outcome="not-saved"}': "0x1600",
    'gpu_tiers_checkpoints_total{tier="gpu-training",outcome="saved"}': "0+1x1600",
    'gpu_tiers_reservations_total{tier="gpu-training",outcome="bound"}': "0+1x1600",
    'gpu_tiers_reservations_total{tier="gpu-training",outcome="failed"}': "0x1600",
    'gpu_tiers_over_max_at_risk_pods{tier="gpu-training"}': "0x1600",
    'gpu_tiers_denials_total{reason="over-quota",mode="Enforce"}': "0+1x1600",
    'gpu_tiers_ledger_gpus{tenant="alpha",tier="gpu-training",flavor=""}': "4x1600",
    'gpu_tiers_quota_gpus{tenant="alpha",tier="gpu-training",flavor=""}': "8x1600",
    'gpu_tiers_queue_head_seconds{tenant="alpha"}': "0+60x1600",
    'gpu_tiers_queue_head_with_room_seconds{tenant="alpha"}': "0x1600",
}
"""A cluster in which all is well for two days."""


@dataclass(frozen=True)
class Story:
    """The alert that fires `at` some time and says its summary, when these series replace those of a healthy cluster.

    A series without values is not there.
    """

    alert: str
    series: Mapping[str, str | None]
    at: str
    summary: str
    labels: Mapping[str, str] = field(default_factory=dict)


STORIES = (
    Story("GpuTiersAbsent", {"gpu_tiers_build_info": None}, "6m", "No replica of gpu-tiers is scraped."),
    Story(
        "GpuTiersNotRegistered",
        {'gpu_tiers_webhook_configurations_registered{kind="ValidatingWebhookConfiguration"}': "1 0x1600"},
        "10m",
        "ValidatingWebhookConfiguration of gpu-tiers is missing or has no path.",
        {"kind": "ValidatingWebhookConfiguration"},
    ),
    Story(
        "GpuTiersCertificateExpires",
        {"gpu_tiers_certificate_not_after_timestamp_seconds": "90000x1600"},
        "1h",
        "The serving certificate of gpu-tiers expires in 1d 0h 0m 0s.",
    ),
    Story(
        "GpuTiersNoLeader",
        {'gpu_tiers_leading{instance="one"}': "1 0x1600"},
        "10m",
        "No replica of gpu-tiers leads.",
    ),
    Story(
        "GpuTiersLedgerLags",
        {"gpu_tiers_ledger_round_timestamp_seconds": "0x1600"},
        "10m",
        "The accounts of gpu-tiers were last brought up to date 10m 0s ago.",
    ),
    Story(
        "GpuTiersErrors",
        {'gpu_tiers_reviews_total{path="/validate",outcome="error"}': "0x8 1x1600"},
        "10m",
        "gpu-tiers failed on 1 reviews of /validate in 10 minutes.",
        {"path": "/validate"},
    ),
    Story(
        "GpuTiersUndecided",
        {'gpu_tiers_reviews_total{path="/validate",outcome="undecided"}': "0+20x1600"},
        "30m",
        "25% of reviews were answered with: try again.",
    ),
    Story(
        "GpuTiersLedgerWritesFail",
        {'gpu_tiers_ledger_writes_total{outcome="failed"}': "0+1x1600"},
        "30m",
        "10 writes of tenants' accounts failed in 10 minutes.",
    ),
    Story(
        "GpuTiersSlow",
        {'gpu_tiers_review_seconds_bucket{path="/validate",le="0.01"}': "0x1600"},
        "30m",
        "One in a hundred reviews of /validate takes longer than 4.95s.",
        {"path": "/validate"},
    ),
    Story(
        "GpuTiersWatchStale",
        {'gpu_tiers_cache_synced{resource="pods"}': "1 0x1600"},
        "20m",
        "A replica of gpu-tiers can't follow pods.",
        {"resource": "pods"},
    ),
    Story(
        "GpuTiersPolicyNotTaken",
        {'gpu_tiers_policy_taken{instance="one"}': "1x8 0x1600"},
        "20m",
        "The policy of one is not active as it should be.",
        {"instance": "one"},
    ),
    Story(
        "GpuTiersPoliciesDiffer",
        {
            'gpu_tiers_policy_info{instance="two",mode="Enforce",digest="a1"}': None,
            'gpu_tiers_policy_info{instance="two",mode="Enforce",digest="b2"}': "1x1600",
        },
        "20m",
        "The replicas of gpu-tiers have 2 different active policies.",
    ),
    Story(
        "GpuTiersWorkLost",
        {'gpu_tiers_checkpoints_total{tier="gpu-training",outcome="not-saved"}': "0x58 1x1600"},
        "60m",
        "1 preempted pods of gpu-training did not save.",
        {"tier": "gpu-training"},
    ),
    Story(
        "GpuTiersPreemptionFailed",
        {'gpu_tiers_reservations_total{tier="gpu-training",outcome="failed"}': "0x58 1x1600"},
        "60m",
        "1 preemptions for pods of gpu-training failed.",
        {"tier": "gpu-training"},
    ),
    Story(
        "GpuTiersWorkAtRisk",
        {'gpu_tiers_over_max_at_risk_pods{tier="gpu-training"}': "0x10 3x1600"},
        "20m",
        "3 pods of gpu-training have more unsaved work than their bound allows.",
        {"tier": "gpu-training"},
    ),
    Story(
        "GpuTiersBudgetNearlyUsed",
        {
            'gpu_tiers_budget_used_gpu_hours{tenant="alpha",tier="gpu-training",flavor="",per="Month"}': "70+1x1600",
            'gpu_tiers_budget_gpu_hours{tenant="alpha",tier="gpu-training",flavor="",per="Month"}': "100x1600",
        },
        "15m",
        "Tenant alpha has used 85% of its GPU-hours of gpu-training.",
        {"tenant": "alpha", "tier": "gpu-training", "per": "Month"},
    ),
    Story(
        "GpuTiersHeadWaitsWithRoom",
        {'gpu_tiers_queue_head_with_room_seconds{tenant="alpha"}': "0x4 60+60x1600"},
        "10m",
        "The head of the queue of tenant alpha has waited for 6m 0s with room.",
        {"tenant": "alpha"},
    ),
    Story(
        "GpuTiersInversion",
        {'gpu_tiers_inverted_seconds{tier="gpu-training",lower_tier="gpu-batch"}': "_x5 60+60x1600"},
        "20m",
        "A pod of gpu-training has waited for 16m 0s while gpu-batch runs.",
        {"tier": "gpu-training", "lower_tier": "gpu-batch"},
    ),
    Story(
        "GpuTiersFragmented",
        {"gpu_tiers_stranded_gpus": "0x5 6x1600"},
        "40m",
        "6 GPUs are free and fit no pod that waits.",
    ),
    Story(
        "GpuTiersRefusalsRise",
        {'gpu_tiers_denials_total{reason="over-quota",mode="Enforce"}': "0x1439 0+1x1600"},
        "25h",
        "Far more is refused than usual, because of over-quota.",
        {"reason": "over-quota"},
    ),
    Story(
        "GpuTiersTenantNearlyFull",
        {'gpu_tiers_ledger_gpus{tenant="alpha",tier="gpu-training",flavor=""}': "8x1600"},
        "2h",
        "Tenant alpha uses 100% of a quota row.",
        {"tenant": "alpha", "tier": "gpu-training"},
    ),
)
