"""A gang runs in one tier: a template that names it speaks for those that name none; two that differ are refused."""

import pytest

from tests.builders import Tree, WorkloadBuilder, a_pod, a_tenant, a_workload
from tests.builders.pods import PodBuilder
from tests.builders.world import FakeApi
from tests.unit.admission.test_gangs import pods_of

WORKER = "spec.pytorchReplicaSpecs.Worker.template"


def training(master: PodBuilder, worker: PodBuilder, **spec: object) -> WorkloadBuilder:
    specs = {"Master": {"template": master.template()}, "Worker": {"replicas": 2, "template": worker.template()}}
    return a_workload("kubeflow.org/v1", "PyTorchJob", "llm", pytorchReplicaSpecs=specs, **spec)


def gpus() -> PodBuilder:
    return a_pod().asking(1).running("torchrun", "train.py")


async def tiers_of_pods(world: FakeApi, gang: WorkloadBuilder) -> set[str]:
    answers = [await world.mutate(pod) for pod in pods_of(gang)]
    return {each.patched["metadata"]["labels"]["gpu-tiers.dev/tier"] for each in answers}


@pytest.mark.parametrize("named", [gpus().of_tier("gpu-batch"), gpus().of_class("gpu-batch")], ids=["label", "class"])
async def test_a_tier_in_one_template_is_that_of_all(named: PodBuilder) -> None:
    gang = training(gpus(), named)
    world = FakeApi(a_tenant().allowing("3", tier="gpu-batch").allowing("0", tier="gpu-training"), gang)
    answer = await world.validate(gang)
    assert answer.allowed, answer.sentence
    assert answer.warnings == [f"[gang-label] {WORKER} names gpu-batch: all pods of this PyTorchJob get that tier"]
    assert await tiers_of_pods(world, gang) == {"gpu-batch"}


async def test_the_nearer_template_comes_before_the_label_on_the_workload() -> None:
    gang = training(gpus(), gpus().of_tier("gpu-batch")).of_tier("gpu-serving")
    assert await tiers_of_pods(FakeApi(gang), gang) == {"gpu-batch"}


async def test_a_template_without_gpus_speaks_for_those_with_gpus() -> None:
    gang = training(a_pod().of_tier("gpu-batch"), gpus())
    world = FakeApi(gang)
    assert "gang-label" in (await world.validate(gang)).warnings[0]
    assert await tiers_of_pods(world, gang) == {"gpu-batch"}


async def test_one_without_gpus_follows_the_others_without_a_word() -> None:
    """An MPI launcher is mostly left without a label."""
    gang = training(a_pod(), gpus().of_tier("gpu-batch"))
    assert (await FakeApi(gang).validate(gang)).warnings == []


async def test_two_templates_that_name_different_tiers_are_refused_by_name() -> None:
    answer = await FakeApi().validate(training(gpus().of_tier("gpu-training"), gpus().of_class("gpu-batch")))
    assert answer.sentence == (
        f"{WORKER}.spec.priorityClassName: gpu-batch contradicts "
        "spec.pytorchReplicaSpecs.Master.template.metadata.labels[gpu-tiers.dev/tier]: gpu-training; the pods of a "
        "PyTorchJob are useful only together and need one tier: write the same in both, or leave one out"
    )


async def test_what_was_wrong_before_is_no_reason_to_refuse_an_update() -> None:
    wrong = training(gpus().of_tier("gpu-training"), gpus().of_tier("gpu-batch"))
    answer = await FakeApi().update(wrong, wrong.annotated({"note": "x"}))
    assert answer.allowed
    assert "contradicts" in answer.warnings[0]


async def test_spare_workers_may_have_a_tier_of_their_own_and_speak_for_nobody() -> None:
    """The gang starts without them."""

    def group(name: str, least: int, pod: PodBuilder) -> Tree:
        return {"groupName": name, "minReplicas": least, "replicas": 2, "maxReplicas": 4, "template": pod.template()}

    groups = [group("spare", 0, gpus().of_tier("gpu-batch")), group("base", 1, gpus())]
    cluster = a_workload(
        "ray.io/v1", "RayCluster", "tune", enableInTreeAutoscaling=True,
        headGroupSpec={"template": gpus().of_tier("gpu-training").template()}, workerGroupSpecs=groups,
    )  # fmt: skip
    world = FakeApi(cluster)
    answer = await world.validate(cluster)
    assert answer.allowed, answer.sentence
    assert await tiers_of_pods(world, cluster) == {"gpu-training"}, "of those that it needs"


async def test_steps_of_a_pipeline_are_no_gang() -> None:
    steps = [
        {"name": name, "container": pod.json()["spec"]["containers"][0], "metadata": pod.json()["metadata"]}
        for name, pod in (("train", gpus().of_tier("gpu-training")), ("evaluate", gpus().of_tier("gpu-batch")))
    ]
    workflow = a_workload("argoproj.io/v1alpha1", "Workflow", "nightly", templates=steps)
    assert (await FakeApi().validate(workflow)).allowed


async def test_a_label_on_one_job_of_a_jobset_holds_for_all_of_them() -> None:
    """The label stands on the Job that the JobSet makes, and not on the pods."""
    template = {"spec": {"template": gpus().template()}}
    labelled = {"metadata": {"labels": {"gpu-tiers.dev/tier": "gpu-batch"}}, **template}
    jobs = [{"name": "leader", "template": template}, {"name": "workers", "template": labelled}]
    job_set = a_workload("jobset.x-k8s.io/v1alpha2", "JobSet", "llm", replicatedJobs=jobs)
    world = FakeApi(job_set)
    warning = (await world.validate(job_set)).warnings[0]
    assert warning.startswith("[gang-label] spec.replicatedJobs.1.template.spec.template names gpu-batch")
    assert await tiers_of_pods(world, job_set) == {"gpu-batch"}


async def test_a_pod_of_a_cronjobs_job_gets_the_tier_that_the_cronjob_announced() -> None:
    made = {"metadata": {"labels": {"gpu-tiers.dev/tier": "gpu-serving"}}, "spec": {"template": gpus().template()}}
    cron = a_workload("batch/v1", "CronJob", "nightly", schedule="@daily", jobTemplate=made)
    announced = await FakeApi().validate(cron)
    assert announced.audit["tier"] == "gpu-serving"
    job = a_workload("batch/v1", "Job", "nightly-1", **made["spec"]).labelled(made["metadata"]["labels"]).owned_by(cron)
    world = FakeApi(cron, job)
    assert (await world.validate(job)).audit["tier"] == "gpu-serving"
    assert await tiers_of_pods(world, job) == {"gpu-serving"}
