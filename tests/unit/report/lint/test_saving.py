"""Saving before an eviction: hooks, grace periods, disruption budgets."""

from typing import Any

from tests.builders import a_policy
from tests.unit.report.lint.asking import a_cluster, a_listed_pod, found
from webhook.cluster.listed import PodSummary
from webhook.objects.pods import OwnerReference
from webhook.policy.preemption.cluster_state import DisruptionBudget
from webhook.policy.values.tenants import Requirement
from webhook.policy.workloads.kind_table import WorkloadType
from webhook.report.lint.snapshot import PreemptionRule


def a_training_pod(name: str = "train-0", **fields: Any) -> PodSummary:
    return a_listed_pod(name, job="train", workload_type=WorkloadType.TRAINING, **fields)


def test_training_pods_without_a_hook_are_reported_by_their_workload() -> None:
    pods = (a_training_pod(), a_training_pod("train-1"), a_listed_pod("web", tier="gpu-serving"))
    assert found("training-without-hook", a_cluster(pods=pods)) == [
        "Job/train in team-alpha: 2 training pods of tier gpu-training with no preStop"
    ]


def test_training_with_a_hook_or_with_an_annotation_has_what_its_owner_wants() -> None:
    pods = (a_training_pod(hook=True), a_training_pod(hook_asked="none"))
    assert found("training-without-hook", a_cluster(pods=pods)) == []


def test_a_sigterm_hook_needs_only_time() -> None:
    policy = a_policy(checkpoint={"training": {"kind": "sigterm", "seconds": 300}})
    assert found("training-without-hook", a_cluster(policy, pods=(a_training_pod(grace=30),))) == [
        "Job/train in team-alpha: 1 training pod of tier gpu-training with no grace for a save of 300 s"
    ]
    assert found("training-without-hook", a_cluster(policy, pods=(a_training_pod(grace=310),))) == []


def test_a_policy_by_which_training_saves_nothing() -> None:
    policy = a_policy(checkpoint={"training": {"kind": "none"}})
    assert found("training-saves-nothing", a_cluster(policy)) == [
        "tier gpu-training: training gets it, and the policy has no checkpoint hook for training"
    ]
    assert found("training-saves-nothing", a_cluster()) == []


def test_a_bound_of_work_at_risk_for_pods_that_can_not_report() -> None:
    policy = a_policy(saves={"maxAtRiskSeconds": {"gpu-training": 1200}})
    silent, heard = (a_training_pod(f"train-{each}", work_to_lose=1.0, reports=each) for each in (False, True))
    idle = a_training_pod("idle")
    (one,) = found("bound-unheard", a_cluster(policy, pods=(silent, heard, idle)))
    assert one == (
        "tier gpu-training: 1 training pod can't report, so 1,200 s of saves.maxAtRiskSeconds do nothing for them: "
        "Job/train in team-alpha"
    )
    assert found("bound-unheard", a_cluster(pods=(silent,))) == found("bound-unheard", a_cluster(policy)) == []


def test_an_autoscaler_that_nobody_told_about_training() -> None:
    both = ("Karpenter", "Cluster Autoscaler")
    assert found("training-unprotected", a_cluster(autoscalers=both)) == [
        "tier gpu-training: training gets it, and Karpenter and Cluster Autoscaler may remove its nodes to save costs"
    ]
    assert found("training-unprotected", a_cluster()) == []
    assert found("training-unprotected", a_cluster(a_policy(autoscaler={"gpu-batch": "Allow"}), autoscalers=both))
    for told in ("Protect", "24h", "Allow"):
        policy = a_policy(autoscaler={"gpu-training": told})
        assert found("training-unprotected", a_cluster(policy, autoscalers=both)) == []


def test_listeners_can_not_be_seen_and_that_is_said_once() -> None:
    pods = (a_training_pod(hook=True), a_training_pod("train-1", hook=True))
    (line,) = found("listeners-unseen", a_cluster(pods=pods))
    assert line.startswith("cluster: 2 training pods with the file hook (Job/train in team-alpha)")
    assert found("listeners-unseen", a_cluster(pods=(a_training_pod(hook=True, hook_asked="http"),))) == []


def test_a_save_that_failed() -> None:
    failed = {("team-alpha", "train-0"): 1, ("team-alpha", "train-1"): 3}
    assert found("hook-failed", a_cluster(failed_hooks=failed)) == [
        "Pod/train-0 in team-alpha: the kubelet reported FailedPreStopHook",
        "Pod/train-1 in team-alpha: the kubelet reported FailedPreStopHook, 3 times",
    ]


def test_graces_beyond_the_autoscalers() -> None:
    pods = (a_listed_pod(grace=601), a_listed_pod("ok", grace=600), a_listed_pod("web", job="web", grace=3600))
    assert found("grace-beyond-autoscaler", a_cluster(pods=pods)) == [
        "Job/web in team-alpha: 1 pod with terminationGracePeriodSeconds 3600",
        "Pod/train-0 in team-alpha: 1 pod with terminationGracePeriodSeconds 601",
    ]
    policy = a_policy(checkpoint={"maxGracePeriodSeconds": 1800})
    assert found("cap-beyond-autoscaler", a_cluster(policy)) == [
        "checkpoint.maxGracePeriodSeconds: 1800 is above the 600 s of autoscalers"
    ]
    assert found("cap-beyond-autoscaler", a_cluster()) == []


