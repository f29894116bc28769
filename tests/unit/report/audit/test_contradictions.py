"""The findings of what contradicts the policy, as a person reads them."""

from msgspec.structs import replace

from webhook.objects.refusal import Reason
from webhook.report.lint.snapshot import Audited, AuditStanding, standing_of
from webhook.report.object_verdict import HookDue

from .stories import lines_of, pods, report, tenant, unseen, workload

JOB = "Job/train in team-alpha"


def test_pods_that_are_as_new_ones_would_be_are_fine() -> None:
    job = workload(pods(4))
    assert lines_of(job) == []
    assert standing_of(job) is AuditStanding.AGREES


def test_pods_from_before() -> None:
    job = workload(unseen(3), pods(1))
    assert lines_of(job) == [
        f"warning: hook-missing: {JOB}: 3 pods with 3 GPUs lack the file hook that training gets",
        f"warning: before-webhook: {JOB}: 3 pods with 3 GPUs have no PriorityClass (0); new pods get gpu-training",
    ]
    assert standing_of(job) is AuditStanding.BEFORE


def test_a_label_that_was_changed_while_its_pods_run() -> None:
    job = workload(pods(2, "gpu-batch"), hook=None)
    assert lines_of(job) == [
        f"warning: other-class: {JOB}: 2 pods with 2 GPUs have gpu-batch (400); new pods get gpu-training (1000)"
    ]
    assert standing_of(job) is AuditStanding.CHANGED


def test_a_class_that_was_made_again_with_another_value() -> None:
    (line,) = lines_of(workload(pods(priority=900)))
    assert line.endswith("1 pod with 1 GPU has gpu-training (900); new pods get gpu-training (1000)")


def test_a_demoted_pod_has_its_reason() -> None:
    assert lines_of(workload(pods(tier="gpu-batch", demoted=True))) == []


def test_a_class_outside_the_tiers_that_stays_or_is_replaced() -> None:
    urgent = pods(class_name="urgent", priority=5000)
    assert lines_of(workload(urgent, tier="gpu-batch", hook=None))[0] == (
        f"warning: foreign-class: {JOB}: 1 pod with 1 GPU has urgent (5000), which is no tier; "
        "new pods get gpu-batch (400)"
    )
    unlabelled = replace(workload(urgent, hook=None), tiers=(), classes={})
    assert lines_of(unlabelled)[0].endswith("which is no tier; new pods keep it")
    assert standing_of(unlabelled) is AuditStanding.OUTSIDE
    template = workload(replace(urgent, exist=False), hook=None)
    assert lines_of(template)[0].endswith("names urgent, which is no tier; new pods get gpu-training (1000)")


def test_a_hook_that_is_grace_alone() -> None:
    (line,) = lines_of(workload(pods(grace=30), hook=HookDue("sigterm", 130)))
    assert line.endswith("1 pod with 1 GPU lacks 130 s of grace that training gets")
    assert lines_of(workload(pods(hook=False), hook=HookDue("sigterm", 130))) == []


def test_a_tier_that_the_tenant_may_not_use_runs_or_is_asked_for() -> None:
    beta = tenant("beta", max_tier="gpu-batch")
    runs = workload(pods(2), tier="gpu-batch", tenant=beta)
    assert lines_of(runs)[0] == (
        "error: tier-not-allowed: Job/train in team-alpha: 2 pods with 2 GPUs have gpu-training (1000), which tenant "
        "beta may not use"
    )
    sentence = "gpu-training is not for tenant beta"
    asks = workload(tenant=beta, verdict="Denied", refusal=sentence, reason=Reason.CEILING)
    assert lines_of(asks) == [f"error: tier-not-allowed: Job/train in team-alpha: {sentence}"]
    assert standing_of(asks) is AuditStanding.REFUSED


