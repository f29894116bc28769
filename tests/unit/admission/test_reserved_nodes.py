"""Tolerations of the taint of reserved nodes: those of a pod's tier and of lower ones, whatever its author wrote."""

import pytest

from tests.builders import Tree, a_pod, a_policy
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


@pytest.mark.parametrize("dra", ["Off", "Remove"])
async def test_no_pod_has_them_where_no_node_is_reserved(dra: str) -> None:
    assert await tolerations("gpu-training", preemption={"dra": dra}) == []
