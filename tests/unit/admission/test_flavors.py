"""The flavor row of a pod: by its node where it has one, and again when its scheduling gate is lifted."""

import pytest

from tests.builders import Built, PodBuilder, Tree, a_pod, a_policy, a_pytorchjob, a_tenant
from tests.builders.queues import reserve
from tests.builders.world import Answer, FakeApi

PRODUCT = "nvidia.com/gpu.product"
H100 = {PRODUCT: "H100"}
POLICY = a_policy(resourceFlavors=[{"name": "h100", "nodeLabels": H100}])
NODE = Built({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1", "labels": {**H100, "zone": "b"}}})
ONE = {"nvidia.com/gpu": 1}
SENTENCE = (
    "exceeded quota: tenant alpha: h100 is at 2 of 2 GPUs; this pod asks for 2. Would fit: no tier now. "
    "See TenantQuota/alpha."
)


@pytest.fixture
def world() -> FakeApi:
    return FakeApi(NODE, a_tenant().allowing("9").allowing("2", flavor="h100"), policy=POLICY)


def gated() -> PodBuilder:
    return a_pod().asking(2).having("spec.schedulingGates", [{"name": "kueue.x-k8s.io/admission"}])


async def waiting(world: FakeApi, pod: PodBuilder | None = None) -> Tree:
    """A pod behind its gate, as it is stored."""
    answer = await world.create(pod or gated())
    assert answer.allowed
    return answer.sent


async def lifted(world: FakeApi, pod: Tree, **changes: object) -> Answer:
    """Kueue's update: the labels of the flavor that it assigned, and no gate."""
    return await world.update(
        pod, {**pod, "spec": {**pod["spec"], "nodeSelector": H100, "schedulingGates": None}}, **changes
    )


async def test_a_lifted_gate_books_the_pod_on_the_flavor_that_it_names_now(world: FakeApi) -> None:
    first, second = await waiting(world), await waiting(world)
    assert (await lifted(world, first, dryRun=True)).allowed
    assert (await lifted(world, first)).allowed
    assert (await lifted(world, first)).allowed, "again, after a conflict"
    refused = await lifted(world, second)
    assert refused.sentence == SENTENCE
    assert refused.response["status"]["reason"] == "Forbidden"
    assert world.records[-1][2].over_quota, "an event tells of it: Kueue says it in its log alone"
    direct = await world.create(a_pod().asking(2).having("spec.nodeSelector", H100))
    assert direct.sentence == SENTENCE, "the row is booked"


def of_a_group(number: int, count: int = 3) -> PodBuilder:
    labels = {"kueue.x-k8s.io/pod-group-name": "sweep", "kueue.x-k8s.io/queue-name": "research"}
    pod = gated().named(f"sweep-{number}").labelled(labels)
    return pod.annotated({"kueue.x-k8s.io/pod-group-total-count": str(count)})


async def test_a_group_is_let_run_as_a_whole_or_not_at_all() -> None:
    """A group of which one pod runs and two wait holds GPUs for nothing."""
    world = FakeApi(a_tenant().allowing("9").allowing("4", flavor="h100"), policy=POLICY)
    pods = [await waiting(world, of_a_group(each)) for each in range(3)]
    refused = await lifted(world, pods[0])
    assert refused.sentence == (
        "tenant alpha: h100 allows 4 GPUs; group sweep asks for 6 in all. Would fit: no tier. See TenantQuota/alpha."
    )
    assert (await lifted(world, await waiting(world))).allowed, "nothing was booked for it"


async def test_of_a_pod_whose_owner_is_gone_the_group_is_unknown_so_it_is_refused() -> None:
    world = FakeApi(a_tenant().allowing("9").allowing("4", flavor="h100"), policy=POLICY)
    pod = of_a_group(0).owned_by(a_pytorchjob(name="gone"))
    refused = await lifted(world, world.stored(pod.json()))
    assert (
        refused.sentence
        == "PyTorchJob/gone is not among the objects given, so gpu-tiers can't find the group of this pod"
    )


async def test_all_pods_of_a_group_that_fits_are_let_run() -> None:
    world = FakeApi(a_tenant().allowing("9").allowing("6", flavor="h100"), policy=POLICY)
    pods = [await waiting(world, of_a_group(each)) for each in range(3)]
    assert [(await lifted(world, each)).allowed for each in pods] == [True, True, True]
    assert not (await world.create(a_pod().asking().having("spec.nodeSelector", H100))).allowed


async def test_the_sentence_tells_the_tiers_that_have_room_on_all_rows() -> None:
    tenant = a_tenant().allowing("3").allowing("1", tier="gpu-batch", flavor="h100")
    world = FakeApi(tenant, policy=POLICY)
    pods = [
        await waiting(world, gated().of_tier("gpu-batch").having("spec.containers.0.resources.limits", ONE))
        for _ in "ab"
    ]
    assert (await lifted(world, pods[0])).allowed
    assert "gpu-batch on h100 is at 1 of 1 GPU" in (await lifted(world, pods[1])).sentence
    assert "gpu-training (1 left)" in (await lifted(world, pods[1])).sentence, "the total counts"


async def test_the_room_that_a_pod_leaves_is_taken_by_the_next_try(world: FakeApi) -> None:
    first, second = await waiting(world), await waiting(world)
    await lifted(world, first)
    assert not (await lifted(world, second)).allowed
    world.ledger.release(first["metadata"]["uid"])
    assert (await lifted(world, second)).allowed


async def test_other_changes_of_nodes_ask_nobody(world: FakeApi) -> None:
    """Kueue's topology gate is lifted with the name of a host."""
    world.known.gone.add("team-alpha")
    pod = world.stored(gated())
    placed = {**pod, "spec": {**pod["spec"], "nodeSelector": {"kubernetes.io/hostname": "node-1"}}}
    assert (await world.update(pod, placed)).allowed


async def test_a_pod_of_a_tenant_that_is_charged_elsewhere_goes_on() -> None:
    tenant = a_tenant(quotaAuthority="Kueue").allowing("0", flavor="h100")
    world = FakeApi(tenant, policy=POLICY)
    assert (await lifted(world, await waiting(world))).allowed


async def test_a_tenant_that_warns_only_reads_the_sentence() -> None:
    world = FakeApi(a_tenant(onExceed="Warn").allowing("0", flavor="h100"), policy=POLICY)
    answer = await lifted(world, await waiting(world))
    assert answer.allowed
    (warning,) = answer.warnings
    assert warning == (
        "It is admitted, because the tenant's onExceed is Warn: tenant alpha: h100 allows 0 GPUs; this pod asks for 2. "
        "Would fit: no tier. See TenantQuota/alpha."
    )


@pytest.mark.parametrize(("mode", "allowed"), [("Audit", True), ("Warn", True), ("Enforce", False)])
async def test_the_mode_softens_it(mode: str, allowed: bool) -> None:
    policy = a_policy(mode=mode, resourceFlavors=[{"name": "h100", "nodeLabels": H100}])
    world = FakeApi(a_tenant().allowing("0", flavor="h100"), policy=policy)
    assert (await lifted(world, await waiting(world))).allowed == allowed


async def test_a_pod_that_nobody_has_booked_is_counted_when_it_is_seen(world: FakeApi) -> None:
    assert (await lifted(world, world.stored(gated()))).allowed


async def test_a_namespace_that_can_not_be_read_is_no_way_through(world: FakeApi) -> None:
    pod = await waiting(world)
    world.known.gone.add("team-alpha")
    sentence = "Namespace/team-alpha does not exist, so gpu-tiers can't find what this pod is charged"
    assert (await lifted(world, pod)).sentence == sentence


async def test_a_pod_that_names_its_node_itself_is_booked_on_that_nodes_flavor(world: FakeApi) -> None:
    bound = a_pod().asking(2).having("spec.nodeName", "node-1")
    assert (await world.create(bound)).allowed
    assert (await world.create(bound)).sentence == SENTENCE


UNNAMED = SENTENCE.replace(
    " Would",
    " It names no flavor, so it counts on each flavor that it may run on; its nodeSelector can name one. Would",
)


@pytest.mark.parametrize(
    "selecting",
    [{}, {"nodeName": "node-2"}, {"nodeSelector": {"kubernetes.io/hostname": "node-1"}}],
    ids=["nothing", "a node that nobody knows", "a host"],
)
async def test_a_pod_that_names_no_flavor_is_booked_on_each_that_it_may_run_on(world: FakeApi, selecting: Tree) -> None:
    pod = a_pod().asking(2)
    for field, value in selecting.items():
        pod = pod.having(f"spec.{field}", value)
    assert (await world.create(pod)).allowed
    assert (await world.create(pod)).sentence == UNNAMED
    assert (await world.create(a_pod().asking(2).having("spec.nodeSelector", {PRODUCT: "L4"}))).allowed


async def test_a_gate_that_is_lifted_without_a_choice_is_booked_as_one_that_never_was(world: FakeApi) -> None:
    first, second = await waiting(world), await waiting(world)
    open_to_all = [{**pod, "spec": {**pod["spec"], "schedulingGates": None}} for pod in (first, second)]
    assert (await world.update(first, open_to_all[0])).allowed
    assert (await world.update(second, open_to_all[1])).sentence == UNNAMED


async def test_a_gang_that_names_no_flavor_must_fit_on_each(world: FakeApi) -> None:
    job = a_pytorchjob(a_pod().asking(1), workers=3)
    assert "It names no flavor, so it counts on each flavor that it may run on" in (await world.create(job)).sentence
    assert (await world.create(job.having("spec.runPolicy.suspend", True))).allowed, "Kueue will choose its nodes"


async def test_a_group_gets_a_flavor_beside_what_the_queue_reserves_or_not_at_all() -> None:
    """Its first pods would run otherwise, and the rest wait."""
    world = FakeApi(a_tenant(onExceed="Hold").allowing("9").allowing("9", flavor="h100"), policy=POLICY)
    pods = [await waiting(world, of_a_group(each)) for each in range(3)]
    reserve(world.ledger, POLICY.tiers.rank("gpu-training"), {"h100": 4})
    refused = await lifted(world, pods[0])
    assert "h100 is at 0 of 9 GPUs, plus 4 reserved for pods queued earlier; group " in refused.sentence
    reserve(world.ledger, POLICY.tiers.rank("gpu-training"), {"h100": 3})
    for pod in pods:
        assert (await lifted(world, pod)).allowed
