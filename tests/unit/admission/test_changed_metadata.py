"""A person changes an annotation or the tier label of a workload that runs, and reads what it does to the pods."""

import pytest

from tests.builders import (
    Built,
    WorkloadBuilder,
    a_deployment,
    a_pod,
    a_policy,
    a_pytorchjob,
    a_tenant,
    a_workload,
)
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


def keep(kind: str, tier: str) -> list[str]:
    return [f"new pods of this {kind} get {tier}; existing pods keep their tier"]


@pytest.mark.parametrize("made", [a_job(), a_deployment(a_pod().asking(1)), a_pytorchjob(a_pod().asking(1))])
async def test_another_tier_label_is_for_new_pods(made: WorkloadBuilder) -> None:
    world, kind = FakeApi(), made.tree["kind"]
    batch, training = made.of_tier("gpu-batch"), made.of_tier("gpu-training")
    assert (await world.update(batch, training)).warnings == keep(kind, "gpu-training")
    assert (await world.update(training, training.labelled({"app": "x"}))).warnings == []


async def test_a_first_label_and_a_removed_one() -> None:
    """The kind alone gives a training job its tier."""
    world, bare = FakeApi(), a_pytorchjob(a_pod().asking(1))
    batch = bare.of_tier("gpu-batch")
    assert (await world.update(bare, batch)).warnings == keep("PyTorchJob", "gpu-batch")
    assert (await world.update(batch, bare)).warnings == keep("PyTorchJob", "gpu-training")
    assert (await world.update(bare, bare.of_tier("gpu-training"))).warnings == [], "the tier that they have"


DEPLOYMENT = a_deployment(a_pod().asking(1), replicas=2).of_tier("gpu-batch")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (DEPLOYMENT, DEPLOYMENT.having("spec.template.metadata.annotations", {"example.com/restarted": "now"})),
        (DEPLOYMENT, DEPLOYMENT.having("spec.template.spec.dnsPolicy", "Default")),
        (DEPLOYMENT.having("spec.replicas", 0), DEPLOYMENT),
        (a_job(suspend=True), a_job(suspend=True)),
        (a_job(suspend=True), a_job(suspend=False)),
        (a_job().having("status", {"conditions": [{"type": "Complete", "status": "True"}]}), a_job()),
    ],
    ids=["rolled out", "rolled out by a field", "scaled to 0", "suspended", "resumed", "ended"],
)
async def test_a_workload_whose_pods_go_or_that_has_none_gets_no_warning(old: Built, new: Built) -> None:
    assert (await FakeApi().update(old, new.of_tier("gpu-training"))).warnings == []


async def test_a_template_that_names_its_own_tier_keeps_it() -> None:
    own = a_deployment(a_pod().asking(1).of_tier("gpu-batch"))
    answer = await FakeApi().update(own, own.of_tier("gpu-serving"))
    assert [each for each in answer.warnings if "new pods" in each] == []


async def test_nothing_is_said_of_a_create_and_of_a_label_that_is_refused() -> None:
    world, job = FakeApi(a_tenant(maxTier="gpu-batch")), a_job().of_tier("gpu-batch")
    assert (await world.validate(job)).warnings == []
    refused = await world.update(job, job.of_tier("gpu-training"))
    assert not refused.allowed
    assert refused.warnings == []


async def test_a_gang_that_is_demoted_reads_the_lower_tier_alone() -> None:
    tenant = a_tenant(onExceed="Demote").allowing("2", tier="gpu-training").allowing("8")
    world, gang = FakeApi(tenant), a_pytorchjob(a_pod().asking(1), workers=2).of_tier("gpu-interactive")
    assert (await world.create(a_pod().asking(1).of_tier("gpu-training"))).allowed
    [warning] = (await world.update(gang, gang.of_tier("gpu-training"))).warnings
    assert warning.endswith("; running pods keep their tier")


async def test_audit_is_silent() -> None:
    world, job = FakeApi(policy=a_policy(mode="Audit")), a_job().of_tier("gpu-batch")
    assert (await world.update(job, job.of_tier("gpu-training"))).warnings == []
