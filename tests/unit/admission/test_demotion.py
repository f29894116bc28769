"""A pod is demoted only where a booking has no room at its own tier."""

import asyncio
from decimal import Decimal
from typing import Any

from tests.builders import a_deployment, a_pod, a_policy, a_replicaset, a_tenant
from tests.builders.pods import PodBuilder
from tests.builders.world import Answer, World
from webhook.ledger.protocol import Booking, Holding
from webhook.policy.quota.charges import Charge

DEPLOYMENT = a_deployment().having("spec.selector", {"matchLabels": {"app": "serve"}})
OWNER = a_replicaset().owned_by(DEPLOYMENT)
UID, OUTERMOST = (each.json()["metadata"]["uid"] for each in (OWNER, DEPLOYMENT))
TENANT = a_tenant(onExceed="Demote").allowing("2", tier="gpu-training").allowing("8")


def a_world(mode: str = "Enforce") -> World:
    return World(TENANT, DEPLOYMENT, OWNER, policy=a_policy(mode=mode))


def next_pod(name: str = "next") -> PodBuilder:
    return a_pod(name).asking(1).of_tier("gpu-training").labelled({"app": "serve"}).owned_by(OWNER)


def there(world: World, name: str, *, preempted: bool = False) -> None:
    """A training pod of the ReplicaSet that exists."""
    charge = Charge(Decimal(1), "gpu-training")
    world.ledger.observe(name, Holding("team-alpha", charge, 30.0, UID, preempted=preempted, name=name))


def tier(answer: Answer) -> str:
    return str(answer.patched["spec"]["priorityClassName"])


def ends(world: World, found: list[dict[str, str]]) -> None:
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
