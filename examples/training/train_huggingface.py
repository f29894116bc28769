"""Hugging Face Trainer: a callback has it save when asked, and ends the program with 143 if its pod ends.

    python train_huggingface.py                            # or: torchrun --nproc-per-node=2 train_huggingface.py

CHECKPOINT names a folder, STEPS the last step, STEP_SECONDS a step's length. It fits y = 2x + 1 and needs no GPU.
"""

import atexit
import json
import os
import pathlib
import time
from typing import Any

import torch
import torch.distributed as dist
from gpu_tiers_checkpoint import checkpoint_requested, checkpoint_saved, listen, step_saved
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed

CHECKPOINT = pathlib.Path(os.environ.get("CHECKPOINT", "checkpoint"))
STEPS = int(os.environ.get("STEPS", "100"))
STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0.1"))


class SaveWhenAsked(TrainerCallback):
    """Copy this one, `any_rank` and `last_whole`."""

    asked = False

    def on_train_begin(self, *_: object, **__: object) -> None:
        """From here on there is something to save."""
        listen()

    def on_step_end(self, _args: TrainingArguments, _state: Any, control: Any, **_: object) -> None:
        """Let the Trainer save as it always does."""
        if checkpoint_requested(any_rank):
            self.asked = control.should_save = True

    def on_save(self, _args: TrainingArguments, state: Any, *_: object, **__: object) -> None:
        """Of the Trainer's own checkpoints, too: what an eviction would lose counts from here."""
        if dist.is_initialized():
            dist.barrier()
        step_saved(state.global_step)
        if self.asked:
            self.asked = False
            checkpoint_saved()


def any_rank(mine: bool) -> bool:  # noqa: FBT001 - the protocol's signature
    """Whether one rank was asked."""
    if not dist.is_initialized():
        return mine
    asked = torch.tensor(int(mine), device="cuda" if dist.get_backend() == "nccl" else "cpu")
    dist.all_reduce(asked, op=dist.ReduceOp.MAX)
    return bool(asked)


def last_whole() -> str | None:
    """The last checkpoint that was finished: the Trainer writes in place, and this file last."""
    whole = [file.parent for file in CHECKPOINT.glob("checkpoint-*/trainer_state.json")]
    return str(max(whole, key=lambda folder: int(folder.name.partition("-")[2]))) if whole else None


class Points(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Points of y = 2x + 1. On resuming, the Trainer shuffles as before and skips what it has seen."""

    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        x = torch.tensor([index / 2048 - 1])
        return {"x": x, "labels": 2 * x + 1}


class Line(torch.nn.Module):
    """y = slope * x + offset."""

    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(1, 1)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        """One step of the length that STEP_SECONDS says."""
        time.sleep(STEP_SECONDS)
        return {"loss": torch.nn.functional.mse_loss(self.line(x), labels)}


class Say(TrainerCallback):
    """Prints a line of JSON at the start and for each step, once for all ranks."""

    def on_train_begin(self, _args: TrainingArguments, state: Any, *_: object, **__: object) -> None:
        """Where this run begins."""
        self.say(state, resumed=state.global_step)

    def on_step_end(self, _args: TrainingArguments, state: Any, *_: object, model: Any, **__: object) -> None:
        """What it has learned so far."""
        self.say(state, step=state.global_step, slope=model.line.weight.item(), offset=model.line.bias.item())

    def say(self, state: Any, **line: float) -> None:
        """One line."""
        if state.is_world_process_zero:
            print(json.dumps(line), flush=True)


def main() -> None:
    """Train from where the run before stopped."""
    set_seed(0)
    trainer = Trainer(
        model=Line(),
        args=TrainingArguments(
            output_dir=str(CHECKPOINT),
            max_steps=STEPS,
            learning_rate=0.01,
            lr_scheduler_type="constant",
            use_cpu=not torch.cuda.is_available(),  # else ranks without a GPU don't know of each other
            report_to="none",
            disable_tqdm=True,
        ),
        train_dataset=Points(),
        callbacks=[Say(), SaveWhenAsked()],
    )
    atexit.register(trainer.accelerator.end_training)  # else gloo's threads may abort a rank at its very end
    trainer.train(resume_from_checkpoint=last_whole())


if __name__ == "__main__":
    main()
