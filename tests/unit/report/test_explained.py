"""The change that would alter a tier, and the reason why a pod's class is not what it would get now."""

from typing import Any

import pytest

from tests.builders import a_job, a_pod, a_policy
from tests.builders.built import Tree
from webhook.objects.group_kind import GroupKind
from webhook.objects.refusal import Phrase
from webhook.policy.assignment.request import Assignment
from webhook.report.explained import (
    ClassShown,
    HookShown,
    Replaces,
    TierOf,
    changes,
    job_outlasts_deletions,
    replacement,
    why_it_differs,
)

OTHERS = ("gpu-serving", "gpu-batch")
LABEL = "metadata.labels[gpu-tiers.dev/tier]"


RESTART = "kubectl rollout restart deployment/web -n alpha"


def said(
    step: str, asked: str = "", *, bearer: str = "", owner: str = "job/train", replace: str = "", **more: object
) -> list[str]:
    assignment, given = Assignment(None, step, Phrase("x"), asked), {"others": OTHERS, "default_of": "", "keeps": ""}
    return list(changes(assignment, TierOf(bearer, owner, "alpha", replace), **given | more))  # type: ignore[arg-type]


def test_a_workload_that_nobody_labelled_is_labelled() -> None:
    first, second, third = said("workload-type", default_of="workloadTypes.training of the policy")
    assert first == (
        "kubectl label job/train -n alpha --overwrite gpu-tiers.dev/tier=TIER (one of gpu-serving, gpu-batch)"
    )
    assert second.startswith("The label counts for pods that are created after it")
    assert third == "For all workloads like it, your platform team can change workloadTypes.training of the policy."


def test_a_label_is_changed_where_it_stands() -> None:
    (first, _) = said("label", f"Job/train-0.{LABEL}", bearer="job/train-0", owner="jobset.jobset.x-k8s.io/train")
    assert first.startswith("kubectl label job/train-0 -n alpha --overwrite")
    (template,) = said("label", LABEL)
    where = "In the pod template of job/train"
    assert template == f"{where}, write another tier at {LABEL}: TIER (one of gpu-serving, gpu-batch)."
    (alone,) = said("label", LABEL, owner="", others=("gpu-batch",))
    assert alone == f"Create the pod again with another tier at {LABEL}: gpu-batch."


def test_a_workload_whose_pods_exist_is_created_again_because_a_label_reaches_none_of_them() -> None:
    again = "Existing pods keep gpu-training. Delete job/train and apply it again with"
    batch = {"others": ("gpu-batch",), "keeps": "gpu-training"}
    assert said("workload-type", **batch) == [f"{again} the label gpu-tiers.dev/tier=gpu-batch."]
    assert said("label", f"Job/train.{LABEL}", bearer="job/train", **batch) == [
        f"{again} the label gpu-tiers.dev/tier=gpu-batch."
    ]
    assert said("label", LABEL, **batch) == [f"{again} another tier at {LABEL}: gpu-batch."]


@pytest.mark.parametrize(("owner", "replace"), [("job/train", ""), ("deployment/web", RESTART)])
def test_a_person_who_wrote_another_tier_reads_how_to_have_it_now(owner: str, replace: str) -> None:
    """The label was changed while pods exist; they keep the tier that they were created with."""
    batch = next(each for each in a_policy().tiers if each.name == "gpu-batch")
    given = Assignment(batch, "label", Phrase("x"), f"{owner}.{LABEL}")
    lines = [
        *changes(
            given,
            TierOf(owner, owner, "alpha", replace),
            others=("gpu-serving", "gpu-training"),
            default_of="",
            keeps="gpu-training",
        )
    ]
    now = replace or "delete and apply job/train again with the label gpu-tiers.dev/tier=gpu-batch."
    assert lines[0] == "Existing pods keep gpu-training; pods made later get gpu-batch."
    assert lines[1].startswith("To have it now")
    assert lines[1].endswith(now)
    assert len(lines) == 2, "gpu-training, which it left, is not offered"


def test_a_rollout_replaces_existing_pods_and_a_cronjob_makes_others() -> None:
    batch = {"others": ("gpu-batch",), "keeps": "gpu-serving"}
    first, second = said("workload-type", owner="deployment/web", replace=RESTART, **batch)
    assert first == "kubectl label deployment/web -n alpha --overwrite gpu-tiers.dev/tier=gpu-batch"
    assert second == f"Existing pods keep gpu-serving until they are replaced: {RESTART}"
    (_, later) = said("workload-type", owner="cronjob/nightly", **batch)
    assert later.startswith("The label counts for pods that are created after it")


@pytest.mark.parametrize(
    ("kind", "step", "deletable", "command"),
    [
        ("Deployment.apps", "label", False, RESTART),
        ("Job.batch", "workload-type", True, "kubectl delete pod -n alpha -l batch.kubernetes.io/job-name=web"),
        ("Job.batch", "workload-type", False, ""),
        ("Job.batch", "label", True, ""),
        ("Job.batch.volcano.sh", "workload-type", True, ""),
    ],
    ids=["a rollout", "a Job's next pod", "a Job that would fail", "a Job's template stays", "an operator's"],
)
def test_how_pods_are_replaced(kind: str, step: str, deletable: bool, command: str) -> None:
    """A Job that is deleted and applied again would train from the beginning."""
    given, (name, _, group) = Assignment(None, step, Phrase("x")), kind.partition(".")
    assert replacement(GroupKind(group, name), "web", given, "alpha", Replaces(deletable)) == command


