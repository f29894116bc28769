"""Listens to transformers' Trainer: saves into its own kind of checkpoint, which its own resume reads.

Why train() is wrapped: only there a resume can be named, and a callback be put behind all of the user's. Why it never
sets should_training_stop: the trainer would then finish: load the best model, delete checkpoints, go on after train().
"""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

from listener.attach import Listener, callback, guarded, next_call, version
from listener.mark import MARK, write_mark
from listener.protocol import HANDLED, MEET_SECONDS, RUN, SAVE_SECONDS, around, remove, requested, say
from listener.resume import choose, listed

OLDEST_TRANSFORMERS = (4, 40)
FIRST_WEIGHTS_ONLY_TORCH = (2, 6)
"""From here on torch.load refuses what transformers before 4.47 saved."""
UNFINISHED = ".gpu-tiers-saving"


def attach_huggingface(module: Any) -> None:
    """Called with transformers.trainer."""
    if version(sys.modules["transformers"]) < OLDEST_TRANSFORMERS:
        say("not listening: transformers is older than %d.%d" % OLDEST_TRANSFORMERS)
        return

    def before(args: list[Any], kwargs: dict[str, Any]) -> HuggingFace | None:
        trainer = args[0]
        trial = args[2] if len(args) > 2 else kwargs.get("trial")
        mode = str(getattr(trainer.args, "parallel_mode", "")).lower()
        searches = trial is not None or getattr(trainer, "hp_search_backend", None) is not None
        if searches or "tpu" in mode or "sagemaker" in mode or "_gpu_tiers" in trainer.__dict__:
            return None
        listener = trainer._gpu_tiers = HuggingFace(next_call(), trainer, module)
        free = (args[1] if len(args) > 1 else kwargs.get("resume_from_checkpoint")) is None
        path = guarded(listener, listener.attach, free)
        if path is not None and len(args) > 1:
            args[1] = path
        elif path is not None:
            kwargs["resume_from_checkpoint"] = path
        return listener

    def after(listener: HuggingFace | None, raised: BaseException | None) -> None:
        if listener is not None:
            listener.trainer.__dict__.pop("_gpu_tiers", None)
            listener.detach()
            listener.ended(raised)

    module.Trainer.train = around(module.Trainer.train, before, after)


class HuggingFace(Listener):
    """One call of Trainer.train."""

    def __init__(self, call: int, trainer: Any, module: Any) -> None:
        super().__init__(call)
        self.trainer, self.module = trainer, module
        self.callback: Any = None

    def attach(self, free: bool) -> str | None:
        """The checkpoint to resume from, if the program leaves that `free`."""
        if not self.meets() or not self.begin(self.trainer.args.output_dir):
            return None
        notes = [os.path.join(each, MARK) for each in listed(self.trainer.args.output_dir)]
        mark = self.resumes(choose(notes, self.call)) if free and RUN and self.loads() else None
        events = {"on_step_end": self.step, "on_prediction_step": self.evaluates}
        events.update(on_save=self.after_save, on_train_end=self.train_end)
        self.callback, trainer = callback(self.module.TrainerCallback, self, events), self.trainer
        trainer.callback_handler.callbacks.append(self.callback)
        trainer._save_checkpoint = around(trainer._save_checkpoint, self.before_checkpoint, self.after_checkpoint)
        return None if mark is None else mark.path

    def loads(self) -> bool:
        """Return True if this transformers reads its own checkpoints with this torch."""
        torch = sys.modules["torch"]
        forced = os.environ.get("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in ("1", "y", "yes", "true")
        if hasattr(self.module, "safe_globals") or version(torch) < FIRST_WEIGHTS_ONLY_TORCH or forced:
            return True
        say("saves, but does not resume: transformers is too old to load its checkpoints with this torch")
        return False

    def detach(self) -> None:
        trainer, handler = self.trainer, self.trainer.callback_handler
        if self.callback is None:
            return
        handler.callbacks = [each for each in handler.callbacks if each is not self.callback]
        trainer.__dict__.pop("_save_checkpoint", None)

    # -- events

    def step(self, _args: Any, state: Any, control: Any) -> None:
        if self.after_step(state.global_step, state.max_steps):
            control.should_save, control.should_evaluate = True, False

    def evaluates(self, *_: Any) -> None:
        """An evaluation amid the training may take longer than the hook waits. One process saves within it."""
        trainer = self.trainer
        amid = self.stepped and trainer.is_in_train and trainer.state.global_step < trainer.state.max_steps
        if amid and self.ranks.store is None and requested():
            self.saving = True
            trainer._save_checkpoint(trainer.model, None)
            if self.saving:
                trainer.callback_handler.on_save(trainer.args, trainer.state, trainer.control)

    def after_save(self, *_: Any) -> None:
        """Run as the last of the callbacks."""
        if self.saving:
            self.finish()

    def train_end(self, *_: Any) -> None:
        self.close()

    # -- around the trainer's own _save_checkpoint

    def before_checkpoint(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        trial = args[1] if len(args) > 1 else kwargs.get("trial")
        path = os.path.join(self.trainer._get_output_dir(trial=trial), "checkpoint-%d" % self.trainer.state.global_step)
        if not self.saving:
            remove(os.path.join(path, MARK))
            return path
        return guarded(self, self.on_demand, path, args, kwargs)

    def after_checkpoint(self, path: Any, raised: BaseException | None) -> None:
        if raised is None and path is not None:
            guarded(self, self.by_itself, path)

    def by_itself(self, path: str) -> None:
        """The trainer saved because the program wants it. That is whole once every rank is here."""
        step = self.trainer.state.global_step
        if not self.trainer.args.save_only_model and self.ranks.meet("own/%d" % step, SAVE_SECONDS):
            if self.trainer.args.should_save:
                write_mark(os.path.join(path, MARK), path, self.call, step)
            self.saved(step)

    def on_demand(self, path: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        unfinished = os.path.join(os.path.dirname(path), UNFINISHED)
        try:
            self.write(path, unfinished, args, kwargs)
        except Exception as error:
            self.could_not(error, unfinished)
        return HANDLED

    def write(self, path: str, unfinished: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Write to another folder and rename it, so that a killed pod leaves nothing that a run could resume from."""
        step, writes = self.trainer.state.global_step, self.trainer.args.should_save
        if writes:
            shutil.rmtree(unfinished, ignore_errors=True)
        self.all_at("clean", step, MEET_SECONDS)
        self.save_all(unfinished, args, kwargs)
        self.all_at("written", step, SAVE_SECONDS)
        if writes:
            new = os.path.join(unfinished, os.path.basename(path))
            write_mark(os.path.join(new, MARK), new, self.call, step)
            if os.path.isdir(path):
                os.rename(path, os.path.join(unfinished, "old"))
            os.rename(new, path)
            shutil.rmtree(unfinished, ignore_errors=True)
        self.all_at("there", step, MEET_SECONDS)
        self.saved(step)

    def save_all(self, folder: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        """The trainer's own save into that folder, optimizer and random numbers included, and not to a hub."""
        trainer, options = self.trainer, self.trainer.args
        before = options.save_only_model, options.push_to_hub
        try:
            options.save_only_model = options.push_to_hub = False
            trainer._get_output_dir = lambda trial=None: folder
            trainer._save_checkpoint.__wrapped__(*args, **kwargs)
        finally:
            options.save_only_model, options.push_to_hub = before
            del trainer._get_output_dir

    def all_at(self, what: str, step: int, seconds: float) -> None:
        if not self.ranks.meet("%s/%d" % (what, step), seconds):
            raise TimeoutError("not every rank has %s" % what)
