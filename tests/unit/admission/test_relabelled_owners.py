"""The owner's current label counts; validation reads it again only if the mutating call saw another."""

from collections import Counter
from typing import Self, cast

from msgspec import structs

from tests.builders import WorkloadBuilder, a_deployment, a_pod
from tests.builders.world import FakeApi
from webhook.cluster.cluster import Cluster
from webhook.cluster.offline import Files, ManifestStore
from webhook.objects.pods import OwnerReference
from webhook.policy.workloads.kind_table import KindTable
from webhook.policy.workloads.workload import Workload


class Labelled(Files):
    """An owner, as it was when it was read; `kept` is what this replica has read a moment before."""

    def __init__(self, owner: WorkloadBuilder, cached: "Labelled | None" = None) -> None:
        super().__init__(ManifestStore(()))
        self.owner = owner
        self.cached = cached or self
        self.reads = Counter[str]()

    def with_cached_owners(self) -> Self:
        return cast("Self", self.cached)

    async def owners(self, _namespace: str, first: OwnerReference, _kinds: KindTable, /) -> tuple[Workload, ...]:
        self.reads[first.name] += 1
        return (self.owner.view(),)


OWNER = a_deployment(name="chat")
POD = a_pod().asking().owned_by(OWNER)


def a_world(cached: str, now: str) -> tuple[FakeApi, Labelled]:
    world, at_once = FakeApi(OWNER), Labelled(OWNER.of_tier(now), Labelled(OWNER.of_tier(cached)))
    world.webhooks = structs.replace(world.webhooks, cluster=Cluster(world.known, at_once))
    return world, at_once


async def test_a_pod_that_comes_after_the_label_gets_the_new_tier_whatever_is_cached() -> None:
    world, at_once = a_world(cached="gpu-batch", now="gpu-serving")
    patched = (await world.mutate(POD)).patched
    assert patched["spec"]["priorityClassName"] == "gpu-serving"
    answer = await world.validate(world.stored(patched))
    assert (answer.allowed, answer.audit["tier"]) == (True, "gpu-serving")
    assert at_once.reads["chat"] == 2


async def test_what_the_mutating_call_has_read_is_not_read_again() -> None:
    world, at_once = a_world(cached="gpu-serving", now="gpu-serving")
    patched = (await world.mutate(POD)).patched
    assert (await world.validate(world.stored(patched))).allowed
    assert at_once.reads["chat"] == 1


async def test_a_pod_that_was_not_patched_is_judged_by_what_its_owner_says_now() -> None:
    world, at_once = a_world(cached="gpu-batch", now="gpu-serving")
    answer = await world.validate(world.stored(POD.of_tier("gpu-batch").of_class("gpu-batch")))
    assert at_once.reads["chat"] == 1
    assert answer.allowed, "its own label comes first"
