"""AppWrappers: what they carry gets what it would get by itself, and all of it is booked as one."""

import pytest

from tests.builders import Tree, WorkloadBuilder, a_job, a_pod, a_policy, a_pytorchjob, a_tenant, a_workload
from tests.builders.operators import a_raycluster
from tests.builders.world import FakeApi

QUEUE, CLASS = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
LABEL = {"workload.codeflare.dev/appwrapper": "work"}


def a_wrapper(*objects: Tree, **spec: object) -> WorkloadBuilder:
    components = [{"template": each} for each in objects]
    return a_workload("workload.codeflare.dev/v1beta2", "AppWrapper", components=components, **spec)


def carried(inner: WorkloadBuilder) -> Tree:
    """Return a workload as a person writes it into a wrapper."""
    tree = inner.json()
    return {**tree, "metadata": {"name": tree["metadata"]["name"]}}


TRAINS = a_pytorchjob(a_pod().asking(4), name="llm", workers=2)
WRAPPER = a_wrapper(carried(TRAINS))
GANG = TRAINS.owned_by(WRAPPER)
WORKER = a_pod().asking(4).owned_by(GANG).labelled({"training.kubeflow.org/job-name": "llm", **LABEL})


@pytest.mark.parametrize(
    ("inner", "tier"),
    [
        (TRAINS, "gpu-training"),
        (a_job(a_pod().asking().running("python", "score.py"), name="score"), "gpu-batch"),
        (a_raycluster(replicas=2).named("ray").having("metadata.uid", "uid-of-ray"), "gpu-interactive"),
        (a_job(a_pod().asking(), name="labelled").of_tier("gpu-serving"), "gpu-serving"),
    ],
    ids=["PyTorchJob", "Job", "RayCluster", "labelled inside"],
)
async def test_a_wrapper_and_its_pods_get_the_tier_of_what_it_carries(inner: WorkloadBuilder, tier: str) -> None:
    tree = carried(inner) | {"metadata": {"name": "x", "labels": inner.json()["metadata"].get("labels", {})}}
    wrapper = a_wrapper(tree)
    made = inner.owned_by(wrapper)
    world = FakeApi(wrapper, made)
    applied = await world.validate(wrapper)
    assert applied.allowed
    assert applied.audit["tier"] == tier
    pod = a_pod().asking().running("python", "score.py").owned_by(made).labelled(LABEL)
    assert (await world.mutate(pod)).patched["spec"]["priorityClassName"] == tier


async def test_a_label_on_the_wrapper_is_for_all_that_it_carries() -> None:
    wrapper = WRAPPER.of_tier("gpu-batch")
    world = FakeApi(wrapper, TRAINS.owned_by(wrapper))
    assert (await world.validate(wrapper)).audit["tier"] == "gpu-batch"
    assert (await world.mutate(WORKER)).patched["spec"]["priorityClassName"] == "gpu-batch"


async def test_a_wrapper_is_refused_whole_before_any_object_exists() -> None:
    evaluate = carried(WorkloadBuilder(a_pod("evaluate").asking(1).json()))
    wrapper = a_wrapper(carried(TRAINS), evaluate)
    answer = await FakeApi(a_tenant().allowing("8")).validate(wrapper)
    assert "this AppWrapper asks for 9 in all" in answer.sentence


async def test_its_pods_draw_on_what_the_wrapper_has_booked() -> None:
    world = FakeApi(WRAPPER, GANG, a_tenant().allowing("8"))
    assert (await world.validate(WRAPPER)).allowed
    for _ in range(2):
        assert (await world.create(WORKER)).allowed
    other = a_pod("other").asking(1).of_tier("gpu-batch")
    assert not (await world.create(other)).allowed


async def test_a_suspended_wrapper_books_nothing_until_it_is_released() -> None:
    suspended = a_wrapper(carried(TRAINS), suspend=True)
    world = FakeApi(a_tenant().allowing("8"))
    assert (await world.validate(suspended)).allowed
    assert (await world.create(a_pod("other").asking(1).of_tier("gpu-batch"))).allowed
    released = await world.update(suspended, WRAPPER)
    assert "AppWrapper work asks for 8 GPUs" in released.sentence


async def test_kueue_reads_the_tier_on_the_wrapper_alone() -> None:
    world = FakeApi(policy=a_policy(kueue={"workloadPriorityClasses": True}))
    queued = WRAPPER.labelled({QUEUE: "research"})
    assert (await world.mutate(queued)).patched["metadata"]["labels"][CLASS] == "gpu-training"
    inside = FakeApi(queued, policy=world.policy)
    assert (await inside.mutate(TRAINS.owned_by(queued).labelled({QUEUE: "research"}))).patch == []


SINGLE = a_wrapper(carried(a_job(a_pod().running("torchrun", "train.py").asking(2), name="llm")), suspend=False)


async def test_a_wrapper_of_one_pod_that_asks_for_more_is_reported_as_the_wrapper() -> None:
    world = FakeApi(a_tenant().allowing("4"))
    assert (await world.create(a_pod().running("torchrun").asking(3))).allowed
    larger = a_wrapper(carried(a_job(a_pod().running("torchrun", "train.py").asking(4), name="llm")))
    (warning,) = (await world.update(SINGLE, larger)).warnings
    assert "this AppWrapper asks for 2 more" in warning


async def test_what_no_row_describes_is_left_out() -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"template": "x"}}
    assert (await FakeApi().validate(a_wrapper(settings, {"kind": 7}))).patch == []
    assert (await FakeApi().validate(a_wrapper(settings, carried(TRAINS)))).audit["tier"] == "gpu-training"


async def test_a_mistake_inside_is_named_with_its_place() -> None:
    broken = carried(TRAINS.having("spec.pytorchReplicaSpecs.Worker.replicas", "two"))
    answer = await FakeApi().validate(a_wrapper(broken))
    assert answer.sentence.startswith("spec.components.0.template.spec.pytorchReplicaSpecs.Worker.replicas: ")