def test_a_statefulset_replaces_no_pod_while_one_is_not_ready() -> None:
    given, how = Assignment(None, "label", Phrase("x")), Replaces(not_replaced="db-0")
    assert (
        replacement(GroupKind("apps", "StatefulSet"), "db", given, "alpha", how) == "kubectl delete pod db-0 -n alpha"
    )


def test_a_paused_deployment_is_resumed_before_it_is_restarted() -> None:
    given = Assignment(None, "label", Phrase("x"))
    command = replacement(GroupKind("apps", "Deployment"), "web", given, "alpha", Replaces(paused=True))
    assert command == f"kubectl rollout resume deployment/web -n alpha; {RESTART}"


def test_a_group_is_named_whether_a_workload_makes_it_or_not() -> None:
    (made,) = said("group", owner="job/train", others=("gpu-batch",))
    assert "label job/train gpu-tiers.dev/tier=gpu-batch" in made
    given = Assignment(None, "group", Phrase("x"))
    its = TierOf("", "", "alpha", "", group="pg")
    (alone,) = changes(given, its, others=("gpu-batch",), default_of="", keeps="")
    assert "create PodGroup pg again with the label gpu-tiers.dev/tier=gpu-batch, and its pods too" in alone


@pytest.mark.parametrize(("next_pod", "says"), [("refused", "would be refused now"), ("queued", "once the queue")])
def test_nobody_is_told_to_have_now_what_the_next_pod_does_not_get(next_pod: Any, says: str) -> None:
    training = next(each for each in a_policy().tiers if each.name == "gpu-training")
    given = Assignment(training, "label", Phrase("x"), f"Deployment/web.{LABEL}")
    its = TierOf("deployment/web", "deployment/web", "alpha", RESTART, next_pod=next_pod)
    lines = [*changes(given, its, others=(), default_of="", keeps="gpu-batch")]
    assert says in " ".join(lines)
    assert not any(each.startswith("To have it now") for each in lines)


RULES = {"action": "Ignore"}, {"action": "FailJob"}
JOBS: dict[str, tuple[Tree, Tree, bool]] = {
    "the default of 6": ({}, {}, True),
    "a limit of 0": ({"backoffLimit": 0}, {}, False),
    "two failed before": ({"backoffLimit": 3}, {"failed": 2}, False),
    "a limit by index": ({"backoffLimitPerIndex": 3}, {}, False),
    "a policy that ignores evictions": ({"podFailurePolicy": {"rules": [RULES[0]]}}, {}, True),
    "a policy that fails it": ({"podFailurePolicy": {"rules": [*RULES]}}, {}, False),
}


@pytest.mark.parametrize(("spec", "status", "goes_on"), JOBS.values(), ids=JOBS)
def test_a_job_counts_deleted_pods_as_failed(spec: Tree, status: Tree, goes_on: bool) -> None:
    two = [a_pod().json()] * 2
    job = a_job(**spec).json() | {"status": status}
    assert job_outlasts_deletions(job, two) is goes_on
    queued = a_pod().having("spec.schedulingGates", [{"name": "gpu-tiers.dev/quota"}]).json()
    assert not job_outlasts_deletions(job, [queued]), "it would lose its position in the queue"


def test_a_pod_without_an_owner_is_created_again() -> None:
    (first,) = said("policy-default", owner="", others=("gpu-batch",))
    assert first.startswith("Create the pod again with the label gpu-tiers.dev/tier=gpu-batch.")


BATCH = ClassShown("gpu-batch", 400, "PreemptLowerPriority", "gpu-batch")


@pytest.mark.parametrize(
    ("assigned_by", "why"),
    [
        ("label: the label on the pod says gpu-training; demoted from gpu-training", "its tenant had no room"),
        ("policy-default: the policy's default", "the policy, its tenant, its owner or a label has changed"),
    ],
)
def test_a_class_that_differs_has_a_reason(assigned_by: str, why: str) -> None:
    assert why in why_it_differs(assigned_by, owned=False)


def test_classes_and_hooks_read_as_one_line() -> None:
    calm = ClassShown("gpu-batch-nonpreempting", 400, "Never", "gpu-batch")
    assert (str(ClassShown("", 0, "PreemptLowerPriority")), str(BATCH)) == (
        "no PriorityClass (0, PreemptLowerPriority)",
        "gpu-batch (400, PreemptLowerPriority)",
    )
    assert str(calm) == "gpu-batch-nonpreempting (400, Never, tier gpu-batch)"
    hook = HookShown("file", 120, 130, ("main",), there=False)
    assert str(hook) == "file in main, 120 s to save, 130 s of grace; the pod does not have it"
    soon = HookShown("file", 50, 60, ("main",), uncut=120)
    assert str(soon) == "file in main, 50 s (of 120 s; its tier leaves no more) to save, 60 s of grace"
    bound = HookShown("listen", 60, 70, ("main",), max_at_risk=600, there=True)
    asked = "asked to save after 600 s of unsaved work; the pod has it"
    assert str(bound) == f"listen in main, 60 s to save, 70 s of grace; {asked}"
    drains = HookShown("sleep", 20, 50, ("vllm",))
    assert str(drains) == "sleep in vllm, 20 s in which requests end and nothing is saved, 50 s of grace"
    assert str(HookShown(why_not="it is a Windows pod")) == "none: it is a Windows pod"
    assert str(HookShown()) == "none"