def budget(allowed: int, *lines: Requirement) -> DisruptionBudget:
    return DisruptionBudget("team-alpha", "notebooks", lines, allowed)


def test_a_budget_that_shields_a_lower_tier() -> None:
    notebook = a_listed_pod("nb", tier="gpu-interactive", labels={"app": "notebook"})
    line = Requirement("app", "In", ("notebook",))
    said = ["PodDisruptionBudget/notebooks in team-alpha: allows no disruption of 1 pod with GPUs, of gpu-interactive"]
    assert found("budget-shields-tier", a_cluster(pods=(notebook,), budgets=(budget(0, line),))) == said
    assert found("budget-shields-tier", a_cluster(pods=(notebook,), budgets=(budget(0),))) == said
    for harmless in (budget(1, line), budget(0, Requirement("app", "In", ("web",)))):
        assert found("budget-shields-tier", a_cluster(pods=(notebook,), budgets=(harmless,))) == []
    top = a_listed_pod("train", labels={"app": "notebook"})
    assert found("budget-shields-tier", a_cluster(pods=(top,), budgets=(budget(0, line),))) == [], "nobody evicts it"


def test_a_budget_counts_pods_that_wait_for_quota_as_down() -> None:
    serving = {"app": "notebook"}
    runs, waits = a_listed_pod("a", labels=serving), a_listed_pod("b", labels=serving, node="", queued=True)
    assert found("gated-counts-as-down", a_cluster(pods=(runs, waits), budgets=(budget(0),))) == [
        (
            "PodDisruptionBudget/notebooks in team-alpha: counts 1 pod that waits for quota as unavailable, so it "
            "allows no disruption of 1 running pod"
        )
    ]
    assert found("gated-counts-as-down", a_cluster(pods=(runs, waits), budgets=(budget(1),))) == []
    assert found("gated-counts-as-down", a_cluster(pods=(waits,), budgets=(budget(0),))) == [], "nobody to evict"


def test_of_trainings_that_a_tier_evicts_kube_scheduler_takes_the_last_whatever_it_loses() -> None:
    serving_first = a_policy("inference-first")

    def trains(job: str, **fields: Any) -> PodSummary:
        low = {"tier": "low-priority-training", "workload_type": WorkloadType.TRAINING}
        return a_listed_pod(job, job=job, **(low | fields))

    (line,) = found("evicted-by-age", a_cluster(serving_first, pods=(trains("a"), trains("b"))))
    both = "among Job/a in team-alpha, Job/b in team-alpha"
    assert line == f"tier low-priority-training: {both} kube-scheduler evicts the pod that started last"
    by_others = (trains("a"), trains("b", scheduler="volcano"), trains("c", labels={"kueue.x-k8s.io/podset": "main"}))
    assert found("evicted-by-age", a_cluster(serving_first, pods=by_others)) == [], "Kueue and Volcano are told"
    highest = a_cluster(pods=(a_training_pod(), a_listed_pod("b", job="b", workload_type=WorkloadType.TRAINING)))
    assert found("evicted-by-age", highest) == [], "nobody evicts the highest tier"


def test_tiers_that_follow_one_another_leave_no_room_for_a_boost() -> None:
    close = {"tiers": [{"name": "high", "value": 11}, {"name": "low", "value": 10}], "defaultTier": "low"}
    close |= {"workloadTypes": dict.fromkeys(("training", "serving", "batch", "interactive"), "low")}
    sentences = ["evictionCost.kueue: two tiers have values that follow one another, so no boost is written"]
    writing = {"evictionCost": {"kueue": "Write"}, "kueue": {"workloadPriorityClasses": True}}
    assert found("no-room-for-costs", a_cluster(a_policy(**close, **writing))) == sentences
    assert found("no-room-for-costs", a_cluster(a_policy(**close))) == []
    assert found("no-room-for-costs", a_cluster(a_policy(**writing))) == []


def test_a_pod_on_a_lost_node_that_its_job_does_not_replace() -> None:
    job = OwnerReference(api_version="batch/v1", kind="Job", name="train")
    lost = PodSummary("team-alpha", "train-0", node="n1", owner=job)
    assert found("pod-on-lost-node", a_cluster(lost_pods=(lost,))) == [
        "Job/train in team-alpha: Pod/train-0 ends on node n1, which is not Ready; its Job waits for the end"
    ]
    assert found("pod-on-lost-node", a_cluster()) == []


def test_a_rule_of_kueue_that_ignores_the_boost() -> None:
    rules = tuple(
        PreemptionRule("shares", name, modes)
        for name, modes in {"own": ("Boosted",), "cohort": ("Base", "Boosted"), "any": ("", "Base"), "none": ()}.items()
    )
    writing = a_policy(evictionCost={"kueue": "Write"}, kueue={"workloadPriorityClasses": True})
    assert found("boost-ignored", a_cluster(writing, preemption_rules=rules)) == [
        "PreemptionConfig/shares: rule cohort compares priority.mode Base, so it ignores the boost",
        "PreemptionConfig/shares: rule any compares no priority and priority.mode Base, so it ignores the boost",
    ]
    assert found("boost-ignored", a_cluster(preemption_rules=rules)) == [], "nothing is written"
