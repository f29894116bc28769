"""Workloads are answered where a person applies them; nothing is booked, and an update is never judged by the past."""

import pytest

from tests.builders import (
    Built,
    WorkloadBuilder,
    a_deployment,
    a_namespace,
    a_pod,
    a_policy,
    a_pytorchjob,
    a_replicaset,
    a_tenant,
    a_workload,
)
from tests.builders.world import FakeApi

ALPHA = a_tenant().allowing("6", tier="gpu-training").allowing("8", tier="gpu-batch")


async def test_a_job_that_fits() -> None:
    answer = await FakeApi(ALPHA).validate(a_pytorchjob(a_pod().asking(6)))
    assert answer.allowed
    assert answer.warnings == []
    assert answer.audit["tier"] == "gpu-training"


async def test_a_job_that_no_wait_would_make_fit() -> None:
    answer = await FakeApi(ALPHA).validate(a_pytorchjob(a_pod().asking(4), workers=2))
    assert answer.sentence == (
        "tenant alpha: gpu-training allows 6 GPUs; this PyTorchJob asks for 8 in all. "
        "Would fit: gpu-serving, gpu-batch, gpu-interactive. See TenantQuota/alpha."
    )


async def test_templates_that_draw_on_one_row_are_summed() -> None:
    """Each template by itself fits the total; together they never do."""
    master = {"replicas": 1, "template": a_pod().asking(4).of_tier("gpu-batch").template()}
    job = a_pytorchjob(a_pod().asking(4)).having("spec.pytorchReplicaSpecs.Master", master)
    answer = await FakeApi(a_tenant().allowing("6")).validate(job)
    assert answer.sentence.startswith("tenant alpha: the total allows 6 GPUs; this PyTorchJob asks for 8 in all.")


@pytest.mark.parametrize(("gpus", "allowed"), [((6, 6), True), ((6, 9), False)])
async def test_the_steps_of_a_pipeline_need_not_fit_together(gpus: tuple[int, int], *, allowed: bool) -> None:
    """Argo runs them one after another, or as wide as the quota lets it."""
    steps = [
        {"name": f"step-{each}", "container": {"image": "x", "resources": {"limits": {"nvidia.com/gpu": each}}}}
        for each in gpus
    ]
    workflow = a_workload("argoproj.io/v1alpha1", "Workflow", templates=steps)
    answer = await FakeApi(ALPHA).validate(workflow)
    assert answer.allowed is allowed
    assert allowed or "gpu-batch allows 8 GPUs; this Workflow asks for 9 in all" in answer.sentence


async def test_slices_are_written_as_a_person_writes_them() -> None:
    owner = a_deployment(a_pod().asking(2, resource="nvidia.com/mig-1g.10gb"), replicas=4)
    answer = await FakeApi(a_tenant().allowing("0.5")).validate(owner)
    assert "the total allows 0.5 GPUs; this Deployment asks for 1 in all." in answer.sentence


async def test_what_does_not_fit_now_is_warned_about_at_create() -> None:
    running = a_pytorchjob(a_pod().asking(4))
    world = FakeApi(ALPHA, running)
    assert (await world.create(a_pod().asking("4").owned_by(running))).allowed
    answer = await world.validate(a_pytorchjob(a_pod().asking(6), name="next"))
    assert answer.allowed
    (warning,) = answer.warnings
    assert warning == (
        "tenant alpha: gpu-training is at 4 of 6 GPUs; this PyTorchJob asks for 6 in all, "
        "so none of its pods can start now"
    )
    assert (await world.update(running, running)).warnings == [], "its own pods are among those that run"


@pytest.mark.parametrize(("gpus", "which"), [(3, "none"), (2, "not all")])
async def test_it_reads_whether_some_of_its_pods_can_start(gpus: int, which: str) -> None:
    world = FakeApi(a_tenant().allowing("6", tier="gpu-batch"))
    assert (await world.create(a_pod().asking(4).of_tier("gpu-batch"))).allowed
    answer = await world.validate(a_deployment(a_pod().asking(gpus), replicas=2).of_tier("gpu-batch"))
    (warning,) = answer.warnings
    assert warning.endswith(f"asks for {2 * gpus} in all, so {which} of its pods can start now")


async def test_nothing_is_booked() -> None:
    world = FakeApi(ALPHA)
    answers = [await world.validate(a_pytorchjob(a_pod().asking(6))) for _ in range(3)]
    assert [answer.warnings for answer in answers] == [[], [], []]


