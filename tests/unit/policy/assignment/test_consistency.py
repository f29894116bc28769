"""The agreement that a stored pod must show: its tier label with its class, and the live class with the policy."""

import pytest

from tests.builders import PodBuilder, a_job, a_pod, a_policy, a_tier_request
from tests.builders.words import sentence, told
from webhook.objects.refusal import Refused
from webhook.policy.assignment.consistency import drift
from webhook.policy.decide import assignment_of
from webhook.policy.values.tiers import PriorityClass, live_class

BATCH = a_pod().of_class("gpu-batch")
FIXED = "a pod's tier is fixed when it is created. `gpu-tiers explain {}` says how new pods get another tier"
LABEL = "metadata.labels[gpu-tiers.dev/tier]"

DRIFTS: list[tuple[PodBuilder, PodBuilder, str | None]] = [
    (BATCH.of_tier("gpu-batch"), BATCH.of_tier("gpu-batch"), None),
    (
        BATCH.of_tier("gpu-batch"),
        BATCH.of_tier("gpu-training"),
        f"{LABEL}: gpu-training, but this pod runs as gpu-batch; {FIXED}",
    ),
    (BATCH.of_tier("gpu-batch"), BATCH, f"{LABEL}: absent, but this pod runs as gpu-batch; {FIXED}"),
    (a_pod(), a_pod().of_tier("gpu-batch"), f"{LABEL}: gpu-batch, but this pod runs without a tier; {FIXED}"),
    (
        BATCH.of_tier("gpu-batch").owned_by(a_job()),
        BATCH.of_tier("gpu-training").owned_by(a_job()),
        f"{LABEL}: gpu-training, but this pod runs as gpu-batch; {FIXED}",
    ),
    (BATCH, BATCH.of_tier("gpu-batch"), None),
    (BATCH.of_tier("wrong"), BATCH.of_tier("gpu-batch"), None),
    (BATCH.of_tier("wrong"), BATCH.of_tier("wrong").labelled({"app": "x"}), None),
    (a_pod().of_tier("wrong"), a_pod(), None),
    (
        BATCH.of_tier("gpu-batch"),
        BATCH.of_tier("gpu-training").having("metadata.deletionTimestamp", "2026-11-21T00:00:00Z"),
        None,
    ),
]


@pytest.mark.parametrize(("old", "new", "refusal"), DRIFTS)
def test_a_tier_label_may_only_come_to_say_the_truth(old: PodBuilder, new: PodBuilder, refusal: str | None) -> None:
    found = drift(old.view(), new.view(), a_policy())
    assert (sentence(found) if found else None) == (refusal and refusal.format(old.view().metadata.name))


def pod() -> PodBuilder:
    return a_pod().asking()


GPU_BATCH = "PriorityClass/gpu-batch"
UNLIKE = "for tier gpu-batch; your platform team has to bring the two together"

CHANGED = {
    "deleted": (
        None,
        f"{GPU_BATCH} of tier gpu-batch does not exist; your platform team restores it with helm upgrade",
    ),
    "another value": (
        PriorityClass("gpu-batch", 401),
        f"{GPU_BATCH} has value 401, but the policy says 400 {UNLIKE}",
    ),
    "another preemption policy": (
        PriorityClass("gpu-batch", 400, "Never"),
        f"{GPU_BATCH} has preemptionPolicy Never, but the policy says PreemptLowerPriority {UNLIKE}",
    ),
}


@pytest.mark.parametrize(("changed", "sentence"), CHANGED.values(), ids=CHANGED)
def test_a_class_that_was_changed_behind_our_back_gives_no_tier(changed: PriorityClass | None, sentence: str) -> None:
    request = a_tier_request(pod().of_tier("gpu-batch"))
    classes = {name: live for name, live in request.facts.classes.items() if name != "gpu-batch"}
    if changed is not None:
        classes["gpu-batch"] = changed
    tier = assignment_of(request).tier
    assert tier
    with pytest.raises(Refused) as refused:
        live_class(tier, classes, adoption=False)
    assert told(refused.value) == sentence
