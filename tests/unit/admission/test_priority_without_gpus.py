"""A pod without GPUs whose class lies above its tenant's ceiling: it could evict GPU pods for their CPU."""

import pytest

from tests.builders import (
    PodBuilder,
    a_deployment,
    a_namespace,
    a_pod,
    a_podgroup,
    a_policy,
    a_pytorchjob,
    a_tenant,
    a_workload,
)
from tests.builders.words import sentence
from tests.builders.world import FakeApi
from webhook.policy.values.tier_policy import Mode
from webhook.policy.values.tiers import PriorityClass

ALPHA = a_tenant(maxTier="gpu-serving")
CPU_POD = a_pod().running("coordinator")
CRITICAL = CPU_POD.of_class("system-cluster-critical")
SENTENCE = (
    "spec.priorityClassName: system-cluster-critical (2000000000) is above the ceiling of tenant alpha; "
    "its pods may have a class of value 800 at most, or none. See TenantQuota/alpha."
)


async def test_it_is_refused_and_the_sentence_says_what_is_accepted() -> None:
    world = FakeApi(ALPHA)
    assert (await world.create(CRITICAL)).sentence == SENTENCE
    assert [verdict.tenant for _, _, verdict, _ in world.records] == [None, None, "alpha"]


@pytest.mark.parametrize(
    ("value", "policy", "allowed"),
    [(800, "PreemptLowerPriority", True), (801, "PreemptLowerPriority", False), (801, "Never", False)],
)
async def test_a_class_of_the_cluster_is_measured_by_its_value(value: int, policy: str, *, allowed: bool) -> None:
    world = FakeApi(ALPHA)
    world.known.live["house"] = PriorityClass("house", value, policy)
    assert (await world.create(CPU_POD.of_class("house"))).allowed is allowed


@pytest.mark.parametrize("unmanaged", ["Keep", "Replace", "Deny"])
async def test_what_happens_to_classes_of_gpu_pods_changes_nothing(unmanaged: str) -> None:
    world = FakeApi(ALPHA, policy=a_policy(unmanagedClasses=unmanaged))
    world.known.live["house"] = PriorityClass("house", 50)
    assert not (await world.create(CRITICAL)).allowed
    assert (await world.create(CPU_POD.of_class("house"))).allowed


LEFT_ALONE: dict[str, tuple[FakeApi, PodBuilder]] = {
    "a pod without a class": (FakeApi(ALPHA), CPU_POD),
    "a namespace without a tenant": (FakeApi(a_tenant(namespace="team-beta", maxTier="gpu-batch")), CRITICAL),
    "a tenant without a ceiling": (FakeApi(a_tenant().allowing(6)), CRITICAL),
}


@pytest.mark.parametrize(("world", "pod"), LEFT_ALONE.values(), ids=LEFT_ALONE)
async def test_others_are_left_alone(world: FakeApi, pod: PodBuilder) -> None:
    answer = await world.create(pod)
    assert answer.allowed
    assert (answer.warnings, answer.audit) == ([], {})


async def test_a_class_that_the_watch_has_not_brought_yet_says_nothing() -> None:
    world = FakeApi(ALPHA)
    assert (await world.validate(world.stored(CPU_POD.of_class("made-just-now")))).allowed


async def test_the_global_defaults_name_is_nobodys_choice() -> None:
    """The API server writes it on every pod: a tenant would have no pods at all."""
    world = FakeApi(ALPHA)
    world.known.live["standard"] = PriorityClass("standard", 1_000_000, global_default=True)
    assert (await world.create(CPU_POD.of_class("standard"))).allowed


async def test_a_namespace_that_cannot_be_read_lets_it_pass() -> None:
    world = FakeApi(ALPHA)
    world.known.gone.add("team-alpha")
    assert (await world.create(CRITICAL)).allowed


async def test_a_misspelt_ceiling_is_named() -> None:
    answer = await FakeApi(a_tenant(maxTier="gpu-servin")).create(CRITICAL)
    assert "its maxTier (gpu-servin) names no tier of the policy" in answer.sentence


@pytest.mark.parametrize(
    "looks_like_a_gang",
    [
        CRITICAL.labelled({"ray.io/cluster": "on-cpus"}),
        CRITICAL.having("spec.resourceClaims", [{"name": "nic", "resourceClaimName": "nic"}]),
    ],
)
async def test_what_looks_like_a_gang_and_holds_no_gpu_is_no_way_round(looks_like_a_gang: PodBuilder) -> None:
    claim = a_workload("resource.k8s.io/v1", "ResourceClaim", "nic")
    assert (await FakeApi(ALPHA, claim).create(looks_like_a_gang)).sentence == SENTENCE


async def test_nor_is_a_pod_group() -> None:
    assert (await FakeApi(ALPHA).create(a_podgroup().of_class("system-cluster-critical"))).sentence == SENTENCE


async def test_nor_is_the_launcher_of_a_gang() -> None:
    job = a_pytorchjob()
    answer = await FakeApi(ALPHA, job).create(CRITICAL.labelled({"training.kubeflow.org/job-name": "x"}).owned_by(job))
    assert answer.sentence == SENTENCE


async def test_its_workload_is_reported_at_once_and_an_old_one_may_still_be_changed() -> None:
    world = FakeApi(ALPHA)
    before = a_deployment(CRITICAL)
    assert (await world.validate(before)).sentence == f"spec.template.{SENTENCE}"
    answer = await world.update(before, before.labelled({"team": "vision"}))
    assert answer.allowed


async def test_warn_warns() -> None:
    answer = await FakeApi(ALPHA, policy=a_policy(mode="Warn")).create(CRITICAL)
    assert answer.allowed
    assert answer.warnings == [f"would be refused: {SENTENCE}"]


async def test_audit_records_it_and_says_nothing() -> None:
    world = FakeApi(ALPHA, policy=a_policy(mode="Audit"))
    answer = await world.create(CRITICAL)
    assert answer.allowed
    assert answer.warnings == []
    assert answer.audit == {"would-refuse": f"{SENTENCE} [class-above-ceiling]"}
    _, _, verdict, mode = world.records[-1]
    assert verdict.refusal is not None
    assert (sentence(verdict.refusal), verdict.tenant, mode) == (SENTENCE, "alpha", Mode.Audit)


async def test_a_stricter_namespace_refuses() -> None:
    strict = a_namespace().labelled({"gpu-tiers.dev/mode": "Enforce"})
    assert not (await FakeApi(ALPHA, strict, policy=a_policy(mode="Audit")).create(CRITICAL)).allowed
