"""A workload whose pods get their GPUs by resource claims is answered like its pods will be."""

from typing import Any

import pytest

from tests.builders import (
    NICS,
    Built,
    PodBuilder,
    a_claim,
    a_claim_template,
    a_claiming_pod,
    a_deployment,
    a_job,
    a_pod,
    a_pytorchjob,
    a_replicaset,
    a_tenant,
    a_workload,
)
from tests.builders.world import FakeApi
from webhook.objects.refusal import Unreadable

ALPHA = a_tenant().allowing("6", tier="gpu-training").allowing("8", tier="gpu-batch")
UNREAD = (
    "ResourceClaimTemplate/gpus is not among the objects given, so GPUs that the claim may ask for are not counted; "
    "the pods are refused until the claim can be read"
)


def evicts_nobody(tier: str) -> str:
    """Return the sentence about GPUs by DRA in a tier that evicts others."""
    return f"[evicts-nobody] kube-scheduler evicts nobody for gpu.nvidia.com (DRA): {tier} waits until GPUs are free"


async def test_a_job_that_no_wait_would_make_fit() -> None:
    job = a_pytorchjob(a_claiming_pod(), workers=2)
    answer = await FakeApi(ALPHA, a_claim_template(count=4)).validate(job)
    assert answer.sentence == (
        "tenant alpha: gpu-training allows 6 GPUs; this PyTorchJob asks for 8 in all. "
        "Would fit: gpu-serving, gpu-batch, gpu-interactive. See TenantQuota/alpha."
    )


async def test_a_job_that_fits_reads_its_tier() -> None:
    answer = await FakeApi(ALPHA, a_claim_template(count=3)).validate(a_pytorchjob(a_claiming_pod(), workers=2))
    assert answer.allowed
    assert answer.warnings == [evicts_nobody("gpu-training")]
    assert answer.audit["tier"] == "gpu-training"


async def test_claims_and_names_are_added() -> None:
    both = a_claiming_pod().asking(2, name="second")
    answer = await FakeApi(ALPHA, a_claim_template(count=5)).validate(a_pytorchjob(both))
    assert "gpu-training allows 6 GPUs; this PyTorchJob asks for 7 in all" in answer.sentence


async def test_who_monitors_all_gpus_counts_as_in_the_in_tree_quota() -> None:
    monitor = a_claim_template(allocationMode="All", count=0, adminAccess=True)
    answer = await FakeApi(ALPHA, monitor).validate(a_pytorchjob(a_claiming_pod()))
    assert "this PyTorchJob asks for 32 in all" in answer.sentence


async def test_a_claim_of_other_devices_holds_no_gpu() -> None:
    nic = a_claim_template(count=99, deviceClassName="nic.example.com")
    answer = await FakeApi(ALPHA, NICS, nic).validate(a_pytorchjob(a_claiming_pod()))
    assert (answer.allowed, answer.warnings, answer.audit) == (True, [], {})


class Reads:
    """Counts which claims are looked up."""

    def __init__(self, world: FakeApi) -> None:
        self.names: list[str | None] = []
        look_up = world.cluster.lookups.devices

        async def counted(namespace: str, claim: Any) -> Any:
            self.names.append(claim.resource_claim_template_name)
            return await look_up(namespace, claim)

        world.cluster.lookups.devices = counted  # type: ignore[method-assign]


async def test_nothing_is_looked_up_for_a_workload_without_claims() -> None:
    world = FakeApi(ALPHA, a_claim_template())
    reads = Reads(world)
    assert (await world.validate(a_pytorchjob())).allowed
    assert (await world.create(a_pod().asking().owned_by(a_pytorchjob()))).sentence == (
        "PyTorchJob/work is not among the objects given, so gpu-tiers can't choose a tier"
    )
    assert reads.names == []


