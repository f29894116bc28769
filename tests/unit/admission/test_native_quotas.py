"""ResourceQuotas of the namespace count in what would fit: what a refusal offers is there to be had."""

import pytest

from tests.builders import Built, TenantBuilder, Tree, a_pod, a_policy, a_tenant
from tests.builders.world import FakeApi


def alpha(**spec: object) -> TenantBuilder:
    """Full at 6 training GPUs; 5 batch GPUs, nothing else."""
    tenant = a_tenant(**spec).allowing("6", tier="gpu-training").allowing("5", tier="gpu-batch")
    return tenant.allowing("0", tier="gpu-serving").allowing("0", tier="gpu-interactive")


def a_resource_quota(
    hard: str, used: str, spec: Tree | None = None, *, of: str = "nvidia.com/gpu", name: str = "cap", **metadata: str
) -> Built:
    """A ResourceQuota as its controller keeps it."""
    gpus = f"requests.{of}"
    return Built(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": name, "namespace": "team-alpha", **metadata},
            "spec": {"hard": {gpus: hard, "pods": "50"}, **(spec or {})},
            "status": {"hard": {gpus: hard, "pods": "50"}, "used": {gpus: used, "pods": "7"}},
        }
    )


def of_class(operator: str, *values: str) -> Tree:
    line = {"scopeName": "PriorityClass", "operator": operator, "values": list(values)}
    return {"scopeSelector": {"matchExpressions": [line]}}


async def refused(*quotas: Built, gpus: int = 2, world: FakeApi | None = None) -> str:
    """The end of the sentence that a training pod gets, with no room in its own tier."""
    world = world or FakeApi(alpha(), *quotas)
    assert (await world.create(a_pod().asking(6).of_tier("gpu-training"))).allowed
    sentence = (await world.create(a_pod().asking(gpus).of_tier("gpu-training"))).sentence
    return sentence.partition(" Would fit: ")[2]


async def test_a_quota_for_the_tiers_class_that_has_less_room_lowers_the_offer() -> None:
    assert await refused() == "gpu-batch (5 left). See TenantQuota/alpha."
    cap = a_resource_quota("8", "5", of_class("In", "gpu-batch"))
    assert await refused(cap) == "gpu-batch (3 left). See TenantQuota/alpha and ResourceQuota/cap."


async def test_one_without_room_for_the_pod_takes_the_offer_away_and_is_named() -> None:
    cap = a_resource_quota("8", "7", of_class("In", "gpu-batch"))
    assert await refused(cap) == "no tier now. See TenantQuota/alpha and ResourceQuota/cap."
    assert await refused(cap, gpus=1) == "gpu-batch (1 left). See TenantQuota/alpha and ResourceQuota/cap."


@pytest.mark.parametrize(
    "spec",
    [
        {},
        of_class("Exists"),
        of_class("NotIn", "gpu-training"),
        {"scopes": ["PriorityClass"]},
        {"scopes": ["NotTerminating", "NotBestEffort"]},
    ],
    ids=str,
)
async def test_quotas_that_count_every_batch_pod(spec: Tree) -> None:
    assert (await refused(a_resource_quota("6", "6", spec))).startswith("no tier now.")


@pytest.mark.parametrize(
    "spec",
    [
        of_class("In", "gpu-training", "batch"),
        of_class("NotIn", "gpu-batch"),
        of_class("DoesNotExist"),
        {"scopes": ["BestEffort"]},
        {"scopes": ["Terminating"]},
        {"scopes": ["CrossNamespacePodAffinity"]},
    ],
    ids=str,
)
async def test_quotas_that_count_no_batch_pod(spec: Tree) -> None:
    assert await refused(a_resource_quota("6", "6", spec)) == "gpu-batch (5 left). See TenantQuota/alpha."


async def test_the_quota_with_the_least_room_counts_and_other_namespaces_dont() -> None:
    quotas = (
        a_resource_quota("9", "5", name="wide"),
        a_resource_quota("9", "6", of_class("In", "gpu-batch"), name="narrow"),
        a_resource_quota("1", "1", name="elsewhere", namespace="team-beta"),
    )
    assert await refused(*quotas) == "gpu-batch (3 left). See TenantQuota/alpha and ResourceQuota/narrow."


async def test_a_quota_of_other_resources_changes_nothing() -> None:
    assert await refused(a_resource_quota("8", "8", of="cpu")) == "gpu-batch (5 left). See TenantQuota/alpha."


async def test_a_slice_counts_by_its_weight() -> None:
    """3 slices left of a quota of slices are 3 eighths of a GPU."""
    slices = "nvidia.com/mig-1g.10gb"
    world = FakeApi(alpha(), a_resource_quota("10", "7", of=slices))
    assert (await world.create(a_pod().asking(6).of_tier("gpu-training"))).allowed
    sentence = (await world.create(a_pod().asking(2, resource=slices).of_tier("gpu-training"))).sentence
    assert "this pod asks for 0.25. Would fit: gpu-batch (0.375 left)." in sentence


async def test_while_tiers_are_adopted_pods_get_the_other_class() -> None:
    world = FakeApi(alpha(), a_resource_quota("6", "6", of_class("In", "gpu-batch")), policy=a_policy(adoption=True))
    assert (await refused(world=world)).startswith("gpu-batch (5 left).")
    calm = a_resource_quota("6", "6", of_class("In", "gpu-batch-nonpreempting"))
    world = FakeApi(alpha(), calm, policy=a_policy(adoption=True))
    assert (await refused(world=world)).startswith("no tier now.")


async def test_where_a_tenant_only_warns_the_warning_offers_as_little() -> None:
    world = FakeApi(alpha(onExceed="Warn"), a_resource_quota("6", "6"))
    assert (await world.create(a_pod().asking(6).of_tier("gpu-training"))).allowed
    answer = await world.create(a_pod().asking(2).of_tier("gpu-training"))
    assert any(
        "Would fit: no tier now. See TenantQuota/alpha and ResourceQuota/cap." in each for each in answer.warnings
    )