def test_what_would_be_refused_says_the_sentence() -> None:
    job = workload(unseen(), verdict="Denied", refusal="there is no such tier", tier="gpu-batch", hook=None)
    assert lines_of(job) == [
        "error: would-be-refused: Job/train in team-alpha: there is no such tier",
        f"warning: before-webhook: {JOB}: 1 pod with 1 GPU has no PriorityClass (0); new pods are refused",
    ]
    assert standing_of(job) is AuditStanding.REFUSED, "the worst counts"


def test_a_tenant_whose_workloads_take_more_than_its_row() -> None:
    alpha = tenant(gpus={"": 5, "gpu-training": 4, "gpu-batch": 4})
    batch = workload(pods(3, "gpu-batch"), tier="gpu-batch", tenant=alpha, name="score")
    assert lines_of(workload(pods(3), tenant=alpha), batch) == [
        "warning: demand-over-quota: TenantQuota/alpha: the total: its workloads take 6 GPUs; the row has 5"
    ]
    gone = workload(pods(9, exist=False), tenant=alpha, verdict="Denied", refusal="too large")
    assert len(lines_of(gone, batch)) == 1, "what is refused and does not run takes nothing"
    assert lines_of(workload(pods(9), tenant=tenant(gpus={"": 5}, charged_elsewhere=True))) == []


def test_pods_that_wait_for_quota_take_nothing() -> None:
    alpha = tenant(gpus={"": 4}, on_exceed="Hold")
    assert lines_of(workload(pods(4), pods(3, wait=True), tenant=alpha)) == []


def test_a_demoted_pod_counts_in_the_row_that_it_was_demoted_to() -> None:
    alpha = tenant(gpus={"": 5, "gpu-training": 2})
    demoted = pods(2, "gpu-batch", demoted=True)
    assert lines_of(workload(pods(2), demoted, tenant=alpha)) == []
    batch = tenant(gpus={"": 5, "gpu-batch": 1})
    (line,) = lines_of(workload(pods(2), demoted, tenant=batch))
    assert line.endswith("gpu-batch: its workloads take 2 GPUs; the row has 1")


def test_a_pod_without_a_tier_counts_by_the_tier_that_a_new_one_gets() -> None:
    """Two trainings of 4 GPUs run since before gpu-tiers: once they are created again, their row of 6 has no room."""
    alpha = tenant(gpus={"gpu-training": 6, "": 7})
    trainings = [workload(unseen(4), tenant=alpha, name=name, hook=None) for name in ("first", "second")]
    assert _over(*trainings) == [
        "gpu-training: its workloads take 8 GPUs, 8 of them in pods without a tier's class; the row has 6",
        "the total: its workloads take 8 GPUs; the row has 7",
    ]
    classed = workload(pods(5, marked=False), tenant=tenant(gpus={"gpu-training": 4}), hook=None)
    assert _over(classed) == ["gpu-training: its workloads take 5 GPUs; the row has 4"], "by its class"
    to_come = workload(pods(5, tier="gpu-batch", exist=False), tenant=tenant(gpus={"gpu-training": 4}))
    assert _over(to_come) == ["gpu-training: its workloads take 5 GPUs; the row has 4"], "as it would be let in"


def test_a_row_that_queues_says_so_with_its_limit() -> None:
    holds = tenant(gpus={"gpu-training": 4}, on_exceed="Hold")
    assert _over(workload(pods(5), tenant=holds)) == [
        "gpu-training: its workloads take 5 GPUs; the row has 4 and onExceed Hold"
    ]


def _over(*audited: Audited) -> list[str]:
    return [each.what for each in report(*audited).findings if each.id == "demand-over-quota"]


def test_a_manifest_that_names_its_tier_agrees_and_another_one_gets_it() -> None:
    template = pods(exist=False, class_name="", hook=False)
    assert standing_of(workload(template, named=True)) is AuditStanding.AGREES
    assert standing_of(workload(template)) is AuditStanding.CHANGED
    assert standing_of(workload(template, named=True, verdict="Demoted")) is AuditStanding.CHANGED
    assert lines_of(workload(template)) == [], "new pods get the hook"
