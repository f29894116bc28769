"""The example of each framework's page, asked to save by the hook and by SIGTERM: no step is lost, none is made twice.

What is compared at the end is what the model learned: weights, optimizer and data order have all come back.
"""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from .environments import environment
from .training import CODE, Training

pytestmark = [pytest.mark.release, pytest.mark.timeout(3600)]  # the first test installs

STEPS = 500
STEP_SECONDS = 0.05
TERMINATED = 143
TORCHRUN_FAILED = 1
"""What torchrun makes of any exit code of its ranks."""
Commands = Callable[[str], list[list[str]]]


def alone(program: str) -> list[list[str]]:
    """One process, started by Python."""
    return [[str(environment("torch") / "python"), str(CODE / program)]]


def two_ranks(program: str) -> list[list[str]]:
    """Two ranks of one torchrun, on a port that is free."""
    return [[str(environment("torch") / "torchrun"), "--standalone", "--nproc-per-node=2", str(CODE / program)]]


def one_jax_process(program: str) -> list[list[str]]:
    """A run of one process; it needs a coordinator all the same."""
    return jax_processes(program, 1)


def two_jax_processes(program: str) -> list[list[str]]:
    """Two processes, as two pods would start them."""
    return jax_processes(program, 2)


def jax_processes(program: str, count: int) -> list[list[str]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        coordinator = f"127.0.0.1:{free.getsockname()[1]}"
    start = [str(environment("jax") / "python"), str(CODE / program), coordinator, str(count)]
    return [[*start, str(number)] for number in range(count)]


@pytest.mark.parametrize(
    ("program", "commands", "code"),
    [
        ("train_pytorch.py", two_ranks, TORCHRUN_FAILED),
        ("train_lightning.py", alone, TERMINATED),
        ("train_lightning.py", two_ranks, TORCHRUN_FAILED),
        ("train_huggingface.py", alone, TERMINATED),
        ("train_huggingface.py", two_ranks, TORCHRUN_FAILED),
        ("train_jax.py", one_jax_process, TERMINATED),
        ("train_jax.py", two_jax_processes, TERMINATED),
    ],
)
def test_a_run_that_is_asked_twice_learns_what_an_undisturbed_one_learns(
    program: str, commands: Commands, code: int, tmp_path: Path
) -> None:
    disturbed, undisturbed = (Training(commands(program), folder) for folder in (tmp_path / "a", tmp_path / "b"))
    for each in (disturbed, undisturbed):
        each.folder.mkdir()
    steps = []
    with disturbed.started(steps=STEPS, seconds=STEP_SECONDS) as run:
        run.train_a_little()
        assert run.preempt() == 0, "the hook has its answer"
        assert run.wait() == {code}
        steps += run.steps()
    with disturbed.started(steps=STEPS, seconds=STEP_SECONDS) as run:
        run.train_a_little()
        run.terminate()
        assert run.wait() == {code}
        assert run.lines()[0] == {"resumed": steps[-1]["step"]}
        steps += run.steps()
    resumed, *rest = disturbed.finished(steps=STEPS)
    assert resumed == {"resumed": steps[-1]["step"]}
    steps += rest
    assert [line["step"] for line in steps] == list(range(1, STEPS + 1))
    assert steps[-1] == undisturbed.finished(steps=STEPS)[-1]
