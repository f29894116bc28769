"""The workloads of a queueing tenant that are warned about, and the field that helps."""

from typing import Any

import pytest

from tests.builders import a_deployment, a_notebook, a_pod, a_policy, a_tenant, a_workload
from tests.builders.facts import some_facts
from tests.builders.words import words
from tests.builders.workloads import WorkloadBuilder
from webhook.objects.group_kind import GroupKind
from webhook.policy.decide_workload import decide_workload
from webhook.policy.quota.queue_status import hold_warnings
from webhook.policy.workloads.kind_table import BUILT_IN

ROLLING, CANARY = "spec.strategy.rollingUpdate.maxSurge", "spec.strategy.canary.maxSurge"
OF_GROUPS = "spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge"
LWS = "leaderworkerset.x-k8s.io/LeaderWorkerSet"
DEADLINE = "activeDeadlineSeconds 60 runs on while pods wait for quota; allow more, or suspend the workload"
CLOCK = {"activeDeadlineSeconds": 60}


def rolling(**fields: object) -> dict[str, Any]:
    return {"strategy": {"type": "RollingUpdate", "rollingUpdate": fields}}


def surge(field: str) -> str:
    return f"a rollout waits for its old pods' quota; set {field}: 0"


def schedule(policy: str) -> str:
    return f"concurrencyPolicy {policy} begins the next run while one waits for quota; Forbid does not"


SAID: dict[str, tuple[str, dict[str, Any], str]] = {
    "a surge by default": ("apps/Deployment", {}, surge(ROLLING)),
    "a surge in per cent": ("apps/Deployment", rolling(maxSurge="10%"), surge(ROLLING)),
    "a surge of a pod": ("apps/Deployment", rolling(maxSurge=1), surge(ROLLING)),
    "a surge, and no pod may be missing": (
        "apps/Deployment",
        rolling(maxUnavailable=0),
        "set maxSurge: 0 and maxUnavailable: 1",  # the API server refuses 0 and 0
    ),
    "none may be missing, in per cent": ("apps/Deployment", rolling(maxUnavailable="0%"), "and maxUnavailable: 1"),
    "a pod may be missing": ("apps/Deployment", rolling(maxUnavailable=1), f"set {ROLLING}: 0"),
    "no surge": ("apps/Deployment", rolling(maxSurge=0), ""),
    "none in per cent": ("apps/Deployment", rolling(maxSurge="0%"), ""),
    "Recreate": ("apps/Deployment", {"strategy": {"type": "Recreate"}}, ""),
    "a canary": ("argoproj.io/Rollout", {"strategy": {"canary": {}}}, surge(CANARY)),
    "a canary without surge": ("argoproj.io/Rollout", {"strategy": {"canary": {"maxSurge": 0}}}, ""),
    "blue and green": ("argoproj.io/Rollout", {"strategy": {"blueGreen": {}}}, ""),
    "a CloneSet": ("apps.kruise.io/CloneSet", {}, ""),
    "a CloneSet with surge": ("apps.kruise.io/CloneSet", {"updateStrategy": {"maxSurge": "20%"}}, "maxSurge: 0"),
    "a LeaderWorkerSet": (LWS, {}, ""),
    "one with surge": (LWS, {"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": 1}}}, surge(OF_GROUPS)),
    "a Job": ("batch/Job", {}, ""),
    "a Job's deadline": ("batch/Job", CLOCK, DEADLINE),
    "a pod's deadline": ("batch/Job", {"template": {"spec": CLOCK}}, ""),
    "a JobSet's deadline": (
        "jobset.x-k8s.io/JobSet",
        {"replicatedJobs": [{"template": {"spec": {}}}, {"template": {"spec": CLOCK}}]},
        DEADLINE,
    ),
    "a PyTorchJob's deadline": ("kubeflow.org/PyTorchJob", {"runPolicy": CLOCK}, DEADLINE),
    "a RayJob's deadline": ("ray.io/RayJob", CLOCK, DEADLINE),
    "its deadline to run": ("ray.io/RayJob", {"preRunningDeadlineSeconds": 9}, "preRunningDeadlineSeconds 9 runs on"),
    "a CronJob's deadline": (
        "batch/CronJob",
        {"concurrencyPolicy": "Forbid", "jobTemplate": {"spec": CLOCK}},
        DEADLINE,
    ),
    "a schedule": ("batch/CronJob", {}, schedule("Allow")),
    "a schedule that replaces": ("batch/CronJob", {"concurrencyPolicy": "Replace"}, schedule("Replace")),
    "one that forbids": ("batch/CronJob", {"concurrencyPolicy": "Forbid"}, ""),
    "in order": ("apps/StatefulSet", {"replicas": 2}, "OrderedReady queues each pod"),
    "in order, but one": ("apps/StatefulSet", {}, ""),
    "in parallel": ("apps/StatefulSet", {"replicas": 2, "podManagementPolicy": "Parallel"}, ""),
    "on each node": ("apps/DaemonSet", {}, "counts as unavailable"),
    "Knative": ("serving.knative.dev/Service", {}, "longer than progress-deadline 600s"),
    "Knative, told to wait": (
        "serving.knative.dev/Service",
        {"template": {"metadata": {"annotations": {"serving.knative.dev/progress-deadline": "24h"}}}},
        "longer than progress-deadline 24h",
    ),
    "a kind without a check": ("apps/ReplicaSet", {"replicas": 2}, ""),
}


@pytest.mark.parametrize("name", SAID)
def test_what_is_said_of_a_workload_whose_pods_wait(name: str) -> None:
    kind, spec, said = SAID[name]
    group, _, plain = kind.partition("/")
    warnings = [*words(hold_warnings({"spec": spec}, BUILT_IN.by_kind[GroupKind(group, plain)]))]
    assert len(warnings) == bool(said)
    assert all(said in each for each in warnings)


HOLDS, DENIES = a_tenant(onExceed="Hold").allowing(8), a_tenant().allowing(8)
ELSEWHERE = a_tenant(onExceed="Hold", quotaAuthority="Kueue").allowing(8)


def queued_ids(*owners: WorkloadBuilder, **facts: Any) -> list[str]:
    policy = a_policy()
    decision = decide_workload(owners[0].json(), some_facts(*owners, policy=policy, **facts), policy)
    return [each.id for each in decision.warnings if each.id.startswith("queued-")] if decision else []


def test_it_is_said_where_the_tenant_holds() -> None:
    assert queued_ids(a_deployment(), tenant=HOLDS) == ["queued-surge"]
    assert queued_ids(a_deployment(), tenant=DENIES) == []
    assert queued_ids(a_deployment(), tenant=ELSEWHERE) == []
    assert queued_ids(a_deployment()) == []


def test_it_is_not_said_of_pods_without_gpus() -> None:
    tiered = a_pod().labelled({"gpu-tiers.dev/tier": "gpu-serving"})
    assert queued_ids(a_deployment(tiered), tenant=HOLDS) == []


def test_it_is_not_said_of_what_is_suspended() -> None:
    template = a_pod().asking().template()
    running = a_workload("batch/v1", "Job", template=template, **CLOCK)
    suspended = a_workload("batch/v1", "Job", template=template, suspend=True, **CLOCK)
    assert queued_ids(running, tenant=HOLDS) == ["queued-deadline"]
    assert queued_ids(suspended, tenant=HOLDS) == []


def test_it_is_said_to_whoever_applied_the_outermost() -> None:
    assert queued_ids(a_deployment(), a_notebook(a_pod().asking()), tenant=HOLDS) == []
