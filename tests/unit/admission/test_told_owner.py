"""A dry run may tell of owners that nobody has created; a pod that is created for good may not."""

import json

import pytest

from tests.builders import a_deployment, a_job, a_pod, a_pytorchjob
from tests.builders.pods import PodBuilder
from tests.builders.world import World
from webhook.admission import review
from webhook.admission.told_owner import TOLD_OWNER
from webhook.policy.values.tier_policy import Mode

JOB = a_pytorchjob(name="ranker")


def told(text: str) -> PodBuilder:
    return a_pod().asking().owned_by(JOB).annotated({TOLD_OWNER: text})


async def test_in_a_dry_run_the_told_owner_counts() -> None:
    answer = await World().create(told(json.dumps([JOB.json()])), dryRun=True)
    assert answer.allowed
    assert answer.sent["spec"]["priorityClassName"] == "gpu-training"


async def test_a_pod_that_is_stored_needs_an_owner_that_is_there() -> None:
    answer = await World().create(told(json.dumps([JOB.json()])))
    assert answer.sentence.startswith("PyTorchJob/ranker is not among the objects given")


async def test_the_owner_s_own_owner_is_looked_up() -> None:
    parent = a_pytorchjob(name="parent").labelled({"gpu-tiers.dev/tier": "gpu-batch"})
    child = a_job(name="child").owned_by(parent)
    pod = a_pod().asking().owned_by(child).annotated({TOLD_OWNER: json.dumps([child.json()])})
    answer = await World(parent).create(pod, dryRun=True)
    assert answer.sent["spec"]["priorityClassName"] == "gpu-batch"


async def test_an_owner_and_its_owner_may_both_be_told() -> None:
    parent = a_pytorchjob(name="parent").labelled({"gpu-tiers.dev/tier": "gpu-batch"})
    child = a_job(name="child").owned_by(parent)
    pod = a_pod().asking().owned_by(child).annotated({TOLD_OWNER: json.dumps([child.json(), parent.json()])})
    answer = await World().create(pod, dryRun=True)
    assert answer.sent["spec"]["priorityClassName"] == "gpu-batch"


async def test_more_owners_than_any_pod_has_are_not_read() -> None:
    answer = await World().create(told(json.dumps([JOB.json()] * 9)), dryRun=True)
    assert "is not among the objects given" in answer.sentence


@pytest.mark.parametrize("other", [a_pytorchjob(name="another"), a_deployment(name="ranker")])
async def test_another_owner_than_the_pod_names_is_not_taken(other: object) -> None:
    text = json.dumps([other.json()])  # type: ignore[attr-defined]
    answer = await World().create(told(text.replace('"uid": "', '"uid": "x')), dryRun=True)
    assert "is not among the objects given" in answer.sentence


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "{}", "3", "[3]", "null", '[{"metadata": 3}]', "[" * 100_000, '[{"metadata": {"uid": {}}}]'],
)
async def test_what_is_no_object_is_no_owner(text: str) -> None:
    assert not (await World().validate(told(text), dryRun=True)).allowed


async def test_what_a_workload_tells_of_is_not_read() -> None:
    job = a_job(a_pod().asking()).annotated({TOLD_OWNER: "{"})
    assert (await World().validate(job, dryRun=True)).allowed


async def test_only_the_api_server_s_own_dry_run_counts() -> None:
    """A release of Kueue's that was refused is judged again in a dry run: of an object that is stored."""
    world = World()
    request = review.decode(world.body(told(json.dumps([JOB.json()])), dryRun=True))
    verdict = await world.webhooks.judge("validate", request, Mode.Enforce, world.policy)
    assert "is not among the objects given" in (verdict.refusal or "")
