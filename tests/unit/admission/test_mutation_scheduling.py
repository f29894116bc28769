"""A tier's scheduler and queue as a patch, and what KAI is told of it; what a person or an operator wrote stays."""

import pytest

from tests.builders import (
    PodBuilder,
    Tree,
    WorkloadBuilder,
    a_job,
    a_pod,
    a_podgroup,
    a_policy,
    a_pytorchjob,
    a_tenant,
    a_workload,
)
from tests.builders.built import Built
from tests.builders.operators import a_raycluster
from tests.builders.world import FakeApi

VOLCANO = {"schedulerName": "volcano", "queue": {"system": "Volcano", "name": "training"}}
KAI = {"schedulerName": "kai-scheduler", "queue": {"system": "KAI", "name": "research"}}
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
DEFAULT = "default-scheduler"
"""What the API server fills in, before any webhook."""
POD = a_pod().asking().of_tier("gpu-batch")
KAI_QUEUE, PREEMPTIBILITY = "kai.scheduler/queue", "kai.scheduler/preemptibility"


async def scheduled(
    pod: PodBuilder | Tree, *owners: WorkloadBuilder, tier: str = "gpu-batch", policy: Tree | None = None, **how: object
) -> Tree:
    """The pod after its patch under what the tier's scheduling says; a second pass must leave it alone."""
    world = FakeApi(*owners, policy=a_policy(scheduling={tier: how}, **policy or {}))
    patched = (await world.mutate(pod)).patched
    assert (await world.mutate(patched)).patch == []
    assert (await world.validate(world.stored(patched))).allowed
    return patched


async def test_a_pod_goes_to_its_tiers_scheduler_and_into_its_queue() -> None:
    pod = await scheduled(POD, **VOLCANO)
    assert pod["spec"]["schedulerName"] == "volcano"
    assert pod["metadata"]["annotations"][VOLCANO_QUEUE] == "training"


async def test_a_pod_of_another_tier_stays_with_its_scheduler() -> None:
    pod = await scheduled(a_pod().asking().of_tier("gpu-serving"), **VOLCANO)
    assert pod["spec"]["schedulerName"] == DEFAULT
    assert VOLCANO_QUEUE not in pod["metadata"]["annotations"]


async def test_a_scheduler_that_somebody_named_stays_and_gets_no_queue_of_another() -> None:
    pod = await scheduled(POD.having("spec.schedulerName", "bin-packer"), **VOLCANO)
    assert pod["spec"]["schedulerName"] == "bin-packer"
    assert VOLCANO_QUEUE not in pod["metadata"]["annotations"]


async def test_a_queue_without_a_scheduler_is_for_those_who_chose_it() -> None:
    queue = {"queue": VOLCANO["queue"]}
    mine = POD
    chose = await scheduled(mine.having("spec.schedulerName", "volcano"), **queue)
    assert chose["metadata"]["annotations"][VOLCANO_QUEUE] == "training"
    left = await scheduled(mine, **queue)
    assert left["spec"]["schedulerName"] == DEFAULT
    assert VOLCANO_QUEUE not in left["metadata"]["annotations"]


@pytest.mark.parametrize("theirs", [{VOLCANO_QUEUE: "mine"}, {"scheduling.k8s.io/group-name": "night"}])
async def test_a_queue_that_somebody_named_or_a_group_has_stays(theirs: dict[str, str]) -> None:
    pod = await scheduled(POD.annotated(theirs), **VOLCANO)
    assert pod["spec"]["schedulerName"] == "volcano"
    assert pod["metadata"]["annotations"].get(VOLCANO_QUEUE) == theirs.get(VOLCANO_QUEUE)


async def test_a_coscheduling_group_only_needs_the_scheduler() -> None:
    labels = {"scheduling.x-k8s.io/pod-group": "night"}
    pod = await scheduled(POD.labelled(labels), schedulerName="gang-scheduler")
    assert pod["spec"]["schedulerName"] == "gang-scheduler"


async def test_all_pods_of_a_gang_go_to_one_scheduler_those_without_gpus_too() -> None:
    cluster = a_raycluster().of_tier("gpu-batch")
    head = a_pod().running("ray").owned_by(cluster).labelled({"ray.io/cluster": "ray"})
    pod = await scheduled(head, cluster, **VOLCANO)
    assert pod["spec"]["schedulerName"] == "volcano"


