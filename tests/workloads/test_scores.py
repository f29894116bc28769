"""How well the classification does over manifests that people labelled; `tests/workloads/corpus/README.md`."""

import pytest

from localcluster.for_tests import announce
from tests.workloads.scoring import Scored, confusion, scored, share

REACHED = {"tune": 0.98, "aside": 0.97}
"""The part that is right where a careful person would be sure; the goal for what is set aside is 0.97."""


def sure(results: list[Scored]) -> list[Scored]:
    return [each for each in results if each.case.sure]


@pytest.mark.parametrize("part", REACHED)
async def test_a_workload_is_taken_for_what_a_person_would_take_it(part: str, pytestconfig: pytest.Config) -> None:
    results = await scored(part)
    certain, whole = share(sure(results)), share(results)
    announce(pytestconfig, f"{part}: {certain:.1%} of {len(sure(results))} sure, {whole:.1%} of {len(results)}")
    announce(pytestconfig, confusion(results))
    assert certain >= REACHED[part]


@pytest.mark.parametrize("part", REACHED)
async def test_what_a_person_waits_for_is_not_taken_for_training(part: str) -> None:
    assert [each.case.where for each in await scored(part) if each.harmful] == []
