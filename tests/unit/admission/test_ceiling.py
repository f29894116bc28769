"""The highest tier a tenant may use, and what a workload type may claim: asked for is refused, chosen is lowered."""

import pytest

from tests.unit.admission.shapes import Tree, a_deployment, a_gpu_pod, a_pytorchjob, of_class
from tests.unit.admission.world import World, a_namespace, a_policy, a_tenant
from webhook.policy.values.tiers import PriorityClass

NOTEBOOK: Tree = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "Notebook",
    "metadata": {"name": "workbench", "namespace": "team-alpha", "uid": "uid-of-workbench"},
    "spec": {},
}


async def test_a_tier_asked_for_above_the_ceiling_is_refused() -> None:
    world = World(objects=(a_tenant(maxTier="gpu-serving"),))
    answer = await world.create(a_gpu_pod(tier="gpu-training"))
    assert answer.sentence == (
        "metadata.labels[gpu-tiers.dev/tier]: gpu-training is not for tenant alpha; "
        "it may use gpu-serving, gpu-batch, gpu-interactive. See TenantQuota/alpha."
    )


async def test_a_class_asked_for_above_the_ceiling_is_refused() -> None:
    world = World(objects=(a_tenant(maxTier="gpu-serving"),))
    assert not (await world.create(a_gpu_pod(**of_class("gpu-training", 1000)))).allowed


async def test_a_tier_that_we_chose_is_lowered_with_a_warning() -> None:
    job = a_pytorchjob()
    world = World(objects=(job, a_tenant(maxTier="gpu-batch")))
    mutated = await world.mutate(a_gpu_pod(owner=job))
    assert mutated.patched["spec"]["priorityClassName"] == "gpu-batch"
    assert mutated.warnings == ["tier lowered from gpu-training to gpu-batch, the ceiling of tenant alpha"]
    assert (await world.create(a_gpu_pod(owner=job))).allowed


async def test_only_the_tiers_listed() -> None:
    world = World(objects=(a_tenant(allowedTiers=["gpu-training", "gpu-interactive"]),))
    assert (await world.create(a_gpu_pod(tier="gpu-training"))).allowed
    answer = await world.create(a_gpu_pod(tier="gpu-batch"))
    assert "gpu-batch is not for tenant alpha; it may use gpu-training, gpu-interactive." in answer.sentence


async def test_a_forged_demotion_opens_no_tier() -> None:
    """The annotation is the user's to write: it must not reach a tier that the list leaves out."""
    world = World(objects=(a_tenant(allowedTiers=["gpu-training", "gpu-interactive"]),))
    pod = a_gpu_pod(tier="gpu-batch")
    forged = "label: the label on the pod says gpu-training; demoted from gpu-training"
    pod["metadata"]["annotations"] = {"gpu-tiers.dev/assigned-by": forged}
    assert not (await world.create(pod)).allowed


async def test_system_node_critical_is_no_way_round_the_ceiling() -> None:
    world = World(objects=(a_tenant(maxTier="gpu-serving"),))
    answer = await world.create(a_gpu_pod(**of_class("system-node-critical", 2_000_001_000)))
    assert answer.sentence.startswith(
        "spec.priorityClassName: system-node-critical (2000001000) is above the ceiling of tenant alpha; it may use"
    )


async def test_a_class_below_the_ceiling_is_kept() -> None:
    world = World(objects=(a_tenant(maxTier="gpu-serving"),))
    world.cluster.live["house"] = PriorityClass("house", 50)
    assert (await world.create(a_gpu_pod(**of_class("house", 50)))).allowed


async def test_a_notebook_may_not_claim_training() -> None:
    world = World(objects=(NOTEBOOK,))
    answer = await world.create(a_gpu_pod(tier="gpu-training", owner=NOTEBOOK))
    assert answer.sentence == (
        "metadata.labels[gpu-tiers.dev/tier]: gpu-training is not for interactive workloads, and this is one by its "
        "kind, Notebook/workbench; it may use gpu-batch, gpu-interactive"
    )


async def test_the_label_of_an_owner_is_asked_for_as_well() -> None:
    owner = a_deployment(labels={"gpu-tiers.dev/tier": "gpu-training"})
    world = World(objects=(owner, a_tenant(maxTier="gpu-batch")))
    assert not (await world.create(a_gpu_pod(owner=owner))).allowed


async def test_a_rule_of_the_platform_team_is_bounded_too() -> None:
    rules = 'rules: [{match: {labels: {app: "x"}}, tier: gpu-training}]\n'
    world = World(a_policy(rules), objects=(a_tenant(maxTier="gpu-batch"),))
    assert "gpu-training is not for tenant alpha" in (await world.create(a_gpu_pod())).sentence


@pytest.mark.parametrize(("says", "allowed", "warnings"), [("Allow", True, 0), ("Warn", True, 1), ("Deny", False, 0)])
async def test_a_namespace_without_a_tenant(says: str, *, allowed: bool, warnings: int) -> None:
    world = World(a_policy(f"namespacesWithoutTenant: {says}\n"))
    answer = await world.create(a_gpu_pod())
    assert answer.allowed is allowed
    assert len(answer.warnings) == warnings
    assert allowed or answer.sentence == (
        "namespace team-alpha belongs to no tenant: no TenantQuota's namespaceSelector selects it; "
        "ask your platform team for one"
    )


async def test_the_namespaces_default_tier() -> None:
    world = World(objects=(a_namespace({"gpu-tiers.dev/default-tier": "gpu-batch"}),))
    assert (await world.mutate(a_gpu_pod())).patched["spec"]["priorityClassName"] == "gpu-batch"


async def test_the_tenants_default_tier_comes_first() -> None:
    home = a_namespace({"gpu-tiers.dev/default-tier": "gpu-batch"})
    world = World(objects=(home, a_tenant(defaultTier="gpu-serving")))
    assert (await world.mutate(a_gpu_pod())).patched["spec"]["priorityClassName"] == "gpu-serving"


@pytest.mark.parametrize(("says", "allowed"), [("Keep", True), ("Deny", False), ("Replace", True)])
async def test_a_class_outside_the_tiers(says: str, *, allowed: bool) -> None:
    world = World(a_policy(f"unmanagedClasses: {says}\n"))
    world.cluster.live["house"] = PriorityClass("house", 50)
    answer = await world.create(a_gpu_pod(**of_class("house", 50)))
    assert answer.allowed is allowed
