"""A workload and its pods get one tier: what is said when it is applied is what its pods meet later."""

import pytest

from tests.builders import Tree, WorkloadBuilder, a_job, a_pod, a_workload
from tests.builders.operators import CPU_POD, GPU_POD, a_raycluster
from tests.builders.world import FakeApi

SUBMITTED_BY = {"ray.io/originated-from-cr-name": "embed", "ray.io/originated-from-crd": "RayJob"}


def a_rayjob(entrypoint: str, **spec: object) -> WorkloadBuilder:
    cluster = a_raycluster(replicas=2).json()["spec"]
    return a_workload("ray.io/v1", "RayJob", "embed", entrypoint=entrypoint, rayClusterSpec=cluster, **spec)


def a_volcano_job(template: Tree = GPU_POD, **spec: object) -> WorkloadBuilder:
    tasks = [{"name": "worker", "replicas": 2, "template": template}]
    return a_workload("batch.volcano.sh/v1alpha1", "Job", "train", tasks=tasks, **spec)


async def test_the_submitter_of_a_rayjob_has_its_gangs_tier() -> None:
    """KubeRay 1.7 writes these labels on the pod of the Job that it makes for submitting."""
    ray_job = a_rayjob("python embed.py").labelled({"gpu-tiers.dev/tier": "gpu-training"})
    submitter = a_job(a_pod().running("ray", "job", "submit"), name="embed-x7k2p").owned_by(ray_job)
    pod = a_pod().running("ray", "job", "submit").labelled(SUBMITTED_BY).owned_by(submitter)
    patched = (await FakeApi(ray_job, submitter).mutate(pod)).patched
    assert patched["spec"]["priorityClassName"] == "gpu-training"


async def test_the_submitter_and_the_workers_of_a_rayjob_are_of_one_type() -> None:
    ray_job = a_rayjob("python embed.py")
    submitter = a_job(a_pod().running("ray", "job", "submit"), name="embed-x7k2p").owned_by(ray_job)
    cluster = a_raycluster(replicas=2).named("embed-r4f2").owned_by(ray_job)
    world = FakeApi(ray_job, submitter, cluster)
    pods = [
        a_pod().running("ray", "job", "submit").labelled(SUBMITTED_BY).owned_by(submitter),
        a_pod().asking().labelled({"ray.io/cluster": "embed-r4f2"}).owned_by(cluster),
    ]
    classes = {(await world.mutate(pod)).patched["spec"]["priorityClassName"] for pod in pods}
    assert classes == {"gpu-batch"}


async def test_a_submitter_of_a_rayjob_without_gpus_is_none_of_ours() -> None:
    cluster = {"headGroupSpec": {"template": CPU_POD}}
    ray_job = a_workload("ray.io/v1", "RayJob", "embed", entrypoint="python embed.py", rayClusterSpec=cluster)
    submitter = a_job(a_pod().running("ray", "job", "submit"), name="embed-x7k2p").owned_by(ray_job)
    pod = a_pod().running("ray", "job", "submit").labelled(SUBMITTED_BY).owned_by(submitter)
    assert (await FakeApi(ray_job, submitter).mutate(pod)).patch == []


@pytest.mark.parametrize(
    ("written", "where"), [("", "Job/train.spec."), ("gpu-training", "")], ids=["Volcano 1.10", "Volcano 1.11"]
)
async def test_the_class_of_a_volcano_job_is_its_pods(written: str, where: str) -> None:
    """Volcano 1.11 writes the Job's class on its pods. Before, it stood on the PodGroup alone."""
    job = a_volcano_job(priorityClassName="gpu-training")
    pod = a_pod().asking().labelled({"volcano.sh/job-name": "train"}).owned_by(job)
    world = FakeApi(job)
    applied = await world.validate(job)
    assert applied.audit["tier"] == "gpu-training"
    patched = (await world.mutate(pod.of_class(written) if written else pod)).patched
    assert patched["spec"]["priorityClassName"] == "gpu-training"
    assert patched["metadata"]["annotations"]["gpu-tiers.dev/assigned-by"] == (
        f"class: {where}priorityClassName is gpu-training"
    )
    assert (await world.create(pod)).allowed


async def test_a_tasks_own_class_comes_before_the_volcano_jobs() -> None:
    own = {**GPU_POD, "spec": {**GPU_POD["spec"], "priorityClassName": "gpu-serving"}}
    job = a_volcano_job(own, priorityClassName="gpu-training")
    assert (await FakeApi(job).validate(job)).audit["tier"] == "gpu-serving"


async def test_a_volcano_jobs_class_outside_the_tiers_stays() -> None:
    job = a_volcano_job(priorityClassName="house-high")
    answer = await FakeApi(job).validate(job)
    assert answer.warnings == ["priorityClassName house-high is not a tier's class and is kept; this pod gets no tier"]
