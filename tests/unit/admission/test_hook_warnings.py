"""Warnings about hooks go to the person who applies, once, and never to a controller that reconciles."""

import pytest

from tests.builders import (
    PodBuilder,
    WorkloadBuilder,
    a_deployment,
    a_job,
    a_pod,
    a_policy,
    a_pytorchjob,
    a_replicaset,
    a_tenant,
    a_workload,
)
from tests.builders.world import FakeApi
from webhook.sentences.sentence import LONGEST

KIND = "gpu-tiers.dev/checkpoint"
SHELL = "[shell-pid-1] container {}: a shell as first process does not pass SIGTERM on; exec the program"
BACKOFF = "[job-backoff] preemptions count against backoffLimit 6; let podFailurePolicy ignore DisruptionTarget"


def in_a_shell(**container: object) -> PodBuilder:
    return a_pod().asking(command=["sh", "-c", "a; python train.py"], **container)


def a_night_job(**annotations: str) -> WorkloadBuilder:
    return a_job(name="night").annotated({f"gpu-tiers.dev/{key}": value for key, value in annotations.items()})


async def test_a_workload_s_trap_is_reported_when_it_is_applied() -> None:
    answer = await FakeApi().validate(a_pytorchjob(in_a_shell()))
    assert answer.warnings == [SHELL.format("main")]


async def test_a_job_that_some_evictions_end_for_good_is_reported_with_a_hook_and_without() -> None:
    """Without a hook nothing saves, so the Job gets no podFailurePolicy, and serving may evict it all the same."""
    assert (await FakeApi().validate(a_night_job(checkpoint="file"))).warnings == [BACKOFF]
    assert (await FakeApi().validate(a_night_job())).warnings == [BACKOFF]
    ignores = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
    for job in (a_night_job().having("spec.podFailurePolicy", ignores), a_night_job().having("spec.backoffLimit", 20)):
        assert (await FakeApi().validate(job)).warnings == []


async def test_a_job_that_nobody_evicts_is_not_reported() -> None:
    top = a_night_job(checkpoint="none").of_tier("gpu-training")
    assert (await FakeApi().validate(top)).warnings == []
    assert (await FakeApi(policy=a_policy(adoption=True)).validate(a_night_job())).warnings == []
    idle = a_night_job().having("spec.template.spec.containers.0.resources.limits", {"nvidia.com/gpu": 0})
    assert (await FakeApi().validate(idle.of_tier("gpu-batch"))).warnings == [], "it holds no GPU that somebody needs"


WHEN = "when you delete the node or taint it out-of-service"
PRICE = f"[lost-node] added podFailurePolicy: pods of a dead node are replaced {WHEN}"


def a_retried_job(**annotations: str) -> WorkloadBuilder:
    return a_night_job(checkpoint="file", **annotations).having("spec.template.spec.restartPolicy", "Never")


async def test_the_price_of_an_added_policy_is_reported_once_when_it_is_added() -> None:
    world = FakeApi()
    mutated = await world.mutate(a_retried_job())
    assert mutated.warnings == [PRICE]
    assert mutated.patched["spec"]["podReplacementPolicy"] == "Failed"
    assert (await world.mutate(mutated.patched)).warnings == []
    assert (await world.validate(mutated.patched)).warnings == []


@pytest.mark.parametrize("gpus", [0, 1], ids=["never", "not now"])
async def test_of_a_job_that_is_refused_only_the_refusal_is_reported(gpus: int) -> None:
    """kubectl prints the warnings of mutate first."""
    pods = {"parallelism": 2, "completions": 2}
    world = FakeApi(a_tenant().allowing(gpus))
    job = a_retried_job()
    for field, value in pods.items():
        job = job.having(f"spec.{field}", value)
    mutated = await world.mutate(job)
    assert mutated.warnings == []
    assert not (await world.validate(mutated.patched)).allowed


async def test_no_price_is_reported_where_no_policy_is_added() -> None:
    left = a_policy(checkpoint={"podFailurePolicy": "Leave"})
    assert (await FakeApi(policy=left).mutate(a_retried_job())).warnings == []
    own = a_retried_job().having("spec.podFailurePolicy", {"rules": []})
    assert (await FakeApi().mutate(own)).warnings == []