async def test_a_gang_with_a_scheduler_in_one_template_keeps_its_own() -> None:
    template = a_pod().asking().having("spec.schedulerName", "bin-packer")
    job = a_pytorchjob(template, name="llm").of_tier("gpu-batch")
    unnamed = a_pod().asking().owned_by(job).labelled({"training.kubeflow.org/job-name": "llm"})
    assert (await scheduled(unnamed, job, **VOLCANO))["spec"]["schedulerName"] == DEFAULT


async def test_a_pod_of_a_podgroup_of_kubernetes_keeps_the_one_that_knows_those() -> None:
    group = a_podgroup().of_class("gpu-batch")
    world = FakeApi(group, policy=a_policy(scheduling={"gpu-batch": VOLCANO}))
    patched = (await world.mutate(a_pod().asking().in_group("gang"))).patched
    assert patched["spec"]["priorityClassName"] == "gpu-batch"
    assert patched["spec"]["schedulerName"] == DEFAULT


async def test_a_pod_that_is_on_its_node_gets_none() -> None:
    pod = await scheduled(POD.having("spec.nodeName", "a-1"), **VOLCANO)
    assert pod["spec"]["schedulerName"] == DEFAULT


async def test_a_daemonsets_pod_stays_with_the_scheduler_that_it_was_made_for() -> None:
    owner = a_workload("apps/v1", "DaemonSet", template=a_pod().asking().template()).of_tier("gpu-batch")
    pod = await scheduled(a_pod().asking().owned_by(owner), owner, **VOLCANO)
    assert pod["spec"]["schedulerName"] == DEFAULT


async def test_kai_reads_its_queue_and_that_a_tier_may_be_evicted() -> None:
    pod = await scheduled(POD, **KAI)
    assert pod["spec"]["schedulerName"] == "kai-scheduler"
    assert pod["metadata"]["labels"][KAI_QUEUE] == "research"
    assert pod["metadata"]["labels"][PREEMPTIBILITY] == "preemptible"


async def test_of_the_tier_that_nobody_evicts_kai_decides_itself() -> None:
    pod = await scheduled(a_pod().asking().of_tier("gpu-training"), tier="gpu-training", **KAI)
    assert pod["metadata"]["labels"][KAI_QUEUE] == "research"
    assert PREEMPTIBILITY not in pod["metadata"]["labels"]


async def test_a_tier_below_ones_that_evict_nobody_is_not_preemptible() -> None:
    tiers = [{"name": "gold", "value": 2000, "preemptionPolicy": "Never"}, {"name": "tin", "value": 1000}]
    policy = {"tiers": tiers, "defaultTier": "tin", "workloadTypes": {}, "allowedTiersByType": {}, "rules": []}
    pod = await scheduled(a_pod().asking().of_tier("tin"), tier="tin", policy=policy, **KAI)
    assert PREEMPTIBILITY not in pod["metadata"]["labels"]


async def test_a_pod_that_names_kai_says_so_under_any_policy() -> None:
    labels = {KAI_QUEUE: "mine"}
    pod = POD.labelled(labels).having("spec.schedulerName", "kai-scheduler")
    world = FakeApi()
    patched = (await world.mutate(pod)).patched
    assert patched["metadata"]["labels"] == labels | {PREEMPTIBILITY: "preemptible", "gpu-tiers.dev/tier": "gpu-batch"}
    assert (await world.mutate(patched)).patch == []


async def test_kai_goes_by_another_name_where_the_policy_says_so() -> None:
    how = {**KAI, "schedulerName": "our-kai"}
    pod = await scheduled(POD.having("spec.schedulerName", "our-kai"), **how)
    assert pod["metadata"]["labels"][KAI_QUEUE] == "research"
    assert pod["metadata"]["labels"][PREEMPTIBILITY] == "preemptible"


@pytest.mark.parametrize("theirs", [{KAI_QUEUE: "mine"}, {"project": "mine"}])
async def test_a_queue_of_kai_that_the_pod_or_its_outermost_owner_names_stays(theirs: dict[str, str]) -> None:
    job = a_job(name="night").of_tier("gpu-batch")
    of_pod = await scheduled(a_pod().asking().owned_by(job).labelled(theirs), job, **KAI)
    assert of_pod["metadata"]["labels"].get(KAI_QUEUE) == theirs.get(KAI_QUEUE)
    labelled = job.labelled(theirs)
    of_owner = await scheduled(a_pod().asking().owned_by(labelled), labelled, **KAI)
    assert KAI_QUEUE not in of_owner["metadata"]["labels"]


