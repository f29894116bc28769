"""Pods that get their GPUs by resource claims: the hook, and a claim that several pods share, which counts once."""

from collections.abc import Sequence

import pytest

from tests.builders import (
    NICS,
    PodBuilder,
    Tree,
    a_claim,
    a_claim_template,
    a_claiming_pod,
    a_pod,
    a_podgroup,
    a_pytorchjob,
    a_tenant,
)
from tests.builders.built import Built
from tests.builders.counted_ledger import RESERVATION_SECONDS, CountedLedger
from tests.builders.world import FakeApi
from webhook.cluster.offline import Files
from webhook.ledger.protocol import Booking
from webhook.objects.pods import Metadata

ALPHA = a_tenant().allowing("6").allowing("4", tier="gpu-training")
JOB = a_pytorchjob()


def sharing(tier: str = "gpu-training") -> PodBuilder:
    return a_claiming_pod(claim="gpus").of_tier(tier)


def by_name(gpus: int = 1, tier: str = "gpu-training") -> PodBuilder:
    return a_pod().asking(gpus).of_tier(tier)


async def hooked(pod: PodBuilder, world: FakeApi) -> list[str]:
    """The names of the containers that got the hook."""
    spec = (await world.create(pod)).sent["spec"]
    return [each["name"] for each in spec["containers"] if (each.get("lifecycle") or {}).get("preStop")]


async def test_a_training_container_with_a_claim_gets_the_hook() -> None:
    world = FakeApi(JOB, a_claim_template())
    by_a_claim = (await world.mutate(a_claiming_pod().owned_by(JOB))).patched["spec"]
    named = (await world.mutate(a_pod().asking().owned_by(JOB))).patched["spec"]
    hooks = [spec["containers"][0]["lifecycle"] for spec in (by_a_claim, named)]
    assert hooks[0] == hooks[1]
    assert by_a_claim["terminationGracePeriodSeconds"] == named["terminationGracePeriodSeconds"] == 130


async def test_only_the_container_that_names_the_claim_gets_it() -> None:
    pod = a_claiming_pod(name="train").running("tail", "-f", "log", name="log").owned_by(JOB)
    assert await hooked(pod, FakeApi(JOB, a_claim_template())) == ["train"]


async def test_a_claim_that_no_container_names_gives_nobody_a_gpu() -> None:
    answer = await FakeApi(a_claim_template()).create(a_claiming_pod(resources={}).annotated({HOOK: "file"}))
    assert "[hook-ignored] no file hook: no app container names the pod's GPU claim under resources.claims" in (
        answer.warnings
    )


async def test_only_the_request_that_brings_gpus_counts() -> None:
    requests = [
        {"name": "nic", "exactly": {"deviceClassName": "nic.example.com"}},
        {"name": "any", "firstAvailable": [{"name": "one", "deviceClassName": "gpu.nvidia.com"}]},
    ]
    template = a_claim_template().json()
    template["spec"]["spec"]["devices"]["requests"] = requests
    pod = a_claiming_pod(name="train", resources=uses("any")).having("spec.containers", [a_card_s_user()]).owned_by(JOB)
    assert await hooked(pod, FakeApi(JOB, NICS, type(a_claim_template())(template))) == ["train"]


HOOK = "gpu-tiers.dev/checkpoint"


def uses(request: str) -> Tree:
    return {"claims": [{"name": "gpu", "request": request}]}


def a_card_s_user() -> Tree:
    return {"name": "proxy", "image": "registry.example/proxy:1", "resources": uses("nic")}


async def test_pods_that_share_a_claim_are_charged_for_it_once() -> None:
    world = FakeApi(ALPHA, a_claim(count=4))
    assert [(await world.create(sharing())).allowed for _ in range(3)] == [True] * 3
    assert (await world.create(by_name())).sentence.startswith("exceeded quota: tenant alpha: gpu-training is at 4")


async def test_each_pod_of_a_template_has_a_claim_of_its_own() -> None:
    world = FakeApi(ALPHA, a_claim_template(count=2))
    pod = a_claiming_pod().of_tier("gpu-training")
    assert [(await world.create(pod)).allowed for _ in range(3)] == [True, True, False]


async def test_what_a_pod_holds_beside_a_shared_claim_is_its_own() -> None:
    world = FakeApi(ALPHA, a_claim(count=2))
    pod = sharing().asking(1, name="own")
    assert [(await world.create(pod)).allowed for _ in range(3)] == [True, True, False]


