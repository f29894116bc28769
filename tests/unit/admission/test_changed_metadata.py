"""A person changes an annotation or the tier label of a workload that runs, and reads what it does to the pods."""

import pytest

from tests.builders import WorkloadBuilder, a_pod, a_workload
from tests.builders.world import FakeApi

KIND, SECONDS = "gpu-tiers.dev/checkpoint", "gpu-tiers.dev/checkpoint-timeout"


def a_job(name: str = "up", **spec: object) -> WorkloadBuilder:
    return a_workload("batch/v1", "Job", name, backoffLimit=50, template=a_pod().asking(1).template(), **spec)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({KIND: "signl"}, f'Job/up.metadata.annotations[{KIND}]: "signl" is not a kind of hook; write one of file,'),
        ({SECONDS: "5m"}, f'Job/up.metadata.annotations[{SECONDS}]: "5m" is not a time to save; write seconds,'),
    ],
    ids=["kind", "seconds"],
)
async def test_a_wrong_annotation_is_refused_when_it_comes_and_warned_about_when_it_is_there(
    wrong: dict[str, str], sentence: str
) -> None:
    world, right = FakeApi(), a_job().annotated({KIND: "signal", SECONDS: "60"})
    mistaken = right.annotated(wrong)
    assert (await world.update(right, mistaken)).sentence.startswith(sentence)

    for controllers in (
        mistaken.having("spec.suspend", value=True),
        mistaken.having("metadata.finalizers", ["example.com/cleanup"]),
        mistaken.having("status", {"active": 1}),
        mistaken.labelled({"app": "x"}),
    ):
        answer = await world.update(mistaken, controllers)
        assert answer.allowed
        assert answer.warnings[0].startswith(sentence)
    assert (await world.update(mistaken, right)).warnings == []


async def test_a_misspelt_annotation_is_warned_about_once() -> None:
    world, job = FakeApi(), a_job()
    misspelt = job.annotated({"gpu-tiers.dev/checkpiont": "signal"})
    assert (await world.update(job, misspelt)).warnings == [
        f"[unknown-key] gpu-tiers.dev/checkpiont is unknown and ignored; did you mean {KIND}?"
    ]
    assert (await world.update(misspelt, misspelt.labelled({"app": "x"}))).warnings == []
