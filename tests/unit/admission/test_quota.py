"""A pod's demand against its tenant's rows: booked once, exactly, and refused in one sentence."""

import asyncio

import pytest

from tests.builders import (
    Built,
    PodBuilder,
    TenantBuilder,
    Tree,
    a_deployment,
    a_pod,
    a_podgroup,
    a_policy,
    a_pytorchjob,
    a_replicaset,
    a_tenant,
)
from tests.builders.world import Answer, FakeApi


def alpha(**spec: object) -> TenantBuilder:
    return a_tenant(**spec).allowing("6", tier="gpu-training")


def crowded(*, batch: str = "3", **spec: object) -> TenantBuilder:
    """Room for training and batch alone."""
    return (
        alpha(**spec)
        .allowing(batch, tier="gpu-batch")
        .allowing("0", tier="gpu-serving")
        .allowing("0", tier="gpu-interactive")
    )


async def admitted(world: FakeApi, gpus: str, tier: str, count: int = 1) -> list[Answer]:
    return [await world.create(a_pod().asking(gpus).of_tier(tier)) for _ in range(count)]


async def test_the_sentence_of_a_pod_over_quota() -> None:
    world = FakeApi(crowded())
    answers = await admitted(world, "2", "gpu-training", count=4)
    assert [answer.allowed for answer in answers] == [True, True, True, False]
    assert answers[3].sentence == (
        "exceeded quota: tenant alpha: gpu-training is at 6 of 6 GPUs; this pod asks for 2. "
        "Would fit: gpu-batch (3 left). See TenantQuota/alpha."
    )
    assert answers[3].response["status"]["reason"] == "Forbidden"


async def test_only_tiers_that_the_tenant_may_use_would_fit() -> None:
    world = FakeApi(alpha(maxTier="gpu-training").allowing("6"))
    await admitted(world, "6", "gpu-training")
    (answer,) = await admitted(world, "1", "gpu-training")
    assert "Would fit: no tier now." in answer.sentence


async def test_a_dry_run_is_checked_and_books_nothing() -> None:
    world = FakeApi(alpha())
    for _ in range(5):
        assert (await world.create(a_pod().asking("6").of_tier("gpu-training"), dryRun=True)).allowed
    assert not (await world.create(a_pod().asking("7").of_tier("gpu-training"), dryRun=True)).allowed
    (real,) = await admitted(world, "6", "gpu-training")
    assert real.allowed


async def test_a_retried_review_is_booked_once() -> None:
    world = FakeApi(alpha())
    pod = world.stored((await world.mutate(a_pod().asking("6").of_tier("gpu-training"))).patched)
    assert [(await world.validate(pod)).allowed for _ in range(3)] == [True] * 3


@pytest.mark.parametrize("author", ["system:serviceaccount:kube-system:replicaset-controller", "mallory"])
async def test_a_controller_tries_again_in_the_slot_of_its_own_try_alone(author: str) -> None:
    """A pod that a person creates in its name may be stored after the controller has read it."""
    pod = a_pod().asking("6").of_tier("gpu-training").labelled({"app": "serve"})
    owner = a_replicaset(pod).having("spec.selector", {"matchLabels": {"app": "serve"}})
    world = FakeApi(alpha(), owner)
    assert (await world.create(pod.owned_by(owner), userInfo={"username": author, "groups": []})).allowed
    again = {"username": "system:serviceaccount:kube-system:replicaset-controller", "groups": []}
    assert (await world.create(pod.owned_by(owner), userInfo=again)).allowed is (author != "mallory")


async def test_a_pod_without_a_uid_is_booked_under_its_reviews_uid() -> None:
    world = FakeApi(alpha())
    pod = (await world.mutate(a_pod().asking("4").of_tier("gpu-training"))).patched
    named = {name: {**pod, "metadata": {**pod["metadata"], "name": name}} for name in ("first", "second")}
    answers = [await world.validate(named[uid], uid=uid) for uid in ("first", "first", "second")]
    assert [answer.allowed for answer in answers] == [True, True, False]


async def test_a_reservation_whose_pod_never_came_lapses() -> None:
    world = FakeApi(alpha())
    await admitted(world, "6", "gpu-training")
    world.now = 61.0
    (answer,) = await admitted(world, "6", "gpu-training")
    assert answer.allowed


async def test_eighty_creates_at_once_against_twenty_gpus() -> None:
    world = FakeApi(a_tenant().allowing("20"))
    answers = await asyncio.gather(*(world.create(a_pod().asking("1").of_tier("gpu-batch")) for _ in range(80)))
    assert sum(answer.allowed for answer in answers) == 20
    (sentence,) = {answer.sentence for answer in answers if not answer.allowed}
    assert sentence == (
        "exceeded quota: tenant alpha: the total is at 20 of 20 GPUs; this pod asks for 1. Would fit: no tier now. "
        "See TenantQuota/alpha."
    )