async def test_an_update_that_makes_it_too_large() -> None:
    world = FakeApi(ALPHA)
    answer = await world.update(a_pytorchjob(a_pod().asking(2)), a_pytorchjob(a_pod().asking(8)))
    assert not answer.allowed


async def test_an_update_of_what_was_wrong_before_is_only_warned_about() -> None:
    world = FakeApi(ALPHA)
    answer = await world.update(
        a_pytorchjob(a_pod().asking(8)), a_pytorchjob(a_pod().asking(8)).having("metadata.finalizers", [])
    )
    assert answer.allowed
    assert answer.warnings[0].startswith("tenant alpha: gpu-training allows 6 GPUs; this PyTorchJob asks for 8")


async def test_what_is_too_large_may_shrink_and_not_grow() -> None:
    """A StatefulSet from before the quota is scaled down in steps; up it may not go."""

    def shards(count: int) -> WorkloadBuilder:
        template = a_pod().asking(4).of_tier("gpu-training").template()
        return a_workload("apps/v1", "StatefulSet", "llama", replicas=count, template=template)

    world = FakeApi(ALPHA)
    smaller = await world.update(shards(3), shards(2))
    assert smaller.allowed
    assert smaller.warnings[-1].startswith("tenant alpha: gpu-training allows 6 GPUs; this StatefulSet asks for 8")
    larger = await world.update(shards(3), shards(4))
    assert larger.sentence.startswith("tenant alpha: gpu-training allows 6 GPUs; this StatefulSet asks for 16")


async def test_a_mistake_on_another_flavor_is_another_mistake() -> None:
    """Names that differ in a number alone are two names."""
    product = "nvidia.com/gpu.product"
    flavors = [{"name": name, "nodeLabels": {product: name}} for name in ("h100", "h200")]
    tenant = a_tenant().allowing("2", flavor="h100").allowing("2", flavor="h200")
    world = FakeApi(tenant, policy=a_policy(resourceFlavors=flavors))

    def job(flavor: str, name: str = "x") -> WorkloadBuilder:
        pod = a_pod().asking(4).having("spec.nodeSelector", {product: flavor})
        return a_pytorchjob(pod).labelled({"app": name})

    assert (await world.update(job("h100"), job("h100", "y"))).allowed
    refused = await world.update(job("h100"), job("h200"))
    assert refused.sentence.startswith("tenant alpha: h200 allows 2 GPUs; this PyTorchJob asks for")


async def test_a_tier_that_is_named_wrongly_in_another_way_is_another_mistake() -> None:
    world, job = FakeApi(ALPHA), a_pytorchjob(a_pod().asking(1))
    assert (await world.update(job.of_tier("gpu-1"), job.of_tier("gpu-1").labelled({"app": "x"}))).allowed
    assert 'unknown tier "gpu-2"' in (await world.update(job.of_tier("gpu-1"), job.of_tier("gpu-2"))).sentence


async def test_a_new_mistake_on_an_update_is_refused_whatever_was_wrong_before() -> None:
    job = a_pytorchjob(a_pod().asking(8))
    answer = await FakeApi(ALPHA).update(job, job.of_tier("gpu-nonsense"))
    assert 'unknown tier "gpu-nonsense"' in answer.sentence


async def test_a_tenant_that_refuses_nothing_is_warned_all_the_same() -> None:
    answer = await FakeApi(a_tenant(onExceed="Warn").allowing("6", tier="gpu-training")).validate(
        a_pytorchjob(a_pod().asking(8))
    )
    assert answer.allowed
    assert answer.warnings[0].startswith("tenant alpha: gpu-training allows 6 GPUs; this PyTorchJob asks for 8 in all.")


async def test_where_the_tenant_demotes_it_is_said_what_happens() -> None:
    answer = await FakeApi(ALPHA.having("spec.onExceed", "Demote")).validate(a_pytorchjob(a_pod().asking(8)))
    assert "pods that have no room there run as gpu-batch, which gpu-training, gpu-serving may" in answer.warnings[0]


