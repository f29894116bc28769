"""Whether an evicted pod saved: what its hooks told, else what the kubelet did."""

from pathlib import Path

import pytest

from tests.unit.policy.checkpoint.test_file_hook import run
from webhook.policy.checkpoint.outcome import Outcome, outcome_of


def outcome(*messages: str, hooked: bool = True, failed: bool = False, seen: bool = True) -> Outcome:
    return outcome_of(messages, hooked=hooked, failed=failed, seen=seen)


@pytest.mark.usefixtures("naps")
def test_what_the_file_hook_tells_is_understood(tmp_path: Path, told: Path) -> None:
    run(tmp_path)
    assert outcome(told.read_text()).saved == "nothing-listens"
    told.unlink()
    (tmp_path / "listening").touch()
    run(tmp_path)
    assert outcome(told.read_text()).saved == "not-saved"


def test_of_several_containers_the_worst_counts() -> None:
    assert outcome("gpu-tiers: saved in 7 s\n", "", "gpu-tiers: saved in 12 s\n") == Outcome("saved", 12)
    assert outcome("gpu-tiers: saved in 7 s\n", "gpu-tiers: not saved in 120 s\n").saved == "not-saved"
    assert str(outcome("gpu-tiers: saved in 7 s\n")) == "it saved in 7 s"


def test_a_program_s_own_last_words_stand_beside_ours() -> None:
    assert outcome("loss 0.31\ngpu-tiers: saved in 3 s\nbye").saved == "saved"
    assert outcome("we saved in 3 s, gpu-tiers: saved in 3 s, they say").saved == "hook-ended"


def test_a_hook_that_tells_nothing_is_judged_by_the_kubelet() -> None:
    assert outcome(hooked=False).saved == "no-hook"
    assert outcome(failed=True).saved == "not-saved"
    assert outcome().saved == "hook-ended"
    assert outcome(seen=False).saved == "unknown"
