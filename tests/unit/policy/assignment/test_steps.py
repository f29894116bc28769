"""The tier, step by step: the first step that applies decides, and the trace names every step that was asked."""

import pytest

from tests.builders import a_deployment, a_job, a_pod, a_policy, a_pytorchjob, a_tenant, a_workload, assigned
from tests.builders.words import deciding_line, words
from webhook.objects.refusal import Refused

FINETUNE = a_pytorchjob(name="finetune")
RULES = [
    {
        "match": {"kinds": [{"group": "ray.io", "kind": "RayJob"}], "labels": {"purpose": "training"}},
        "tier": "gpu-training",
    },
    {"match": {"namespaces": ["team-alpha"], "serviceAccounts": ["team-alpha:nightly"]}, "tier": "gpu-batch"},
]


def test_the_label_on_the_pod_comes_first() -> None:
    pod = a_pod().of_tier("gpu-batch").asking().owned_by(FINETUNE)
    found = assigned(pod, FINETUNE.of_tier("gpu-serving"))
    assert (found.tier and found.tier.name, found.step) == ("gpu-batch", "label")
    assert words(found.trace) == ("group: -", "label: the label on the pod says gpu-batch")
    assert deciding_line(found) == "label: the label on the pod says gpu-batch"


def test_then_the_label_on_the_nearest_owner() -> None:
    job = a_job(name="node").of_tier("gpu-serving")
    jobset = a_workload("jobset.x-k8s.io/v1alpha2", "JobSet", "pretrain").of_tier("gpu-batch")
    found = assigned(a_pod().asking(), job, jobset)
    assert deciding_line(found) == "label: the label on Job/node says gpu-serving"
    assert (
        deciding_line(assigned(a_pod().asking(), a_job(), jobset))
        == "label: the label on JobSet/pretrain says gpu-batch"
    )


def test_then_a_rule_of_the_policy() -> None:
    rayjob = a_workload("ray.io/v1", "RayJob", "sweep").labelled({"purpose": "training"})
    found = assigned(a_pod().asking(), rayjob, policy=a_policy(rules=RULES))
    assert deciding_line(found) == "rule: rules[0] of the policy says gpu-training"
    assert words(found.trace[:2]) == ("group: -", "label: -")


@pytest.mark.parametrize(
    ("account", "step"),
    [("nightly", "rule: rules[1] of the policy says gpu-batch"), ("", "policy-default: the policy's default")],
)
def test_a_rule_for_a_service_account(account: str, step: str) -> None:
    pod = a_pod().asking().having("spec.serviceAccountName", account)
    assert deciding_line(assigned(pod, policy=a_policy(rules=RULES))) == step


def test_then_a_class_that_is_a_tier_s() -> None:
    found = assigned(a_pod().asking().of_class("gpu-batch"), FINETUNE)
    assert deciding_line(found) == "class: priorityClassName is gpu-batch"
    assert words(found.trace) == ("group: -", "label: -", "rule: -", "class: priorityClassName is gpu-batch")


def test_then_the_workload_type() -> None:
    found = assigned(a_pod().asking(), FINETUNE)
    assert deciding_line(found) == "workload-type: training, by its kind, PyTorchJob/finetune"
    assert found.tier
    assert found.tier.name == "gpu-training"


def test_then_the_default_of_the_tenant_before_that_of_the_namespace() -> None:
    labels = {"gpu-tiers.dev/default-tier": "gpu-serving"}
    pod, tenant = a_pod().asking(), a_tenant(defaultTier="gpu-batch")
    assert (
        deciding_line(assigned(pod, tenant=tenant, labels=labels)) == "namespace-default: the default of tenant alpha"
    )
    found = assigned(pod, tenant=a_tenant(), labels=labels)
    assert deciding_line(found) == "namespace-default: the default of namespace team-alpha"
    assert found.tier
    assert found.tier.name == "gpu-serving"


