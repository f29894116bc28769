"""The status of a TenantQuota, as kubectl shows it."""

from decimal import Decimal
from typing import get_args

from msgspec.structs import replace

from webhook.objects.refusal import Reason, Refusal
from webhook.policy.quota.charges import StrandedGang
from webhook.policy.quota.tenant_quotas import TenantQuota
from webhook.policy.quota.tenant_status import Count, Overlap, conditions_of, is_active, overlaps, usage_status
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tenants import Budget, OnExceed, QuotaRow, Requirement, Tenant
from webhook.policy.values.tier_policy import Flavor, Mode, TierPolicy
from webhook.policy.values.tiers import Tier, Tiers

POLICY = TierPolicy(
    mode=Mode.Enforce,
    tiers=Tiers([Tier("gpu-training", 1000), Tier("gpu-batch", 400), Tier("gpu-interactive", 200)]),
    default_tier="gpu-interactive",
    flavors=(Flavor("h100", {"nvidia.com/gpu.product": "NVIDIA-H100"}),),
)
TRAINING, H100, TOTAL = QuotaRow(Decimal(6), "gpu-training"), QuotaRow(Decimal(2), flavor="h100"), QuotaRow(Decimal(16))
ALPHA = Tenant("alpha", (Requirement("team", "In", ("a",)),), rows=(TRAINING, H100, TOTAL), created="2026-01-01")
COUNT = Count(used={TRAINING: Decimal(4), TOTAL: Decimal("10.5")}, reserved={TRAINING: Decimal(2)})
NOON, LATER = "2026-11-21T12:00:00Z", "2026-11-21T13:00:00Z"


def status(found: TenantQuota, overlap: Overlap | None = None, count: Count = COUNT, now: str = NOON) -> dict:
    return conditions_of(found, overlap, POLICY, count, now) | usage_status(found.tenant, count, found.status)


def condition(found: dict, kind: str) -> dict:
    return next(each for each in found["conditions"] if each["type"] == kind)


def ready(found: TenantQuota, overlap: Overlap | None = None, count: Count = COUNT) -> tuple[str, str, str]:
    shown = condition(status(found, overlap, count), "Ready")
    return shown["status"], shown["reason"], shown["message"]


def test_usage_row_by_row_and_in_one_line():
    shown = status(TenantQuota("alpha", 3, ALPHA))
    assert shown["observedGeneration"] == 3
    assert shown["summary"] == "gpu-training 4/6 (+2 reserved), h100 0/2, total 10.5/16"
    assert shown["usage"] == [
        {"tier": "gpu-training", "hard": "6", "used": "4", "reserved": "2"},
        {"resourceFlavor": "h100", "hard": "2", "used": "0", "reserved": "0"},
        {"hard": "16", "used": "10.5", "reserved": "0"},
    ]
    assert ready(TenantQuota("alpha", 3, ALPHA)) == ("True", "Active", "")


def within(*budgets: Budget) -> tuple[str, str, str] | None:
    times = {"from": "2026-11-01T00:00:00Z", "until": "2026-12-01T00:00:00Z", "since": "2026-11-01T00:00:00Z"}
    used = {**times, "timeZone": "UTC", "per": "Month", "usedGpuSeconds": "36000", "asOf": NOON}
    notes = [{**used, "resourceFlavor": each.flavor} for each in budgets]
    found = status(TenantQuota("alpha", 3, replace(ALPHA, budgets=budgets), status={"budgets": notes}))
    shown = condition(found, "WithinBudgets")
    return shown["status"], shown["reason"], shown["message"]


def test_a_budget_whose_flavor_the_policy_lost_is_not_used_up():
    gone, there = (Budget(Decimal(hours), flavor=name, per="Month") for hours, name in ((10, "b200"), (100, "h100")))
    lost = "the policy does not have the tier or flavor of b200, so no hours are counted"
    assert within(gone) == ("True", "Inactive", lost)
    status, reason, message = within(gone, there)
    assert (status, reason) == ("True", "Within")
    assert message.startswith("10 of 100 GPU-hours of h100 are used")
    assert within(replace(there, gpu_hours=Decimal(10)))[:2] == ("False", "UsedUp")


