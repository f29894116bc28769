"""Honest people are not wronged: neither in the stories of those who once were, nor in random histories.

Both run in a process of their own, whose clocks are moved.
"""

import json
import subprocess
import sys

import pytest

from tests.honest.stories import STORIES

HISTORIES = {
    "Hold": 200_000,
    "Demote": 300_000,
    "Deny": 400_000,
    "Warn": 500_000,
    "flavors": 600_000,
    "a row": 700_000,
    "further kinds, Hold": 800_000,
    "further kinds": 900_000,
    "claims, Kueue and full quotas, Hold": 1_200_000,
    "claims, Kueue and full quotas, Deny": 1_400_000,
    "claims, Kueue and full quotas, flavors": 1_600_000,
}
EACH = 4
"""Histories of each mode: half a minute of one core in all. `make honest` runs as many as one likes."""


def honest(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.honest", *arguments], capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def failures() -> dict[str, list[str]]:
    """Return the failures of each story."""
    done = honest("--stories")
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("story", STORIES)
def test_nobody_is_wronged_in_a_story(story: str, failures: dict[str, list[str]]) -> None:
    assert failures[story] == []


@pytest.fixture(scope="module")
def searched() -> subprocess.CompletedProcess[str]:
    """One process runs the histories of all modes, because its start takes as long as four histories."""
    return honest(*(f"--seed={seed}" for seed in HISTORIES.values()), f"--histories={EACH}")


@pytest.mark.parametrize("first", HISTORIES.values(), ids=HISTORIES)
def test_nobody_is_wronged_in_random_histories(first: int, searched: subprocess.CompletedProcess[str]) -> None:
    seeds = {str(seed) for seed in range(first, first + EACH)}
    assert [line for line in searched.stdout.splitlines() if line.partition(" ")[0] in seeds] == []
    assert f"{EACH} histories from seed {first} in " in searched.stdout, searched.stderr
