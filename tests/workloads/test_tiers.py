"""The map of types as a whole: which tier do labelled manifests get, and what nobody can tell the type of."""

from collections import Counter

import pytest

from localcluster.for_tests import announce
from tests.workloads.labelled import parts
from tests.workloads.scoring import Scored, scored
from tests.workloads.tables import tiers
from webhook.config.load import presets

RIGHT = 0.96
"""The part that gets the tier of its type, of those of which a careful person would be sure."""
USUAL = 0.95
"""A kind gets a usual type if so many of its manifests, of which nothing else tells, are of that type."""
MAY_BE_HIGHER = {"aside": 3, "tune": 3}
"""A kind proves a type that a manifest doesn't have, and a script and a workload are named after what they aren't."""


def placed(part: str, preset: str) -> list[Scored]:
    return [each for each in scored(part, preset) if each.case.sure and each.place]


@pytest.mark.parametrize("preset", presets())
@pytest.mark.parametrize("part", parts())
def test_a_workload_without_a_label_gets_the_tier_of_its_type(
    part: str, preset: str, pytestconfig: pytest.Config
) -> None:
    results = placed(part, preset)
    right = sum(each.place == "right" for each in results) / len(results)
    announce(pytestconfig, f"{part}, {preset}: {right:.1%} of {len(results)} sure ones with GPUs\n{tiers(results)}")
    assert right >= RIGHT
    higher = [each.case.where for each in results if each.place == "higher" and each.case.type != "training"]
    assert len(higher) <= MAY_BE_HIGHER[part], higher


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Pod"])
def test_what_nothing_tells_is_of_no_one_type(kind: str, pytestconfig: pytest.Config) -> None:
    """The kinds without a usual type: their manifests get the default tier, and a warning."""
    nothing = [each for each in scored("tune") if each.source == "nothing" and each.tier]
    counts = Counter(each.case.type for each in nothing if each.case.manifest["kind"] == kind)
    announce(pytestconfig, f"{kind}, where nothing tells: {dict(counts.most_common())}")
    assert max(counts.values()) / counts.total() < USUAL
