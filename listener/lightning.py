"""Listens to Lightning's Trainer, under either of its names.

save_checkpoint is wrapped so that, whichever callback saves, a whole checkpoint gets a mark, and a checkpoint that is
written over loses its mark. The marks lie in a folder of the run, because a checkpoint may be one file, anywhere.
Checkpoints of weights alone, and those at a URL, get none.
"""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

from listener.attach import Listener, callback, guarded, next_call, version
from listener.mark import discard, flush, marks_of, write_mark
from listener.protocol import RUN, around, remove, say
from listener.replay import Replay
from listener.resume import choose, listed

OLDEST_LIGHTNING = (2, 0)
FIRST_RESUMED = (2, 6)
"""Before this a training that is resumed amid an epoch counts its batches otherwise."""
CKPT_PATH = 4
"""Index of ckpt_path in the arguments of fit(), the trainer counted."""


def attach_lightning(module: Any) -> None:
    """Wrap fit and save_checkpoint of Lightning's Trainer, unless it is too old."""
    package = module.__name__.split(".")[0]
    known = version(sys.modules[package])
    if known < OLDEST_LIGHTNING:
        say("not listening: %s is older than %d.%d" % (package, *OLDEST_LIGHTNING))
        return
    base = sys.modules[module.__name__.split(".trainer.")[0] + ".callbacks"].Callback

    def before(args: list[Any], kwargs: dict[str, Any]) -> Lightning | None:
        trainer = args[0]
        spawns = "MultiProcessing" in type(trainer.strategy.launcher).__name__  # what is attached can't go there
        if getattr(trainer, "fast_dev_run", False) or spawns or "_gpu_tiers" in trainer.__dict__:
            return None
        listener = trainer._gpu_tiers = Lightning(next_call(), trainer)
        free = (args[CKPT_PATH] if len(args) > CKPT_PATH else kwargs.get("ckpt_path")) is None
        guarded(listener, listener.attach, base, free, known)
        return listener

    module.Trainer.fit = around(module.Trainer.fit, before, after_fit)
    module.Trainer.save_checkpoint = around(module.Trainer.save_checkpoint, before_save, after_save)


def after_fit(listener: Lightning | None, raised: BaseException | None) -> None:
    if listener is not None:
        listener.trainer.__dict__.pop("_gpu_tiers", None)
        listener.detach()
        listener.ended(raised)


def before_save(args: list[Any], kwargs: dict[str, Any]) -> Any:
    listener = args[0].__dict__.get("_gpu_tiers")
    path = args[1] if len(args) > 1 else kwargs.get("filepath")
    weights = args[2] if len(args) > 2 else kwargs.get("weights_only")
    if listener is None or weights or "://" in str(path):
        return None
    guarded(listener, listener.unmark, str(path))
    return listener, os.path.abspath(str(path))


def after_save(saved: Any, raised: BaseException | None) -> None:
    if saved is not None and raised is None:
        guarded(saved[0], saved[0].marked, saved[1])


