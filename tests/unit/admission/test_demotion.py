"""A pod is demoted only where a booking has no room at its own tier."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from tests.builders import a_deployment, a_pod, a_policy, a_pytorchjob, a_replicaset, a_tenant, a_workload
from tests.builders.pods import PodBuilder
from tests.builders.world import Answer, FakeApi
from webhook.ledger.accounts import HandOver
from webhook.ledger.protocol import Booking, Holding
from webhook.policy.quota.charges import Charge

DEPLOYMENT = a_deployment().having("spec.selector", {"matchLabels": {"app": "serve"}})
OWNER = a_replicaset().owned_by(DEPLOYMENT)
UID, OUTERMOST = (each.json()["metadata"]["uid"] for each in (OWNER, DEPLOYMENT))
TENANT = a_tenant(onExceed="Demote").allowing("2", tier="gpu-training").allowing("8")


def a_world(mode: str = "Enforce") -> FakeApi:
    return FakeApi(TENANT, DEPLOYMENT, OWNER, policy=a_policy(mode=mode))


def next_pod(name: str = "next") -> PodBuilder:
    return a_pod(name).asking(1).of_tier("gpu-training").labelled({"app": "serve"}).owned_by(OWNER)


def there(world: FakeApi, name: str, *, preempted: bool = False) -> None:
    """A training pod of the ReplicaSet that exists."""
    charge = Charge(Decimal(1), "gpu-training")
    world.ledger.observe(name, Holding("team-alpha", charge, 30.0, UID, preempted=preempted, name=name))


def tier(answer: Answer) -> str:
    return str(answer.patched["spec"]["priorityClassName"])


def ends(world: FakeApi, found: list[dict[str, str]]) -> None:
    """Let a pod of the Deployment be ending; `found` gets the labels by which it was looked for."""

    async def is_any_ending(_: str, labels: dict[str, str]) -> bool:
        found.append(labels)
        return True

    lookups: Any = world.cluster.lookups
    lookups.is_any_ending = is_any_ending


async def test_the_replacement_of_a_preempted_pod_keeps_its_tier() -> None:
    world = a_world()
    there(world, "stays")
    there(world, "victim", preempted=True)
    assert tier(await world.mutate(next_pod())) == "gpu-training"
    assert (await world.create(next_pod())).allowed
    assert tier(await world.mutate(next_pod("another"))) == "gpu-serving", "the slot is taken"


async def test_a_pod_keeps_its_tier_where_another_ends_within_a_second() -> None:
    world = a_world()
    world.ledger._patience = 1.0
    there(world, "stays")
    there(world, "leaves")
    asked = asyncio.ensure_future(world.mutate(next_pod()))
    await asyncio.sleep(0.05)
    assert not asked.done(), "it waits for news"
    world.ledger.release("leaves")
    assert tier(await asked) == "gpu-training"


async def test_a_pod_that_follows_an_ending_one_is_refused_and_not_demoted_for_life() -> None:
    world, looked_for = a_world(), list[dict[str, str]]()
    there(world, "stays")
    there(world, "leaves")
    ends(world, looked_for)
    mutated = await world.mutate(next_pod())
    assert tier(mutated) == "gpu-training"
    assert looked_for == [{"app": "serve"}]
    assert "gpu-training is at 2 of 2 GPUs; this pod asks for 1" in (await world.create(next_pod())).sentence
    world.ledger.release("leaves")
    assert (await world.create(next_pod())).allowed


async def test_while_nobody_leads_a_controllers_pod_is_refused_and_not_demoted_for_life() -> None:
    """The pod that it replaces has ended, and counts until a leader sees that."""
    world = a_world()
    there(world, "stays")
    there(world, "ended")
    world.ledger._hand_over = HandOver(lambda: None, is_led=lambda: False)
    mutated = await world.mutate(next_pod())
    assert tier(mutated) == "gpu-training"
    refused = await world.validate(world.stored(mutated.patched))
    assert refused.sentence.startswith("exceeded quota: tenant alpha: gpu-training is at 2 of 2 GPUs"), refused.sentence
    assert tier(await world.mutate(a_pod("alone").asking(1).of_tier("gpu-training"))) == "gpu-batch"
    world.ledger._hand_over = None
    assert tier(await world.mutate(next_pod())) == "gpu-serving"


async def test_a_pod_that_another_refused_keeps_its_tier_at_the_next_try() -> None:
    """The first try has reserved the last GPUs, and the second one shares its slot."""
    one = OWNER.having("spec.replicas", 1).having("spec.selector", {"matchLabels": {"app": "serve"}})
    world = FakeApi(TENANT, DEPLOYMENT, one)
    by_controller = {"userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller"}}
    for name in ("first", "second", "third"):
        pod = a_pod(name).asking(2).of_tier("gpu-training").labelled({"app": "serve"}).owned_by(one)
        assert tier(await world.mutate(pod, **by_controller)) == "gpu-training"
        assert (await world.create(pod, **by_controller)).allowed
    assert world.ledger.usage(world.known.tenants()[0])[world.known.tenants()[0].rows[0]] == 2


async def test_all_tries_of_a_name_share_its_slot() -> None:
    """Also after a try of another name, when as many are unseen as a StatefulSet makes at once."""
    owner = a_workload("apps/v1", "StatefulSet", replicas=2, template=a_pod().asking().template())
    world = FakeApi(TENANT, owner)
    by_controller = {"userInfo": {"username": "system:serviceaccount:kube-system:statefulset-controller"}}
    for number, name in enumerate(("web-0", "web-1", "web-1", "web-1")):
        if number == 3:
            there(world, "web-0")
        pod = world.sent(a_pod().asking(1).of_tier("gpu-training").owned_by(owner))
        pod["metadata"] |= {"name": name, "generateName": ""}
        patched = (await world.mutate(pod, **by_controller)).patched
        assert patched["spec"]["priorityClassName"] == "gpu-training"
        patched["metadata"]["uid"] = name if name == "web-0" else f"{name} {number}"
        assert (await world.validate(patched, **by_controller)).allowed


async def test_a_pod_alone_follows_nobody() -> None:
    world, looked_for = a_world(), list[dict[str, str]]()
    there(world, "stays")
    there(world, "leaves")
    ends(world, looked_for)
    alone = a_pod("alone").asking(1).of_tier("gpu-training").labelled({"app": "serve"})
    assert tier(await world.mutate(alone)) == "gpu-serving"
    assert not looked_for


async def test_neither_audit_nor_a_pod_with_room_asks_the_ledger_before() -> None:
    """Audit delays no create, and a pod that fits costs nothing more."""
    asked = list[Booking]()

    async def has_room(booking: Booking) -> bool:
        asked.append(booking)
        return False

    audits, roomy = a_world("Audit"), a_world()
    there(audits, "one")
    there(audits, "two")
    there(roomy, "one")
    for world in (audits, roomy):
        world.ledger.has_room = has_room  # type: ignore[method-assign]
        await world.mutate(next_pod())
    assert not asked
    there(roomy, "two")
    assert tier(await roomy.mutate(next_pod())) == "gpu-serving"
    assert [(each.workload, each.charges[0].tier) for each in asked] == [(OUTERMOST, "gpu-training")]


@pytest.mark.parametrize("total", [7, 9])
async def test_an_elastic_gang_that_runs_lower_lacks_only_what_the_total_lacks(total: int) -> None:
    rows = [{"tier": "gpu-training", "gpus": 4}, {"gpus": total}]
    world = FakeApi(a_tenant(quotas=rows, onExceed="Demote"))
    assert (await world.create(a_pod("first").asking(4).of_tier("gpu-training"))).allowed
    elastic = {"minReplicas": 2, "maxReplicas": 4}
    job = a_pytorchjob(a_pod().asking(1), workers=4).having("spec.elasticPolicy", elastic)
    said = (await world.create(job.of_tier("gpu-training"))).warnings
    assert any("run as gpu-batch" in each for each in said), said
    assert not any("gpu-training is at" in each for each in said), said
    assert any("the total is at 4 of 7" in each for each in said) == (total == 7), said


@pytest.mark.parametrize("on_exceed", ["Demote", "Deny"])
async def test_an_elastic_gang_whose_least_runs_is_not_told_that_none_of_its_pods_can_start(on_exceed: str) -> None:
    world = FakeApi(a_tenant(onExceed=on_exceed).allowing(4, tier="gpu-training").allowing(16))
    assert (await world.create(a_pod("first").asking(2).of_tier("gpu-training"))).allowed
    elastic = {"minReplicas": 2, "maxReplicas": 4}
    job = a_pytorchjob(a_pod().asking(1), workers=4).having("spec.elasticPolicy", elastic).of_tier("gpu-training")
    answer = await world.create(job)
    assert answer.allowed
    (said,) = (each for each in answer.warnings if "is at 2 of 4 GPUs" in each)
    assert "none" not in said
