"""The claims of a pod while some can't be read, and the times at which a pod has to be read again."""

from typing import Any, Self, cast

import pytest

from webhook.cluster.cluster import Lookups
from webhook.cluster.pod_informer import SeenPod
from webhook.controllers.claimed_devices import ClaimInformer, PodClaims
from webhook.controllers.pods_on_nodes import Claimed, ObservedPod
from webhook.objects.pods import PodClaim
from webhook.objects.refusal import Missing, Unreadable
from webhook.objects.view import view
from webhook.policy.workloads.workload import Devices

GPU = "gpu.nvidia.com"
TEMPLATE, MADE, SHARED = "ResourceClaimTemplate/gpus", "ResourceClaim/train-0-gpu-x7k2p", "ResourceClaim/pair"


class FakeClaims:
    """Claims and templates by what a person would call them: so many GPUs, or why they can't be read."""

    def __init__(self, **watched: int) -> None:
        self.there: dict[str, int | Unreadable] = {}
        self.watched = watched
        watch = cast("ClaimInformer", self.Watch(self))
        self.read = PodClaims(cast("Lookups", self), watch, lambda each: each.device_class == GPU)

    def fresh(self) -> Self:
        return self

    async def devices(self, _: str, claim: PodClaim) -> tuple[Devices, ...]:
        found = self.there.get(claim.source, Missing(f"{claim.source} does not exist"))
        if isinstance(found, Unreadable):
            raise found
        gpus = Devices(GPU, found, claim.name, "gpu", f"team-a/{claim.resource_claim_name}")
        return (gpus, *(Devices("cards", 1, claim.name, f"card-{number}") for number in range(255)))

    class Watch:
        def __init__(self, world: "FakeClaims") -> None:
            self.world = world

        def devices(self, key: str) -> tuple[Devices, ...] | None:
            count = self.world.watched.get(key.partition("/")[2])
            return None if count is None else (Devices(GPU, count, request="gpu"),)

        def problems(self) -> list[str]:
            return []


def a_pod(made: str | None = None, **source: str) -> SeenPod:
    tree = {
        "metadata": {"name": "train-0", "namespace": "team-a", "uid": "1"},
        "spec": {"containers": [{"name": "main"}], "resourceClaims": [{"name": "gpu", **source}]},
    }
    statuses = [{"name": "gpu", "resourceClaimName": made}]
    return view({**tree, "status": {"resourceClaimStatuses": statuses}} if made else tree, SeenPod)


OF_A_TEMPLATE: Any = {"resourceClaimTemplateName": "gpus"}
OF_A_CLAIM: Any = {"resourceClaimName": "pair"}


def counts(claimed: Claimed) -> list[int]:
    return [each.count for each in claimed.devices]


async def test_what_was_made_of_a_template_says_more_than_the_template() -> None:
    world = FakeClaims()
    world.there = {TEMPLATE: 1}
    assert counts(await world.read.of(a_pod(**OF_A_TEMPLATE))) == [1]
    world.there = {TEMPLATE: 8, MADE: 2}
    (devices,) = (await world.read.of(a_pod("train-0-gpu-x7k2p", **OF_A_TEMPLATE))).devices
    assert (devices.count, devices.entry, devices.claim) == (2, "gpu", ""), "it is the pod's own"


async def test_the_watch_is_asked_before_the_api_server() -> None:
    world = FakeClaims(pair=5)
    (devices,) = (await world.read.of(a_pod(**OF_A_CLAIM))).devices
    assert (devices.count, devices.claim) == (5, "team-a/pair")


@pytest.mark.parametrize("problem", [Missing("gone"), Unreadable("no answer")])
async def test_what_was_known_stands_while_it_cannot_be_read(problem: Unreadable) -> None:
    world = FakeClaims()
    world.there = {SHARED: 4}
    await world.read.of(a_pod(**OF_A_CLAIM))
    world.there = {SHARED: problem}
    claimed = await world.read.of(a_pod(**OF_A_CLAIM))
    assert (counts(claimed), claimed.unread) == ([4], False)
    world.read.pod_changed("1", None)
    assert (await world.read.of(a_pod(**OF_A_CLAIM))).unread


async def test_what_was_never_known_is_distinguished() -> None:
    """A claim that can't be read is tried again; one that does not exist uses nothing, and its making is an event."""
    world = FakeClaims()
    for problem, passing in ((Unreadable("no answer"), True), (Missing("gone"), False)):
        world.there = {SHARED: problem}
        claimed = await world.read.of(a_pod(**OF_A_CLAIM))
        assert (claimed.devices, claimed.unread, claimed.passing) == ((), True, passing)
        assert list(claimed.claims) == ["team-a/pair"]


async def test_a_claim_that_changes_while_its_pod_is_read_is_noticed() -> None:
    world = FakeClaims(pair=1)
    claimed = await world.read.of(a_pod(**OF_A_CLAIM))
    assert world.read.is_current(claimed)
    world.watched["pair"] = 5
    assert not world.read.is_current(claimed)
    del world.watched["pair"]
    assert world.read.is_current(claimed), "the watch may lag, and the end of a claim changes nothing"


def claimant(*claims: str, **state: bool) -> ObservedPod:
    return ObservedPod("team-a", "train", Claimed(claims=dict.fromkeys(claims, ()), **state))


async def test_pods_are_read_again_when_a_claim_of_theirs_changes() -> None:
    pods = FakeClaims().read
    for uid, claim in (("1", "team-a/pair"), ("2", "team-a/pair"), ("3", "team-a/other")):
        pods.pod_changed(uid, claimant(claim))
    pods.pod_changed("4", ObservedPod("team-a", "train"))
    pods.pod_changed("2", None)
    pods.claim_changed("team-a/pair")
    pods.read_again("4")
    assert [*await pods.due()] == ["1"], "a pod without claims is not kept"


async def test_pods_whose_claims_cannot_be_read_are_reported_and_tried_again() -> None:
    pods = FakeClaims().read
    missing, failing = claimant("team-a/a", unread=True), claimant("team-a/b", unread=True, passing=True)
    pods.pods_listed({"1": missing, "2": failing})
    assert pods.problems() == ["the resource claims of 1 pod can't be read"]
    pods.read_again("1")
    assert {*await pods.due()} == {"1", "2"}
    pods.pod_changed("2", claimant("team-a/b"))
    assert pods.problems() == []
