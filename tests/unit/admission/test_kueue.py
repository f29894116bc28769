"""Kueue ranks what it queues by a label: a workload bears its tier there, so that both preempt in one order."""

from typing import Any

import pytest

from tests.builders import (
    WorkloadBuilder,
    a_deployment,
    a_job,
    a_namespace,
    a_notebook,
    a_pod,
    a_policy,
    a_pytorchjob,
    a_tenant,
    a_workload,
)
from tests.builders.built import Tree
from tests.builders.operators import a_sparkapplication
from tests.builders.world import FakeApi
from webhook.policy.values.tier_policy import TierPolicy

QUEUE, CLASS = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"
OURS = "gpu-tiers.dev/queue-class"
QUEUED = {QUEUE: "team-alpha"}
SPARK = a_sparkapplication(executor={"instances": 2, "gpu": {"name": "nvidia.com/gpu", "quantity": 1}})
MANAGED = {"matchExpressions": [{"key": "kueue", "operator": "In", "values": ["managed"]}]}


def with_kueue(**kueue: object) -> TierPolicy:
    return a_policy(kueue={"workloadPriorityClasses": True, **kueue})


def a_world(*objects: Any, **kueue: object) -> FakeApi:
    return FakeApi(*objects, policy=with_kueue(**kueue))


def queue_class(tree: Tree) -> str | None:
    """The class that Kueue reads on an object, which is ours."""
    metadata = tree["metadata"]
    name = metadata.get("labels", {}).get(CLASS)
    assert metadata.get("annotations", {}).get(OURS) == name
    return name


def a_rayjob() -> Any:
    workers = [{"groupName": "gpu", "replicas": 2, "template": a_pod().asking(4).template()}]
    cluster = {"headGroupSpec": {"template": a_pod().template()}, "workerGroupSpecs": workers}
    return a_workload("ray.io/v1", "RayJob", entrypoint="python train.py", rayClusterSpec=cluster)


