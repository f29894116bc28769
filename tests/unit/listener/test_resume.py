"""A checkpoint that leads nowhere is left after a while, and an eviction during the start is no reason for that."""

from pathlib import Path

import pytest

from listener import mark
from listener.mark import MARK, write_mark
from listener.resume import ERRORS, STARTS, Tries, agreed, choose


class OneRank:
    """A run of one process."""

    local = 0

    def same(self, _key: str, value: int) -> int | None:
        return value


class Disagreeing(OneRank):
    """A run whose other rank sees another step."""

    def same(self, _key: str, _value: int) -> int | None:
        return None


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(mark, "RUN", "uid-1")
    for step in (20, 40):
        (tmp_path / f"{step}").mkdir()
        (tmp_path / f"{step}" / "model").write_text("x")
        write_mark(str(tmp_path / f"{step}" / MARK), str(tmp_path / f"{step}"), 1, step)
    return [str(tmp_path / f"{step}" / MARK) for step in (20, 40)]


def step(marks: list[str]) -> int | None:
    chosen = choose(marks, 1)
    return None if chosen is None else chosen.step


def resumed(marks: list[str], *, error: bool) -> None:
    """A try that ends before a step."""
    chosen = agreed(choose(marks, 1), OneRank())
    assert chosen is not None
    if error:
        Tries(chosen).count(errors=1)


def test_two_errors_before_a_step_lead_to_the_checkpoint_before(
    marks: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(ERRORS):
        assert step(marks) == 40
        resumed(marks, error=True)
    assert step(marks) == 20
    assert capsys.readouterr().err.endswith("40: it was tried, and no step followed\n")
    for _ in range(ERRORS):
        resumed(marks, error=True)
    assert step(marks) is None, "it begins again"


def test_evictions_before_a_step_are_borne_longer(marks: list[str]) -> None:
    for _ in range(STARTS):
        assert step(marks) == 40
        resumed(marks, error=False)
    assert step(marks) == 20


def test_a_step_forgets_what_was_tried(marks: list[str]) -> None:
    resumed(marks, error=True)
    chosen = choose(marks, 1)
    assert chosen is not None
    Tries(chosen).forget()
    for _ in range(ERRORS - 1):
        resumed(marks, error=True)
    assert step(marks) == 40


def test_ranks_that_share_a_disk_count_a_start_once(marks: list[str]) -> None:
    chosen = choose(marks, 1)
    assert chosen is not None
    both = Tries(chosen), Tries(chosen)
    for each in both:
        each.count(starts=1)
    assert Tries(chosen).starts == 1


def test_one_that_is_not_whole_is_named_and_passed_over(
    marks: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "40" / "model").unlink()
    assert step(marks) == 20
    assert capsys.readouterr().err == f"gpu-tiers listen: not resumed from {tmp_path}/40: it is not whole\n"


def test_ranks_that_see_different_steps_begin_again(marks: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert agreed(choose(marks, 1), Disagreeing()) is None
    assert capsys.readouterr().err == "gpu-tiers listen: not resumed: the ranks see different checkpoints\n"