class Lightning(Listener):
    """One call of Trainer.fit."""

    def __init__(self, call: int, trainer: Any) -> None:
        super().__init__(call)
        self.trainer, self.replay, self.counted = trainer, Replay(trainer), -1
        self.free = self.writes = False
        self.fault: Exception | None = None
        """What went wrong in a save of ours."""
        self.callback: Any = None
        point = trainer.checkpoint_callback
        root = getattr(point, "dirpath", None) or (trainer.loggers[0].save_dir if trainer.loggers else None)
        self.root = os.path.abspath(str(root or trainer.default_root_dir))
        self.home = os.path.join(self.root, "gpu-tiers-%s" % (RUN[:13] or "unnamed"))

    def notes(self) -> list[str]:
        return [each for each in listed(self.home) if each.endswith(".json")]

    def own(self, step: int, what: str) -> str:
        return os.path.join(self.home, "%d-%d%s" % (self.call, step, what))

    def attach(self, base: type, free: bool, known: tuple[int, int]) -> None:
        """Add the callback, and have it resume if the program leaves that `free`."""
        events = {"setup": self.setup, "on_train_batch_end": self.batch, "on_train_end": self.train_end}
        events.update(on_save_checkpoint=self.remember, on_load_checkpoint=self.recall)
        self.callback = callback(base, self, events)
        self.trainer.callbacks.append(self.callback)
        if known < FIRST_RESUMED:
            say("saves, but does not resume: Lightning is older than %d.%d" % FIRST_RESUMED)
            return
        self.replay.wrap(functools.partial(guarded, self))
        if free and RUN:
            self.free = True
            connector = self.trainer._checkpoint_connector
            connector._restore_modules_and_callbacks = around(
                connector._restore_modules_and_callbacks, self.before_restore, self.after_restore
            )

    def detach(self) -> None:
        self.trainer.callbacks = [each for each in self.trainer.callbacks if each is not self.callback]
        self.replay.unwrap()

    # -- events

    def setup(self, *_: Any) -> None:
        """Begin and choose a checkpoint, before anything is loaded."""
        if self.begins(self.root):
            self.folder = self.home
            if self.ranks.local == 0:
                os.makedirs(self.home, exist_ok=True)
            if self.free:
                self.resumes(choose(self.notes(), self.call))

    def before_restore(self, args: list[Any], _kwargs: dict[str, Any]) -> None:
        if self.mark is not None and not self.off:
            args[:1] = [self.mark.path]

    def after_restore(self, _: Any, __: Any) -> None:
        self.trainer._checkpoint_connector.__dict__.pop("_restore_modules_and_callbacks", None)

    def batch(self, *_: Any) -> None:
        """Save if it is due, after a step of the optimizer: training can resume nowhere else."""
        trainer = self.trainer
        if trainer.global_step != self.counted:
            self.counted = trainer.global_step
            if self.after_step(self.counted, self.last()):
                self.on_demand(self.counted)

    def last(self) -> int:
        trainer = self.trainer
        if trainer.max_steps and trainer.max_steps > 0:
            return int(trainer.max_steps)
        batches, epochs = trainer.num_training_batches, trainer.max_epochs
        if not epochs or epochs < 0 or batches == float("inf"):
            return 0
        return int(epochs * -(-batches // trainer.accumulate_grad_batches))

    def train_end(self, *_: Any) -> None:
        self.close()

    def on_demand(self, step: int) -> None:
        path, wished = self.own(step, ".ckpt"), not self.ends()

        def commit() -> None:
            if self.trainer.is_global_zero:
                flush(path)
                write_mark(self.own(step, ".json"), path, self.call, step, wished=wished)

        self.save(step, functools.partial(self.write, path), commit, path)
        if self.ends():
            self.finish()
        elif self.trainer.is_global_zero and self.progress.known["last_saved_step"] == step:
            self.prune()

    def write(self, path: str) -> None:
        """Save as the trainer does; raise an error once all ranks have met, as they do within."""
        strategy = self.trainer.strategy
        save, self.fault = strategy.save_checkpoint, None

        def held(*args: Any, **kwargs: Any) -> None:
            try:
                save(*args, **kwargs)
            except Exception as error:
                self.fault = error

        try:
            strategy.save_checkpoint, self.writes = held, True
            self.trainer.save_checkpoint(path)
        finally:
            self.writes = False
            strategy.__dict__.pop("save_checkpoint", None)
        if self.fault is not None:
            raise self.fault

    def remember(self, trainer: Any, _module: Any, checkpoint: dict[str, Any]) -> None:
        """Put random numbers into the checkpoint; ranks but the first use files of their own."""
        checkpoint["gpu_tiers"] = self.replay.remember()
        if trainer.global_rank and os.path.isdir(self.home):
            torch: Any = sys.modules["torch"]
            try:
                torch.save(checkpoint["gpu_tiers"], self.own(trainer.global_step, ".random-%d" % trainer.global_rank))
            except Exception as error:
                if not self.writes:
                    raise
                self.fault = error

    def recall(self, trainer: Any, _module: Any, checkpoint: dict[str, Any]) -> None:
        if self.mark is None:
            return
        self.replay.recalled = checkpoint.get("gpu_tiers")
        numbers = self.own(self.mark.step, ".random-%d" % trainer.global_rank)
        if trainer.global_rank and os.path.exists(numbers):
            torch: Any = sys.modules["torch"]
            self.replay.recalled = torch.load(numbers, weights_only=True)

    # -- around the trainer's own save_checkpoint

    def unmark(self, path: str) -> None:
        if self.trainer.is_global_zero:
            for each in marks_of(self.notes(), self.call):
                if os.path.realpath(each.path) == os.path.realpath(path):
                    remove(each.file)

    def marked(self, path: str) -> None:
        """Mark a whole save that the trainer made by itself."""
        if not self.able or self.writes:
            return
        step = self.trainer.global_step
        if self.trainer.is_global_zero and os.path.isdir(self.home):
            write_mark(self.own(step, ".json"), path, self.call, step)
            self.prune()
        self.saved(step)

    def prune(self) -> None:
        """Keep what belongs to the two latest marks, of our own checkpoints only the newest whole one."""
        marks = marks_of(self.notes(), self.call)
        ours = [each for each in marks if os.path.dirname(each.path) == self.home]
        newest = next((each for each in ours if each.is_whole()), None)
        stays = [each for each in marks if each is newest or each not in ours][:2]
        if newest is not None and newest not in stays:
            stays.append(newest)
        names = tuple("%d-%d." % (self.call, each.step) for each in stays)
        for path in listed(self.home):
            name = os.path.basename(path)
            if name.startswith("%d-" % self.call) and not name.startswith(names):
                discard(path)
