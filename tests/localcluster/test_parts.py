"""A cold build says how far it is."""

from functools import partial
from pathlib import Path

import pytest

from installation.fill import parts
from localcluster.binaries import Binary, binaries, node_binaries
from localcluster.parts import Part, have, of_binary


def test_each_part_that_is_made_says_how_many_are_missing_and_for_how_long(tmp_path: Path) -> None:
    lines: list[str] = []

    def make(file: Path, progress: str) -> None:
        lines.append(progress + file.name)
        file.touch()

    (tmp_path / "kubectl").touch()
    files = [(tmp_path / name, minutes) for name, minutes in (("etcd", 1), ("kubectl", 0.5), ("kubelet", 2))]
    wanted = [Part(minutes, file.exists, partial(make, file)) for file, minutes in files]
    machine = partial(next, iter((0, 60, 180, 0)))
    have(wanted, machine)
    have(wanted, machine)
    assert lines == ["1 of 2, about 3 min left: etcd", "2 of 2, about 2 min left: kubelet"]


def test_the_minutes_follow_the_pace_of_the_machine() -> None:
    lines: list[str] = []
    wanted = [Part(minutes, lambda: False, lines.append) for minutes in (1, 5, 2)]
    have(wanted, partial(next, iter((0, 180, 600, 1440))))
    assert lines == ["1 of 3, about 8 min left: ", "2 of 3, about 21 min left: ", "3 of 3, about 3 min left: "]


def test_a_program_in_the_cache_is_a_part_that_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPU_TIERS_CACHE", str(tmp_path))
    pause = Binary("pause", "1", "pause", "pause", ".", 0.1)
    assert not of_binary(pause).is_there()
    pause.cached.parent.mkdir(parents=True)
    pause.cached.touch(mode=0o755)
    assert of_binary(pause).is_there()


def test_a_cluster_with_a_node_is_made_of_all_programs_and_two_images() -> None:
    programs = [*binaries("1.37"), *node_binaries("1.37")]
    assert len(list(parts("1.37", real=True))) == len(programs) + 2
    assert len(list(parts("1.37", real=False))) == len(binaries("1.37"))