def test_a_row_of_a_tier_that_the_policy_dropped_shows_no_limit():
    gone, flavor = QuotaRow(Decimal(2), "gpu-gold"), QuotaRow(Decimal(2), "gpu-training", "b200")
    tenant = replace(ALPHA, rows=(TRAINING, gone, flavor))
    shown = usage_status(tenant, COUNT, {}, lambda row: is_active(row, POLICY))
    assert shown["summary"] == "gpu-training 4/6 (+2 reserved), gpu-gold 0/-, gpu-training on b200 0/-"
    assert [row.get("active") for row in shown["usage"]] == [None, False, False]
    assert shown["usage"][1]["hard"] == "2", "what the spec says"


def test_the_action_above_the_quota_names_the_rows_that_queue():
    queueing = replace(TRAINING, on_exceed="Hold")
    actions = {
        "Deny": ALPHA,
        "Deny, for gpu-training Hold": replace(ALPHA, rows=(queueing, TOTAL)),
        "Hold": replace(ALPHA, rows=(queueing, TOTAL), on_exceed="Hold"),
        "charged elsewhere": replace(ALPHA, charged_elsewhere=True),
    }
    assert [status(TenantQuota("alpha", 3, each))["onExceed"] for each in actions.values()] == [*actions]


def test_what_is_reserved_for_the_queue_is_shown_apart_from_what_is_booked_for_pods():
    booked = {TRAINING: Decimal(4), TOTAL: Decimal(7)}
    count = Count.of(booked, {TRAINING: Decimal(3), TOTAL: Decimal(7)}, {TRAINING: Decimal(2), TOTAL: Decimal(5)})
    shown = status(TenantQuota("alpha", 3, replace(ALPHA, rows=(TRAINING, TOTAL))), count=count)
    assert shown["summary"] == "gpu-training 3/6 (+1 reserved, +2 for the queue), total 7/16 (+5 for the queue)"
    assert shown["usage"] == [
        {"tier": "gpu-training", "hard": "6", "used": "3", "reserved": "1", "reservedForQueue": "2"},
        {"hard": "16", "used": "7", "reserved": "0", "reservedForQueue": "5"},
    ]


def test_what_is_reserved_for_the_queue_puts_no_row_over_its_quota():
    """The quota was lowered, and the head has not looked at it since."""
    count = Count(used={TRAINING: Decimal(4)}, for_queue={TRAINING: Decimal(4)})
    assert ready(TenantQuota("alpha", 3, ALPHA), count=count) == ("True", "Active", "")


def test_a_broken_spec_says_what_holds_in_the_meantime():
    broken = TenantQuota("alpha", 4, ALPHA, Refusal(Reason.INVALID, "no-list", "spec.quotas[0].gpus"))
    assert ready(broken)[:2] == ("False", "Broken")
    assert ready(broken)[2].endswith("the last good spec stays active")
    assert ready(replace(broken, tenant=None))[2].endswith("this quota is not active")


def test_names_that_the_policy_does_not_know_are_named():
    def with_(**change: object) -> tuple[str, str, str]:
        return ready(TenantQuota("alpha", 1, replace(ALPHA, **change)))

    tiers = 'unknown tier "gpu-gold"; known tiers: gpu-training, gpu-batch, gpu-interactive'
    ceiling, row = (
        f"spec.maxTier: {tiers}; no tier is allowed",
        f"spec.quotas[1].tier: {tiers}; this row limits nothing",
    )
    assert with_(max_tier="gpu-gold") == ("False", "UnknownTier", ceiling)
    assert with_(allowed_tiers=("gpu-batch", "gpu-gold"))[2].startswith(f"spec.allowedTiers[1]: {tiers}; ")
    assert with_(default_tier="gpu-gold")[2].startswith(f"spec.defaultTier: {tiers}; ")
    assert with_(rows=(TOTAL, QuotaRow(Decimal(1), "gpu-gold")))[2] == row
    flavor = 'spec.quotas[0].resourceFlavor: unknown flavor "a100"; known flavors: h100; this row limits nothing'
    assert with_(rows=(QuotaRow(Decimal(1), flavor="a100"),)) == ("False", "UnknownFlavor", flavor)
    both = with_(max_tier="gpu-gold", rows=(TOTAL, QuotaRow(Decimal(1), "gpu-gold")))
    assert both[2] == f"{ceiling}; {row}", "each of them"


