"""Each labelled manifest stands where a person looks for it, with its round; `tests/workloads/corpus/README.md`."""

from itertools import groupby
from operator import attrgetter

import pytest

from tests.workloads.labelled import CORPUS, ROUNDS, Case, cases, parts
from tests.workloads.tables import TYPES

MOST_LINES = 6000


def in_its_place(case: Case) -> bool:
    """Return whether it is in its API group's file or, where the group is a folder, in its kind's file or folder."""
    group = case.manifest["apiVersion"].rpartition("/")[0] or "core"
    name = case.file.partition("/")[2].removesuffix(".yaml")
    kind = f"{group}/{case.manifest['kind'].lower()}"
    return name in (group, kind) or name.startswith((f"{kind}/round-", f"{kind}/rounds-"))


@pytest.mark.parametrize("part", parts())
def test_a_manifest_stands_in_the_file_of_its_api_group(part: str) -> None:
    assert [case.where for case in cases(part) if not in_its_place(case)] == []


@pytest.mark.parametrize("part", parts())
def test_a_label_is_one_that_can_be_scored(part: str) -> None:
    assert [case.where for case in cases(part) if case.type not in TYPES or not isinstance(case.sure, bool)] == []


@pytest.mark.parametrize("part", parts())
def test_a_file_has_its_rounds_in_order(part: str) -> None:
    for file, found in groupby(cases(part), attrgetter("file")):
        rounds = [ROUNDS.index(case.round) for case in found]
        assert rounds == sorted(rounds), file


@pytest.mark.parametrize("part", parts())
def test_a_file_can_be_read_by_a_person(part: str) -> None:
    sizes = {
        file.relative_to(CORPUS).as_posix(): file.read_text().count("\n") for file in (CORPUS / part).rglob("*.yaml")
    }
    assert max(sizes.values()) <= MOST_LINES, sizes


def test_a_round_is_for_tuning_or_set_aside_as_a_whole() -> None:
    tuned, aside = ({case.round for case in cases(part)} for part in ("tune", "aside"))
    assert tuned.isdisjoint(aside)
