"""Tolerations of the taint of reserved nodes: those of a pod's tier and of lower ones, whatever its author wrote."""

import pytest

from tests.builders import Tree, a_pod, a_policy, a_pytorchjob
from tests.builders.world import FakeApi
from webhook.policy.preemption.node_state import RESERVED

ON = {"preemption": {"dra": "On"}}


def borne(value: str) -> Tree:
    return {"key": RESERVED, "operator": "Equal", "value": value, "effect": "NoSchedule"}


async def tolerations(tier: str, *written: Tree, **policy: object) -> list[Tree]:
    """Those of our taint, in order; a second pass must leave them alone."""
    pod = a_pod().asking().of_tier(tier)
    api = FakeApi(policy=a_policy(**(policy or ON)))
    sent = api.sent(pod)
    sent["spec"]["tolerations"] += list(written)
    patched = (await api.mutate(sent)).patched
    assert (await api.mutate(patched)).patch == []
    found: list[Tree] = patched["spec"]["tolerations"]
    assert found[0]["key"] != RESERVED, "what the API server wrote stays in its place"
    return [each for each in found if each.get("key") in (RESERVED, None, "mine")]


@pytest.mark.parametrize(
    ("tier", "values"),
    [
        ("gpu-training", ["gpu-training", "gpu-serving", "gpu-batch"]),
        ("gpu-batch", ["gpu-batch"]),
        ("gpu-interactive", []),
    ],
)
async def test_a_pod_may_run_on_nodes_reserved_for_its_tier_or_a_lower_one(tier: str, values: list[str]) -> None:
    """No node is reserved for gpu-interactive, which evicts nobody."""
    assert await tolerations(tier) == [borne(each) for each in values]


@pytest.mark.parametrize(
    "written",
    [
        borne("gpu-training"),
        {"key": RESERVED, "operator": "Exists"},
        {"key": RESERVED, "value": "gpu-batch"},
        {"key": RESERVED, "operator": "Exists", "effect": "NoSchedule"},
    ],
)
async def test_what_the_author_wrote_of_it_is_taken_out(written: Tree) -> None:
    mine = {"key": "mine", "operator": "Exists"}
    assert await tolerations("gpu-batch", written, mine, written) == [mine, borne("gpu-batch")]


async def test_its_own_place_is_kept_by_one_that_is_due() -> None:
    mine = {"key": "mine", "operator": "Exists"}
    assert await tolerations("gpu-batch", borne("gpu-batch"), mine) == [borne("gpu-batch"), mine]


async def test_beside_those_of_the_tiers_placement() -> None:
    placement = {"gpu-batch": {"tolerations": [{"key": "mine", "operator": "Exists"}]}}
    found = await tolerations("gpu-batch", **ON, placement=placement)
    assert found == [borne("gpu-batch"), {"key": "mine", "operator": "Exists"}]


async def test_a_pod_without_tolerations() -> None:
    placement = {"gpu-batch": {"tolerations": [{"key": "mine", "operator": "Exists"}]}}
    pod = a_pod().asking().of_tier("gpu-batch").json()
    answer = await FakeApi(policy=a_policy(**ON, placement=placement)).mutate(pod)
    assert answer.patched["spec"]["tolerations"] == [borne("gpu-batch"), {"key": "mine", "operator": "Exists"}]


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ALL: Tree = {"operator": "Exists"}


def off(*tiers: str) -> Tree:
    return {"key": RESERVED, "operator": "NotIn", "values": list(tiers)}


async def affinity(tier: str, toleration: Tree, written: Tree | None = None, **policy: object) -> Tree:
    pod = a_pod().asking().of_tier(tier)
    api = FakeApi(policy=a_policy(**ON, **policy))
    sent = api.sent(pod)
    sent["spec"]["tolerations"] += [toleration]
    sent["spec"] |= {"affinity": written} if written is not None else {}
    patched = (await api.mutate(sent)).patched
    assert (await api.mutate(patched)).patch == []
    found: Tree = patched["spec"].get("affinity", {})
    return found


@pytest.mark.parametrize("toleration", [ALL, ALL | {"effect": "NoSchedule"}])
async def test_a_pod_that_tolerates_every_taint_keeps_off_nodes_of_higher_tiers(toleration: Tree) -> None:
    of_batch = {"matchExpressions": [off("gpu-training", "gpu-serving")]}
    assert await affinity("gpu-batch", toleration) == {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [of_batch]}}}
    assert await affinity("gpu-training", toleration) == {}, "no node is reserved for a higher one"
    assert await affinity("gpu-batch", {"key": "mine", "operator": "Exists"}) == {}
    assert await affinity("gpu-batch", ALL | {"effect": "NoExecute"}) == {}


async def test_what_its_author_wrote_of_nodes_holds_too() -> None:
    zone, name = {"key": "zone", "operator": "Exists"}, {"key": "metadata.name", "operator": "In", "values": ["a"]}
    terms = [{"matchExpressions": [zone]}, {"matchFields": [name]}, {}]
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": []}
    found = await affinity("gpu-batch", ALL, {"nodeAffinity": preferred | {REQUIRED: {"nodeSelectorTerms": terms}}})
    ours = off("gpu-training", "gpu-serving")
    assert found["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] == [
        {"matchExpressions": [zone, ours]},
        {"matchFields": [name], "matchExpressions": [ours]},
        {},
    ]
    whole = {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [ours]}]}}
    others: Tree = {"podAntiAffinity": preferred}
    assert await affinity("gpu-batch", ALL, others) == others | {"nodeAffinity": whole}
    assert await affinity("gpu-batch", ALL, {"nodeAffinity": preferred}) == {"nodeAffinity": preferred | whole}


async def test_beside_the_affinity_of_the_tiers_placement() -> None:
    pack = {"strategy": "Pack", "topologyKey": "topology.kubernetes.io/rack"}
    gang, name = a_pytorchjob(name="llm", workers=4), {"training.kubeflow.org/job-name": "llm"}
    worker = a_pod().asking().of_tier("gpu-batch").owned_by(gang).labelled(name).json()
    worker["spec"]["tolerations"] = [ALL]
    api = FakeApi(gang, policy=a_policy(**ON, placement={"gpu-batch": pack}))
    patched = (await api.mutate(worker)).patched
    assert (await api.mutate(patched)).patch == []
    assert patched["spec"]["affinity"].keys() == {"nodeAffinity", "podAffinity"}


@pytest.mark.parametrize("dra", ["Off", "Remove"])
async def test_no_pod_has_them_where_no_node_is_reserved(dra: str) -> None:
    assert await tolerations("gpu-training", preemption={"dra": dra}) == []