async def test_a_claim_counts_in_each_tier_in_which_a_pod_holds_it() -> None:
    """The total counts it once: it is the same four GPUs."""
    world = FakeApi(ALPHA, a_claim(count=4))
    for tier in ("gpu-batch", "gpu-training"):
        assert (await world.create(sharing(tier))).allowed
    assert "gpu-training is at 4 of 4 GPUs" in (await world.create(by_name())).sentence
    assert "the total is at 4 of 6 GPUs" in (await world.create(by_name(3, "gpu-batch"))).sentence
    assert (await world.create(by_name(2, "gpu-batch"))).allowed


async def test_a_claim_is_free_when_its_last_pod_is_gone() -> None:
    world = FakeApi(ALPHA, a_claim(count=4))
    uids = [world.stored((await world.mutate(sharing())).patched) for _ in range(2)]
    for pod in uids:
        assert (await world.validate(pod)).allowed
    for pod, free in zip(uids, (False, True), strict=True):
        world.ledger.release(pod["metadata"]["uid"])
        assert (await world.create(by_name(4), dryRun=True)).allowed is free


async def test_a_claim_whose_pods_never_came_lapses() -> None:
    world = FakeApi(ALPHA, a_claim(count=4))
    await world.create(sharing())
    world.now += RESERVATION_SECONDS / 2
    await world.create(sharing())
    world.now += RESERVATION_SECONDS / 2
    assert not (await world.create(by_name(), dryRun=True)).allowed
    world.now += RESERVATION_SECONDS / 2
    assert (await world.create(by_name(4))).allowed


async def test_a_pod_that_names_a_claim_twice_holds_it_once() -> None:
    pod = sharing().having("spec.resourceClaims", [{"name": "again", "resourceClaimName": "gpus"}])
    assert (await FakeApi(ALPHA, a_claim(count=4)).create(pod)).allowed


async def test_a_pod_is_not_demoted_for_a_claim_that_is_in_use_already() -> None:
    tenant = a_tenant(onExceed="Demote").allowing("4", tier="gpu-training")
    world = FakeApi(tenant, a_claim(count=4), JOB)
    first, second = [await world.create(a_claiming_pod(claim="gpus").owned_by(JOB)) for _ in range(2)]
    assert first.sent["spec"]["priorityClassName"] == second.sent["spec"]["priorityClassName"] == "gpu-training"
    third = await world.create(a_pod().asking().owned_by(JOB))
    assert third.sent["spec"]["priorityClassName"] != "gpu-training"


async def test_claims_of_one_name_in_two_namespaces_are_two() -> None:
    tenant = a_tenant(namespaceSelector={}).allowing("4")
    claims = [a_claim(count=3).having("metadata.namespace", namespace) for namespace in ("team-alpha", "team-beta")]
    world = FakeApi(tenant, *claims)
    assert (await world.create(sharing())).allowed
    answer = await world.create(sharing().having("metadata.namespace", "team-beta"))
    assert "the total is at 3 of 4 GPUs; this pod asks for 3." in answer.sentence


async def test_a_pod_is_admitted_with_what_its_claims_ask_for_and_keeps_that() -> None:
    world = FakeApi(ALPHA, a_claim(count=2))
    pod = sharing().annotated({CLAIMED: "gpu=9"})
    made = world.stored((await world.mutate(pod)).patched)
    assert made["metadata"]["annotations"][CLAIMED] == "gpu=2"
    assert (await world.validate(made)).allowed
    for forged in ("gpu=9", "gpu=1", ""):
        changed = {**made, "metadata": made["metadata"] | {"annotations": {CLAIMED: forged}}}
        assert f"metadata.annotations[{CLAIMED}]" in (await world.validate(changed)).sentence
        assert "but it was gpu=2" in (await world.update(made, changed)).sentence


async def test_a_claim_that_is_made_again_while_the_booking_waits_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    world, book = FakeApi(ALPHA, a_claim(count=1)), CountedLedger.book

    async def made_again(ledger: CountedLedger, booking: Booking, **options: bool) -> object:
        answer = await book(ledger, booking, **options)
        monkeypatch.setattr(Files, "devices", FakeApi(a_claim(count=4)).cluster.lookups.devices)
        return answer

    monkeypatch.setattr(CountedLedger, "book", made_again)
    assert f"metadata.annotations[{CLAIMED}] is gpu=1, not gpu=4" in (await world.create(sharing())).sentence


