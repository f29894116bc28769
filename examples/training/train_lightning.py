"""Lightning: a callback asks after each batch, saves at the hook's request, and ends the program.

    python train_lightning.py                              # or: torchrun --nproc-per-node=2 train_lightning.py

CHECKPOINT names a folder, STEPS the last step, STEP_SECONDS a step's length. It fits y = 2x + 1 and needs no GPU.
"""

import atexit
import functools
import json
import os
import pathlib
import time
from collections.abc import Iterator
from typing import Any

import lightning
import torch
import torch.distributed as dist
from gpu_tiers_checkpoint import checkpoint_requested, checkpoint_saved, listen, step_saved
from torch.utils.data import DataLoader, IterableDataset

CHECKPOINT = pathlib.Path(os.environ.get("CHECKPOINT", "checkpoint")) / "last.ckpt"
STEPS = int(os.environ.get("STEPS", "100"))
STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0.1"))


class SaveWhenAsked(lightning.Callback):
    """Copy this one. `path` is where it saves, and what the next run passes to `fit` as `ckpt_path`."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def on_train_start(self, *_: object) -> None:
        """From here on there is something to save."""
        listen()

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: object) -> None:
        """All ranks get the same answer; the first one writes, and Lightning writes beside the place first."""
        if checkpoint_requested(functools.partial(trainer.strategy.reduce_boolean_decision, all=False)):
            trainer.save_checkpoint(self.path)  # returns once all ranks have saved
            step_saved(trainer.global_step)
            checkpoint_saved(trainer.strategy.barrier)


class Steps(IterableDataset[tuple[torch.Tensor, torch.Tensor]]):
    """Batches that depend on step and rank alone, so a resumed run is the same run."""

    def __init__(self, done: int, rank: int, ranks: int) -> None:
        self.done, self.rank, self.ranks = done, rank, ranks

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for step in range(self.done + 1, STEPS + 1):
            x = torch.rand(8, 1, generator=torch.Generator().manual_seed(step * self.ranks + self.rank)) * 2 - 1
            yield x, 2 * x + 1


class Line(lightning.LightningModule):
    """y = slope * x + offset."""

    def __init__(self) -> None:
        super().__init__()
        self.line = torch.nn.Linear(1, 1)

    def train_dataloader(self) -> DataLoader[tuple[torch.Tensor, torch.Tensor]]:
        """Begin where the run before stopped: Lightning restores the step, and of a plain DataLoader no position."""
        return DataLoader(Steps(self.global_step, self.global_rank, self.trainer.world_size), batch_size=None)

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], _: int) -> torch.Tensor:
        """One step of the length that STEP_SECONDS says."""
        time.sleep(STEP_SECONDS)
        x, y = batch
        return torch.nn.functional.mse_loss(self.line(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Its state is part of the checkpoint."""
        return torch.optim.Adam(self.parameters(), lr=0.01)


class Say(lightning.Callback):
    """Prints a line of JSON at the start and for each step, once for all ranks."""

    def on_train_start(self, trainer: lightning.Trainer, *_: object) -> None:
        """Where this run begins."""
        self.say(trainer, resumed=trainer.global_step)

    def on_train_batch_end(self, trainer: lightning.Trainer, module: Any, *_: object) -> None:
        """What it has learned so far."""
        self.say(trainer, step=trainer.global_step, slope=module.line.weight.item(), offset=module.line.bias.item())

    def say(self, trainer: lightning.Trainer, **line: float) -> None:
        """One line."""
        if trainer.is_global_zero:
            print(json.dumps(line), flush=True)


def leave() -> None:
    """End the ranks' group: Lightning ends NCCL's alone, and gloo's threads may abort a rank at its very end."""
    if dist.is_initialized():
        dist.destroy_process_group()


def main() -> None:
    """Train from where the run before stopped."""
    lightning.seed_everything(0, verbose=False)
    atexit.register(leave)
    trainer = lightning.Trainer(
        max_steps=STEPS,
        num_nodes=int(os.environ.get("GROUP_WORLD_SIZE", "1")),
        devices=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
        callbacks=[Say(), SaveWhenAsked(CHECKPOINT)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    trainer.fit(Line(), ckpt_path=CHECKPOINT if CHECKPOINT.exists() else None)
    trainer.save_checkpoint(CHECKPOINT)


if __name__ == "__main__":
    main()
