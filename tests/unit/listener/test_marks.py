"""A checkpoint counts only if this run marked it, in this call of train(), and all of its files are there whole."""

from pathlib import Path

import pytest

from listener import mark
from listener.mark import MARK, Mark, marks_of, write_mark


@pytest.fixture(autouse=True)
def run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mark, "RUN", "uid-1")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint-40"
    (folder / "shards").mkdir(parents=True)
    (folder / "shards" / "model.bin").write_bytes(b"12345")
    (folder / "optimizer.pt").write_bytes(b"123")
    write_mark(str(folder / MARK), str(folder), 1, 40)
    return folder


def found(checkpoint: Path, call: int = 1) -> list[tuple[int, bool]]:
    return [(each.step, each.is_whole()) for each in marks_of([str(checkpoint / MARK)], call)]


def test_a_marked_checkpoint_is_whole(checkpoint: Path) -> None:
    assert found(checkpoint) == [(40, True)]


def test_a_file_that_is_shorter_or_gone_is_seen(checkpoint: Path) -> None:
    (checkpoint / "shards" / "model.bin").write_bytes(b"1234")
    assert found(checkpoint) == [(40, False)]
    (checkpoint / "shards" / "model.bin").unlink()
    assert found(checkpoint) == [(40, False)]


def test_a_file_that_came_later_does_no_harm(checkpoint: Path) -> None:
    (checkpoint / "notes.txt").write_text("ours")
    (checkpoint / f"{MARK}.tries").write_text("{}")
    assert found(checkpoint) == [(40, True)]


def test_another_call_or_another_run_is_none_of_ours(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(checkpoint, call=2) == []
    monkeypatch.setattr(mark, "RUN", "uid-2")
    assert found(checkpoint) == []
    monkeypatch.setattr(mark, "RUN", "")
    assert found(checkpoint) == []


@pytest.mark.parametrize("text", ["", "[]", '{"step": 3}', '{"run": "uid-1"', "\0"])
def test_a_mark_that_is_no_mark_is_passed_over(checkpoint: Path, text: str) -> None:
    (checkpoint / MARK).write_text(text)
    assert found(checkpoint) == []


def test_the_latest_step_comes_first_by_number(tmp_path: Path) -> None:
    for step in (20, 100, 3):
        (tmp_path / f"{step}").mkdir()
        (tmp_path / f"{step}" / "model").write_text("x")
        write_mark(str(tmp_path / f"{step}" / MARK), str(tmp_path / f"{step}"), 1, step)
    marks = marks_of([str(tmp_path / f"{step}" / MARK) for step in (20, 100, 3)], 1)
    assert [each.step for each in marks] == [100, 20, 3]


def test_a_mark_of_one_file_may_lie_elsewhere_and_both_may_move(tmp_path: Path) -> None:
    (tmp_path / "old" / "marks").mkdir(parents=True)
    (tmp_path / "old" / "last.ckpt").write_text("weights")
    write_mark(str(tmp_path / "old" / "marks" / "1-7.json"), str(tmp_path / "old" / "last.ckpt"), 1, 7)
    (tmp_path / "old").rename(tmp_path / "new")
    moved = Mark(str(tmp_path / "new" / "marks" / "1-7.json"))
    assert (moved.path, moved.is_whole()) == (str(tmp_path / "new" / "last.ckpt"), True)
    (tmp_path / "new" / "last.ckpt").write_text("weight")
    assert not moved.is_whole()