async def test_the_price_of_a_job_that_another_workload_makes_was_reported_when_that_was_applied() -> None:
    job_set = a_workload("jobset.x-k8s.io/v1alpha2", "JobSet", name="night").annotated(
        {"gpu-tiers.dev/checkpoint": "file"}
    )
    jobs = [{"name": "workers", "replicas": 2, "template": {"spec": a_retried_job().json()["spec"]}}]
    job_set = job_set.of_tier("gpu-training").having("spec.replicatedJobs", jobs)
    world = FakeApi(job_set)
    assert (await world.validate(job_set)).warnings == [PRICE]
    assert (await world.mutate(a_retried_job().owned_by(job_set))).warnings == []


async def test_a_controller_that_reconciles_gets_no_warning() -> None:
    job = a_pytorchjob(in_a_shell())
    world = FakeApi(job)
    assert (await world.update(job, job.having("metadata.finalizers", ["x"]))).warnings == []


async def test_an_update_that_brings_the_trap_says_so() -> None:
    answer = await FakeApi().update(a_pytorchjob(), a_pytorchjob(in_a_shell()))
    assert answer.warnings == [SHELL.format("main")]


async def test_a_workload_that_another_one_makes_is_not_warned_again() -> None:
    owner = a_deployment(in_a_shell()).of_tier("gpu-training").annotated({KIND: "file"})
    made = a_replicaset(in_a_shell()).owned_by(owner)
    world = FakeApi(owner)
    assert (await world.validate(owner)).warnings == [SHELL.format("main")]
    assert (await world.validate(made)).warnings == []


async def test_a_bare_pod_s_author_is_warned_once() -> None:
    pod = in_a_shell().of_tier("gpu-training").having("spec.restartPolicy", "Never").annotated({KIND: "file"})
    world = FakeApi()
    mutated = await world.mutate(pod)
    assert mutated.warnings == []
    validated = await world.validate(world.stored(mutated.patched))
    assert [warning.partition("]")[0] for warning in validated.warnings] == ["[shell-pid-1", "[no-controller"]


async def test_a_pod_of_a_workload_does_not_repeat_the_warning_of_its_author() -> None:
    job = a_pytorchjob(in_a_shell())
    world = FakeApi(job)
    pod = in_a_shell().having("spec.restartPolicy", "Never").owned_by(job)
    assert (await world.create(pod)).warnings == []


async def test_audit_says_nothing() -> None:
    assert (await FakeApi(policy=a_policy(mode="Audit")).validate(a_pytorchjob(in_a_shell()))).warnings == []


async def test_a_long_name_does_not_make_a_long_warning() -> None:
    job = a_pytorchjob(in_a_shell(name="x" * 63))
    (warning,) = (await FakeApi().validate(job)).warnings
    assert len(warning) == LONGEST


TEMPLATES = {
    "null": (None, ""),
    "a list": ([], "spec.pytorchReplicaSpecs.Worker.template: expected a map, got a list"),
    "a string": ("x", "spec.pytorchReplicaSpecs.Worker.template: expected a map, got text"),
    "containers that are text": (
        {"spec": {"containers": "x"}},
        "spec.pytorchReplicaSpecs.Worker.template.spec.containers: expected a list, got text",
    ),
    "annotations that are a list": (
        {"metadata": {"annotations": []}},
        "spec.pytorchReplicaSpecs.Worker.template.metadata.annotations: expected a map, got a list",
    ),
    "an annotation that is a number": (
        {"metadata": {"annotations": {f"{KIND}-timeout": 60}}},
        (
            "spec.pytorchReplicaSpecs.Worker.template.metadata.annotations[...]: expected text, got a whole number; "
            "write it in quotes"
        ),
    ),
}


@pytest.mark.parametrize("name", TEMPLATES)
async def test_a_template_that_is_none_is_refused_with_its_place(name: str) -> None:
    """One that is null makes no pods, and nothing of it can be preempted."""
    template, sentence = TEMPLATES[name]
    worker = {"replicas": 1, "template": template}
    job = a_workload("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs={"Worker": worker}).annotated({KIND: "file"})
    assert (await FakeApi().validate(job)).sentence == sentence
