"""The score of the classification over manifests that people labelled; `tests/workloads/corpus/README.md`."""

import pytest

from localcluster.for_tests import announce
from tests.workloads.labelled import parts
from tests.workloads.scoring import Scored, scored, share
from tests.workloads.sources import SOURCES
from tests.workloads.tables import confusion, precision
from webhook.policy.classification.evidence import SHOWN

REACHED = {"tune": 0.98, "aside": 0.97}
"""The part that is right where a careful person would be sure; the goal for what is set aside is 0.97."""
ENOUGH = 0.97


def sure(part: str) -> list[Scored]:
    return [each for each in scored(part) if each.case.sure]


@pytest.mark.parametrize("part", parts())
def test_a_workload_is_taken_for_what_a_person_would_take_it(part: str, pytestconfig: pytest.Config) -> None:
    results = scored(part)
    certain, whole = share(sure(part)), share(results)
    announce(pytestconfig, f"{part}: {certain:.1%} of {len(sure(part))} sure, {whole:.1%} of {len(results)}")
    announce(pytestconfig, confusion(results))
    assert certain >= REACHED[part]


@pytest.mark.parametrize("part", parts())
def test_each_source_of_evidence_shows_how_often_it_is_right(part: str, pytestconfig: pytest.Config) -> None:
    announce(pytestconfig, f"{part}, the sure ones:\n{precision(sure(part))}")
    assert {each.source for each in sure(part)} <= set(SOURCES)


def test_what_runs_is_shown_and_all_else_that_is_guessed_is_hinted(pytestconfig: pytest.Config) -> None:
    """A source may raise a tier by itself (SHOWN) if 97 % of what it says is right, and nothing harmful."""
    results = [*sure("tune"), *sure("aside")]
    announce(pytestconfig, f"tune and aside, the sure ones:\n{precision(results)}")
    for source in (f"guess: {each}" for each in SHOWN):
        found = [each for each in results if each.source == source]
        assert share(found) >= ENOUGH, source
        assert [each.case.where for each in found if each.harmful] == []


@pytest.mark.parametrize("part", parts())
def test_what_a_person_waits_for_is_not_taken_for_training(part: str) -> None:
    assert [each.case.where for each in scored(part) if each.harmful] == []
