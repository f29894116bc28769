"""A pod's tier as a patch: the three priority fields together, the label, and who says so."""

import pytest

from tests.builders import a_pod, a_policy, a_pytorchjob
from tests.builders.world import FakeApi
from webhook.policy.values.tiers import PriorityClass

TIER, ASSIGNED_BY = "gpu-tiers.dev/tier", "gpu-tiers.dev/assigned-by"


async def test_a_training_pod_gets_class_priority_and_policy_together() -> None:
    job = a_pytorchjob()
    patched = (await FakeApi(job).mutate(a_pod().asking().owned_by(job).labelled({"app": "x"}))).patched

    spec, metadata = patched["spec"], patched["metadata"]
    assert (spec["priorityClassName"], spec["priority"]) == ("gpu-training", 1000)
    assert spec["preemptionPolicy"] == "PreemptLowerPriority"
    assert metadata["labels"] == {"app": "x", TIER: "gpu-training"}
    assert metadata["annotations"][ASSIGNED_BY] == "workload-type: training, by its kind, PyTorchJob/work"


async def test_a_notebook_evicts_nobody() -> None:
    pod = a_pod().asking().of_tier("gpu-interactive")
    spec = (await FakeApi().mutate(pod)).patched["spec"]
    assert (spec["priority"], spec["preemptionPolicy"]) == (200, "Never")


async def test_a_pod_without_gpus_is_none_of_ours() -> None:
    world = FakeApi()
    answer = await world.mutate(a_pod().running())
    assert answer.allowed
    assert answer.patch == []
    assert answer.audit == {}
    assert (await world.validate(a_pod().running())).allowed


async def test_a_request_for_no_gpus_is_none_of_ours() -> None:
    assert (await FakeApi().mutate(a_pod().asking("0"))).patch == []


@pytest.mark.parametrize("maps", [{}, {"labels": None, "annotations": None}, {"labels": {}, "annotations": {}}])
async def test_maps_that_are_absent_null_or_empty_are_made(maps: dict[str, object]) -> None:
    pod = a_pod().asking("1").having("metadata", maps)
    metadata = (await FakeApi().mutate(pod)).patched["metadata"]
    assert metadata["labels"] == {TIER: "gpu-interactive"}
    assert metadata["annotations"] == {ASSIGNED_BY: "policy-default: the policy's default"}


async def test_other_labels_and_annotations_stay_whatever_their_keys_hold() -> None:
    theirs = {"example.com/team~a": "x", "~": "y", "gpu-tiers.dev~1tier": "z"}
    pod = a_pod().asking("1").labelled(theirs).annotated(theirs)
    metadata = (await FakeApi().mutate(pod)).patched["metadata"]
    assert {**theirs, TIER: "gpu-interactive"} == metadata["labels"]
    assert metadata["annotations"].items() >= theirs.items()


async def test_an_annotation_that_the_user_wrote_is_not_believed() -> None:
    pod = a_pod().asking().annotated({ASSIGNED_BY: "label: the label on the pod says gpu-training"})
    patched = (await FakeApi().mutate(pod)).patched
    assert patched["spec"]["priorityClassName"] == "gpu-interactive"
    assert patched["metadata"]["annotations"][ASSIGNED_BY] == "policy-default: the policy's default"


async def test_the_class_that_the_user_wrote_is_the_tier() -> None:
    patched = (await FakeApi().mutate(a_pod().asking().of_class("gpu-batch"))).patched
    assert patched["metadata"]["labels"][TIER] == "gpu-batch"
    assert patched["spec"]["priority"] == 400


async def test_a_class_outside_the_tiers_stays_with_a_warning() -> None:
    world = FakeApi()
    world.known.live["house"] = PriorityClass("house", 50)
    answer = await world.mutate(a_pod().asking().of_class("house").labelled({"app": "x"}))
    assert answer.patched["spec"]["priorityClassName"] == "house"
    assert TIER not in answer.patched["metadata"]["labels"]
    assert answer.warnings == ["priorityClassName house is not a tier's class and is kept; this pod gets no tier"]


