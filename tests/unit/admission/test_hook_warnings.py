"""Where warnings about hooks are said: to the person who applies, once, and never to a controller that reconciles."""

import copy

import pytest

from tests.unit.admission.shapes import Tree, a_deployment, a_gpu_pod, a_pytorchjob, controlled_by
from tests.unit.admission.world import World, a_policy
from webhook.policy.checkpoint.warning_texts import LONGEST

KIND = "gpu-tiers.dev/checkpoint"
SHELL = "[shell-pid-1] container {}: a shell as first process keeps SIGTERM to itself; exec the program"
BACKOFF = "[job-backoff] preemptions count against backoffLimit 6; have podFailurePolicy ignore DisruptionTarget"


def in_a_shell(job: Tree) -> Tree:
    changed = copy.deepcopy(job)
    changed["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["command"] = [
        "sh",
        "-c",
        "a; b",
    ]
    return changed


def a_job(**annotations: str) -> Tree:
    job = a_deployment(name="night", annotations={f"gpu-tiers.dev/{key}": value for key, value in annotations.items()})
    job.update(apiVersion="batch/v1", kind="Job")
    return job


async def test_a_workload_s_trap_is_told_when_it_is_applied() -> None:
    answer = await World().validate(in_a_shell(a_pytorchjob()))
    assert answer.warnings == [SHELL.format("pytorch")]


async def test_a_job_s_trap_is_told_where_it_has_a_hook() -> None:
    assert (await World().validate(a_job(checkpoint="file"))).warnings == [BACKOFF]
    assert (await World().validate(a_job())).warnings == []


async def test_a_controller_that_reconciles_is_told_nothing() -> None:
    job = in_a_shell(a_pytorchjob())
    world = World(objects=(job,))
    again = {**job, "metadata": {**job["metadata"], "finalizers": ["x"]}}
    assert (await world.update(job, again)).warnings == []


async def test_an_update_that_brings_the_trap_is_told_so() -> None:
    answer = await World().update(a_pytorchjob(), in_a_shell(a_pytorchjob()))
    assert answer.warnings == [SHELL.format("pytorch")]


async def test_a_workload_that_another_one_makes_is_not_told_again() -> None:
    owner = a_deployment(annotations={KIND: "file"})
    owner["spec"]["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "a; b"]
    made = {**owner, "kind": "ReplicaSet", "metadata": {"name": "app-5d9", "namespace": "team-alpha"}}
    made["metadata"]["ownerReferences"] = [controlled_by(owner)]
    world = World(objects=(owner,))
    assert (await world.validate(owner)).warnings == [SHELL.format("main")]
    assert (await world.validate(made)).warnings == []


async def test_a_bare_pod_s_author_is_told_once() -> None:
    pod = a_gpu_pod(restartPolicy="Never")
    pod["metadata"]["annotations"] = {KIND: "file"}
    pod["spec"]["containers"][0]["command"] = ["sh", "-c", "a; b"]
    world = World()
    mutated = await world.mutate(pod)
    assert mutated.warnings == []
    validated = await world.validate(world.stored(mutated.patched))
    assert [warning.partition("]")[0] for warning in validated.warnings] == ["[shell-pid-1", "[no-controller"]


async def test_a_pod_of_a_workload_is_not_told_what_its_author_was() -> None:
    job = in_a_shell(a_pytorchjob())
    world = World(objects=(job,))
    pod = a_gpu_pod(owner=job, restartPolicy="Never")
    pod["spec"]["containers"][0]["command"] = ["sh", "-c", "a; b"]
    assert (await world.create(pod)).warnings == []


async def test_audit_says_nothing() -> None:
    assert (await World(a_policy(mode="Audit")).validate(in_a_shell(a_pytorchjob()))).warnings == []


async def test_a_long_name_does_not_make_a_long_warning() -> None:
    job = in_a_shell(a_pytorchjob())
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["name"] = "x" * 63
    (warning,) = (await World().validate(job)).warnings
    assert len(warning) == LONGEST


TEMPLATES = {
    "null": (None, ""),
    "a list": ([], "spec.pytorchReplicaSpecs.Worker.template: expected `object`, got `array`"),
    "a string": ("x", "spec.pytorchReplicaSpecs.Worker.template: expected `object`, got `str`"),
    "containers that are text": (
        {"spec": {"containers": "x"}},
        "spec.pytorchReplicaSpecs.Worker.template.spec.containers: expected `array`, got `str`",
    ),
    "annotations that are a list": (
        {"metadata": {"annotations": []}},
        "spec.pytorchReplicaSpecs.Worker.template.metadata.annotations: expected `object`, got `array`",
    ),
    "an annotation that is a number": (
        {"metadata": {"annotations": {f"{KIND}-timeout": 60}}},
        (
            "spec.pytorchReplicaSpecs.Worker.template.metadata.annotations[...]: expected `str`, got `int`; "
            "write it in quotes"
        ),
    ),
}


@pytest.mark.parametrize("name", TEMPLATES)
async def test_a_template_that_is_none_is_refused_with_its_place(name: str) -> None:
    """One that is null makes no pods, and nothing of it can be preempted."""
    template, sentence = TEMPLATES[name]
    job = a_pytorchjob(annotations={KIND: "file"})
    job["spec"]["pytorchReplicaSpecs"]["Worker"]["template"] = template
    assert (await World().validate(job)).sentence == sentence