DEMOTING = a_tenant(onExceed="Demote", allowedTiers=["gpu-training", "gpu-batch"])
TIERS = DEMOTING.allowing("4", tier="gpu-training").allowing("4", tier="gpu-batch").allowing("7")
ASKED = {
    "no lower tier is allowed": (
        ALPHA.having("spec.onExceed", "Demote").having("spec.allowedTiers", ["gpu-training"]),
        a_pytorchjob(a_pod().asking(8)),
        "tenant alpha: gpu-training allows 6 GPUs; this PyTorchJob asks for 8 in all. Would fit: no tier.",
    ),
    "more than the total": (
        TIERS,
        a_deployment(a_pod().asking(1), replicas=20).of_tier("gpu-training"),
        "tenant alpha: the total allows 7 GPUs; this Deployment asks for 20 in all. Would fit: no tier.",
    ),
    "in two tiers": (TIERS, a_deployment(a_pod().asking(1), replicas=6).of_tier("gpu-training"), ""),
    "a pod that no tier holds": (
        TIERS,
        a_deployment(a_pod().asking(5)).of_tier("gpu-training"),
        "tenant alpha: gpu-training allows 4 GPUs; this Deployment asks for 5 in all. Would fit: no tier.",
    ),
    "a gang is in one tier": (
        TIERS,
        a_pytorchjob(a_pod().asking(3), workers=2).of_tier("gpu-training"),
        "tenant alpha: gpu-training allows 4 GPUs; this PyTorchJob asks for 6 in all. Would fit: no tier.",
    ),
}


@pytest.mark.parametrize(("tenant", "workload", "refusal"), ASKED.values(), ids=ASKED)
async def test_where_the_tenant_demotes_what_no_tier_can_ever_hold_is_refused(
    tenant: Built, workload: WorkloadBuilder, refusal: str
) -> None:
    """Its pods would be refused one by one for ever."""
    answer = await FakeApi(tenant).validate(workload)
    assert answer.allowed is not bool(refusal)
    assert answer.sentence.startswith(refusal)


async def test_where_the_lower_tier_is_full_the_warning_says_that_not_all_pods_start() -> None:
    world = FakeApi(TIERS.having("spec.quotas.2.gpus", "9"))
    assert (await world.create(a_pod().asking(4).of_tier("gpu-batch"))).allowed
    answer = await world.validate(a_deployment(a_pod().asking(1), replicas=5).of_tier("gpu-training"))
    row = "tenant alpha: gpu-training is at 0 of 4 GPUs"
    assert answer.warnings == [f"{row}; this Deployment asks for 5 in all, so not all of its pods can start now"]


async def test_an_update_that_is_too_large_is_offered_the_tiers_with_room_now() -> None:
    """Its own pods are in the usage, so an offer holds also until they are gone."""
    world = FakeApi(
        a_tenant(allowedTiers=["gpu-training", "gpu-batch"]).allowing("2", tier="gpu-training").allowing("8")
    )
    assert (await world.create(a_pod().asking(6).of_tier("gpu-batch"))).allowed
    one, three = (a_pytorchjob(a_pod().asking(1), workers=count) for count in (2, 3))
    too_large = "tenant alpha: gpu-training allows 2 GPUs; this PyTorchJob asks for 3 in all. Would fit: "
    later = f"{too_large}no tier now; once there is room: gpu-batch. See TenantQuota/alpha."
    assert (await world.update(one, three)).sentence == later


async def test_where_the_tenant_holds_what_can_never_fit_is_refused() -> None:
    answer = await FakeApi(ALPHA.having("spec.onExceed", "Hold")).validate(a_pytorchjob(a_pod().asking(8)))
    assert answer.sentence.startswith("tenant alpha: gpu-training allows 6 GPUs; this PyTorchJob asks for 8 in all.")


async def test_a_gang_that_waits_does_not_name_its_node() -> None:
    """Such pods take no gate, so half of it would run."""
    on_a_node = a_pytorchjob(a_pod().asking(2).having("spec.nodeName", "gpu-7"), workers=2)
    answer = await FakeApi(ALPHA.having("spec.onExceed", "Hold")).validate(on_a_node)
    assert answer.sentence == (
        "spec.pytorchReplicaSpecs.Worker.template.spec.nodeName: pods that name a node can't wait for quota, and "
        "tenant alpha queues the other pods of their gang; leave the field out, and write "
        "nodeSelector: {kubernetes.io/hostname: gpu-7}"
    )
    assert (await FakeApi(ALPHA).validate(on_a_node)).allowed