def test_the_younger_of_two_that_overlap_names_the_older():
    beta = Tenant("beta", (Requirement("env", "Exists"),), created="2026-02-02")
    namespaces = [
        Namespace("a-dev", {"team": "a", "env": "dev"}),
        Namespace("a-prod", {"team": "a", "env": "prod"}),
        Namespace("b-dev", {"team": "b", "env": "dev"}),
    ]
    found = overlaps([beta, ALPHA], namespaces)
    assert found == {"beta": Overlap(beta, ALPHA, ("a-dev", "a-prod"))}
    sentence = (
        "TenantQuota alpha selects a-dev, a-prod too; alpha is older and applies there. "
        "Make the selectors exclude each other"
    )
    assert ready(TenantQuota("beta", 1, beta), found["beta"]) == ("False", "Overlap", sentence)


def test_many_overlapping_namespaces_are_counted():
    overlap = Overlap(ALPHA, ALPHA, tuple(f"ns-{number}" for number in range(8)))
    assert "ns-0, ns-1, ns-2, ns-3, ns-4 and 3 more too" in ready(TenantQuota("beta", 1, ALPHA), overlap)[2]


def test_a_condition_keeps_its_time_until_its_status_changes():
    first = TenantQuota("alpha", 1, ALPHA)
    second = replace(first, status=status(first, now=NOON))
    assert status(second, now=LATER) == second.status
    broken = status(replace(second, problem=Refusal(Reason.INVALID, "no-object")), now=LATER)
    assert condition(broken, "Ready")["lastTransitionTime"] == LATER
    assert condition(broken, "Exact")["lastTransitionTime"] == NOON


def test_while_pods_cannot_be_watched_the_usage_stays_as_it_was():
    before = replace(TenantQuota("alpha", 1, ALPHA), status=status(TenantQuota("alpha", 1, ALPHA)))
    stale = status(before, count=Count(stale="/api/v1/pods: connection refused"))
    assert (stale["usage"], stale["summary"]) == (before.status["usage"], before.status["summary"])
    exact = condition(stale, "Exact")
    assert (exact["status"], exact["reason"]) == ("False", "Stale")
    assert exact["message"] == (
        "pods can't be watched, so those that have ended since still count: /api/v1/pods: connection refused"
    )


def test_a_quota_below_what_is_in_use_stays_active_and_says_so():
    """An admin lowers the quota from 10 to 6 while 10 run."""
    over = Count(used={TRAINING: Decimal(10), TOTAL: Decimal(17)})
    over_by = "gpu-training is at 10 of 6, the total is at 17 of 16"
    sentence = f"{over_by}; nothing is evicted, and new pods that count there are refused"
    assert ready(TenantQuota("alpha", 2, ALPHA), count=over) == ("True", "OverQuota", sentence)
    demotes = TenantQuota("alpha", 2, replace(ALPHA, on_exceed="Demote"))
    assert ready(demotes, count=Count(used={TRAINING: Decimal(10)}))[2].endswith(
        "nothing is evicted, and new pods that count there are demoted, or refused where no tier has room"
    )
    refused = "nothing is evicted, and new pods that count there are refused"
    assert ready(demotes, count=over)[2].endswith(refused), "every tier counts on the total"
    assert ready(demotes, count=Count(used={H100: Decimal(3)}))[2].endswith(refused)
    warning = ready(TenantQuota("alpha", 2, replace(ALPHA, on_exceed="Warn")), count=over)[2]
    assert warning.endswith("nothing is evicted, and new pods that count there run with a warning (onExceed: Warn)")
    waiting = ready(TenantQuota("alpha", 2, replace(ALPHA, on_exceed="Hold")), count=over)[2]
    assert waiting.endswith("nothing is evicted, and new pods that count there are queued (onExceed: Hold)")


def test_above_a_row_that_holds_alone_new_pods_wait_where_the_tenant_refuses_others():
    batch = QuotaRow(Decimal(2), "gpu-batch", on_exceed="Hold")
    found = TenantQuota("alpha", 2, replace(ALPHA, rows=(batch, TOTAL)))
    assert ready(found, count=Count(used={batch: Decimal(3)}))[2].endswith("are queued (onExceed: Hold)")
    some = "new pods that count there are refused, except those of gpu-batch, which are queued (onExceed: Hold)"
    both = Count(used={batch: Decimal(3), TOTAL: Decimal(17)})
    assert ready(found, count=both)[2].endswith(some)
    assert ready(found, count=Count(used={TOTAL: Decimal(17)}))[2].endswith(some), "a pod of batch waits for the total"
    training = Count(used={TRAINING: Decimal(7)})
    apart = TenantQuota("alpha", 2, replace(ALPHA, rows=(batch, TRAINING, TOTAL)))
    assert ready(apart, count=training)[2].endswith("are refused"), "no pod of batch counts on gpu-training"
    warns = conditions_of(found, None, replace(POLICY, mode=Mode.Warn), both, NOON)
    assert condition(warns, "Ready")["message"].endswith("in mode Warn new pods that count there run with a warning")


