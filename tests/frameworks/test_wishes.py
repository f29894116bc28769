"""Stock programs that a leader asks for saves now and then: they save, train on and learn the same as undisturbed."""

import json
import random
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from localcluster.waiting import wait_until
from tests.builders.leader import Leader

from .environments import environment
from .listened import PROGRAMS, TERMINATED, Record, Workload, alone
from .test_listened_programs import Commands, two_agents
from .training import ABORTED, SECONDS

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(3600)]  # the first test installs

STEPS = 200
KILLS, PERIOD = 10, 1.5
AHEAD = 3
"""Steps: the one that is under way, and those that ranks need to agree."""
HEARD = 3.5
"""Seconds until a wish is heard and due: a report each second, `in`, and a machine that has more to do."""
DDP = {"arguments": {"devices": 4, "strategy": "ddp"}}
FIRST, SECOND = "hook-0", "hook-1"
"""The pods of a workload."""


def four_ranks(program: str) -> list[list[str]]:
    start = [str(environment("torch") / "torchrun"), "--standalone", "--nproc-per-node=4"]
    return [[*start, str(PROGRAMS / program)]]


Row = Callable[[str, str, str], None]


@pytest.fixture
def row(request: pytest.FixtureRequest, record_property: Record) -> Row:
    """Keeps a row of the table that is printed at the end."""

    def keep(case: str, happened: str, then: str) -> None:
        name = request.node.callspec.id
        record_property("Saves on a wish", {"program": name, "case": case, "happened": happened, "then": then})

    return keep


@pytest.fixture
def leader(tmp_path: Path) -> Iterator[Leader]:
    with Leader(tmp_path / "leader").serving() as serving:
        yield serving


@contextmanager
def wishing(leader: Leader, pods: Sequence[str], seconds: float) -> Iterator[None]:
    """Wish for a save each so many seconds: through one pod, another one, or through all with one id."""
    over, by_chance = threading.Event(), random.Random(3)  # noqa: S311

    def wish() -> None:
        number = 0
        while not over.wait(seconds):
            number += 1
            known = max((line["step"] for pod in pods for _, line in leader.reports[pod][-1:]), default=0)
            for pod in by_chance.choice([pods, pods[:1], pods[-1:]]):
                leader.wish(f"{time.monotonic():.0f}-{number}", known, within=by_chance.random() / 2, pod=pod)

    thread = threading.Thread(target=wish)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


PROGRAM = pytest.mark.parametrize(
    ("program", "commands", "options", "steps"),
    [
        ("stock_huggingface.py", alone, {}, 200),
        ("stock_huggingface.py", four_ranks, {}, 60),
        ("stock_huggingface.py", two_agents, {}, 100),
        ("stock_lightning.py", alone, {}, 200),
        ("stock_lightning.py", four_ranks, DDP, 60),
    ],
    ids=["Trainer", "Trainer-4-ranks", "Trainer-2-pods", "Lightning", "Lightning-4-ranks"],
)


@PROGRAM
def test_wishes_are_saved_for_and_what_is_learned_stays_the_same(
    program: str, commands: Commands, options: dict[str, Any], steps: int, leader: Leader, tmp_path: Path, row: Row
) -> None:
    undisturbed = Workload(commands(program), tmp_path / "undisturbed", options, listens=False)
    expected = undisturbed.finished(steps=steps)
    work = Workload(commands(program), tmp_path / "work", options, leader=leader)
    pods = [FIRST, SECOND][: len(work.commands)]
    with wishing(leader, pods, 1.0), work.started(steps=steps, sleep=10 / steps) as run:
        assert run.wait() == {0} or ABORTED in run.said(), run.said()[-3000:]
        learned = run.lines()[-1]
    told = {pod: {each["id"]: each for each in leader.outcomes(pod)} for pod in pods}
    assert learned == expected
    for each in told.values():
        saved = [one for one in each.values() if one["outcome"] == "saved"]
        assert len(saved) >= 3, (each, run.said()[-3000:])
        assert all(one["outcome"] == "saved" or "nothing listens" in one["why"] for one in each.values())
    for name in set(told[pods[0]]) & set(told[pods[-1]]):
        assert told[pods[0]][name].get("step") == told[pods[-1]][name].get("step"), "all ranks saved the same step"
    longest = max(each["seconds"] for each in told[FIRST].values())
    row("undisturbed", f"{len(told[FIRST])} wishes, the longest save {longest:.2f} s", f"same: {learned == expected}")