async def test_eighty_creates_at_once_where_the_cluster_answers_late() -> None:
    """Between the look at the cluster and the booking others run; the booking alone must be exact."""
    world = FakeApi(a_tenant().allowing("20"))
    at_once = world.known.namespace

    async def late(name: str) -> object:
        await asyncio.sleep(0)
        return await at_once(name)

    world.known.namespace = late  # type: ignore[method-assign,assignment]
    answers = await asyncio.gather(*(world.create(a_pod().asking("1").of_tier("gpu-batch")) for _ in range(80)))
    assert sum(answer.allowed for answer in answers) == 20


async def test_where_the_tenant_is_warned_only() -> None:
    world = FakeApi(alpha(onExceed="Warn"))
    answers = await admitted(world, "4", "gpu-training", count=2)
    assert [answer.allowed for answer in answers] == [True, True]
    said = (
        "It is admitted, because the tenant's onExceed is Warn: exceeded quota: tenant alpha: gpu-training is at 4 of"
    )
    assert answers[1].warnings[0].startswith(said)


async def test_where_the_tenant_demotes() -> None:
    world = FakeApi(crowded(onExceed="Demote"))
    await admitted(world, "6", "gpu-training")

    pod = a_pod("another").asking("2").of_tier("gpu-training")
    mutated = await world.mutate(pod)
    assert mutated.patched["spec"]["priorityClassName"] == "gpu-batch"
    assert mutated.patched["metadata"]["labels"]["gpu-tiers.dev/tier"] == "gpu-training", "a selector may need it"
    assert (await world.mutate(mutated.patched)).patch == []
    (warning,) = mutated.warnings
    assert warning.startswith("tenant alpha has no room for it in gpu-training: this pod runs as gpu-batch")
    assert warning.endswith(", which gpu-training, gpu-serving may evict")
    assert (await world.create(pod)).allowed

    answer = await world.create(pod)
    assert "tenant alpha: gpu-training is at 6 of 6 GPUs; this pod asks for 2." in answer.sentence


async def test_where_the_tenant_demotes_and_its_total_is_full_the_total_is_named() -> None:
    """No lower tier is a way round the total, so the tier's own row is not what stands in the way."""
    world = FakeApi(a_tenant(onExceed="Demote").allowing("2", tier="gpu-training").allowing("4"))
    await admitted(world, "2", "gpu-training")
    (answer,) = await admitted(world, "3", "gpu-training")
    assert answer.sentence == (
        "exceeded quota: tenant alpha: the total is at 2 of 4 GPUs; this pod asks for 3. Would fit: no tier now. "
        "See TenantQuota/alpha."
    )


async def test_a_tier_whose_room_is_taken_is_offered_for_later() -> None:
    world = FakeApi(a_tenant().allowing("2", tier="gpu-training").allowing("3", tier="gpu-batch").allowing("8"))
    await admitted(world, "2", "gpu-batch")
    (answer,) = await admitted(world, "3", "gpu-training")
    assert answer.sentence == (
        "tenant alpha: gpu-training allows 2 GPUs; this pod asks for 3. Would fit: gpu-serving, gpu-interactive; once "
        "there is room: gpu-batch. See TenantQuota/alpha."
    )
    await admitted(world, "4", "gpu-serving")
    (answer,) = await admitted(world, "3", "gpu-training")
    assert answer.sentence == (
        "tenant alpha: gpu-training allows 2 GPUs; this pod asks for 3. Would fit: no tier now; once there is room: "
        "gpu-serving, gpu-batch, gpu-interactive. See TenantQuota/alpha."
    )


@pytest.mark.parametrize(
    ("replicas", "offered"), [(1, "gpu-batch (3 left), gpu-interactive (1 left)"), (3, "gpu-batch (3 left)")]
)
async def test_a_tier_that_can_never_hold_all_pods_of_the_workload_is_not_offered_to_one(
    replicas: int, offered: str
) -> None:
    """The label is written on the workload, and refused there for all of its pods."""
    rows = (
        a_tenant()
        .allowing("1", tier="gpu-serving")
        .allowing("3", tier="gpu-batch")
        .allowing("1", tier="gpu-interactive")
    )
    owner = a_deployment(a_pod().asking("1"), replicas=replicas).of_tier("gpu-serving")
    world = FakeApi(rows.allowing("0", tier="gpu-training"), owner)
    await admitted(world, "1", "gpu-serving")
    refused = await world.create(a_pod().asking("1").owned_by(owner))
    assert f"Would fit: {offered}. See" in refused.sentence


async def test_a_pod_of_a_group_is_not_demoted_alone() -> None:
    """The scheduler would hold back the whole group: it wants one priority in it."""
    group = a_podgroup().of_class("gpu-training").having("spec.priority", 1000)
    world = FakeApi(crowded(onExceed="Demote"), group)
    await admitted(world, "6", "gpu-training")
    pod = a_pod().asking("2").in_group("gang")
    assert (await world.mutate(pod)).patched["spec"]["priorityClassName"] == "gpu-training"
    answer = await world.create(pod)
    assert "tenant alpha: gpu-training is at 6 of 6 GPUs; group gang asks for 4." in answer.sentence


