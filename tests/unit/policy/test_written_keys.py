"""The keys that gpu-tiers writes: what an author wrote stays, and what is missing is added."""

import pytest

from tests.builders import a_pod, a_policy, a_replicaset, a_tenant
from tests.builders.world import FakeApi
from webhook.policy.assignment.kueue import PRIORITY_CLASS, QUEUE_CLASS
from webhook.policy.assignment.request import TIER_LABEL
from webhook.policy.metadata_keys import LABELS, MARKS, WRITTEN, due
from webhook.policy.placement import VOLCANO_QUEUE

SCHEDULING = {
    "gpu-training": {"schedulerName": "volcano", "queue": {"system": "Volcano", "name": "training"}},
    "gpu-batch": {"schedulerName": "kai-scheduler", "queue": {"system": "KAI", "name": "night"}},
}
POLICY = a_policy(kueue={"workloadPriorityClasses": True}, scheduling=SCHEDULING)
FULL = a_tenant(onExceed="Demote", allowedTiers=["gpu-training", "gpu-batch"]).allowing("0", tier="gpu-training")
QUEUED = {"kueue.x-k8s.io/queue-name": "research"}


@pytest.mark.parametrize("key", sorted(WRITTEN))
async def test_a_label_that_is_there_stays(key: str) -> None:
    """Also one with the name of an annotation of ours; the pod is demoted, so that each would get another value."""
    value = "gpu-training" if key in {TIER_LABEL, PRIORITY_CLASS} else "theirs"
    owner = a_replicaset().having("spec.selector", {"matchLabels": {key: value}})
    pod = a_pod().asking().running("torchrun").labelled({**QUEUED, key: value}).owned_by(owner)
    world = FakeApi(owner, FULL, policy=POLICY)
    patched = (await world.mutate(pod)).patched
    assert patched["spec"]["priorityClassName"] == "gpu-batch"
    assert patched["metadata"]["labels"][key] == value
    assert (await world.create(pod)).allowed


async def test_a_label_that_is_absent_is_added() -> None:
    pod = a_pod().asking().running("torchrun").labelled(QUEUED)
    labels = (await FakeApi(FULL, policy=POLICY).mutate(pod)).patched["metadata"]["labels"]
    assert {key: labels[key] for key in LABELS} == {
        TIER_LABEL: "gpu-batch",
        PRIORITY_CLASS: "gpu-batch",
        "kai.scheduler/queue": "night",
        "kai.scheduler/preemptibility": "preemptible",
    }


async def test_an_annotation_of_others_stays_and_a_mark_tells_of_this_pod() -> None:
    copied = {VOLCANO_QUEUE: "theirs", **dict.fromkeys(MARKS, "of another pod")}
    pod = a_pod().asking().running("torchrun").annotated(copied)
    notes = (await FakeApi(policy=POLICY).mutate(pod)).patched["metadata"]["annotations"]
    assert notes[VOLCANO_QUEUE] == "theirs"
    assert notes["gpu-tiers.dev/assigned-by"].startswith("workload-type: training")
    assert (notes["gpu-tiers.dev/gang"], notes["gpu-tiers.dev/claimed"]) == ("", "")


@pytest.mark.parametrize("operator", ["DoesNotExist", "NotIn"])
async def test_no_label_is_added_by_which_a_controller_selects(operator: str) -> None:
    lines = [{"key": key, "operator": operator} for key in LABELS]
    owner = a_replicaset().having("spec.selector", {"matchExpressions": lines})
    pod = a_pod().asking().running("torchrun").labelled(QUEUED).owned_by(owner)
    world = FakeApi(owner, FULL, policy=POLICY)
    patched = (await world.mutate(pod)).patched
    assert patched["spec"]["priorityClassName"] == "gpu-batch"
    assert patched["metadata"]["labels"].keys().isdisjoint(LABELS)
    assert (await world.create(pod)).allowed


async def test_a_copied_mark_makes_no_selected_label_ours() -> None:
    """Such as a Deployment that was exported with its marks, and got commonLabels then."""
    owner = a_replicaset().having("spec.selector", {"matchLabels": {PRIORITY_CLASS: "gpu-training"}})
    marked = a_pod().asking().running("torchrun").labelled({**QUEUED, PRIORITY_CLASS: "gpu-training"})
    pod = marked.annotated({QUEUE_CLASS: "gpu-training"}).owned_by(owner)
    patched = (await FakeApi(owner, FULL, policy=POLICY).mutate(pod)).patched
    assert patched["metadata"]["labels"][PRIORITY_CLASS] == "gpu-training"


@pytest.mark.parametrize(
    "selector",
    [{"matchLabels": None}, {"matchLabels": 5}, {"matchExpressions": [None, {"key": 1}]}, {"matchExpressions": 1}, "x"],
)
async def test_a_selector_that_is_none_brings_nothing_down(selector: object) -> None:
    owner = a_replicaset().having("spec.selector", selector)
    pod = a_pod().asking().owned_by(owner)
    assert TIER_LABEL in (await FakeApi(owner).mutate(pod)).patched["metadata"]["labels"]


def test_a_key_that_the_list_lacks_is_our_own_mistake() -> None:
    with pytest.raises(LookupError, match=r"not in the list of written keys: example.com/new"):
        due({}, {"example.com/new": "x"})