async def test_what_a_person_says_of_preemptibility_stays() -> None:
    theirs = {PREEMPTIBILITY: "non-preemptible"}
    job = a_job(name="night").of_tier("gpu-batch")
    of_pod = await scheduled(a_pod().asking().owned_by(job).labelled(theirs), job, **KAI)
    assert of_pod["metadata"]["labels"][PREEMPTIBILITY] == "non-preemptible"
    labelled = job.labelled(theirs)
    of_owner = await scheduled(a_pod().asking().owned_by(labelled), labelled, **KAI)
    assert PREEMPTIBILITY not in of_owner["metadata"]["labels"]


async def test_a_demoted_pod_goes_where_its_lower_tier_goes() -> None:
    tenant = a_tenant(onExceed="Demote").allowing("0", tier="gpu-training").allowing("0", tier="gpu-serving")
    scheduling = {"gpu-training": KAI, "gpu-batch": VOLCANO}
    world = FakeApi(tenant, policy=a_policy(scheduling=scheduling))
    patched = (await world.mutate(a_pod().asking().running("torchrun", "train.py"))).patched
    assert patched["spec"]["priorityClassName"] == "gpu-batch"
    assert patched["spec"]["schedulerName"] == "volcano"


def a_volcano_job(**spec: object) -> WorkloadBuilder:
    tasks = [{"name": "worker", "replicas": 2, "template": a_pod().asking().template()}]
    return a_workload("batch.volcano.sh/v1alpha1", "Job", tasks=tasks, **spec).of_tier("gpu-batch")


async def queue_of(job: WorkloadBuilder, **how: object) -> object:
    """The queue of a Volcano Job after its patch; a second pass must leave it alone."""
    world = FakeApi(policy=a_policy(scheduling={"gpu-batch": how}))
    patched = (await world.mutate(job)).patched
    assert (await world.mutate(patched)).patch == []
    return patched["spec"].get("queue")


async def test_a_volcano_job_goes_into_its_tiers_queue() -> None:
    assert await queue_of(a_volcano_job(), **VOLCANO) == "training"
    assert await queue_of(a_volcano_job(), **KAI) is None


