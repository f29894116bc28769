"""The outcome of an eviction: its hooks say whether the pod saved, or else the kubelet does."""

from pathlib import Path

import pytest

from tests.unit.policy.checkpoint.test_file_hook import run
from webhook.policy.checkpoint.hook_kinds import file_handler, signal_handler, tells
from webhook.policy.checkpoint.work_lost import FAILED, LATE, ContainerEnd, Outcome, outcome_of


def outcome(
    *messages: str, hooked: bool = True, tells: bool = False, failed: bool = False, seen: bool = True, code: int = 143
) -> Outcome:
    ends = {f"main-{number}": ContainerEnd(each, code) for number, each in enumerate(messages or ("",))}
    return outcome_of(ends, hooked=ends if hooked else (), telling=ends if tells else (), failed=failed, seen=seen)


@pytest.mark.usefixtures("naps")
def test_what_the_file_hook_tells_is_understood(tmp_path: Path, termination_log: Path) -> None:
    run(tmp_path)
    assert outcome(termination_log.read_text()).saved == "nothing-listens"
    termination_log.unlink()
    (tmp_path / "listening").touch()
    run(tmp_path)
    assert outcome(termination_log.read_text()).saved == "not-saved"


def test_of_several_containers_the_worst_counts() -> None:
    assert outcome("gpu-tiers: saved in 7 s\n", "", "gpu-tiers: saved in 12 s\n") == Outcome("saved", 12)
    assert outcome("gpu-tiers: saved in 7 s\n", "gpu-tiers: not saved in 120 s\n").saved == "not-saved"
    assert str(outcome("gpu-tiers: saved in 7 s\n")) == "it saved in 7 s"


def test_a_program_s_own_last_words_stand_beside_ours() -> None:
    assert outcome("loss 0.31\ngpu-tiers: saved in 3 s\nbye").saved == "saved"
    assert outcome("we saved in 3 s, gpu-tiers: saved in 3 s, they say").saved == "hook-ended"


def test_a_hook_that_tells_nothing_is_judged_by_the_kubelet() -> None:
    assert outcome(hooked=False).saved == "no-hook"
    assert outcome(failed=True) == FAILED
    assert str(FAILED) == "it did NOT save: its hook failed, or was cut off"
    assert outcome().saved == "hook-ended"
    assert outcome(seen=False).saved == "unknown"


def test_a_container_that_was_killed_before_its_hook_wrote_a_word_has_not_saved() -> None:
    assert outcome("", tells=True, code=137) == FAILED
    assert outcome("loss 0.31\n", tells=True, failed=True) == FAILED, "the kubelet reported it"
    assert outcome("gpu-tiers: saved in 7 s\n", "", tells=True, code=137) == FAILED, "the other one had saved"
    assert outcome("gpu-tiers: not saved in 7 s\n", tells=True, code=137) == LATE
    assert str(LATE) == "it did NOT save in time"


def test_a_program_that_wrote_over_what_its_hook_reported_is_not_blamed() -> None:
    overwritten = '{"message": "SignalException: Process 1 got signal: 15"}'
    assert outcome(overwritten, tells=True, code=143).saved == "unknown"
    assert outcome(overwritten, "gpu-tiers: not saved in 7 s\n", tells=True) == LATE


def test_a_container_that_crashed_before_the_eviction_leaves_it_open() -> None:
    assert outcome("", tells=True, code=1).saved == "unknown"
    with_code = outcome("", "gpu-tiers: saved in 3 s\n", tells=True, code=1)
    assert str(with_code) == "whether it saved is unknown", "one of two has told"


def test_a_program_that_was_done_before_the_kubelet_ran_its_hook_is_not_blamed() -> None:
    assert outcome("", tells=True, code=0).saved == "unknown"


def test_the_hooks_that_write_down_what_came_of_it() -> None:
    assert tells(file_handler("/run/gpu-tiers", 120))
    assert tells(signal_handler("USR1", "/run/gpu-tiers/done", 120))
    assert not tells({"exec": {"command": ["/bin/sh", "-c", "save.sh"]}})
    assert not tells({"httpGet": {"path": "/checkpoint", "port": 9000}})


PROGRESS = 'gpu-tiers: progress {"run": "u", "step": 1243, "last_saved_step": 1240, "last_saved_at": 1000.4}'
SAVED = f"gpu-tiers: saved in 2 s\n\n{PROGRESS}\n"


def ended(message: str, at: float | None = 1002.0) -> Outcome:
    end = {"main": ContainerEnd(message, 143, at)}
    return outcome_of(end, hooked=end, telling=end, failed=False, seen=True)


def test_a_listener_tells_which_step_was_saved_and_how_long_before_the_end() -> None:
    assert str(ended(SAVED)) == "it saved step 1,240, 2 s before it ended"
    assert str(ended(SAVED, at=None)) == "it saved in 2 s", "the kubelet did not say when it ended"
    assert str(ended(SAVED, at=900.0)) == "it saved step 1,240, 0 s before it ended", "clocks differ"


def test_what_a_program_writes_in_its_place_says_nothing() -> None:
    for forged in ("1e999", "-4", '"all"', "null", "9" * 400):
        assert str(ended(SAVED.replace("1240", forged))) == "it saved in 2 s"
    assert str(ended(SAVED.replace("1000.4", '"now"'))) == "it saved in 2 s"
    assert str(ended(f"gpu-tiers: not saved in 120 s\n{PROGRESS}")) == "it did NOT save in time"
    assert str(ended(f"gpu-tiers: the save failed\n{PROGRESS}")) == "it did NOT save: its save failed"
