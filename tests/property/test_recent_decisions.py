"""A pod gets the answer of a webhook that has seen no other pod, whoever of its workload came before it."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import Tree, a_job, a_pod, a_policy
from tests.builders.world import Answer, FakeApi
from tests.property.pods import OWNERS, pods
from tests.property.test_admission import POLICIES
from webhook.admission import reviewer
from webhook.objects.pods import Pod
from webhook.policy.decide import decide_pod
from webhook.policy.values.tier_policy import TierPolicy

INDEX = "batch.kubernetes.io/job-completion-index"
BY_INDEX = a_policy(rules=[{"match": {"labels": {INDEX: "1"}}, "tier": "gpu-serving"}])
TAKEN: list[Any] = [*POLICIES, BY_INDEX, a_policy(checkpoint={"training": {"kind": "listen", "path": "/data/hook"}})]
JOBS = [
    a_job(a_pod().running("torchrun", "train.py").asking(), name="sweep", completionMode="Indexed", **counts)
    for counts in ({"completions": 4, "parallelism": 4}, {"completions": 40, "parallelism": 4})
]
"""A gang of Indexed pods; shards, each a run by itself."""


def numbered(pod: Tree, number: int) -> Tree:
    """The pod as a controller sends it of so many: by a generated name, and with its index."""
    index = {INDEX: str(number)}
    metadata = {key: value for key, value in pod["metadata"].items() if key != "name"}
    metadata |= {name: (metadata.get(name) or {}) | index for name in ("labels", "annotations")}
    return {**pod, "metadata": {**metadata, "generateName": f"sweep-{number}-"}}


async def answers(pod: Tree, owners: list[Any], policy: TierPolicy) -> tuple[list[Answer], list[Answer]]:
    """Return both answers to the second pod of two: after a review of the first, and without one."""
    after, alone = FakeApi(*owners, policy=policy), FakeApi(*owners, policy=policy)
    given_to_first = await after.mutate(numbered(pod, 0))
    await after.validate(after.stored(given_to_first.patched), dryRun=True)
    found: list[list[Answer]] = []
    for world in (after, alone):
        mutated = await world.mutate(numbered(pod, 1))
        stored = {**mutated.patched, "metadata": mutated.patched["metadata"] | {"name": "sweep-1-x7k2p", "uid": "1"}}
        found.append([mutated, await world.validate(stored, dryRun=True)])
    return found[0], found[1]


@given(pods(), st.sampled_from(TAKEN))
def test_a_sibling_changes_no_answer(pod: Tree, policy: TierPolicy) -> None:
    after, alone = asyncio.run(answers(pod, [*OWNERS], policy))
    assert [each.response for each in after] == [each.response for each in alone]


@pytest.mark.parametrize("job", JOBS, ids=["gang", "shards"])
@pytest.mark.parametrize("policy", TAKEN, ids=range(len(TAKEN)))
def test_indexed_pods_are_distinguished_where_that_matters(job: Any, policy: TierPolicy) -> None:
    pod = a_pod().running("torchrun", "train.py").asking().owned_by(job)
    after, alone = asyncio.run(answers(FakeApi().sent(pod), [job], policy))
    assert [each.response for each in after] == [each.response for each in alone]


async def test_a_fact_that_changed_is_not_passed_over() -> None:
    job = JOBS[0]
    world = FakeApi(job)
    first = FakeApi().sent(a_pod().running("torchrun", "train.py").asking().owned_by(job))
    assert (await world.mutate(numbered(first, 0))).patched["spec"]["priorityClassName"] == "gpu-training"
    world.policy = a_policy(workloadTypes={"training": "gpu-batch"})
    assert (await world.mutate(numbered(first, 1))).patched["spec"]["priorityClassName"] == "gpu-batch"


async def test_the_pods_of_a_gang_are_decided_once(monkeypatch: pytest.MonkeyPatch) -> None:
    decided: list[Pod] = []
    monkeypatch.setattr(reviewer, "decide_pod", lambda pod, *rest: decided.append(pod) or decide_pod(pod, *rest))
    world = FakeApi(JOBS[0])
    sent = FakeApi().sent(a_pod().running("torchrun", "train.py").asking().owned_by(JOBS[0]))
    for number in range(4):
        await world.validate(world.stored((await world.mutate(numbered(sent, number))).patched))
    assert len(decided) == 2, "as it was sent, and as it was patched"
