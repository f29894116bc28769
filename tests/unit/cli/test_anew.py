"""A pod that gpu-tiers has marked, asked about again: it is judged by what its author wrote, and as things are now."""

import pytest

from tests.builders import a_job, a_pod, a_policy, a_tenant
from tests.builders.built import Built, Tree
from tests.builders.world import FakeApi
from webhook.cli.cluster.workloads import as_new
from webhook.policy.assignment.assigned_by import ASSIGNED_BY


async def marked(world: FakeApi, pod: Built) -> Tree:
    """The pod as it is stored and runs."""
    stored = world.stored((await world.mutate(pod)).patched)
    return {**stored, "spec": {**stored["spec"], "nodeName": "gpu-0"}, "status": {"phase": "Running"}}


async def assigned(world: FakeApi, pod: Tree) -> str:
    return str((await world.mutate(pod)).patched["metadata"]["annotations"][ASSIGNED_BY])


JOB = a_job(name="train").of_tier("gpu-training")
RULES = [{"match": {"labels": {"team": "vision"}}, "tier": "gpu-batch"}]


@pytest.mark.parametrize(
    ("pod", "line"),
    [
        (a_pod().asking().of_tier("gpu-batch"), "label: the label on the pod says gpu-batch"),
        (a_pod().asking().owned_by(JOB), "label: the label on Job/train says gpu-training"),
        (a_pod().asking().of_class("gpu-serving"), "class: priorityClassName is gpu-serving"),
        (a_pod().asking().labelled({"team": "vision"}), "rule: rules[0] of the policy says gpu-batch"),
        (a_pod().asking(), "policy-default: the policy's default"),
    ],
)
async def test_a_marked_pod_is_judged_as_its_author_wrote_it(pod: Built, line: str) -> None:
    world = FakeApi(JOB, policy=a_policy(rules=RULES))
    stored = await marked(world, pod)
    assert stored["metadata"]["annotations"][ASSIGNED_BY] == line
    assert await assigned(world, as_new(stored)) == line


async def test_a_policy_that_changed_gives_another_tier_than_the_pod_has() -> None:
    stored = await marked(FakeApi(), a_pod().asking())
    assert stored["spec"]["priorityClassName"] == "gpu-interactive"
    changed = FakeApi(policy=a_policy(defaultTier="gpu-batch"))
    assert (await changed.mutate(as_new(stored))).patched["spec"]["priorityClassName"] == "gpu-batch"


async def test_a_demoted_pod_is_judged_by_the_tier_that_it_asked_for() -> None:
    tenant = a_tenant(onExceed="Demote").allowing("0", tier="gpu-training").allowing("8")
    stored = await marked(FakeApi(tenant), a_pod().asking().of_tier("gpu-training"))
    assert stored["spec"]["priorityClassName"] == "gpu-batch"
    assert as_new(stored)["metadata"]["labels"]["gpu-tiers.dev/tier"] == "gpu-training"


@pytest.mark.parametrize("names_it", [True, False])
def test_a_node_that_its_author_named_is_named_again(names_it: bool) -> None:
    """The scheduler writes a node, too, and is no manager of that field."""
    fields = {"f:spec": {"f:containers": {}} | ({"f:nodeName": {}} if names_it else {})}
    stored = a_pod().asking().having("spec.nodeName", "gpu-0").having("metadata.managedFields", [{"fieldsV1": fields}])
    assert ("nodeName" in as_new(stored.json())["spec"]) is names_it


def test_nothing_of_the_api_server_and_the_scheduler_is_left() -> None:
    tree = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "1"}, "spec": {"nodeName": "b", "priority": 0}}
    assert as_new(tree) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "a-", "labels": {}, "annotations": {}},
        "spec": {},
    }
