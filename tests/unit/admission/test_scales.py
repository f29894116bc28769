"""A scale is judged as the update that it makes: a gang grows whole or not at all, what is elastic grows as it can."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from tests.builders import Tree, WorkloadBuilder, a_pod, a_pytorchjob, a_tenant, a_workload
from tests.builders.world import Answer, FakeApi
from webhook.admission.review import BadReview
from webhook.objects.view import at
from webhook.policy.workloads.kind_table import BUILT_IN

SCALE = {"group": "autoscaling", "version": "v1", "kind": "Scale"}


def a_leaderworkerset(groups: int) -> WorkloadBuilder:
    """Groups of a leader and a worker, each of 4 GPUs."""
    template = a_pod().asking(4).template()
    leader_worker = {"size": 2, "leaderTemplate": template, "workerTemplate": template}
    lws = "leaderworkerset.x-k8s.io/v1"
    return a_workload(lws, "LeaderWorkerSet", "llm", replicas=groups, leaderWorkerTemplate=leader_worker)


def scaled(workload: WorkloadBuilder, spec: object) -> Tree:
    """The Scale of a workload as the API server writes it; no replicas are left out."""
    metadata = {each: workload.tree["metadata"][each] for each in ("name", "namespace", "uid")}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": {}}


async def scale(world: FakeApi, workload: WorkloadBuilder, replicas: object, **changes: Any) -> Answer:
    """`kubectl scale`: what the validating webhook says."""
    group, _, version = workload.tree["apiVersion"].rpartition("/")
    old = scaled(workload, {"replicas": 1})
    asked: dict[str, Any] = {
        "operation": "UPDATE",
        "kind": SCALE,
        "resource": {"group": group, "version": version, "resource": f"{workload.tree['kind'].lower()}s"},
        "subResource": "scale",
        "oldObject": old,
    }
    return await world.validate(scaled(workload, {"replicas": replicas}), **{**asked, **changes})


def used(world: FakeApi) -> Decimal:
    return sum(world.ledger.usage(world.known.tenants()[0]).values(), Decimal(0))


async def test_a_gang_that_grows_books_the_difference() -> None:
    job = a_pytorchjob(a_pod().asking(2), workers=2)
    world = FakeApi(a_tenant().allowing("8"), job)
    assert (await world.validate(job)).allowed
    assert used(world) == 4
    assert (await scale(world, job, 3)).allowed
    assert used(world) == 6
    assert (await scale(world, job, 4)).allowed
    assert used(world) == 8
    assert "the total is at 8 of 8 GPUs" in (await world.create(a_pod().asking(1))).sentence


async def test_the_refusal_names_the_whole_as_that_of_an_update_does() -> None:
    job, other = a_pytorchjob(a_pod().asking(2), workers=2), a_pytorchjob(a_pod().asking(1), "other", 3)
    world = FakeApi(a_tenant().allowing("8"), job)
    for each in (job, other):
        assert (await world.validate(each)).allowed
    refused = await scale(world, job, 4)
    assert refused.sentence == (
        "exceeded quota: PyTorchJob work asks for 8 GPUs (4 x 2); tenant alpha has 5 left, "
        "enough for 2 of these pods, but they start only together. "
        "Would fit: no tier now. See TenantQuota/alpha."
    )
    again = job.having("spec.pytorchReplicaSpecs.Worker.replicas", 4)
    assert (await world.update(job, again)).sentence == refused.sentence
    assert used(world) == 7, "a refusal books nothing"


async def test_what_is_recorded_is_the_workload() -> None:
    """Events and logs name it, and no Scale."""
    job = a_pytorchjob(a_pod().asking(2), workers=2)
    world = FakeApi(a_tenant().allowing("4"), job)
    await scale(world, job, 3)
    _, request, verdict, _ = world.records[-1]
    assert (request.kind.group, request.kind.kind, request.name) == ("kubeflow.org", "PyTorchJob", "work")
    assert verdict.over_quota


async def test_a_dry_run_books_nothing() -> None:
    job = a_pytorchjob(a_pod().asking(2), workers=2)
    world = FakeApi(a_tenant().allowing("8"), job)
    await world.validate(job)
    assert (await scale(world, job, 4, dryRun=True)).allowed
    assert used(world) == 4


async def test_a_gang_that_shrinks_needs_no_room() -> None:
    job = a_pytorchjob(a_pod().asking(2), workers=4)
    world = FakeApi(a_tenant().allowing("4"), job)
    answer = await scale(world, job, 3)
    assert answer.allowed
    (warning,) = answer.warnings
    assert warning.startswith("tenant alpha: the total allows 4 GPUs; this PyTorchJob asks for 6 in all.")


async def test_none_are_left_out_on_the_wire() -> None:
    job = a_pytorchjob(a_pod().asking(2), workers=4)
    world = FakeApi(a_tenant().allowing("4"), job)
    for nothing in ({}, {"replicas": None}):
        answer = await scale(world, job, 0, object=scaled(job, nothing))
        assert (answer.allowed, answer.warnings) == (True, [])


async def test_what_is_elastic_is_admitted_by_the_pod() -> None:
    """An autoscaler that asks for 4 gets the 3 that fit."""
    job = a_pytorchjob(a_pod().asking(2), workers=2).having("spec.elasticPolicy", {"minReplicas": 1, "maxReplicas": 9})
    world = FakeApi(a_tenant().allowing("6"), job)
    assert (await scale(world, job, 3)).allowed
    answer = await scale(world, job, 4)
    assert answer.allowed
    (warning,) = answer.warnings
    assert warning.startswith("tenant alpha: the total allows 6 GPUs; this PyTorchJob asks for 8 in all.")
    made = [await world.create(a_pod().asking(2).owned_by(job)) for _ in range(4)]
    assert [each.allowed for each in made] == [True, True, True, False]


async def test_a_leaderworkerset_reads_that_not_all_groups_fit_now() -> None:
    lws, job = a_leaderworkerset(1), a_pytorchjob(a_pod().asking(4), workers=2)
    world = FakeApi(a_tenant().allowing("20"), lws)
    for each in (lws, job):
        assert (await world.validate(each)).allowed
    assert used(world) == 16
    answer = await scale(world, lws, 2)
    assert answer.allowed
    (warning,) = answer.warnings
    assert warning == (
        "tenant alpha: the total is at 16 of 20 GPUs; this LeaderWorkerSet asks for 8 more, so not all of its pods can "
        "start now"
    )
    assert used(world) == 16, "a group beyond the first is booked by its pods"


async def test_the_first_group_from_none_is_booked() -> None:
    lws = a_leaderworkerset(0)
    world = FakeApi(a_tenant().allowing("8"), lws)
    assert (await scale(world, lws, 1)).allowed
    assert used(world) == 8


async def test_a_suspended_job_books_nothing() -> None:
    job = a_pytorchjob(a_pod().asking(2), workers=2).having("spec.runPolicy", {"suspend": True})
    world = FakeApi(a_tenant().allowing("8"), job)
    assert (await scale(world, job, 4)).allowed
    assert used(world) == 0


WRONG = {
    "a million": (1_000_000, "tenant alpha: the total allows 8 GPUs; this PyTorchJob asks for 2000000 in all."),
    "a thousand million": (
        10**9,
        'spec.pytorchReplicaSpecs.Worker.replicas: "1000000000" is not a count of pods; write a whole number from 0 to',
    ),
    "a text": (
        "3",
        'spec.pytorchReplicaSpecs.Worker.replicas: "3" is not a count of pods; write a whole number from 0 to',
    ),
    "less than none": (-1, 'spec.pytorchReplicaSpecs.Worker.replicas: "-1" is not a count of pods'),
    "true": (True, 'spec.pytorchReplicaSpecs.Worker.replicas: "True" is not a count of pods'),
    "a part": (2.5, 'spec.pytorchReplicaSpecs.Worker.replicas: "2.5" is not a count of pods'),
}


@pytest.mark.parametrize(("replicas", "sentence"), WRONG.values(), ids=WRONG)
async def test_a_count_that_is_none(replicas: object, sentence: str) -> None:
    job = a_pytorchjob(a_pod().asking(2), workers=2)
    world = FakeApi(a_tenant().allowing("8"), job)
    answer = await scale(world, job, replicas)
    assert answer.sentence.startswith(sentence)
    assert used(world) == 0


async def test_a_workload_that_is_gone_or_was_made_again() -> None:
    job = a_pytorchjob(a_pod().asking(2), workers=2)
    gone = await scale(FakeApi(a_tenant().allowing("8")), job, 4)
    assert gone.sentence == ("PyTorchJob/work is not among the objects given, so gpu-tiers can't find what is scaled")
    world = FakeApi(a_tenant().allowing("8"), job.having("metadata.uid", "another"))
    assert (await scale(world, job, 4)).sentence == (
        "PyTorchJob/work has another UID than its scale: it was deleted and created again, so gpu-tiers can't "
        "find what is scaled"
    )


@pytest.mark.parametrize("broken", [None, 7, [], {"spec": []}, {"metadata": 7}, {"spec": {"replicas": {}}}])
async def test_a_scale_that_is_none(broken: object) -> None:
    job = a_pytorchjob(a_pod().asking(2), workers=2)
    answer = await scale(FakeApi(a_tenant().allowing("8"), job), job, 4, object=broken)
    assert not answer.allowed
    assert answer.sentence


@pytest.mark.parametrize("changes", [{"operation": "CREATE"}, {"subResource": "status"}, {"resource": {}}])
async def test_what_no_rule_of_ours_sends(changes: Tree) -> None:
    job = a_pytorchjob(a_pod().asking(2), workers=2)
    with pytest.raises(BadReview):
        await scale(FakeApi(a_tenant().allowing("8"), job), job, 4, **changes)


def fields() -> Iterator[tuple[str, str]]:
    yield from ((row.kind, row.scale) for row in BUILT_IN.rows if row.scale)


def test_the_kinds_whose_scale_is_reviewed() -> None:
    """The kinds are those with a specReplicasPath in their operators' CRDs."""
    assert dict(fields()) == {
        "PyTorchJob": "spec.pytorchReplicaSpecs.Worker.replicas",
        "JAXJob": "spec.jaxReplicaSpecs.Worker.replicas",
        "PaddleJob": "spec.paddleReplicaSpecs.Worker.replicas",
        "LeaderWorkerSet": "spec.replicas",
    }
    assert at(a_leaderworkerset(3).json(), "spec.replicas") == 3