async def test_a_queue_of_a_volcano_job_stays_unless_volcano_filled_it_in() -> None:
    assert await queue_of(a_volcano_job(queue="research"), **VOLCANO) == "research"
    assert await queue_of(a_volcano_job(queue="default"), **VOLCANO) == "default"
    fields = [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:tasks": {}}}}, {"manager": "odd"}, "odd"]
    filled_in = a_volcano_job(queue="default").having("metadata.managedFields", fields)
    assert await queue_of(filled_in, **VOLCANO) == "training"
    written = [{"manager": "kubectl", "fieldsV1": {"f:spec": {"f:queue": {}}}}]
    assert await queue_of(filled_in.having("metadata.managedFields", written), **VOLCANO) == "default"


async def test_a_volcano_job_gets_no_queue_of_another_tier() -> None:
    world = FakeApi(policy=a_policy(scheduling={"gpu-training": VOLCANO}))
    assert "queue" not in (await world.mutate(a_volcano_job())).patched["spec"]
    assert (await world.mutate(a_job(a_pod().asking()))).patch == []


async def test_volcano_ranks_a_job_as_its_tier() -> None:
    world = FakeApi()
    ranked = (await world.mutate(a_volcano_job())).patched
    assert ranked["spec"]["priorityClassName"] == "gpu-batch"
    assert (await world.mutate(ranked)).patch == []
    assert (await world.validate(ranked)).warnings == []


async def test_a_rank_that_a_person_wrote_stays() -> None:
    named = a_volcano_job(priorityClassName="gpu-batch")
    assert (await FakeApi().mutate(named)).patch == []


async def test_a_volcano_job_without_gpus_gets_no_rank() -> None:
    tasks = [{"name": "worker", "replicas": 2, "template": a_pod().template()}]
    assert (await FakeApi().mutate(a_workload("batch.volcano.sh/v1alpha1", "Job", tasks=tasks))).patch == []


async def test_our_rank_is_not_taken_for_a_persons_when_the_tier_changes() -> None:
    """Nor on the pods, on which Volcano writes it from 1.11."""
    ranked = Built((await FakeApi().mutate(a_volcano_job())).patched)
    relabelled = ranked.labelled({"gpu-tiers.dev/tier": "gpu-training"})
    world = FakeApi(relabelled)
    assert (await world.update(ranked, relabelled)).allowed
    pod = a_pod().asking().owned_by(relabelled).labelled({"volcano.sh/job-name": "work"}).of_class("gpu-batch")
    assert (await world.mutate(pod)).patched["spec"]["priorityClassName"] == "gpu-training"


async def test_a_volcano_job_that_its_quota_demotes_is_ranked_lower() -> None:
    tenant = a_tenant(onExceed="Demote", demoteTo=["gpu-interactive"]).having(
        "spec.quotas", [{"tier": "gpu-batch", "gpus": "1"}, {"tier": "gpu-interactive", "gpus": "8"}]
    )
    ranked = (await FakeApi(tenant).mutate(a_volcano_job())).patched
    assert ranked["spec"]["priorityClassName"] == "gpu-interactive"


async def test_one_whose_pods_are_demoted_one_by_one_is_ranked_lower_too() -> None:
    rows = [{"tier": "gpu-batch", "gpus": "0"}, {"tier": "gpu-interactive", "gpus": "8"}]
    tenant = a_tenant(onExceed="Demote", demoteTo=["gpu-interactive"]).having("spec.quotas", rows)
    ranked = (await FakeApi(tenant).mutate(a_volcano_job(minAvailable=1))).patched
    assert ranked["spec"]["priorityClassName"] == "gpu-interactive"


async def test_a_second_create_is_ranked_as_it_is_booked() -> None:
    """The second create has the slot of the first, whose answer was lost."""
    world = FakeApi(a_tenant(onExceed="Demote").allowing("2", tier="gpu-batch"))
    assert (await world.create(a_volcano_job())).allowed
    assert (await world.mutate(a_volcano_job())).patched["spec"]["priorityClassName"] == "gpu-batch"


@pytest.mark.parametrize("name", ["gpu-training", "system-cluster-critical"])
async def test_our_mark_on_a_rank_above_the_ceiling_helps_nobody(name: str) -> None:
    world = FakeApi(a_tenant(maxTier="gpu-batch"))
    job = a_volcano_job()
    ranked = job.having("spec.priorityClassName", "gpu-batch")
    forged = job.having("spec.priorityClassName", name).annotated({"gpu-tiers.dev/template-class": name})
    assert "above the ceiling of tenant alpha" in (await world.update(ranked, forged)).sentence
    tasks = [{"name": "worker", "replicas": 2, "template": a_pod().template()}]
    idle = a_workload("batch.volcano.sh/v1alpha1", "Job", tasks=tasks).having("spec.priorityClassName", name)
    forged = idle.annotated({"gpu-tiers.dev/template-class": name})
    assert "above the ceiling of tenant alpha" in (await world.validate(forged)).sentence


async def test_our_mark_on_another_workload_lifts_no_ceiling() -> None:
    world = FakeApi(a_tenant(maxTier="gpu-batch"))
    plain = a_workload("apps/v1", "Deployment", template=a_pod().of_class("system-cluster-critical").template())
    forged = plain.annotated({"gpu-tiers.dev/template-class": "system-cluster-critical"})
    for each in (plain, forged):
        assert "above the ceiling of tenant alpha" in (await world.validate(each)).sentence


async def test_a_volcano_jobs_own_pod_keeps_what_volcano_wrote() -> None:
    job = a_volcano_job(schedulerName="volcano", queue="research")
    written = {"scheduling.k8s.io/group-name": "work-1", "volcano.sh/queue-name": "research"}
    pod = a_pod().asking().owned_by(job).annotated(written).having("spec.schedulerName", "volcano")
    patched = await scheduled(pod.labelled({"volcano.sh/job-name": "work"}), job, **VOLCANO)
    assert VOLCANO_QUEUE not in patched["metadata"]["annotations"]
