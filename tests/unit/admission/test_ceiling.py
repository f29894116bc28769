"""The highest tier a tenant may use, and what a workload type may claim: asked for is refused, chosen is lowered."""

import pytest

from tests.builders import (
    PodBuilder,
    a_deployment,
    a_namespace,
    a_notebook,
    a_pod,
    a_policy,
    a_pytorchjob,
    a_tenant,
)
from tests.builders.world import FakeApi
from webhook.policy.values.tiers import PriorityClass

NOTEBOOK = a_notebook()


async def test_a_tier_asked_for_above_the_ceiling_is_refused() -> None:
    world = FakeApi(a_tenant(maxTier="gpu-serving"))
    answer = await world.create(a_pod().asking().of_tier("gpu-training"))
    assert answer.sentence == (
        "metadata.labels[gpu-tiers.dev/tier]: gpu-training is not for tenant alpha; "
        "it may use gpu-serving, gpu-batch, gpu-interactive. See TenantQuota/alpha."
    )


async def test_a_class_asked_for_above_the_ceiling_is_refused() -> None:
    world = FakeApi(a_tenant(maxTier="gpu-serving"))
    assert not (await world.create(a_pod().asking().of_class("gpu-training"))).allowed


async def test_a_tier_that_we_chose_is_lowered_with_a_warning() -> None:
    job = a_pytorchjob()
    world = FakeApi(job, a_tenant(maxTier="gpu-batch"))
    mutated = await world.mutate(a_pod().asking().owned_by(job))
    assert mutated.patched["spec"]["priorityClassName"] == "gpu-batch"
    assert mutated.warnings == ["tier lowered from gpu-training to gpu-batch: tenant alpha may not use gpu-training"]
    assert (await world.create(a_pod().asking().owned_by(job))).allowed


async def test_only_the_tiers_listed() -> None:
    world = FakeApi(a_tenant(allowedTiers=["gpu-training", "gpu-interactive"]))
    assert (await world.create(a_pod().asking().of_tier("gpu-training"))).allowed
    answer = await world.create(a_pod().asking().of_tier("gpu-batch"))
    assert "gpu-batch is not for tenant alpha; it may use gpu-training, gpu-interactive." in answer.sentence


async def test_a_forged_demotion_opens_no_tier() -> None:
    """The annotation is the user's to write: it must not reach a tier that the list leaves out."""
    world = FakeApi(a_tenant(allowedTiers=["gpu-training", "gpu-interactive"]))
    forged = "label: the label on the pod says gpu-training; demoted from gpu-training"
    pod = a_pod().asking().of_tier("gpu-batch").annotated({"gpu-tiers.dev/assigned-by": forged})
    assert not (await world.create(pod)).allowed


async def test_system_node_critical_is_no_way_round_the_ceiling() -> None:
    world = FakeApi(a_tenant(maxTier="gpu-serving"))
    answer = await world.create(a_pod().asking().of_class("system-node-critical"))
    assert answer.sentence.startswith(
        "spec.priorityClassName: system-node-critical (2000001000) is above the ceiling of tenant alpha; it may use"
    )


async def test_a_class_below_the_ceiling_stays() -> None:
    world = FakeApi(a_tenant(maxTier="gpu-serving"))
    world.known.live["house"] = PriorityClass("house", 50)
    assert (await world.create(a_pod().asking().of_class("house"))).allowed


async def test_a_notebook_may_not_claim_training() -> None:
    world = FakeApi(NOTEBOOK)
    answer = await world.create(a_pod().asking().of_tier("gpu-training").owned_by(NOTEBOOK))
    assert answer.sentence == (
        "metadata.labels[gpu-tiers.dev/tier]: gpu-training is not allowed for interactive workloads; this is one "
        "because of its kind, Notebook/workbench; it may use gpu-batch, gpu-interactive"
    )


async def test_the_label_of_an_owner_is_asked_for_as_well() -> None:
    owner = a_deployment().of_tier("gpu-training")
    world = FakeApi(owner, a_tenant(maxTier="gpu-batch"))
    assert not (await world.create(a_pod().asking().owned_by(owner))).allowed


async def test_a_rule_of_the_platform_team_is_bounded_too() -> None:
    rules = [{"match": {"labels": {"app": "x"}}, "tier": "gpu-training"}]
    world = FakeApi(a_tenant(maxTier="gpu-batch"), policy=a_policy(rules=rules))
    assert (
        "gpu-training is not for tenant alpha" in (await world.create(a_pod().asking().labelled({"app": "x"}))).sentence
    )


@pytest.mark.parametrize(("says", "allowed", "warnings"), [("Allow", True, 0), ("Warn", True, 1), ("Deny", False, 0)])
async def test_a_namespace_without_a_tenant(says: str, *, allowed: bool, warnings: int) -> None:
    world = FakeApi(policy=a_policy(namespacesWithoutTenant=says))
    answer = await world.create(a_pod().running("vllm", "serve").asking())
    assert answer.allowed is allowed
    assert len(answer.warnings) == warnings
    assert allowed or answer.sentence == (
        "namespace team-alpha belongs to no tenant: no TenantQuota's namespaceSelector selects it; "
        "ask your platform team to add the namespace to a tenant"
    )


async def test_the_namespaces_default_tier() -> None:
    world = FakeApi(a_namespace().labelled({"gpu-tiers.dev/default-tier": "gpu-batch"}))
    assert (await world.mutate(a_pod().asking())).patched["spec"]["priorityClassName"] == "gpu-batch"


async def test_the_tenants_default_tier_comes_first() -> None:
    home = a_namespace().labelled({"gpu-tiers.dev/default-tier": "gpu-batch"})
    world = FakeApi(home, a_tenant(defaultTier="gpu-serving"))
    assert (await world.mutate(a_pod().asking())).patched["spec"]["priorityClassName"] == "gpu-serving"


@pytest.mark.parametrize(("says", "allowed"), [("Keep", True), ("Deny", False), ("Replace", True)])
async def test_a_class_outside_the_tiers(says: str, *, allowed: bool) -> None:
    world = FakeApi(policy=a_policy(unmanagedClasses=says))
    world.known.live["house"] = PriorityClass("house", 50)
    answer = await world.create(a_pod().asking().of_class("house"))
    assert answer.allowed is allowed


@pytest.mark.parametrize("without_tenant", ["Allow", "Warn", "Deny"])
@pytest.mark.parametrize("mark", [a_pod().of_tier("gpu-batch"), a_pod().of_class("gpu-batch")])
async def test_a_pod_without_gpus_bears_no_tier_where_there_is_no_tenant(mark: PodBuilder, without_tenant: str) -> None:
    world = FakeApi(policy=a_policy(namespacesWithoutTenant=without_tenant))
    answer = await world.create(mark.running("coordinator"))
    assert answer.allowed is (without_tenant != "Deny")
    assert len(answer.warnings) == (without_tenant == "Warn")
