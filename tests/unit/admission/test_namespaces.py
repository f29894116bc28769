"""A namespace as it is labelled: admitted, with a warning about labels of ours that say nothing."""

import pytest

from tests.builders import a_namespace, a_policy, a_tenant
from tests.builders.world import FakeApi

WRONG = {"gpu-tiers.dev/mode": "Enfroce", "gpu-tiers.dev/default-tier": "gpu-bacth"}


@pytest.mark.parametrize("mode", ["Audit", "Warn", "Enforce"])
async def test_whoever_labels_it_hears_of_a_mistake_in_every_mode(mode: str) -> None:
    world = FakeApi(a_namespace(), policy=a_policy(mode=mode))
    answer = await world.update(a_namespace(), a_namespace().labelled(WRONG))
    assert answer.allowed
    assert [each.partition(" ")[0] for each in answer.warnings] == ["[unknown-mode]", "[unknown-default-tier]"]
    assert [record[0] for record in world.records] == ["validate"], "it is counted"


async def test_a_new_one_with_labels_that_are_right_is_admitted_silently() -> None:
    alpha = a_tenant("alpha", namespaceSelector={"matchLabels": {"gpu-tiers.dev/tenant": "alpha"}})
    right = {"mode": "enforce", "default-tier": "gpu-batch", "tenant": "alpha"}
    space = a_namespace().labelled({f"gpu-tiers.dev/{name}": value for name, value in right.items()})
    answer = await FakeApi(alpha).validate(space)
    assert (answer.allowed, answer.warnings) == (True, [])


async def test_one_whose_labels_are_no_texts_is_for_the_api_server_to_refuse() -> None:
    answer = await FakeApi().validate(a_namespace().having("metadata.labels", 3))
    assert (answer.allowed, answer.warnings) == (True, [])
