"""Stock programs with the listener: killed at random steps, each ends with 143, loses no step and learns the same."""

import random
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .environments import environment
from .listened import PROGRAMS, TERMINATED, Record, Workload, alone
from .training import ABORTED

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(3600)]  # the first test installs

STEPS = 200
KILLS = 2
Commands = Callable[[str], list[list[str]]]


def two_ranks(program: str) -> list[list[str]]:
    start = [str(environment("torch") / "torchrun"), "--standalone", "--nproc-per-node=2"]
    return [[*start, str(PROGRAMS / program)]]


def two_agents(program: str) -> list[list[str]]:
    """Start two agents as two pods of one Job and ask only the first."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start = [str(environment("torch") / "torchrun"), "--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=static"]
    meet = ["--master-addr=127.0.0.1", f"--master-port={port}"]
    return [[*start, *meet, f"--node-rank={rank}", str(PROGRAMS / program)] for rank in range(2)]


def accelerate_one(program: str) -> list[list[str]]:
    return [[*accelerate(1), "--cpu", str(PROGRAMS / program)]]


def accelerate_two(program: str) -> list[list[str]]:
    """Its launcher of several processes is named for GPUs; the program itself says that it uses CPUs."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    return [[*accelerate(2), "--multi_gpu", f"--main_process_port={port}", str(PROGRAMS / program)]]


def accelerate(processes: int) -> list[str]:
    plain = ["--num_machines=1", "--mixed_precision=no", "--dynamo_backend=no", "--num_cpu_threads_per_process=1"]
    return [str(environment("torch") / "accelerate"), "launch", f"--num_processes={processes}", *plain]


@pytest.mark.parametrize(
    ("what", "program", "commands", "options"),
    [
        pytest.param("Trainer", "stock_huggingface.py", alone, {}, marks=pytest.mark.release),
        ("Trainer, torchrun 2 ranks", "stock_huggingface.py", two_ranks, {}),
        ("Trainer, torchrun 2 agents", "stock_huggingface.py", two_agents, {}),
        ("Trainer, accelerate 1 process", "stock_huggingface.py", accelerate_one, {}),
        ("Trainer, accelerate 2 processes", "stock_huggingface.py", accelerate_two, {}),
        ("TRL's SFTTrainer", "stock_trl.py", alone, {}),
        pytest.param("Lightning", "stock_lightning.py", alone, {}, marks=pytest.mark.release),
        (
            "Lightning, torchrun 2 ranks",
            "stock_lightning.py",
            two_ranks,
            {"arguments": {"devices": 2, "strategy": "ddp"}},
        ),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else None,
)
def test_a_program_that_is_killed_again_and_again_loses_no_step(
    what: str, program: str, commands: Commands, options: dict[str, Any], tmp_path: Path, record_property: Record
) -> None:
    by_chance = random.Random(what)  # noqa: S311
    undisturbed = Workload(commands(program), tmp_path / "undisturbed", options, listens=False)
    expected = undisturbed.finished(steps=STEPS)
    work = Workload(commands(program), tmp_path / "work", options)
    began, ends, asked = 0, sorted(by_chance.sample(range(5, STEPS - 20), KILLS)), []
    for kill in ends:
        work.commands = commands(program)  # ports that are free now
        with work.started(steps=STEPS, sleep=0.02) as run:
            run.train_to(max(kill, began + 2))
            assert run.preempt() == 0, run.said()[-3000:]
            asked.append(int(run.steps()[-1]["step"]))
            assert run.wait() == {TERMINATED}, run.said()[-3000:]
            assert run.lines()[0] == {"resumed": began}
            began = int(run.steps()[-1]["step"])
    work.commands = commands(program)
    with work.started(steps=STEPS) as run:
        assert run.wait() == {0} or ABORTED in run.said(), run.said()[-3000:]
        resumed, *_, learned = run.lines()
    lost, same = began - int(resumed["resumed"]), learned == expected
    row = {"program": what, "asked after": asked, "resumed": resumed["resumed"], "steps lost": lost, "same": same}
    record_property("Stock programs, killed at random steps", row)
    assert resumed == {"resumed": began}
    assert learned == expected
