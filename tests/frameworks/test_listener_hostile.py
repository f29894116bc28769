"""Stock programs where something is in the way: what is said, how they end, and what they learn all the same."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localcluster.waiting import wait_until

from .listened import TERMINATED, Record, Workload, alone, delivered

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(3600)]  # the first test installs

STEPS = 120
EVALUATED = {"eval_strategy": "steps", "eval_steps": 20}


Row = Callable[[str, str, object, str], None]


@pytest.fixture
def row(record_property: Record) -> Row:
    """Keeps a row of the table that is printed at the end."""

    def keep(case: str, asked: str, ends: object, then: str) -> None:
        record_property("Hostile cases", {"case": case, "asked": asked, "ends": str(ends), "then": then})

    return keep


def killed_and_resumed(row: Row, case: str, work: Workload, undisturbed: Workload, kill: int = 45, **slow: Any) -> None:
    """The hook asks once; the program goes on from there and learns what it learns undisturbed."""
    expected = undisturbed.finished(steps=STEPS)
    with work.started(steps=STEPS, **slow) as run:
        run.train_to(kill)
        begun = time.monotonic()
        assert run.preempt() == 0, run.said()[-3000:]
        took = time.monotonic() - begun
        assert run.wait() == {TERMINATED}, run.said()[-3000:]
        made = run.steps()[-1]["step"]
    with work.started(steps=STEPS) as run:
        assert run.wait() == {0}, run.said()[-3000:]
        resumed, *_, learned = run.lines()
    same = learned == expected
    row(
        case,
        f"saved step {made:.0f}, hook {took:.1f} s",
        TERMINATED,
        f"resumed at {resumed['resumed']:.0f}, same: {same}",
    )
    assert resumed == {"resumed": made}
    assert learned == expected


@pytest.mark.parametrize(
    ("case", "program", "options"),
    [
        ("an evaluation each 20 steps", "stock_huggingface.py", {"evaluate": 40, "arguments": EVALUATED}),
        (
            "load_best_model_at_end, one checkpoint kept",
            "stock_huggingface.py",
            {
                "evaluate": 40,
                "arguments": EVALUATED | {"save_steps": 20, "load_best_model_at_end": True, "save_total_limit": 1},
            },
        ),
        ("save_only_model", "stock_huggingface.py", {"arguments": {"save_only_model": True}}),
        ("save_strategy no", "stock_huggingface.py", {"arguments": {"save_strategy": "no"}}),
        ("gradient accumulation", "stock_huggingface.py", {"arguments": {"gradient_accumulation_steps": 3}}),
        ("two workers that load data", "stock_huggingface.py", {"arguments": {"dataloader_num_workers": 2}}),
        ("Lightning, two workers that load data", "stock_lightning.py", {"workers": 2}),
        ("Lightning, validated after each epoch", "stock_lightning.py", {"validate": True, "examples": 240}),
        ("Lightning, gradient accumulation", "stock_lightning.py", {"arguments": {"accumulate_grad_batches": 3}}),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else None,
)
def test_options_of_the_program(case: str, program: str, options: dict[str, Any], tmp_path: Path, row: Row) -> None:
    work = Workload(alone(program), tmp_path / "work", options)
    killed_and_resumed(
        row, case, work, Workload(alone(program), tmp_path / "other", options, listens=False), sleep=0.02
    )


def test_torch_compile_takes_its_time_before_the_first_step(tmp_path: Path, row: Row) -> None:
    """The asker does not yet know that nothing listens, and there is nothing to save."""
    program, options = alone("stock_huggingface.py"), {"arguments": {"torch_compile": True}}
    work = Workload(program, tmp_path / "work", options)
    with work.started(steps=STEPS) as run:
        wait_until(lambda: "resumed" in str(run.lines()[:1]) or run.ended(), 120, "the training's begin")
        assert run.preempt() == 0
        assert run.steps() == []
        run.terminate()
        assert run.wait() == {-15}
    row("asked before the first step", "nothing listens", -15, "from the start")
    undisturbed = Workload(program, tmp_path / "other", options, listens=False)
    killed_and_resumed(row, "torch.compile", work, undisturbed, sleep=0.02)


def test_a_request_within_an_evaluation_does_not_wait_for_its_end(tmp_path: Path, row: Row) -> None:
    options = {"evaluate": 400, "arguments": EVALUATED}
    work = Workload(alone("stock_huggingface.py"), tmp_path / "work", options)
    with work.started(steps=STEPS, evaluation_sleep=1) as run:
        run.train_to(20)
        time.sleep(2)
        begun = time.monotonic()
        assert run.preempt() == 0, run.said()[-3000:]
        took = time.monotonic() - begun
        assert run.wait() == {TERMINATED}
    with work.started(steps=STEPS) as run:
        assert run.wait() == {0}
        assert run.lines()[0] == {"resumed": 20}
    row("amid an evaluation of 50 s", f"saved step 20, hook {took:.1f} s", TERMINATED, "resumed at 20")
    assert took < 15


def test_a_full_disk_is_reported_at_once_and_training_goes_on(tmp_path: Path, row: Row) -> None:
    work = Workload(alone("stock_huggingface.py"), tmp_path / "work", {"arguments": {"save_strategy": "no"}})
    small = work.folder / "out"
    small.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "small", str(small)], check=True)
    work.env = {"GPU_TIERS_LISTEN_EPHEMERAL": "on"}
    try:
        with work.started(steps=STEPS, sleep=0.02) as run:
            run.train_to(20)
            begun = time.monotonic()
            (run.hook / "request").touch()
            wait_until((run.hook / "failed").exists, 20, "the listener's answer")
            took = time.monotonic() - begun
            made = run.steps()[-1]["step"]
            run.train_to(int(made) + 20)
            left = [each.name for each in small.iterdir()]
            assert run.preempt() == 0, "nothing listens any more"
        row("a full disk", f"failed after {took:.1f} s", "trains on", f"left on the disk: {left}")
        assert left == []
        assert "could not save" in run.said()
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_what_is_gone_with_the_pod_is_not_listened_for(tmp_path: Path, row: Row) -> None:
    out = "/dev/shm/gpu-tiers-test"  # noqa: S108
    work = Workload(alone("stock_huggingface.py"), tmp_path / "work", {"arguments": {"output_dir": out}})
    with work.started(steps=STEPS, sleep=0.02) as run:
        run.train_to(20)
        assert not (run.hook / "listening").exists()
    said = [line for line in run.said().splitlines() if line.startswith("gpu-tiers")]
    row("output on a tmpfs", "nothing listens", "trains on", said[0])
    assert said == [
        "gpu-tiers listen: not listening: /dev/shm/gpu-tiers-test is tmpfs at /dev/shm, which is gone with the pod"
    ]


def test_who_swallows_the_end_is_ended(tmp_path: Path, row: Row) -> None:
    work = Workload(alone("stock_huggingface.py"), tmp_path / "work", {"swallow": True})
    with work.started(steps=STEPS, sleep=0.02) as run:
        run.train_to(20)
        assert run.preempt() == 0
        begun = time.monotonic()
        assert run.wait() == {TERMINATED}
        row("SystemExit is swallowed", "saved", TERMINATED, f"ended {time.monotonic() - begun:.0f} s after the answer")


def test_a_foreign_sitecustomize_runs_as_before(tmp_path: Path, row: Row) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "sitecustomize.py").write_text("import sys\nsys.stderr.write('theirs ran\\n')\n")
    work = Workload(alone("stock_huggingface.py"), tmp_path / "work")
    ours = delivered(tmp_path / "python")
    work.env = {"PYTHONPATH": f"{ours}:{tmp_path / 'theirs'}:{Path(__file__).parent / 'programs'}"}
    with work.started(steps=STEPS, sleep=0.02) as run:
        run.train_to(20)
        assert run.preempt() == 0
        assert run.wait() == {TERMINATED}
    row("a foreign sitecustomize", "saved", TERMINATED, "it ran")
    assert "theirs ran" in run.said()


@pytest.mark.parametrize("after", [0.0, 0.02, 0.05, 0.1])
def test_killed_while_it_saves_it_resumes_from_something_whole(after: float, tmp_path: Path, row: Row) -> None:
    program = alone("stock_huggingface.py")
    expected = Workload(program, tmp_path / "other", listens=False).finished(steps=STEPS)
    work = Workload(program, tmp_path / "work", {"arguments": {"save_steps": 20}})
    with work.started(steps=STEPS, sleep=0.02) as run:
        run.train_to(45)
        (run.hook / "request").touch()
        time.sleep(after)
        for each in run.processes:
            each.kill()
        run.wait()
        made = run.steps()[-1]["step"]
    with work.started(steps=STEPS) as run:
        assert run.wait() == {0}, run.said()[-3000:]
        resumed, *_, learned = run.lines()
    row(
        f"SIGKILL {after * 1000:.0f} ms after the request",
        f"at step {made:.0f}",
        -9,
        f"resumed at {resumed['resumed']:.0f}",
    )
    assert resumed["resumed"] >= 40
    assert learned["learned"] == expected["learned"]


def test_a_checkpoint_that_can_not_be_loaded_is_left_after_two_tries(tmp_path: Path, row: Row) -> None:
    work = Workload(alone("stock_huggingface.py"), tmp_path / "work", {"arguments": {"save_steps": 20}})
    with work.started(steps=STEPS, sleep=0.02) as run:
        run.train_to(45)
        assert run.preempt() == 0
        run.wait()
        made = int(run.steps()[-1]["step"])
    broken = work.folder / "out" / f"checkpoint-{made}" / "optimizer.pt"
    broken.write_bytes(b"\0" * broken.stat().st_size)
    ends = []
    for _ in range(3):
        with work.started(steps=STEPS) as run:
            ends.append(run.wait())
    row("a checkpoint that can't be loaded", "", ends, f"resumed at {run.lines()[0]['resumed']:.0f}")
    assert ends == [{1}, {1}, {0}]
    assert run.lines()[0] == {"resumed": 40}