def test_last_the_policy_s_default_which_evicts_nobody() -> None:
    found = assigned(a_pod().asking(), a_deployment())
    assert found.tier
    assert (found.tier.name, found.tier.preemption_policy) == ("gpu-interactive", "Never")
    assert words(found.trace) == (
        "group: -",
        "label: -",
        "rule: -",
        "class: -",
        "workload-type: -",
        "namespace-default: -",
        "policy-default: the policy's default",
    )


def test_a_group_leaves_no_choice() -> None:
    """The scheduler of 1.37 refuses a group whose pods differ in priority."""
    found = assigned(a_pod().asking().in_group("gang"), FINETUNE, group="gpu-batch")
    assert deciding_line(found) == "group: PodGroup/gang is gpu-batch"
    assert words(found.trace) == ("group: PodGroup/gang is gpu-batch",)


@pytest.mark.parametrize("pod", [a_pod().of_tier("gpu-batch"), a_pod().of_class("gpu-batch"), a_pod()])
def test_a_pod_that_says_what_its_group_says_goes_with_it(pod) -> None:  # type: ignore[no-untyped-def]
    assert assigned(pod.asking().in_group("gang"), group="gpu-batch").step == "group"


def test_during_adoption_a_group_has_the_non_preempting_class() -> None:
    policy = a_policy(adoption=True)
    pod = a_pod().asking().in_group("gang").of_tier("gpu-batch").of_class("gpu-batch-nonpreempting")
    assert assigned(pod, policy=policy, group="gpu-batch").step == "group"


LAUNCHER = a_pod().running("mpirun", "train.py")


def test_a_member_without_gpus_goes_with_the_label_on_its_gang_s_templates() -> None:
    worker = a_pod().asking().of_tier("gpu-batch").template()
    launcher = a_pod().running("mpirun").of_tier("gpu-serving").template()
    specs = {"Launcher": {"template": launcher}, "Worker": {"replicas": 2, "template": worker}}
    mpijob = a_workload("kubeflow.org/v2beta1", "MPIJob", "allreduce", mpiReplicaSpecs=specs).of_tier("gpu-training")
    where = "MPIJob/allreduce.spec.mpiReplicaSpecs.Worker.template"
    assert deciding_line(assigned(LAUNCHER, mpijob)) == f"label: the label on {where} says gpu-batch"


def test_a_member_without_gpus_goes_with_the_class_of_its_gang() -> None:
    worker = {"replicas": 2, "template": a_pod().asking().of_class("gpu-batch").template()}
    specs = {"Launcher": {"template": LAUNCHER.template()}, "Worker": worker}
    mpijob = a_workload("kubeflow.org/v2beta1", "MPIJob", "allreduce", mpiReplicaSpecs=specs)
    where = "MPIJob/allreduce.spec.mpiReplicaSpecs.Worker.template.spec.priorityClassName"
    assert deciding_line(assigned(LAUNCHER, mpijob)) == f"class: {where} is gpu-batch"


def test_a_member_without_gpus_goes_with_its_gang_s_type() -> None:
    specs = {"Launcher": {"template": LAUNCHER.template()}, "Worker": {"template": a_pod().asking().template()}}
    mpijob = a_workload("kubeflow.org/v2beta1", "MPIJob", "allreduce", mpiReplicaSpecs=specs)
    assert (
        deciding_line(assigned(LAUNCHER, mpijob))
        == "workload-type: training, by the usual use of its kind, MPIJob/allreduce"
    )


def test_a_class_that_gives_way_to_a_rule_is_reported() -> None:
    pod = a_pod().asking().of_class("gpu-training").having("spec.serviceAccountName", "nightly")
    found = assigned(pod, policy=a_policy(rules=RULES))
    assert found.tier
    assert found.tier.name == "gpu-batch"
    assert words(found.warnings) == (
        "priorityClassName gpu-training is replaced by gpu-batch (rules[1] of the policy says gpu-batch)",
    )


def test_a_mistake_is_refused_before_any_later_step_is_asked() -> None:
    with pytest.raises(Refused):
        assigned(a_pod().asking().of_tier("gold"), FINETUNE)