def a_jobset() -> Any:
    template = {"spec": {"template": a_pod().running("torchrun").asking().template()}}
    job = {"name": "node", "replicas": 2, "template": template}
    return a_workload("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=[job])


def a_mpijob() -> Any:
    workers = {"replicas": 2, "template": a_pod().asking().template()}
    replicas = {"Launcher": {"replicas": 1, "template": a_pod().template()}, "Worker": workers}
    return a_workload("kubeflow.org/v2beta1", "MPIJob", mpiReplicaSpecs=replicas)


def a_trainjob() -> Any:
    trainer = {"numNodes": 2, "resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}, "command": ["torchrun", "x.py"]}
    reference = {"name": "torch-distributed"}
    return a_workload("trainer.kubeflow.org/v1alpha1", "TrainJob", runtimeRef=reference, trainer=trainer)


def a_leaderworkerset() -> Any:
    group = {"size": 2, "workerTemplate": a_pod().running("vllm", "serve", "llama").asking().template()}
    return a_workload("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", leaderWorkerTemplate=group)


@pytest.mark.parametrize(
    ("workload", "tier"),
    [
        (a_job(a_pod().running("torchrun", "train.py").asking()), "gpu-training"),
        (a_pytorchjob(), "gpu-training"),
        (a_jobset(), "gpu-training"),
        (a_mpijob(), "gpu-training"),
        (a_trainjob(), "gpu-training"),
        (a_rayjob(), "gpu-training"),
        (a_leaderworkerset(), "gpu-serving"),
        (a_deployment(a_pod().running("vllm", "serve", "llama").asking()), "gpu-serving"),
    ],
    ids=lambda each: each if isinstance(each, str) else each.tree["kind"],
)
async def test_a_queued_workload_names_the_class_of_its_tier(workload: Any, tier: str) -> None:
    world = a_world()
    answer = await world.mutate(workload.labelled(QUEUED))
    assert queue_class(answer.patched) == tier
    assert (await world.create(workload.labelled(QUEUED))).allowed


async def test_without_the_policys_word_nothing_is_written() -> None:
    """A class that nobody made would keep the workload from its queue for ever."""
    assert (await FakeApi().mutate(a_pytorchjob().labelled(QUEUED))).patch == []


async def test_what_kueue_does_not_queue_is_left_alone() -> None:
    assert (await a_world().mutate(a_pytorchjob())).patch == []
    cpu = a_job(a_pod()).labelled(QUEUED)
    assert (await a_world().mutate(cpu)).patch == [], "without GPUs it has no tier"


async def test_audit_writes_nothing() -> None:
    world = FakeApi(policy=a_policy(mode="Audit", kueue={"workloadPriorityClasses": True}))
    assert (await world.mutate(a_pytorchjob().labelled(QUEUED))).patch == []


@pytest.mark.parametrize("workload", [a_deployment(), a_leaderworkerset()], ids=["Deployment", "LeaderWorkerSet"])
async def test_templates_bear_it_where_kueue_would_copy_it_later(workload: Any) -> None:
    """Kueue copies the label at every update; a template without it would change then, and the workload roll."""
    patched = (await a_world().mutate(workload.labelled(QUEUED))).patched
    spec = patched["spec"]
    template = spec["template"] if "template" in spec else spec["leaderWorkerTemplate"]["workerTemplate"]
    assert queue_class(template) == queue_class(patched)


async def test_a_template_that_names_a_class_is_the_users() -> None:
    deployment = a_deployment(a_pod().labelled({CLASS: "research"}).asking()).labelled(QUEUED)
    assert (await a_world().mutate(deployment)).patch == []


async def test_a_class_outside_the_tiers_is_the_users() -> None:
    job = a_pytorchjob().labelled({**QUEUED, CLASS: "research"})
    world = a_world()
    assert (await world.mutate(job)).patch == []
    assert (await world.validate(job)).allowed


async def test_the_class_of_another_tier_is_refused_with_both_names() -> None:
    job = a_pytorchjob().labelled({**QUEUED, CLASS: "gpu-serving", "gpu-tiers.dev/tier": "gpu-batch"})
    world = a_world()
    assert (await world.mutate(job)).patch == []
    assert (await world.validate(job)).sentence == (
        "metadata.labels[kueue.x-k8s.io/priority-class]: gpu-serving contradicts the tier of the pods, gpu-batch (the "
        "label on PyTorchJob/work says gpu-batch); leave this label out, or add the label "
        "gpu-tiers.dev/tier: gpu-serving"
    )


async def test_the_class_of_its_own_tier_stays_as_it_is() -> None:
    job = a_pytorchjob().labelled({**QUEUED, CLASS: "gpu-training"})
    world = a_world()
    assert (await world.mutate(job)).patch == []
    assert (await world.validate(job)).allowed


async def test_a_class_that_we_wrote_is_no_wish_of_the_users() -> None:
    """The tier is changed later: a warning says what Kueue still goes by, and nothing is refused."""
    world = a_world()
    stored = world.stored((await world.mutate(a_pytorchjob().labelled(QUEUED))).patched)
    lowered = {**stored, "metadata": {**stored["metadata"]}}
    lowered["metadata"]["labels"] = {**stored["metadata"]["labels"], "gpu-tiers.dev/tier": "gpu-batch"}
    answer = await world.update(stored, lowered)
    assert answer.allowed
    assert answer.warnings == [
        (
            "Kueue still ranks it as gpu-training, but its pods now get gpu-batch; "
            "label it kueue.x-k8s.io/priority-class: gpu-batch"
        ),
        "new pods of this PyTorchJob get gpu-batch; existing pods keep their tier",
    ]


async def test_a_forged_mark_covers_no_other_class() -> None:
    """Kueue lets anybody change the label, also of a job that runs."""
    world = a_world()
    stored = world.stored((await world.mutate(a_pytorchjob().of_tier("gpu-batch").labelled(QUEUED))).patched)
    changed = {**stored["metadata"]["labels"], CLASS: "gpu-training"}
    forged = {**stored, "metadata": stored["metadata"] | {"labels": changed, "annotations": {OURS: "gpu-training"}}}
    assert (await world.update(stored, forged)).sentence == (
        "metadata.labels[kueue.x-k8s.io/priority-class]: gpu-training is another tier than that of the pods; "
        "write gpu-batch"
    )
    assert (await world.update(forged, forged)).allowed, "what was wrong before"


async def test_what_is_refused_for_its_class_books_nothing() -> None:
    """The mutating webhook was not reached, and the mark is forged."""
    world = a_world(a_tenant().allowing("4", tier="gpu-batch"))
    job = a_pytorchjob(a_pod().asking(4)).of_tier("gpu-batch")
    forged = job.labelled({**QUEUED, CLASS: "gpu-training"}).annotated({OURS: "gpu-training"})
    assert not (await world.validate(forged)).allowed
    answer = await world.create(job.named("next"))
    assert (answer.allowed, answer.warnings) == (True, [])


async def test_a_queue_that_is_named_later_is_warned_about() -> None:
    world, job = a_world(), a_pytorchjob().labelled({"team": "x"})
    answer = await world.update(job, job.labelled(QUEUED))
    assert answer.warnings == [
        "Kueue can't see its tier; label it kueue.x-k8s.io/priority-class: gpu-training",
    ]
    seen = await world.update(job, job.labelled({**QUEUED, CLASS: "gpu-training"}))
    assert (seen.allowed, seen.warnings) == (True, [])


async def test_the_ceiling_holds_for_the_class_too() -> None:
    world = a_world(a_tenant().having("spec.maxTier", "gpu-batch"))
    assert queue_class((await world.mutate(a_pytorchjob().labelled(QUEUED))).patched) == "gpu-batch"


async def test_what_a_queued_workload_makes_is_not_queued_itself() -> None:
    """KubeRay copies the labels of a RayJob to its RayCluster."""
    job = a_rayjob().labelled(QUEUED)
    cluster = a_workload("ray.io/v1", "RayCluster", "work-x7k2p", **job.tree["spec"]["rayClusterSpec"])
    assert (await a_world(job).mutate(cluster.labelled(QUEUED).owned_by(job))).patch == []


async def test_a_job_of_a_cronjob_is_queued_by_itself() -> None:
    """Kueue knows no CronJobs; their Jobs bear the label of the template."""
    template = {"metadata": {"labels": QUEUED}, "spec": {"template": a_pod().running("torchrun").asking().template()}}
    nightly = a_workload("batch/v1", "CronJob", "nightly", jobTemplate=template)
    job = a_job(a_pod().running("torchrun").asking(), name="nightly-29").labelled(QUEUED).owned_by(nightly)
    assert queue_class((await a_world(nightly).mutate(job)).patched) == "gpu-training"


async def test_what_an_operator_keeps_in_order_is_left_to_it() -> None:
    """The Notebook controller takes foreign labels off its StatefulSet, and Kueue would refuse that for ever."""
    notebook = a_notebook(a_pod().asking())
    made = a_workload("apps/v1", "StatefulSet", "workbench", template=a_pod().asking().template())
    assert (await a_world(notebook).mutate(made.labelled(QUEUED).owned_by(notebook))).patch == []


def sent(*labels: str) -> list[object]:
    """The managedFields of an object that kubectl sent with these labels."""
    owned = {"f:metadata": {"f:labels": {f"f:{label}": {} for label in labels}}, "f:spec": {}}
    return ["odd", {"manager": "odd"}, {"manager": "kubectl-create", "operation": "Update", "fieldsV1": owned}]


class TestTheDefaultClassOfKueue:
    """From 0.20 on its webhook, which comes before ours, labels what names no class, where a class `default` exists."""

    @pytest.mark.parametrize("workload", [a_pytorchjob(), a_jobset(), a_pod().asking()], ids=type)
    async def test_it_is_no_persons_choice(self, workload: Any) -> None:
        world = a_world()
        filled_in = workload.labelled({**QUEUED, CLASS: "default"}).having("metadata.managedFields", sent(QUEUE))
        patched = (await world.mutate(filled_in)).patched
        assert queue_class(patched) == queue_class((await world.mutate(workload.labelled(QUEUED))).patched)
        assert (await world.mutate(patched)).patch == [], "a second pass leaves it alone"
        assert (await world.validate(patched)).allowed

    async def test_nor_is_its_copy_on_a_template(self) -> None:
        """Kueue copies the label of a Deployment into its template in the same call."""
        deployment = a_deployment(a_pod().labelled({**QUEUED, CLASS: "default"}).asking())
        filled_in = deployment.labelled({**QUEUED, CLASS: "default"}).having("metadata.managedFields", sent(QUEUE))
        patched = (await a_world().mutate(filled_in)).patched
        assert queue_class(patched["spec"]["template"]) == queue_class(patched) == "gpu-interactive"

    @pytest.mark.parametrize("fields", [sent(QUEUE, CLASS), []], ids=["sent", "in a file"])
    async def test_a_person_who_writes_it_means_it(self, fields: list[object]) -> None:
        for each in (a_pytorchjob(), a_pod().asking().of_tier("gpu-batch")):
            written = each.labelled({**QUEUED, CLASS: "default"}).having("metadata.managedFields", fields)
            patched = (await a_world().mutate(written)).patched
            assert patched["metadata"]["labels"][CLASS] == "default"
            assert OURS not in patched["metadata"].get("annotations", {})

    async def test_what_kueue_does_not_queue_keeps_it(self) -> None:
        """Kueue labels jobs that it does not queue as well."""
        for each in (a_pytorchjob(), a_pod().asking()):
            filled_in = each.labelled({CLASS: "default"}).having("metadata.managedFields", sent())
            assert (await a_world().mutate(filled_in)).patched["metadata"]["labels"][CLASS] == "default"

    async def test_at_an_update_a_warning_names_the_class_that_is_due(self) -> None:
        """Kueue labels Deployments at updates too; at those gpu-tiers patches nothing."""
        world, stored = a_world(), a_deployment()
        filled_in = stored.labelled({**QUEUED, CLASS: "default"}).having("metadata.managedFields", sent(QUEUE))
        answer = await world.update(stored, filled_in)
        assert answer.warnings == [
            "Kueue can't see its tier; label it kueue.x-k8s.io/priority-class: gpu-interactive",
        ]


class TestJobsWithoutAQueuesName:
    """Kueue can be told to manage them too, in some namespaces; the policy then says the same."""

    @pytest.mark.parametrize(
        ("job", "tier"),
        [(a_pytorchjob(), "gpu-training"), (SPARK, "gpu-batch")],
        ids=["PyTorchJob", "SparkApplication"],
    )
    async def test_in_a_namespace_that_is_managed(self, job: WorkloadBuilder, tier: str) -> None:
        home = a_namespace().labelled({"kueue": "managed"})
        world = a_world(home, manageJobsWithoutQueueName=True, managedJobsNamespaceSelector=MANAGED)
        assert queue_class((await world.mutate(job)).patched) == tier

    async def test_in_another(self) -> None:
        world = a_world(manageJobsWithoutQueueName=True, managedJobsNamespaceSelector=MANAGED)
        assert (await world.mutate(a_pytorchjob())).patch == []

    async def test_kinds_that_kueue_does_not_know_are_none_of_them(self) -> None:
        world = a_world(manageJobsWithoutQueueName=True)
        notebook = a_workload("kubeflow.org/v1", "Notebook", template=a_pod().asking().template())
        assert (await world.mutate(notebook)).patch == []


class TestPods:
    """Kueue reads the label on the pod itself: plain pods, groups of them, and those of a Deployment."""

    async def test_a_pod_of_a_group(self) -> None:
        group = {**QUEUED, "kueue.x-k8s.io/pod-group-name": "sweep"}
        world = a_world()
        pod = a_pod().running("torchrun", "train.py").asking().labelled(group)
        assert queue_class((await world.mutate(pod)).patched) == "gpu-training"
        assert (await world.create(pod)).allowed

    async def test_a_pod_that_kueue_has_marked(self) -> None:
        """Its webhook marks pods without a queue's name where it manages them."""
        pod = a_pod().running("torchrun").asking().labelled({"kueue.x-k8s.io/managed": "true"})
        assert queue_class((await a_world().mutate(pod)).patched) == "gpu-training"

    async def test_a_pod_without_labels(self) -> None:
        world = a_world()
        assert CLASS not in (await world.mutate(a_pod().asking())).patched["metadata"]["labels"]

    async def test_a_pod_of_a_deployment_has_todays_tier(self) -> None:
        """The template bears what the tier was once."""
        once = a_pod().labelled({**QUEUED, CLASS: "gpu-training"}).annotated({OURS: "gpu-training"})
        world = a_world(a_tenant().having("spec.maxTier", "gpu-batch"))
        pod = once.running("torchrun").asking()
        assert queue_class((await world.mutate(pod)).patched) == "gpu-batch"
        assert (await world.create(pod)).allowed

    async def test_a_persons_pod_may_not_contradict_itself(self) -> None:
        pod = a_pod().asking().of_tier("gpu-batch").labelled({**QUEUED, CLASS: "gpu-training"})
        answer = await a_world().create(pod)
        assert answer.sentence.startswith(
            "metadata.labels[kueue.x-k8s.io/priority-class]: gpu-training contradicts the tier of the pods, gpu-batch"
        )

    async def test_a_controllers_pod_is_exempt(self) -> None:
        owner = a_deployment()
        pod = a_pod().asking().of_tier("gpu-batch").labelled({**QUEUED, CLASS: "gpu-training"}).owned_by(owner)
        assert (await a_world(owner).create(pod)).allowed

    async def test_the_label_of_a_stored_pod_keeps_to_its_tier(self) -> None:
        world, pod = a_world(), a_pod().asking().of_tier("gpu-batch").labelled(QUEUED)
        stored = world.stored((await world.mutate(pod)).patched)
        labels = {**stored["metadata"]["labels"], CLASS: "gpu-training"}
        raised = {**stored, "metadata": stored["metadata"] | {"labels": labels}}
        assert (await world.update(stored, raised)).sentence == (
            "metadata.labels[kueue.x-k8s.io/priority-class]: gpu-training is another tier than that of the pods; "
            "write gpu-batch"
        )
        outside = {**stored, "metadata": stored["metadata"] | {"labels": labels | {CLASS: "research"}}}
        assert (await world.update(stored, outside)).allowed