def test_a_quota_that_is_overdrawn_refuses_nobody_before_the_mode_is_enforce():
    over = Count(used={TRAINING: Decimal(10)})

    def message_of(mode: Mode, on_exceed: OnExceed) -> str:
        found = TenantQuota("alpha", 2, replace(ALPHA, on_exceed=on_exceed))
        given = conditions_of(found, None, replace(POLICY, mode=mode), over, NOON)
        return condition(given, "Ready")["message"].partition("nothing is evicted, and ")[2]

    assert message_of(Mode.Warn, "Deny") == "in mode Warn new pods that count there run with a warning"
    assert message_of(Mode.Warn, "Demote") == (
        "in mode Warn new pods that count there are demoted, or run with a warning where no tier has room"
    )
    assert message_of(Mode.Warn, "Warn") == message_of(Mode.Enforce, "Warn")
    assert message_of(Mode.Warn, "Hold") == message_of(Mode.Warn, "Deny"), "the gates are opened there"
    for on_exceed in get_args(OnExceed):
        assert message_of(Mode.Audit, on_exceed) == "in mode Audit new pods that count there run as they are"


def test_what_is_reserved_counts_for_over_quota_and_a_full_row_is_not_over():
    full = Count(used={TRAINING: Decimal(4)}, reserved={TRAINING: Decimal(2)})
    assert ready(TenantQuota("alpha", 1, ALPHA), count=full)[1] == "Active"
    over = Count(used={TRAINING: Decimal(6)}, reserved={TRAINING: Decimal(2)})
    assert ready(TenantQuota("alpha", 1, ALPHA), count=over)[1] == "OverQuota"


def test_over_quota_is_said_of_nobody_whose_gpus_are_charged_elsewhere_and_after_what_breaks_a_quota():
    over = Count(used={TRAINING: Decimal(10)})
    elsewhere = replace(ALPHA, charged_elsewhere=True)
    assert ready(TenantQuota("alpha", 1, elsewhere), count=over)[1] == "Active"
    assert ready(TenantQuota("alpha", 1, ALPHA), Overlap(ALPHA, ALPHA, ("a-dev",)), over)[:2] == ("False", "Overlap")


def test_while_the_account_is_built_the_quota_is_not_ready():
    shown = status(TenantQuota("alpha", 3, ALPHA), count=Count(repairing="the ledger of this tenant is being rebuilt"))
    message_of = "the ledger of this tenant is being rebuilt; until then pods with GPUs are told to try again"
    for kind in ("Ready", "Exact"):
        found = condition(shown, kind)
        assert (found["status"], found["reason"], found["message"]) == ("False", "Repairing", message_of)


def test_a_tenant_charged_elsewhere_shows_no_usage():
    shown = status(TenantQuota("alpha", 1, replace(ALPHA, charged_elsewhere=True)))
    assert (shown["usage"], shown["summary"]) == ([], "charged elsewhere")


def gangs_whole(*stranded: StrandedGang, **count: str) -> tuple[str, str, str]:
    shown = condition(status(TenantQuota("alpha", 1, ALPHA), count=Count(stranded=stranded, **count)), "GangsWhole")
    return shown["status"], shown["reason"], shown["message"]


def test_a_gang_that_holds_gpus_and_cannot_run_is_named():
    old = StrandedGang("uid", "PyTorchJob.kubeflow.org", "a-dev", "old", Decimal(6), Decimal(8))
    message_of = (
        "PyTorchJob/old in a-dev holds 6 of 8 GPUs: the quota has no room for the rest, so the gang can't run. "
    )
    assert gangs_whole(old) == ("False", "Stranded", message_of + "Raise the quota, or delete the gang.")
    many = gangs_whole(*[replace(old, name=f"old-{number}") for number in range(7)])[2]
    assert "PyTorchJob/old-4 in a-dev holds 6 of 8 GPUs and 2 more: the quota has no room" in many
    assert many.endswith("so none of these gangs can run. Raise the quota, or delete a gang.")
    assert gangs_whole() == ("True", "Whole", "")
    assert gangs_whole(repairing="it is being rebuilt") == ("Unknown", "Repairing", "")