@pytest.mark.parametrize(
    ("author", "looked_for"),
    [("mallory", "gpus-x7k2p"), ("system:serviceaccount:kube-system:resource-claim-controller", "")],
    ids=["a person", "the controller"],
)
async def test_whose_pods_wait_for_a_claim_with_a_generated_name(
    monkeypatch: pytest.MonkeyPatch, author: str, looked_for: str
) -> None:
    """A pod may have named a claim that is gone, whose name a person has generated again."""
    names = list[str]()

    async def claimants(_: Files, namespace: str, claim: Metadata) -> Sequence[tuple[Metadata, str]]:  # noqa: ARG001
        names.append(claim.name)
        return ()

    monkeypatch.setattr(Files, "claimants", claimants)
    world, claim = FakeApi(ALPHA), a_claim(count=1).json()
    claim["metadata"] = {"namespace": "team-alpha", "generateName": "gpus-"}
    made = world.stored(claim)
    assert (await world.validate(made, name="", userInfo={"username": author, "groups": []})).allowed
    assert names == [looked_for]


async def test_a_pod_whose_claims_count_nothing_says_nothing_of_them() -> None:
    other = a_claim(deviceClassName="nic.example.com")
    forged = a_claiming_pod(claim="gpus").annotated({CLAIMED: "gpu=9"})
    assert (
        f"metadata.annotations[{CLAIMED}] is gpu=9, not absent" in (await FakeApi(NICS, other).create(forged)).sentence
    )
    assert (await FakeApi(NICS, other).create(a_claiming_pod(claim="gpus"))).allowed


CLAIMED = "gpu-tiers.dev/claimed"


GROUP = a_podgroup().of_class("gpu-training").having("spec.priority", 1000)


def a_group_with(**source: str) -> Built:
    return GROUP.having("spec.resourceClaims", [{"name": "gpu", **source}])


@pytest.mark.parametrize("source", [{"resourceClaimTemplateName": "gpus"}, {"resourceClaimName": "gpus"}], ids=str)
async def test_gpus_of_a_claim_that_a_podgroup_has_for_its_pods_are_refused(source: dict[str, str]) -> None:
    """The claim may be of a template that had eight when the group was made, and it outlives the pod."""
    world = FakeApi(ALPHA, a_group_with(**source), a_claim_template(), a_claim())
    pod = a_claiming_pod(claim=source.get("resourceClaimName")).in_group("gang")
    answer = await world.validate(world.stored(pod))
    assert answer.sentence == (
        'spec.resourceClaims[0].name: "gpu" is the claim of PodGroup gang. Such a claim may have more GPUs than '
        "its template names now, and keeps them without a pod; write a name that is not in the group's "
        "spec.resourceClaims"
    )


@pytest.mark.parametrize(
    "group", [GROUP, a_group_with(resourceClaimTemplateName="other"), a_group_with(resourceClaimName="gpus")], ids=str
)
async def test_a_pod_of_a_group_has_claims_of_its_own_unless_the_entries_are_equal(group: Built) -> None:
    assert (await FakeApi(ALPHA, group, a_claim_template()).create(a_claiming_pod().in_group("gang"))).allowed


async def test_a_claim_of_a_group_without_gpus_or_without_a_quota_of_ours_is_none_of_our_business() -> None:
    group = a_group_with(resourceClaimTemplateName="gpus")
    nics = FakeApi(NICS, ALPHA, group, a_claim_template(deviceClassName="nic.example.com"))
    assert (await nics.create(a_claiming_pod().in_group("gang"))).allowed
    elsewhere = FakeApi(a_tenant(quotaAuthority="Kueue"), group, a_claim_template())
    assert (await elsewhere.create(a_claiming_pod().in_group("gang"))).allowed


async def test_no_podgroup_gets_a_claim_with_gpus() -> None:
    """Its template may be swapped, and it, or the group, made again, once a pod was admitted."""
    owner = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "name": "gang", "uid": "g"}
    claim = a_claim(count=8).having("metadata.ownerReferences", [{**owner, "controller": True}])
    answer = await FakeApi(ALPHA).validate(claim)
    assert answer.sentence == (
        "metadata.ownerReferences: PodGroup gang would keep 8 GPUs that no pod is charged for; give each pod a claim "
        "of its own, under a name that is not in the group's spec.resourceClaims"
    )
    assert (await FakeApi(ALPHA).validate(a_claim(count=8).having("metadata.ownerReferences", [owner]))).allowed
    assert (await FakeApi().validate(claim)).allowed