async def test_the_default_class_of_the_cluster_is_no_wish_of_the_user() -> None:
    world = FakeApi()
    world.known.live["everyone"] = PriorityClass("everyone", 10, global_default=True)
    answer = await world.mutate(a_pod().asking().of_class("everyone"))
    assert answer.patched["spec"]["priorityClassName"] == "gpu-interactive"
    assert answer.warnings == []


async def test_during_adoption_the_class_of_the_same_value_that_never_preempts() -> None:
    job = a_pytorchjob()
    world = FakeApi(job, policy=a_policy(adoption=True))
    patched = (await world.mutate(a_pod().asking().owned_by(job))).patched
    assert patched["spec"]["priorityClassName"] == "gpu-training-nonpreempting"
    assert (patched["spec"]["priority"], patched["spec"]["preemptionPolicy"]) == (1000, "Never")
    assert patched["metadata"]["labels"][TIER] == "gpu-training"
    assert (await world.create(a_pod().asking().owned_by(job))).allowed


async def test_during_adoption_a_class_written_by_the_user_is_replaced_by_its_twin() -> None:
    world = FakeApi(policy=a_policy(adoption=True))
    patched = (await world.mutate(a_pod().asking().of_class("gpu-training"))).patched
    assert patched["spec"]["priorityClassName"] == "gpu-training-nonpreempting"


@pytest.mark.parametrize(
    ("live", "sentence"),
    [
        (None, "PriorityClass/gpu-batch of tier gpu-batch does not exist; your platform team restores it with helm"),
        (PriorityClass("gpu-batch", 7), "PriorityClass/gpu-batch has value 7, but the policy says 400 for tier gpu-"),
        (
            PriorityClass("gpu-batch", 400, "Never"),
            "PriorityClass/gpu-batch has preemptionPolicy Never, but the policy",
        ),
    ],
)
async def test_a_class_that_is_missing_or_of_another_value(live: PriorityClass | None, sentence: str) -> None:
    world = FakeApi()
    del world.known.live["gpu-batch"]
    if live is not None:
        world.known.live["gpu-batch"] = live
    pod = a_pod().asking().of_tier("gpu-batch")

    mutated, validated = await world.mutate(pod), await world.validate(world.stored(pod))
    assert mutated.allowed
    assert mutated.patch == []
    assert not validated.allowed
    assert validated.sentence.startswith(sentence)


async def test_a_member_of_a_gang_without_gpus_gets_the_gangs_tier() -> None:
    launcher = {"containers": [{"name": "launcher", "image": "busybox"}]}
    master = {"replicas": 1, "template": {"spec": launcher}}
    job = a_pytorchjob().having("spec.pytorchReplicaSpecs.Master", master)
    pod = a_pod().running().owned_by(job).labelled({"training.kubeflow.org/job-name": "work"})
    patched = (await FakeApi(job).mutate(pod)).patched
    assert patched["spec"]["priorityClassName"] == "gpu-training"
    assert patched["spec"]["terminationGracePeriodSeconds"] == 30, "no GPU, no checkpoint"


async def test_another_webhook_that_adds_a_sidecar_between_the_passes() -> None:
    world = FakeApi()
    patched = (await world.mutate(a_pod().asking().of_tier("gpu-batch"))).patched
    patched["spec"]["containers"].append({"name": "mesh", "image": "mesh:1"})
    again = await world.mutate(patched)
    assert again.patch == []
    assert (await world.validate(world.stored(patched))).allowed


async def test_another_webhook_that_removes_what_we_wrote() -> None:
    world = FakeApi()
    patched = (await world.mutate(a_pod().asking().of_tier("gpu-batch"))).patched
    patched["spec"] |= {"priorityClassName": "", "priority": 0}
    assert (await world.mutate(patched)).patched["spec"]["priority"] == 400
