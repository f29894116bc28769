"""The frameworks' own behaviour at SIGTERM, without our callback; a new version may differ from the pages."""

from pathlib import Path

import pytest

from .environments import environment
from .training import Training

pytestmark = [pytest.mark.release, pytest.mark.timeout(3600)]  # the first test installs

LIGHTNING = """\
import lightning, train_lightning as run
run.SaveWhenAsked = lambda _: lightning.Callback()
run.main()
"""
HUGGING_FACE = """\
import functools, transformers, train_huggingface as run
run.SaveWhenAsked = transformers.TrainerCallback
run.TrainingArguments = functools.partial(run.TrainingArguments, enable_jit_checkpoint=True)
run.main()
"""


def terminated(program: str, folder: Path) -> tuple[set[int], int, list[str]]:
    """Return how a run ends that gets SIGTERM, after which step, and what lies in its checkpoint folder."""
    with Training([[str(environment("torch") / "python"), "-c", program]], folder).started(
        steps=10_000, seconds=0.05
    ) as run:
        run.train_a_little()
        run.terminate()
        codes = run.wait()
        last = int(run.steps()[-1]["step"])
    return codes, last, [each.name for each in (folder / "checkpoint").glob("*")]


def test_lightning_ends_as_if_all_were_done_and_saves_nothing(tmp_path: Path) -> None:
    codes, last, saved = terminated(LIGHTNING, tmp_path)
    assert (codes, saved) == ({0}, [])
    assert last < 10_000


def test_enable_jit_checkpoint_saves_and_ends_as_if_all_were_done(tmp_path: Path) -> None:
    codes, last, saved = terminated(HUGGING_FACE, tmp_path)
    assert codes == {0}
    assert saved in ([f"checkpoint-{last}"], [f"checkpoint-{last - 1}"]), "often before the step that it still makes"
    assert last < 10_000