@PROGRAM
def test_killed_at_random_moments_it_loses_at_most_the_period_a_step_and_a_save(
    program: str, commands: Commands, options: dict[str, Any], steps: int, leader: Leader, tmp_path: Path, row: Row
) -> None:
    options = options | {"arguments": options.get("arguments", {}) | own_saves(program)}
    work = Workload(commands(program), tmp_path / "work", options, leader=leader)
    by_chance, seconds = random.Random(program), 10 / steps  # noqa: S311
    made: list[tuple[float, int]] = []
    told: list[dict[str, Any]] = []
    bound = 0.0
    for number in range(KILLS + 1):
        work.commands = commands(program)  # ports that are free now
        pods = [FIRST, SECOND][: len(work.commands)]
        for pod in pods:
            leader.reports[pod].clear()
        with wishing(leader, pods, PERIOD), work.started(steps=100_000, sleep=seconds) as run:
            wait_until(lambda: bool(run.lines()) or run.ended(), SECONDS, "the first line")
            began = int(run.lines()[0]["resumed"])
            if made:
                lost = made[-1][0] - max((at for at, step in made if step <= began), default=made[0][0])
                row(f"kill {number}", f"at step {made[-1][1]}", f"resumed at {began}, lost {lost:.1f} s of {bound:.1f}")
                assert lost <= bound
                assert began >= max(each.get("step", 0) for each in told), "what was told as saved is resumed"
            made, until = [], 0.0
            while not until or time.monotonic() < until:
                made.append((time.monotonic(), int(run.lines()[-1].get("step", began))))
                assert not run.ended(), run.said()[-3000:]
                if not until and leader.outcomes(FIRST):
                    until = time.monotonic() + by_chance.uniform(0, 3 * PERIOD)
                time.sleep(0.05)
            kill(run.processes)
            told = leader.outcomes(FIRST)
        first = {step: at for at, step in reversed(made)}.values()  # each step with the time at which it was seen first
        slowest = max((later - at for at, later in pairwise(sorted(first))), default=seconds)
        bound = PERIOD + HEARD + AHEAD * slowest + max(each["seconds"] for each in told)


def own_saves(program: str) -> dict[str, object]:
    return {"save_strategy": "no"} if "hugging" in program else {"enable_checkpointing": False}


def kill(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """SIGKILL for the launchers and all of their ranks, as when a node dies."""
    for each in processes:
        children = subprocess.run(["pgrep", "-P", str(each.pid)], capture_output=True, text=True, check=False)
        for pid in [str(each.pid), *children.stdout.split()]:
            subprocess.run(["kill", "-9", pid], check=False, capture_output=True)
        each.wait()


def test_a_save_that_fails_is_told_and_the_next_wish_and_the_hook_are_heard(leader: Leader, tmp_path: Path) -> None:
    work = Workload(alone("stock_huggingface.py"), tmp_path / "work", {"arguments": {"save_strategy": "no"}})
    work.leader, work.env = leader, {"GPU_TIERS_LISTEN_EPHEMERAL": "on"}
    small = work.folder / "out"
    small.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "small", str(small)], check=True)
    filler = small / "filler"
    try:
        with work.started(steps=2000, sleep=0.05) as run:
            run.train_to(5)
            filler.write_bytes(b"\0" * 1900 * 1024)
            leader.wish("no-room", 0, pod=FIRST)
            told = leader.outcome("no-room", FIRST)
            assert told["outcome"] == "failed"
            assert "No space left" in told["why"] or "rror" in told["why"]
            assert [each.name for each in small.iterdir()] == ["filler"]
            filler.unlink()
            leader.wish("room", 5, pod=FIRST)
            saved = leader.outcome("room", FIRST)
            assert saved["outcome"] == "saved"
            filler.write_bytes(b"\0" * (shutil.disk_usage(small).free - 100 * 1024))
            leader.wish("no-room-for-the-last", saved["step"] + 1, pod=FIRST)
            why = leader.outcome("no-room-for-the-last", FIRST)["why"]
            assert why.startswith("the last checkpoint has ")
            assert sorted(each.name for each in small.iterdir()) == [f"checkpoint-{saved['step']}", "filler"]
            filler.unlink()
            assert run.preempt() == 0, run.said()[-3000:]
            assert run.wait() == {TERMINATED}
            made = run.steps()[-1]["step"]
        assert (small / f"checkpoint-{made:.0f}").is_dir()
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


@pytest.mark.parametrize("program", ["stock_huggingface.py", "stock_lightning.py"])
def test_a_rank_that_fails_stops_nothing_and_all_tell_it(program: str, leader: Leader, tmp_path: Path) -> None:
    """The folder is read-only for the first rank's writes: a file lies where its folder has to be."""
    options: dict[str, Any] = {"arguments": own_saves(program)}
    if "lightning" in program:
        options["arguments"] |= {"devices": 2, "strategy": "ddp"}
    start = [str(environment("torch") / "torchrun"), "--standalone", "--nproc-per-node=2"]
    work = Workload([[*start, str(PROGRAMS / program)]], tmp_path / "work", options, leader=leader)
    out = work.folder / "out"
    with work.started(steps=2000, sleep=0.05) as run:
        run.train_to(5)
        made = [each for each in out.rglob("gpu-tiers-*") if each.is_dir()]
        target = made[0] if "lightning" in program else out
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20k", "small", str(target)], check=True)
        try:
            leader.wish("no-room", 0, pod=FIRST)
            assert leader.outcome("no-room", FIRST)["outcome"] == "failed"
        finally:
            subprocess.run(["umount", "-l", str(target)], check=True)
        leader.wish("room", 5, pod=FIRST)
        assert leader.outcome("room", FIRST)["outcome"] == "saved", run.said()[-3000:]
        before = int(run.steps()[-1]["step"])
        run.train_to(before + 10)
        assert run.preempt() == 0, run.said()[-3000:]
        assert run.wait() == {TERMINATED}, run.said()[-3000:]


