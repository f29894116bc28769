"""Facts that must be there: owners, PodGroups, namespaces. What can't be read is decided on purpose, never let pass."""

import pytest

from tests.unit.admission.shapes import Tree, a_deployment, a_gpu_pod, a_podgroup, a_pytorchjob, controlled_by
from tests.unit.admission.world import World, a_policy


async def test_an_owner_that_is_gone() -> None:
    answer = await World().create(a_gpu_pod(owner=a_pytorchjob()))
    assert answer.sentence == (
        "PyTorchJob/llm-finetune is not among the objects given; without it the tier cannot be told"
    )


async def test_an_owner_that_is_gone_where_the_policy_takes_the_default() -> None:
    world = World(a_policy("unreadableOwners: DefaultTier\n"))
    patched = (await world.mutate(a_gpu_pod(owner=a_pytorchjob()))).patched
    assert patched["spec"]["priorityClassName"] == "gpu-interactive"


async def test_an_owner_of_another_uid_is_a_forgery() -> None:
    job = a_pytorchjob()
    pod = a_gpu_pod(owner=job)
    pod["metadata"]["ownerReferences"][0]["uid"] = "forged"
    answer = await World(objects=(job,)).create(pod)
    assert "has another UID than the reference to it" in answer.sentence


async def test_owners_in_a_loop() -> None:
    one, other = a_deployment(name="one"), a_deployment(name="other")
    one["metadata"]["ownerReferences"] = [controlled_by(other)]
    other["metadata"]["ownerReferences"] = [controlled_by(one)]
    answer = await World(objects=(one, other)).create(a_gpu_pod(owner=one))
    assert answer.sentence.startswith("owner Deployment/one is among its own owners")


async def test_owners_without_end() -> None:
    chain: list[Tree] = []
    for number in range(12):
        above = [controlled_by(chain[-1])] if chain else []
        chain.append(a_deployment(name=f"d{number}", ownerReferences=above))
    answer = await World(objects=tuple(chain)).create(a_gpu_pod(owner=chain[-1]))
    assert "in a chain of owners" in answer.sentence


async def test_an_owner_of_a_kind_that_nobody_knows_ends_the_walk() -> None:
    stranger = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t", "uid": "u"}}
    assert (await World().create(a_gpu_pod(owner=stranger))).allowed


async def test_a_namespace_that_is_gone() -> None:
    world = World()
    world.cluster.gone.add("team-alpha")
    assert (await world.mutate(a_gpu_pod())).patch == []
    answer = await world.validate(world.stored(a_gpu_pod()))
    assert answer.sentence == "Namespace/team-alpha does not exist; without it the tier cannot be told"


async def test_nothing_is_looked_up_for_a_pod_that_can_not_be_ours() -> None:
    world = World()
    world.cluster.gone.add("team-alpha")
    pod = a_gpu_pod(None, owner=a_pytorchjob(name="gone"))
    assert (await world.create(pod)).allowed


@pytest.mark.parametrize(("gpus", "tier"), [("2", "gpu-training"), (None, "gpu-training")])
async def test_a_pod_takes_its_groups_tier(gpus: str | None, tier: str) -> None:
    group = a_podgroup(priorityClassName=tier, priority=1000)
    world = World(objects=(group,))
    pod = a_gpu_pod(gpus, schedulingGroup={"podGroupName": "gang"})
    assert (await world.mutate(pod)).patched["spec"]["priority"] == 1000
    assert (await world.create(pod)).allowed


async def test_a_label_against_the_group() -> None:
    world = World(objects=(a_podgroup(priorityClassName="gpu-training", priority=1000),))
    answer = await world.create(a_gpu_pod(tier="gpu-batch", schedulingGroup={"podGroupName": "gang"}))
    assert "PodGroup/gang is gpu-training; a group and its pods share one tier" in answer.sentence


async def test_a_group_without_a_tier() -> None:
    world = World(objects=(a_podgroup(),))
    pod = a_gpu_pod(schedulingGroup={"podGroupName": "gang"})
    assert (await world.mutate(pod)).patch == []
    answer = await world.create(pod)
    assert answer.sentence.startswith('spec.schedulingGroup: PodGroup/gang has no tier (priorityClassName "")')


async def test_a_pod_without_gpus_in_a_group_without_a_tier_is_none_of_ours() -> None:
    world = World(objects=(a_podgroup(),))
    assert (await world.create(a_gpu_pod(None, schedulingGroup={"podGroupName": "gang"}))).allowed


async def test_a_group_that_does_not_exist() -> None:
    answer = await World().create(a_gpu_pod(schedulingGroup={"podGroupName": "gang"}))
    assert answer.sentence.startswith("PodGroup/gang is not among the objects given")


async def test_a_group_of_a_training_job_gets_its_class_and_priority() -> None:
    job = a_pytorchjob()
    world = World(objects=(job,))
    patched = (await world.mutate(a_podgroup(owner=job))).patched
    assert (patched["spec"]["priorityClassName"], patched["spec"]["priority"]) == ("gpu-training", 1000)
    assert "preemptionPolicy" not in patched["spec"], "dropped unless a gate is on"
    assert (await world.create(a_podgroup(owner=job))).allowed


async def test_a_group_by_its_own_label() -> None:
    patched = (await World().mutate(a_podgroup(tier="gpu-batch"))).patched
    assert patched["spec"]["priority"] == 400


async def test_a_group_of_pods_without_gpus_is_none_of_ours() -> None:
    owner = a_deployment(0)
    assert (await World(objects=(owner,)).mutate(a_podgroup(owner=owner))).patch == []


async def test_a_group_that_the_mutating_webhook_never_saw() -> None:
    world = World()
    answer = await world.validate(world.stored(a_podgroup(tier="gpu-batch")))
    assert answer.sentence.startswith("tier gpu-batch was not applied to this PodGroup (spec.priorityClassName is ")


@pytest.mark.parametrize("half", ["metadata", "spec"])
async def test_half_a_group_is_left_alone_and_refused(half: str) -> None:
    job = a_pytorchjob()
    group = {**a_podgroup(owner=job, tier="gpu-training"), half: None}
    world = World(objects=(job,))
    assert (await world.mutate(group)).patch == []
    assert (await world.validate(group)).allowed is (half == "metadata"), "without metadata nothing makes it ours"


async def test_in_audit_a_group_is_left_alone() -> None:
    world = World(a_policy(mode="Audit"))
    answer = await world.create(a_podgroup(tier="gpu-batch"))
    assert answer.allowed
    assert answer.audit == {"tier": "gpu-batch", "assigned-by": "label: the label on the pod says gpu-batch"}


@pytest.mark.parametrize("mode", ["Audit", "Enforce"])
async def test_a_group_whose_class_is_missing(mode: str) -> None:
    world = World(a_policy(mode=mode))
    del world.cluster.live["gpu-batch"]
    answer = await world.create(a_podgroup(tier="gpu-batch"))
    assert answer.allowed is (mode == "Audit")
    assert "PriorityClass/gpu-batch of tier" in (answer.sentence or answer.audit["would-refuse"])
