"""The validating webhook on a pod about to be stored: tier, class, priority and policy agree."""

import pytest

from tests.builders import Tree, a_pod
from tests.builders.world import FakeApi

TIER = "gpu-tiers.dev/tier"


async def as_mutated(world: FakeApi, pod: Tree) -> Tree:
    return world.stored((await world.mutate(pod)).patched)


async def test_what_mutate_made_is_allowed() -> None:
    world = FakeApi()
    assert (await world.create(a_pod().asking().of_tier("gpu-training"))).allowed


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"priority": 0}, "spec.priority is 0, not 400"),
        ({"preemptionPolicy": "Never"}, "spec.preemptionPolicy is Never, not PreemptLowerPriority"),
        ({"preemptionPolicy": None}, "spec.preemptionPolicy is absent, not PreemptLowerPriority"),
        ({"priorityClassName": ""}, "spec.priorityClassName is absent, not gpu-batch"),
    ],
)
async def test_a_field_that_another_webhook_changed_after_us(changed: Tree, sentence: str) -> None:
    world = FakeApi()
    pod = await as_mutated(world, a_pod().asking().of_tier("gpu-batch"))
    pod["spec"] |= changed
    answer = await world.validate(pod)
    assert not answer.allowed
    assert answer.sentence.startswith(f"tier gpu-batch was not applied ({sentence})")
    assert answer.response["status"] == {
        "code": 403,
        "reason": "Forbidden",
        "message": f"{answer.sentence} [tier-not-applied]",
    }


async def test_a_pod_that_the_mutating_webhook_never_saw() -> None:
    answer = await FakeApi().validate(FakeApi().stored(a_pod().asking()))
    assert not answer.allowed
    assert f"metadata.labels[{TIER}] is absent, not gpu-interactive" in answer.sentence
    assert "the mutating webhook was not reached" in answer.sentence


async def test_gpus_that_a_later_webhook_added() -> None:
    """Ours was never called in the mutating pass; the pod must not run at priority 0."""
    world = FakeApi()
    unseen = a_pod().running()
    assert (await world.mutate(unseen)).patch == []
    pod = world.stored(unseen)
    pod["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "8"}, "requests": {"nvidia.com/gpu": "8"}}
    assert not (await world.validate(pod)).allowed


async def test_a_label_against_a_class_is_refused_by_name() -> None:
    answer = await FakeApi().create(a_pod().asking().of_tier("gpu-training").of_class("gpu-batch"))
    assert answer.sentence == (
        f"metadata.labels[{TIER}]: gpu-training contradicts spec.priorityClassName: gpu-batch; "
        "write one of the two, or the same in both"
    )


async def test_a_label_that_names_no_tier() -> None:
    answer = await FakeApi().create(a_pod().asking().of_tier("gpu-trainign"))
    assert answer.sentence == (
        f'metadata.labels[{TIER}]: unknown tier "gpu-trainign"; '
        "known tiers: gpu-training, gpu-serving, gpu-batch, gpu-interactive"
    )


async def test_a_validating_answer_carries_no_patch() -> None:
    world = FakeApi()
    answer = await world.validate(await as_mutated(world, a_pod().asking()))
    assert answer.allowed
    assert answer.patch == []
    assert answer.audit["tier"] == "gpu-interactive"


async def relabelled(world: FakeApi, label: str | None, **metadata: object) -> tuple[Tree, Tree]:
    """A gpu-batch pod as it runs, and the same with another tier label."""
    old = await as_mutated(world, a_pod().asking().of_tier("gpu-batch"))
    labels = {key: value for key, value in old["metadata"]["labels"].items() if key != TIER}
    labels |= {} if label is None else {TIER: label}
    return old, {**old, "metadata": {**old["metadata"], "labels": labels, **metadata}}


@pytest.mark.parametrize(("label", "shown"), [("gpu-training", "gpu-training"), (None, "absent")])
async def test_a_label_changed_or_removed_on_a_running_pod(label: str | None, shown: str) -> None:
    world = FakeApi()
    answer = await world.update(*await relabelled(world, label))
    assert answer.sentence == (
        f"metadata.labels[{TIER}]: {shown}, but this pod runs as gpu-batch; a pod's tier is fixed when it is created. "
        "`gpu-tiers explain pod-1` says how new pods get another tier"
    )


async def test_a_label_added_to_a_pod_without_a_tier() -> None:
    old = FakeApi().stored(a_pod().asking())
    new = {**old, "metadata": {**old["metadata"], "labels": {TIER: "gpu-training"}}}
    answer = await FakeApi().update(old, new)
    assert "this pod runs without a tier" in answer.sentence


async def test_a_label_put_right_is_welcome() -> None:
    world = FakeApi()
    right, wrong = await relabelled(world, "gpu-training")
    assert (await world.update(wrong, right)).allowed


async def test_what_was_wrong_before_is_no_reason() -> None:
    world = FakeApi()
    _, wrong = await relabelled(world, "gpu-training")
    other = {**wrong, "metadata": {**wrong["metadata"], "annotations": {"note": "seen"}}}
    assert (await world.update(wrong, other)).allowed


async def test_a_pod_that_is_being_deleted_is_never_blocked() -> None:
    world = FakeApi()
    old, new = await relabelled(world, None, deletionTimestamp="2026-11-21T01:00:00Z", finalizers=[])
    assert (await world.update(old, new)).allowed