def test_who_can_t_save_says_so(leader: Leader, tmp_path: Path) -> None:
    out = Path("/dev/shm/gpu-tiers-wished")  # noqa: S108
    options = {"arguments": {"output_dir": str(out)}}
    work = Workload(alone("stock_huggingface.py"), tmp_path / "work", options, leader=leader)
    with work.started(steps=STEPS, sleep=0.1) as run:
        run.train_to(5)
        leader.wish("a", pod=FIRST)
        told = leader.outcome("a", FIRST)
        assert told["outcome"] == "unable"
        assert told["why"] == f"{out} is tmpfs at /dev/shm, which is gone with the pod"
        assert leader.reports[FIRST][-1][1]["step"] > 5
    shutil.rmtree(out, ignore_errors=True)


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ({"save_strategy": "no"}, []),
        ({"save_steps": 50}, [50, 100, 150, 200]),
        ({"save_steps": 50, "save_total_limit": 2}, [150, 200]),
    ],
    ids=["no-saves-of-its-own", "no-limit", "limit-2"],
)
def test_of_the_saves_on_a_wish_one_stays_and_its_own_are_rotated_as_before(
    arguments: dict[str, Any], kept: list[int], leader: Leader, tmp_path: Path
) -> None:
    work = Workload(alone("stock_huggingface.py"), tmp_path / "work", {"arguments": arguments}, leader=leader)
    seen: set[int] = set()
    with wishing(leader, [FIRST], 1.0), work.started(steps=200, sleep=0.06) as run:
        while not run.ended():
            there = steps_of(work.folder / "out")
            if "save_total_limit" in arguments:
                assert len(there) <= 3, "one that is about to go"
            seen |= set(there)
            time.sleep(0.05)
        assert run.wait() == {0}
    there = steps_of(work.folder / "out")
    saved = [each["step"] for each in leader.outcomes(FIRST) if each["outcome"] == "saved"]
    assert len(set(saved)) >= 5, saved
    wished = {step for step in there if mark(work.folder / "out", step)["wished"]}
    if "save_total_limit" in arguments:
        assert len(there) == 2
        assert there[-1] == 200
    else:
        assert [step for step in there if step not in wished] == kept
        assert len(wished) == 1
        assert max(wished) == max(step for step in saved if step not in kept)


def steps_of(folder: Path) -> list[int]:
    return sorted(int(each.name.partition("-")[2]) for each in folder.glob("checkpoint-*"))


def mark(folder: Path, step: int) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / f"checkpoint-{step}" / "gpu-tiers.json").read_text())
    return read


def test_the_best_model_is_loaded_at_the_end_all_the_same(leader: Leader, tmp_path: Path) -> None:
    arguments = {"eval_strategy": "steps", "eval_steps": 20, "save_steps": 40, "load_best_model_at_end": True}
    options = {"evaluate": 40, "arguments": arguments | {"save_total_limit": 1}}
    undisturbed = Workload(alone("stock_huggingface.py"), tmp_path / "undisturbed", options, listens=False)
    expected = undisturbed.finished(steps=STEPS)
    work = Workload(alone("stock_huggingface.py"), tmp_path / "work", options, leader=leader)
    with wishing(leader, [FIRST], 0.7), work.started(steps=STEPS, sleep=0.06) as run:
        assert run.wait() == {0}, run.said()[-3000:]
        learned = run.lines()[-1]
    assert len(leader.outcomes(FIRST)) >= 5
    assert learned["learned"][0] == expected["learned"][0]  # type: ignore[index]
    assert "could not" not in run.said().lower()


def test_of_lightnings_the_newest_wished_one_stays_and_what_its_callback_made(leader: Leader, tmp_path: Path) -> None:
    work = Workload(alone("stock_lightning.py"), tmp_path / "work", {}, leader=leader)
    with wishing(leader, [FIRST], 1.0), work.started(steps=STEPS, sleep=0.06) as run:
        assert run.wait() == {0}, run.said()[-3000:]
    (home,) = [each for each in (work.folder / "out").rglob("gpu-tiers-*") if each.is_dir()]
    saved = [each["step"] for each in leader.outcomes(FIRST) if each["outcome"] == "saved"]
    assert len(set(saved)) >= 4
    assert len(list(home.glob("*.ckpt"))) == 1
    own = [each.name for each in (work.folder / "out").rglob("epoch=*.ckpt")]
    assert own == ["epoch=1-step=200.ckpt"]
