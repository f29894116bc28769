"""`gpu-tiers report` without the Prometheus that it reads from, and what a hook would have saved."""

import pytest
from typer.testing import CliRunner

from webhook.cli.main import app
from webhook.cli.prometheus import _notes, report_of
from webhook.policy.checkpoint.work_lost import Work


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name its address with --prometheus, or in GPU_TIERS_PROMETHEUS"),
        (
            ["--since=a week", "--prometheus=http://localhost:1"],
            '--since: "a week" is not a time; write a time such as 12h',
        ),
        (["--prometheus=http://127.0.0.1:1"], "Connection refused; check --prometheus"),
    ],
)
def test_what_to_do_where_there_is_no_answer(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(app, ["report", *arguments])
    assert result.exit_code == 2
    assert said in result.stderr


PAIR = ("gpu-batch", "gpu-training", "alpha")


def test_a_hook_would_have_saved_what_is_lost_without_less_what_evictions_lose_that_save() -> None:
    pods = {(*PAIR, "saved"): 10.0, (*PAIR, "no-hook"): 3.0, (*PAIR, "nothing-listens"): 1.0}
    lost = {
        (*PAIR, "saved", "true", "h100"): 200.0,
        (*PAIR, "no-hook", "false", "h100"): 7_200.0,
        (*PAIR, "nothing-listens", "true", ""): 300.0,
    }
    found = report_of("7d", pods, lost, {"h100": 3.0})
    assert found.unhooked == Work(7_500.0, exact=False)
    assert found.hook_would_save == 7_420.0, "four evictions that lose 20 GPU-seconds each"
    assert found.rows[0].price == round(7_400 / 3600 * 3, 2), "what was lost on GPUs that have a price"


def test_without_a_save_nothing_shows_what_a_hook_would_have_saved() -> None:
    found = report_of("7d", {(*PAIR, "no-hook"): 1.0}, {(*PAIR, "no-hook", "false", ""): 60.0}, {})
    assert found.hook_would_save is None
    assert found.rows[0].lost == Work(60.0, exact=False)
    first, *_ = _notes(found)
    assert first == "In 7d 1 pods were preempted: 0 saved, 1 unknown, and lost at most 60 GPU-seconds."