async def test_no_tier_is_a_way_round_the_total() -> None:
    """Its third pod will be refused, though the tenant demotes."""
    tenant = a_tenant(onExceed="Demote", demoteTo=["gpu-interactive"]).allowing("4", tier="gpu-batch").allowing("10")
    world = FakeApi(tenant)
    assert (await world.create(a_pod().asking(6).of_tier("gpu-training"))).allowed
    total = "tenant alpha: the total is at 6 of 10 GPUs; this Deployment asks for 6 in all, so not all of its pods can"
    within = await world.validate(a_deployment(a_pod().asking(2), replicas=3).of_tier("gpu-interactive"))
    assert within.warnings == [f"{total} start now"]
    beyond = await world.validate(a_deployment(a_pod().asking(2), replicas=3).of_tier("gpu-batch"))
    assert beyond.warnings == [
        (
            "tenant alpha: gpu-batch is at 0 of 4 GPUs; this Deployment asks for 6 in all: pods that have no room "
            "there run as gpu-interactive, which gpu-training, gpu-serving, gpu-batch may evict, and are "
            "refused once gpu-interactive is full"
        ),
        f"{total} start now",
    ]


async def test_a_label_that_names_no_tier() -> None:
    answer = await FakeApi().validate(a_pytorchjob().of_tier("fastest"))
    assert answer.sentence == (
        'PyTorchJob/work.metadata.labels[gpu-tiers.dev/tier]: unknown tier "fastest"; '
        "known tiers: gpu-training, gpu-serving, gpu-batch, gpu-interactive"
    )


async def test_a_workload_above_the_ceiling() -> None:
    job = a_pytorchjob().of_tier("gpu-training")
    answer = await FakeApi(a_tenant(maxTier="gpu-batch")).validate(job)
    assert "gpu-training is not for tenant alpha; it may use gpu-batch, gpu-interactive." in answer.sentence


async def test_a_hook_that_there_is_not_is_reported_at_the_workload() -> None:
    answer = await FakeApi().validate(a_pytorchjob().annotated({"gpu-tiers.dev/checkpoint": "telepathy"}))
    assert '"telepathy" is not a kind of hook' in answer.sentence


async def test_a_class_that_is_missing_is_reported_at_the_workload() -> None:
    world = FakeApi()
    del world.known.live["gpu-training"]
    assert (
        "PriorityClass/gpu-training of tier gpu-training does not exist"
        in (await world.validate(a_pytorchjob())).sentence
    )


async def test_a_workload_without_gpus_is_none_of_ours() -> None:
    answer = await FakeApi(ALPHA).validate(a_deployment(a_pod().asking(0)))
    assert answer.allowed
    assert answer.audit == {}


async def test_a_replicaset_is_judged_by_its_deployments_label() -> None:
    """The label stands on the Deployment alone; its ReplicaSet must not be judged by the default tier's row."""
    owner = a_deployment(a_pod().asking(4)).of_tier("gpu-training")
    replicaset = a_replicaset(a_pod().asking(4)).owned_by(owner)
    world = FakeApi(owner, a_tenant().allowing("6", tier="gpu-training").allowing("1", tier="gpu-interactive"))
    answer = await world.validate(replicaset)
    assert answer.allowed
    assert answer.audit["tier"] == "gpu-training"


async def test_a_template_s_class_that_stays_counts_as_the_tier_it_reaches() -> None:
    owner = a_deployment(a_pod().asking(8).of_class("system-node-critical"))
    answer = await FakeApi(a_tenant().allowing("6", tier="gpu-training")).validate(owner)
    assert answer.sentence.startswith("tenant alpha: gpu-training allows 6 GPUs; this Deployment asks for 8 in all.")


@pytest.mark.parametrize("spec", [{"onExceed": "Warn"}, {"onExceed": "Demote"}, {"quotaAuthority": "kueue"}])
async def test_where_the_tenant_refuses_nothing(spec: dict[str, str]) -> None:
    assert (
        await FakeApi(a_tenant(**spec).allowing("6", tier="gpu-training")).validate(a_pytorchjob(a_pod().asking(8)))
    ).allowed


async def test_a_namespace_that_is_gone() -> None:
    world = FakeApi()
    world.known.gone.add("team-alpha")
    answer = await world.validate(a_pytorchjob())
    assert answer.sentence == "Namespace/team-alpha does not exist, so gpu-tiers can't choose a tier"


async def test_warn_says_it_and_lets_it_pass() -> None:
    answer = await FakeApi(ALPHA, policy=a_policy(mode="Warn")).validate(a_pytorchjob(a_pod().asking(8)))
    assert answer.allowed
    assert answer.warnings[0].startswith("would be refused: tenant alpha: gpu-training allows 6 GPUs")


async def test_a_namespace_that_enforces_by_itself() -> None:
    world = FakeApi(ALPHA, a_namespace().labelled({"gpu-tiers.dev/mode": "Enforce"}), policy=a_policy(mode="Audit"))
    assert not (await world.validate(a_pytorchjob(a_pod().asking(8)))).allowed


