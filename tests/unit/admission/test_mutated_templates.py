"""`templates: Mutate` writes the tier's class into stored templates, and knows it again as its own."""

from typing import Any

import pytest

from tests.builders import a_deployment, a_job, a_pod, a_podgroup, a_policy, a_pytorchjob, a_tenant, a_workload
from tests.builders.built import Tree
from tests.builders.pods import PodBuilder
from tests.builders.workloads import WorkloadBuilder
from tests.builders.world import FakeApi
from webhook.policy.values.tiers import PriorityClass

OURS = "gpu-tiers.dev/template-class"
MUTATE = a_policy(templates="Mutate")


def a_world(*objects: Any) -> FakeApi:
    return FakeApi(*objects, policy=MUTATE)


def trains() -> PodBuilder:
    return a_pod().running("torchrun", "train.py").asking()


def written(template: Tree) -> str | None:
    """The class in a template, which is ours."""
    name = template["spec"].get("priorityClassName")
    assert template.get("metadata", {}).get("annotations", {}).get(OURS) == name
    return name


async def test_a_template_gets_the_class_of_the_tier() -> None:
    world = a_world()
    job = a_job(trains())
    assert written((await world.mutate(job)).patched["spec"]["template"]) == "gpu-training"
    assert (await world.create(job)).allowed


async def test_by_default_a_stored_template_stays_as_it_is() -> None:
    assert (await FakeApi().mutate(a_job())).patch == []


async def test_each_template_of_a_gang_gets_the_gangs() -> None:
    launcher = {"replicas": 1, "template": a_pod().template()}
    job = a_pytorchjob(a_pod().asking(4)).having("spec.pytorchReplicaSpecs.Master", launcher)
    specs = (await a_world().mutate(job)).patched["spec"]["pytorchReplicaSpecs"]
    assert {written(each["template"]) for each in specs.values()} == {"gpu-training"}


async def test_a_class_that_somebody_wrote_stays_theirs() -> None:
    for name in ("gpu-batch", "system-node-critical"):
        answer = await a_world().mutate(a_job(trains().of_class(name)))
        assert answer.patch == []


async def test_a_template_in_a_list_is_left_to_its_pods() -> None:
    """A second kubectl apply replaces the list, and a JobSet is immutable: it would be refused."""
    job = {"name": "node", "template": {"spec": {"template": trains().template()}}}
    jobset = a_workload("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=[job])
    assert (await a_world().mutate(jobset)).patch == []


async def test_all_templates_of_a_workload_or_none() -> None:
    """A Ray head lies in a map, its workers lie in a list."""
    workers = [{"groupName": "gpu", "template": a_pod().asking(4).template()}]
    spec = {"headGroupSpec": {"template": a_pod().asking(1).template()}, "workerGroupSpecs": workers}
    assert (await a_world().mutate(a_workload("ray.io/v1", "RayCluster", **spec))).patch == []


async def test_a_template_of_a_runtime_is_not_in_the_object() -> None:
    trainer = {"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}}
    spec = {"runtimeRef": {"name": "torch"}, "trainer": trainer}
    assert (await a_world().mutate(a_workload("trainer.kubeflow.org/v1alpha1", "TrainJob", **spec))).patch == []


async def test_what_a_controller_makes_keeps_its_template() -> None:
    """A ReplicaSet whose template differs from its Deployment's is made again and again."""
    owner = a_deployment(trains())
    made = a_workload("apps/v1", "ReplicaSet", "work-5d9", template=trains().template()).owned_by(owner)
    assert (await a_world(owner).mutate(made)).patch == []


async def test_the_class_during_adoption_is_the_active_one() -> None:
    world = FakeApi(policy=a_policy(templates="Mutate", adoption=True))
    assert written((await world.mutate(a_job())).patched["spec"]["template"]) == "gpu-batch-nonpreempting"


async def stored_in(world: FakeApi, job: WorkloadBuilder) -> WorkloadBuilder:
    """A workload as the API server keeps it, our class in its template."""
    answer = await world.mutate(job)
    assert written(answer.patched["spec"]["template"])
    return WorkloadBuilder(answer.patched)


def pod_of(job: WorkloadBuilder) -> PodBuilder:
    """The pod that the Job controller makes of its template."""
    template = job.json()["spec"]["template"]
    name = template["spec"]["priorityClassName"]
    return trains().of_class(name).annotated(template["metadata"]["annotations"]).owned_by(job)


class TestAClassThatWeWrote:
    """The class is never mistaken for the user's, however long ago it was written."""

    async def test_a_label_that_comes_later_does_not_contradict_it(self) -> None:
        world = a_world()
        old = await stored_in(world, a_job(trains()).labelled({"team": "x"}))
        new = old.of_tier("gpu-batch")
        assert (await world.update(old, new)).allowed
        pod = pod_of(new)
        made = await a_world(new).mutate(pod)
        assert made.patched["spec"]["priorityClassName"] == "gpu-batch"
        assert made.patched["spec"]["priority"] == 400
        assert (await a_world(new).create(pod)).allowed

    async def test_a_ceiling_that_comes_later_lowers_it(self) -> None:
        """A class that a user wrote would be refused."""
        job = await stored_in(a_world(), a_job(trains()))
        world = a_world(job, a_tenant().having("spec.maxTier", "gpu-batch"))
        answer = await world.create(pod_of(job))
        assert answer.allowed
        assert answer.audit["tier"] == "gpu-batch"

    async def test_a_class_written_over_it_is_the_users(self) -> None:
        job = await stored_in(a_world(), a_job(trains()))
        changed = WorkloadBuilder(job.having("spec.template.spec.priorityClassName", "gpu-serving").json())
        answer = await a_world(a_tenant().having("spec.maxTier", "gpu-batch"), changed).create(pod_of(changed))
        assert answer.sentence.startswith("spec.priorityClassName: gpu-serving is not for tenant alpha")

    async def test_a_forged_mark_asks_for_nothing(self) -> None:
        pod = a_pod().asking().of_class("gpu-training").annotated({OURS: "gpu-training"})
        answer = await a_world().create(pod)
        assert answer.audit["tier"] == "gpu-interactive"

    async def test_a_forged_mark_is_no_way_round_the_ceiling(self) -> None:
        """A pod without GPUs keeps its class, and could evict those with GPUs for their CPU."""
        world = a_world(a_tenant().having("spec.maxTier", "gpu-batch"))
        world.known.live["urgent"] = PriorityClass("urgent", 5000)
        pod = a_pod().of_class("urgent").annotated({OURS: "urgent"})
        answer = await world.create(pod)
        assert answer.sentence.startswith("spec.priorityClassName: urgent (5000) is above the ceiling of tenant alpha")

    async def test_on_a_podgroup_that_kubernetes_makes_of_the_template(self) -> None:
        """The Job controller copies the class to the PodGroup, and no annotation."""
        job = await stored_in(a_world(), a_job(trains()))
        group = a_podgroup().having("spec.priorityClassName", "gpu-training").owned_by(job)
        world = a_world(job, a_tenant().having("spec.maxTier", "gpu-batch"))
        assert (await world.mutate(group)).patched["spec"]["priorityClassName"] == "gpu-batch"

    @pytest.mark.parametrize("mode", ["ValidateOnly", "Off"])
    async def test_after_it_is_turned_off(self, mode: str) -> None:
        job = await stored_in(a_world(), a_job(trains()))
        world = FakeApi(job, a_tenant().having("spec.maxTier", "gpu-batch"), policy=a_policy(templates=mode))
        assert (await world.create(pod_of(job))).audit["tier"] == "gpu-batch"