async def test_a_demotion_never_lifts() -> None:
    world = FakeApi(crowded(onExceed="Demote"))
    await admitted(world, "3", "gpu-batch")
    (answer,) = await admitted(world, "1", "gpu-batch")
    assert answer.sentence.startswith(
        "exceeded quota: tenant alpha: gpu-batch is at 3 of 3 GPUs; this pod asks for 1. Would fit: gpu-t"
    )


async def test_a_second_pass_demotes_no_further() -> None:
    """Others may take the room between the passes; the audit annotations must stay what they were."""
    world = FakeApi(alpha(onExceed="Demote").allowing("3", tier="gpu-batch").allowing("0", tier="gpu-serving"))
    await admitted(world, "6", "gpu-training")
    patched = (await world.mutate(a_pod().asking("2").of_tier("gpu-training"))).patched
    await admitted(world, "2", "gpu-batch")
    assert (await world.mutate(patched)).patch == []


async def test_in_audit_a_demotion_is_recorded_as_one() -> None:
    world = FakeApi(crowded(onExceed="Demote"), policy=a_policy(mode="Audit"))
    answer = await world.validate(world.stored(a_pod().asking("7").of_tier("gpu-training")))
    assert "would-refuse" in answer.audit, "7 GPUs fit no tier"

    roomy = FakeApi(
        crowded(batch="9", onExceed="Demote"),
        policy=a_policy(mode="Audit"),
    )
    answer = await roomy.validate(roomy.stored(a_pod().asking("7").of_tier("gpu-training")))
    assert answer.audit["tier"] == "gpu-batch"
    assert "would-refuse" not in answer.audit


async def test_a_tenant_whose_gpus_another_system_accounts_for() -> None:
    world = FakeApi(alpha(quotaAuthority="kueue"))
    answers = await admitted(world, "6", "gpu-training", count=3)
    assert all(answer.allowed for answer in answers)


async def test_demand_counts_as_the_scheduler_does() -> None:
    """max(app + sidecars, the worst init container + the sidecars before it) = max(2 + 1, 1 + 4) = 5."""
    pod = a_pod().asking("2").with_sidecar("1").with_init("4").of_tier("gpu-training")
    world = FakeApi(a_tenant().allowing("4", tier="gpu-training"))
    assert "this pod asks for 5." in (await world.create(pod)).sentence


async def test_slices_weigh_what_they_are() -> None:
    slices = a_pod().asking("4", resource="nvidia.com/mig-1g.10gb")
    world = FakeApi(a_tenant().allowing("1"))
    answers = [await world.create(slices) for _ in range(3)]
    assert [answer.allowed for answer in answers] == [True, True, False]
    assert "the total is at 1 of 1 GPU; this pod asks for 0.5." in answers[2].sentence


def claims(mode: Tree) -> tuple[PodBuilder, Built]:
    """A pod whose devices come of a claim template, and the template."""
    device = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", **mode}}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpus", "namespace": "team-alpha"},
        "spec": {"spec": {"devices": {"requests": [device]}}},
    }
    pod = a_pod().running().having("spec.resourceClaims", [{"name": "gpu", "resourceClaimTemplateName": "gpus"}])
    return pod, Built(template)


@pytest.mark.parametrize(
    ("mode", "asked"), [({"allocationMode": "ExactCount", "count": 5}, 5), ({"allocationMode": "All"}, 32)]
)
async def test_devices_of_a_claim_count(mode: Tree, asked: int) -> None:
    pod, template = claims(mode)
    world = FakeApi(a_tenant().allowing("4"), template)
    assert f"this pod asks for {asked}." in (await world.create(pod)).sentence


async def test_a_claim_that_does_not_exist_is_no_way_through() -> None:
    pod, _ = claims({})
    answer = await FakeApi().create(pod)
    assert answer.sentence == (
        "ResourceClaimTemplate/gpus is not among the objects given, so gpu-tiers can't choose a tier"
    )


async def test_a_flavor_row_bounds_the_pods_that_name_it() -> None:
    pinned = {"nvidia.com/gpu.product": "H100"}
    world = FakeApi(
        a_tenant().allowing("4", flavor="h100"),
        policy=a_policy(resourceFlavors=[{"name": "h100", "nodeLabels": pinned}]),
    )
    assert (
        await world.create(a_pod().asking("8").having("spec.nodeSelector", {"nvidia.com/gpu.product": "L4"}))
    ).allowed
    assert (
        "h100 allows 4 GPUs; this pod asks for 8. Would fit: no tier."
        in (await world.create(a_pod().asking("8").having("spec.nodeSelector", pinned))).sentence
    )


async def test_a_class_that_stays_counts_as_the_tier_it_reaches() -> None:
    world = FakeApi(a_tenant().allowing("1", tier="gpu-training"))
    pod = a_pod().asking("2").of_class("system-node-critical")
    assert "gpu-training allows 1 GPU" in (await world.create(pod)).sentence


async def test_a_replica_of_a_job_at_full_quota() -> None:
    job = a_pytorchjob(a_pod().asking(4), workers=2)
    world = FakeApi(job, alpha())
    answers = [await world.create(a_pod().asking("4").owned_by(job)) for _ in range(2)]
    assert [answer.allowed for answer in answers] == [True, False]