async def test_a_template_that_all_replicas_name_is_looked_up_once() -> None:
    world = FakeApi(a_claim_template())
    reads = Reads(world)
    specs = {name: {"replicas": 2, "template": a_claiming_pod().template()} for name in ("Master", "Worker")}
    await world.validate(a_workload("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs=specs))
    assert reads.names == ["gpus"]


async def test_a_template_may_come_after_the_workload() -> None:
    answer = await FakeApi(ALPHA).validate(a_pytorchjob(a_claiming_pod(), workers=99))
    assert answer.allowed
    assert answer.warnings == [UNREAD]


async def test_what_asks_by_name_counts_beside_a_claim_that_is_not_there() -> None:
    answer = await FakeApi(ALPHA).validate(a_pytorchjob(a_claiming_pod().asking(2, name="second"), workers=4))
    assert "this PyTorchJob asks for 8 in all" in answer.sentence
    answer = await FakeApi(ALPHA).validate(a_pytorchjob(a_claiming_pod().asking(2, name="second"), workers=3))
    assert answer.warnings == [UNREAD]


async def test_no_container_is_said_to_lack_gpus_before_its_claim_is_there() -> None:
    job = a_job(a_claiming_pod().of_tier("gpu-batch").annotated({"gpu-tiers.dev/checkpoint": "file"}))
    assert (await FakeApi(ALPHA).validate(job)).warnings == [UNREAD]


@pytest.mark.parametrize("problem", ["no answer from the API server within 3 s", "HTTP 403, forbidden"])
async def test_claims_that_cannot_be_read_refuse_no_workload(problem: str) -> None:
    world = FakeApi(ALPHA)

    async def fails(*_: object) -> Any:
        raise Unreadable(f"ResourceClaimTemplate/gpus: {problem}")

    world.cluster.lookups.devices = fails  # type: ignore[method-assign]
    answer = await world.validate(a_pytorchjob(a_claiming_pod()))
    assert answer.allowed
    assert answer.warnings == [
        (
            f"ResourceClaimTemplate/gpus: {problem}, so GPUs that the claim may ask for are not counted; the pods are "
            "refused until the claim can be read"
        )
    ]


async def test_a_broken_template_is_named() -> None:
    broken = a_claim_template(count="many")  # type: ignore[arg-type]
    (warning,) = (await FakeApi(broken).validate(a_pytorchjob(a_claiming_pod()))).warnings
    assert warning.startswith(
        "ResourceClaimTemplate/gpus can't be read: spec.spec.devices.requests[0].exactly.count: expected a whole number"
    )


async def test_an_update_does_not_repeat_the_warning() -> None:
    before, after = (a_pytorchjob(a_claiming_pod(), workers=workers) for workers in (1, 2))
    answer = await FakeApi(ALPHA).update(before, after)
    assert answer.warnings == []


async def test_more_gpus_by_claims_than_before_are_refused() -> None:
    before, after = (a_pytorchjob(a_claiming_pod(), workers=workers) for workers in (1, 4))
    answer = await FakeApi(ALPHA, a_claim_template(count=2)).update(before, after)
    assert "this PyTorchJob asks for 8 in all" in answer.sentence


async def test_a_template_deleted_between_apply_and_the_pod() -> None:
    """The Job was applied while its template was there; its pod comes when it is gone."""
    job, pod = a_pytorchjob(a_claiming_pod()), a_claiming_pod().owned_by(a_pytorchjob(a_claiming_pod()))
    assert (await FakeApi(ALPHA, a_claim_template(), job).validate(job)).warnings == [evicts_nobody("gpu-training")]
    answer = await FakeApi(ALPHA, job).create(pod)
    assert answer.sentence == (
        "ResourceClaimTemplate/gpus is not among the objects given, so gpu-tiers can't choose a tier"
    )
    assert (await FakeApi(ALPHA, job, a_claim_template()).create(pod)).allowed


LAUNCHER = a_pod().running("mpirun", "train.py").labelled({"training.kubeflow.org/job-name": "work"})


def mpi(worker: PodBuilder) -> Built:
    specs = {
        "Launcher": {"replicas": 1, "template": LAUNCHER.template()},
        "Worker": {"replicas": 2, "template": worker.template()},
    }
    return a_workload("kubeflow.org/v2beta1", "MPIJob", mpiReplicaSpecs=specs)


async def test_a_launcher_shares_the_tier_of_workers_with_claims() -> None:
    job = mpi(a_claiming_pod())
    pod = (await FakeApi(job, a_claim_template()).mutate(LAUNCHER.owned_by(job))).patched
    by_name = mpi(a_pod().asking())
    expected = (await FakeApi(by_name).mutate(LAUNCHER.owned_by(by_name))).patched
    assert pod["spec"]["priorityClassName"] == expected["spec"]["priorityClassName"]


async def test_a_launcher_waits_for_no_template_of_its_workers() -> None:
    job = mpi(a_claiming_pod())
    answer = await FakeApi(job).create(LAUNCHER.owned_by(job))
    assert answer.allowed


async def test_a_claim_that_replicas_share_counts_once() -> None:
    """Ten replicas of four GPUs are four GPUs if all of them name the one ResourceClaim."""
    owner = a_deployment(a_claiming_pod(claim="gpus").of_tier("gpu-training"), replicas=10)
    assert (await FakeApi(ALPHA, a_claim(count=4)).validate(owner)).warnings == [evicts_nobody("gpu-training")]
    answer = await FakeApi(ALPHA, a_claim(count=7)).validate(owner)
    assert "gpu-training allows 6 GPUs; this Deployment asks for 7 in all" in answer.sentence


async def test_a_claim_that_templates_share_counts_once() -> None:
    shared = a_claiming_pod(claim="gpus").asking(1, name="own").template()
    specs = {name: {"replicas": 1, "template": shared} for name in ("Master", "Worker")}
    job = a_workload("kubeflow.org/v1", "PyTorchJob", pytorchReplicaSpecs=specs)
    assert (await FakeApi(ALPHA, a_claim(count=4)).validate(job)).allowed
    answer = await FakeApi(ALPHA, a_claim(count=5)).validate(job)
    assert "this PyTorchJob asks for 7 in all" in answer.sentence


async def test_a_claim_that_is_in_use_already_needs_no_room() -> None:
    world = FakeApi(ALPHA, a_claim(count=4))
    pod = a_claiming_pod(claim="gpus").of_tier("gpu-training")
    assert (await world.create(pod)).allowed
    assert (await world.validate(a_job(pod))).warnings == [evicts_nobody("gpu-training")]
    (warning,) = (await world.validate(a_pytorchjob(a_pod().asking(4)))).warnings
    assert "gpu-training is at 4 of 6 GPUs" in warning


async def test_no_replica_holds_nothing() -> None:
    owner = a_replicaset(a_claiming_pod(claim="gpus").of_tier("gpu-training"), replicas=0)
    assert (await FakeApi(ALPHA, a_claim(count=7)).validate(owner)).allowed
