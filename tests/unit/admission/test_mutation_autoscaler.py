"""What a tier tells autoscalers, as annotations of its pods; what an author wrote stays."""

import pytest

from tests.builders import PodBuilder, WorkloadBuilder, a_pod, a_policy, a_replicaset, a_tenant, a_workload
from tests.builders.world import FakeApi
from webhook.policy.placement import CLUSTER_AUTOSCALER, KARPENTER

POD = a_pod().asking().of_tier("gpu-training")
OWNER = a_replicaset()
PROTECTED = {KARPENTER: "true", CLUSTER_AUTOSCALER: "false"}


async def told(
    pod: PodBuilder, *owners: WorkloadBuilder, wants: str = "Protect", tier: str = "gpu-training"
) -> dict[str, str]:
    """The annotations for autoscalers after the patch; a second pass must leave the pod alone."""
    world = FakeApi(*owners, policy=a_policy(autoscaler={tier: wants}))
    patched = (await world.mutate(pod)).patched
    assert (await world.mutate(patched)).patch == []
    assert (await world.validate(world.stored(patched))).allowed
    notes = patched["metadata"].get("annotations") or {}
    return {key: notes[key] for key in PROTECTED if key in notes}


async def said(pod: PodBuilder, *owners: WorkloadBuilder, wants: str = "Protect") -> str:
    """What a person reads about it, which a second pass leaves as it is."""
    world = FakeApi(*owners, policy=a_policy(autoscaler={"gpu-training": wants}))
    await world.mutate((await world.mutate(pod)).patched)
    (found,) = {verdict.autoscaler for _, _, verdict, _ in world.records}
    return found


async def test_a_protected_pod_keeps_its_node_from_both_autoscalers() -> None:
    assert await told(POD) == PROTECTED
    assert await told(POD.owned_by(OWNER), OWNER) == PROTECTED


async def test_only_karpenter_knows_an_end_of_the_protection() -> None:
    assert await told(POD, wants="24h") == {KARPENTER: "24h", CLUSTER_AUTOSCALER: "false"}


async def test_karpenter_needs_no_word_that_allows_it() -> None:
    assert await told(POD.owned_by(OWNER), OWNER, wants="Allow") == {CLUSTER_AUTOSCALER: "true"}


async def test_a_pod_that_nobody_would_create_again_is_not_allowed_to_go() -> None:
    assert await told(POD, wants="Allow") == {}
    assert await said(POD, wants="Allow") == (
        "Allow changes nothing: the pod has no controller that would create it again"
    )


async def test_a_tier_of_which_the_policy_says_nothing_tells_nothing() -> None:
    assert await told(POD, tier="gpu-batch") == {}


async def test_a_pod_that_gets_no_tier_tells_nothing() -> None:
    tiers = ("gpu-training", "gpu-serving", "gpu-batch", "gpu-interactive")
    world = FakeApi(policy=a_policy(autoscaler=dict.fromkeys(tiers, "Protect")))
    assert (await world.mutate(a_pod())).patch == [], "no GPU"
    outside = a_pod().asking().having("spec.priorityClassName", "house")
    notes = (await world.mutate(outside)).patched["metadata"]["annotations"]
    assert notes.keys().isdisjoint(PROTECTED), "a class outside the tiers"


async def test_a_daemonset_would_keep_every_node() -> None:
    daemons = a_workload("apps/v1", "DaemonSet", template=POD.template())
    assert await told(POD.owned_by(daemons), daemons) == {}
    assert (
        await said(POD.owned_by(daemons), daemons) == "Protect changes nothing: a pod of a DaemonSet ends with its node"
    )


async def test_a_demoted_pod_tells_what_its_lower_tier_does() -> None:
    full = a_tenant(onExceed="Demote").allowing("0", tier="gpu-training")
    world = FakeApi(full, policy=a_policy(autoscaler={"gpu-training": "Protect"}))
    patched = (await world.mutate(POD)).patched
    assert patched["spec"]["priorityClassName"] == "gpu-batch"
    assert patched["metadata"]["annotations"].keys().isdisjoint(PROTECTED)


@pytest.mark.parametrize("wants", ["Protect", "24h", "Allow"])
@pytest.mark.parametrize("theirs", [{KARPENTER: "false"}, {CLUSTER_AUTOSCALER: "true"}, {CLUSTER_AUTOSCALER: ""}])
async def test_what_an_author_wrote_stays(wants: str, theirs: dict[str, str]) -> None:
    of_both = await told(POD.annotated(theirs).owned_by(OWNER), OWNER, wants=wants)
    assert theirs.items() <= of_both.items()


async def test_each_annotation_of_an_author_stays_by_itself() -> None:
    pod = POD.annotated({CLUSTER_AUTOSCALER: "true"})
    assert await told(pod) == {KARPENTER: "true", CLUSTER_AUTOSCALER: "true"}
    assert await said(pod) == f"Protect: {KARPENTER}=true; the pod's own {CLUSTER_AUTOSCALER}=true stays"
    assert await said(pod.annotated({KARPENTER: "no"})) == (
        f"Protect: adds nothing; the pod's own {KARPENTER}=no stays; the pod's own {CLUSTER_AUTOSCALER}=true stays"
    )
