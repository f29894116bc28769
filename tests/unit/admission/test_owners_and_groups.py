"""Facts that must be there: owners, PodGroups, namespaces. What can't be read is decided on purpose, never let pass."""

import pytest

from tests.builders import a_deployment, a_pod, a_podgroup, a_policy, a_pytorchjob, a_workload
from tests.builders.world import FakeApi


async def test_an_owner_that_is_gone() -> None:
    answer = await FakeApi().create(a_pod().asking().owned_by(a_pytorchjob()))
    assert answer.sentence == ("PyTorchJob/work is not among the objects given, so gpu-tiers can't choose a tier")


async def test_an_owner_that_is_gone_where_the_policy_takes_the_default() -> None:
    world = FakeApi(policy=a_policy(unreadableOwners="DefaultTier"))
    patched = (await world.mutate(a_pod().asking().owned_by(a_pytorchjob()))).patched
    assert patched["spec"]["priorityClassName"] == "gpu-interactive"


async def test_an_owner_of_another_uid_is_a_forgery() -> None:
    job = a_pytorchjob()
    pod = a_pod().asking().owned_by(job.having("metadata.uid", "forged"))
    answer = await FakeApi(job).create(pod)
    assert "has another UID than the reference to it" in answer.sentence


async def test_owners_in_a_loop() -> None:
    one, other = a_deployment(name="one"), a_deployment(name="other")
    answer = await FakeApi(one.owned_by(other), other.owned_by(one)).create(a_pod().asking().owned_by(one))
    assert answer.sentence.startswith("owner Deployment/one is among its own owners")


async def test_owners_without_end() -> None:
    chain = [a_deployment(name="d0")]
    for number in range(1, 12):
        chain.append(a_deployment(name=f"d{number}").owned_by(chain[-1]))
    answer = await FakeApi(*chain).create(a_pod().asking().owned_by(chain[-1]))
    assert "in a chain of owners" in answer.sentence


async def test_an_owner_of_a_kind_that_nobody_knows_ends_the_walk() -> None:
    stranger = a_workload("example.com/v1", "Thing")
    assert (await FakeApi().create(a_pod().asking().owned_by(stranger))).allowed


async def test_a_namespace_that_is_gone() -> None:
    world = FakeApi()
    world.known.gone.add("team-alpha")
    assert (await world.mutate(a_pod().asking())).patch == []
    answer = await world.validate(world.stored(a_pod().asking()))
    assert answer.sentence == "Namespace/team-alpha does not exist, so gpu-tiers can't choose a tier"


async def test_nothing_is_looked_up_for_a_pod_that_can_not_be_ours() -> None:
    world = FakeApi()
    world.known.gone.add("team-alpha")
    pod = a_pod().running().owned_by(a_pytorchjob(name="gone"))
    assert (await world.create(pod)).allowed


@pytest.mark.parametrize(("gpus", "tier"), [("2", "gpu-training"), (None, "gpu-training")])
async def test_a_pod_takes_its_groups_tier(gpus: str | None, tier: str) -> None:
    group = a_podgroup().of_class(tier).having("spec.priority", 1000)
    world = FakeApi(group)
    pod = (a_pod().asking(gpus) if gpus else a_pod().running()).in_group("gang")
    assert (await world.mutate(pod)).patched["spec"]["priority"] == 1000
    assert (await world.create(pod)).allowed


async def test_a_label_against_the_group() -> None:
    world = FakeApi(a_podgroup().of_class("gpu-training").having("spec.priority", 1000))
    answer = await world.create(a_pod().asking().of_tier("gpu-batch").in_group("gang"))
    assert "PodGroup/gang is gpu-training; a group and its pods share one tier" in answer.sentence


async def test_a_group_without_a_tier() -> None:
    world = FakeApi(a_podgroup())
    pod = a_pod().asking().in_group("gang")
    assert (await world.mutate(pod)).patch == []
    answer = await world.create(pod)
    assert answer.sentence.startswith('spec.schedulingGroup: PodGroup/gang has no tier (priorityClassName "")')


async def test_a_pod_without_gpus_in_a_group_without_a_tier_is_none_of_ours() -> None:
    world = FakeApi(a_podgroup())
    assert (await world.create(a_pod().running().in_group("gang"))).allowed


async def test_a_group_that_does_not_exist() -> None:
    answer = await FakeApi().create(a_pod().asking().in_group("gang"))
    assert answer.sentence.startswith("PodGroup/gang is not among the objects given")


async def test_a_group_of_a_training_job_gets_its_class_and_priority() -> None:
    job = a_pytorchjob()
    world = FakeApi(job)
    patched = (await world.mutate(a_podgroup().owned_by(job))).patched
    assert (patched["spec"]["priorityClassName"], patched["spec"]["priority"]) == ("gpu-training", 1000)
    assert "preemptionPolicy" not in patched["spec"], "dropped unless a gate is on"
    assert (await world.create(a_podgroup().owned_by(job))).allowed


async def test_a_group_by_its_own_label() -> None:
    patched = (await FakeApi().mutate(a_podgroup().of_tier("gpu-batch"))).patched
    assert patched["spec"]["priority"] == 400


async def test_a_group_of_pods_without_gpus_is_none_of_ours() -> None:
    owner = a_deployment(a_pod().asking(0))
    assert (await FakeApi(owner).mutate(a_podgroup().owned_by(owner))).patch == []


async def test_a_group_that_the_mutating_webhook_never_saw() -> None:
    world = FakeApi()
    answer = await world.validate(world.stored(a_podgroup().of_tier("gpu-batch")))
    assert answer.sentence.startswith("tier gpu-batch was not applied to this PodGroup (spec.priorityClassName is ")


@pytest.mark.parametrize("half", ["metadata", "spec"])
async def test_half_a_group_is_left_alone_and_refused(half: str) -> None:
    job = a_pytorchjob()
    group = a_podgroup().of_tier("gpu-training").owned_by(job).having(half, None)
    world = FakeApi(job)
    assert (await world.mutate(group)).patch == []
    assert (await world.validate(group)).allowed is (half == "metadata"), "without metadata nothing makes it ours"


async def test_in_audit_a_group_is_left_alone() -> None:
    world = FakeApi(policy=a_policy(mode="Audit"))
    answer = await world.create(a_podgroup().of_tier("gpu-batch"))
    assert answer.allowed
    assert answer.audit == {"tier": "gpu-batch", "assigned-by": "label: the label on the pod says gpu-batch"}


@pytest.mark.parametrize("mode", ["Audit", "Enforce"])
async def test_a_group_whose_class_is_missing(mode: str) -> None:
    world = FakeApi(policy=a_policy(mode=mode))
    del world.known.live["gpu-batch"]
    answer = await world.create(a_podgroup().of_tier("gpu-batch"))
    assert answer.allowed is (mode == "Audit")
    assert "PriorityClass/gpu-batch of tier" in (answer.sentence or answer.audit["would-refuse"])