async def test_rays_autoscaler_writes_the_raycluster_itself_and_gets_the_workers_that_fit() -> None:
    """Also where none of them is needed."""
    group = {"groupName": "gpu", "minReplicas": 0, "maxReplicas": 90, "template": a_pod().asking(4).template()}
    head = {"template": a_pod().template()}
    idle, busy = (
        a_workload(
            "ray.io/v1",
            "RayCluster",
            enableInTreeAutoscaling=True,
            headGroupSpec=head,
            workerGroupSpecs=[{**group, "replicas": replicas}],
        )
        for replicas in (0, 3)
    )
    answer = await FakeApi(a_tenant().allowing("8")).update(idle, busy)
    assert answer.allowed
    assert any("the total allows 8 GPUs; this RayCluster asks for 12 in all." in each for each in answer.warnings)


async def test_replicas_that_have_no_room_now_are_reported_and_not_refused() -> None:
    """Its pods are booked one by one, so those that fit come."""
    few, more = a_deployment(a_pod().asking(2), replicas=1), a_deployment(a_pod().asking(2), replicas=3)
    world = FakeApi(a_tenant().allowing("8"))
    for _ in range(2):
        assert (await world.create(a_pod().asking(2))).allowed
    assert (await world.update(few, few.having("spec.replicas", 2))).warnings == []
    assert (await world.create(a_pod().asking(2))).allowed
    answer = await world.update(few, more)
    assert answer.allowed
    (warning,) = answer.warnings
    assert warning == (
        "tenant alpha: the total is at 6 of 8 GPUs; this Deployment asks for 4 more, so not all of its pods can start "
        "now"
    )
    assert (await world.update(more, few)).warnings == []


async def test_a_tenant_chooses_where_it_borrows() -> None:
    """In the order of its list, and a gang as a whole."""
    tenant = a_tenant(onExceed="Demote", demoteTo=["gpu-interactive", "gpu-batch"])
    rows = tenant.allowing("1", tier="gpu-training").allowing("2", tier="gpu-interactive").allowing("9")
    gang = a_pytorchjob(a_pod().asking(1), workers=2)
    world = FakeApi(rows, gang)
    sentence = (await world.validate(gang)).warnings
    assert any("all pods of this PyTorchJob run as gpu-interactive" in each for each in sentence)
    assert (await world.mutate(a_pod().asking(1).owned_by(gang))).patched["spec"]["priorityClassName"] == (
        "gpu-interactive"
    )
    next_one = await world.validate(a_pytorchjob(a_pod().asking(1), name="next", workers=2))
    assert any("run as gpu-batch" in each for each in next_one.warnings), "the first of the list is full"


async def test_a_tenant_that_only_warns_says_that_the_pods_start() -> None:
    world = FakeApi(a_tenant(onExceed="Warn").allowing("2"))
    assert (await world.create(a_pod().asking(1).of_tier("gpu-batch"))).allowed
    two, four = (a_deployment(a_pod().asking(1), replicas=count).of_tier("gpu-batch") for count in (2, 4))
    total = "tenant alpha: the total is at 1 of 2 GPUs; this Deployment asks for"
    created, grown = await world.validate(two), await world.update(two, two.having("spec.replicas", 4))
    assert created.warnings == [f"{total} 2 in all, so its pods use more than the quota (onExceed: Warn)"]
    assert (await world.update(four, four)).warnings == []
    assert grown.warnings[0].startswith("tenant alpha: the total allows 2 GPUs; this Deployment asks for 4 in all.")
    one = two.having("spec.replicas", 1)
    assert (await world.create(a_pod(name="more").asking(1).of_tier("gpu-batch"))).allowed
    [warning] = (await world.update(one, two)).warnings
    assert warning.endswith("asks for 1 more, so its pods use more than the quota (onExceed: Warn)")


async def test_a_tenant_that_demotes_says_as_what_more_pods_run() -> None:
    world = FakeApi(a_tenant(onExceed="Demote").allowing("2", tier="gpu-training").allowing("8"))
    assert (await world.create(a_pod().asking(1).of_tier("gpu-training"))).allowed
    one, two = (a_deployment(a_pod().asking(1), replicas=count).of_tier("gpu-training") for count in (1, 2))
    assert (await world.create(a_pod(name="more").asking(1).of_tier("gpu-training"))).allowed
    [warning] = (await world.update(one, two)).warnings
    assert "asks for 1 more: pods that have no room there run as gpu-batch" in warning
