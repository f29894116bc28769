"""The way into a program: by Python's own start, and only where the program imports a trainer."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from webhook.policy.checkpoint.listen import LISTENER, START, listener_texts

ATTACHED = "def attach_huggingface(module):\n    print('attached to', module.__name__, module.Trainer)\n"
PROGRAM = "import transformers.trainer; print('trains')"


@pytest.fixture
def pod(tmp_path: Path) -> Path:
    """A folder with the listener's files, and one with a framework."""
    (tmp_path / "python").mkdir()
    (tmp_path / "python" / START).write_text(listener_texts()[START])
    (tmp_path / "python" / LISTENER).write_text(ATTACHED)
    (tmp_path / "image" / "transformers").mkdir(parents=True)
    (tmp_path / "image" / "transformers" / "__init__.py").touch()
    (tmp_path / "image" / "transformers" / "trainer.py").write_text("class Trainer: ...\n")
    return tmp_path


def run(pod: Path, *options: str, program: str = PROGRAM, **env: str) -> tuple[list[str], str]:
    own = {**os.environ, "PYTHONPATH": f"{pod / 'python'}:{pod / 'image'}", **env}
    command = [sys.executable, *options, "-c", program]
    ended = subprocess.run(command, env=own, capture_output=True, text=True, check=False)
    return ended.stdout.splitlines(), ended.stderr


def test_a_program_that_imports_a_trainer_gets_it(pod: Path) -> None:
    out, err = run(pod)
    assert out == ["attached to transformers.trainer <class 'transformers.trainer.Trainer'>", "trains"]
    assert err == ""


def test_any_other_program_imports_nothing_more_than_without_it(pod: Path) -> None:
    program = "import sys; print(*sorted(sys.modules), sep='\\n')"
    (with_it, _), (without, _) = run(pod, program=program), run(pod, program=program, PYTHONPATH=str(pod / "image"))
    more = {name for name in set(with_it) - set(without) if not name.startswith(("importlib", "sitecustomize"))}
    assert more <= {"contextlib", "types", "warnings"}, "what importlib needs"
    assert "gpu_tiers_listen" not in with_it


@pytest.mark.parametrize("options", [["-E"], ["-I"], ["-S"]])
def test_who_turns_pythons_start_off_is_as_without_it(pod: Path, options: list[str]) -> None:
    path = "import sys; sys.path.append({!r}); ".format(str(pod / "image"))
    out, err = run(pod, *options, program=path + "import transformers.trainer; print('trains')")
    assert (out, err) == (["trains"], "")


def test_it_can_be_turned_off(pod: Path) -> None:
    out, err = run(pod, GPU_TIERS_LISTEN="off")
    assert out[0] == "trains"
    assert err == ""


def test_the_sitecustomize_that_it_hides_runs_once(pod: Path) -> None:
    (pod / "image" / "sitecustomize.py").write_text("print('theirs', __file__)\n")
    out, _ = run(pod, program="import sitecustomize, transformers.trainer; print(sitecustomize.__file__)")
    theirs = str(pod / "image" / "sitecustomize.py")
    assert out == [
        f"theirs {theirs}",
        "attached to transformers.trainer <class 'transformers.trainer.Trainer'>",
        theirs,
    ]


def test_what_theirs_raises_is_reported_as_python_tells_it(pod: Path) -> None:
    (pod / "image" / "sitecustomize.py").write_text("raise RuntimeError('theirs')\n")
    out, err = run(pod)
    assert out[1] == "trains"
    assert "RuntimeError: theirs" in err


@pytest.mark.parametrize("text", ["raise RuntimeError('ours')", "def attach_huggingface(module): 1 / 0", "(", ""])
def test_a_fault_of_ours_is_one_line(pod: Path, text: str) -> None:
    (pod / "python" / LISTENER).write_text(text)
    out, err = run(pod)
    assert out[0] == "trains"
    assert err.count("\n") == 1
    assert err.startswith("gpu-tiers listen: not attached to transformers.trainer: ")


def test_an_error_of_the_framework_stays_its_own(pod: Path) -> None:
    (pod / "image" / "transformers" / "trainer.py").write_text("raise ImportError('no torch')\n")
    out, err = run(pod)
    assert out == []
    assert err.splitlines()[-1] == "ImportError: no torch"
    assert "gpu-tiers" not in err


def test_a_framework_that_is_not_there_is_not_found(pod: Path) -> None:
    _, err = run(pod, program="import lightning.pytorch.trainer.trainer")
    assert err.splitlines()[-1] == "ModuleNotFoundError: No module named 'lightning'"


LAUNCHED = """\
import signal, sys, gpu_tiers_listen
from torch.distributed.launcher import api
class SignalException(Exception):
    sigval = signal.SIGTERM
class Failed(Exception):
    def __init__(self, *codes):
        self.failures = {rank: type("Rank", (), {"exitcode": code}) for rank, code in enumerate(codes)}
"""
ENDS = {
    "all ranks saved and ended": ("Failed(143, 143)", True, 143),
    "the agent ended the others of a rank that did": ("Failed(143, -15)", True, 143),
    "a rank crashed": ("Failed(143, 1)", True, 1),
    "SIGTERM before its ranks had ended, which have saved": ("SignalException()", True, 143),
    "SIGTERM, and nothing is saved": ("SignalException()", False, 1),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_launcher_ends_as_its_ranks_do(pod: Path, name: str) -> None:
    raised, saved, code = ENDS[name]
    (pod / "python" / LISTENER).write_text(listener_texts()[LISTENER])
    launcher = pod / "image" / "torch" / "distributed" / "launcher"
    launcher.mkdir(parents=True)
    (launcher / "api.py").touch()
    if saved:
        (pod / "done").touch()
    own = {**os.environ, "PYTHONPATH": f"{pod / 'python'}:{pod / 'image'}", "GPU_TIERS_FOLDER": str(pod)}
    program = f"{LAUNCHED}raise {raised}"
    ended = subprocess.run([sys.executable, "-c", program], env=own, capture_output=True, text=True, check=False)
    assert ended.returncode == code, ended.stderr
