"""Listens to transformers' Trainer: saves into its own kind of checkpoint, which its own resume reads.

train() is wrapped because only there a resume can be named, and a callback be put behind all of the user's. The
listener never sets should_training_stop, because the trainer would then load the best model, delete checkpoints, and
go on after train().
"""

from __future__ import annotations

import os
import sys
from typing import Any

from listener.attach import Listener, callback, guarded, next_call, version
from listener.mark import MARK, discard, flush, marks_of, write_mark
from listener.protocol import HANDLED, MEET_SECONDS, RUN, SAVE_SECONDS, around, quietly, remove, requested, say
from listener.resume import choose, listed

OLDEST_TRANSFORMERS = (4, 40)
FIRST_WEIGHTS_ONLY_TORCH = (2, 6)
"""From here on torch.load refuses what transformers before 4.47 saved."""
UNFINISHED = ".gpu-tiers-saving"


def attach_huggingface(module: Any) -> None:
    """Wrap Trainer.train of `module`, transformers.trainer, unless it is too old."""
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
        self.own = False
        """The trainer saves after this step by itself."""

    def notes(self) -> list[str]:
        return [os.path.join(each, MARK) for each in listed(self.folder)]

    def attach(self, free: bool) -> str | None:
        """Wrap this trainer; return the checkpoint to resume from, if the program leaves that `free`."""
        resumes = self.begins(self.trainer.args.output_dir) and free and RUN and self.loads()
        mark = self.resumes(choose(self.notes(), self.call)) if resumes else None
        events = {"on_step_end": self.step, "on_prediction_step": self.evaluates}
        events.update(on_save=self.after_save, on_train_end=self.train_end)
        self.callback, trainer = callback(self.module.TrainerCallback, self, events), self.trainer
        trainer.callback_handler.callbacks.append(self.callback)
        if self.able:
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
            self.own = control.should_save and not self.trainer.args.save_only_model and not self.ends()
            control.should_save = True
            if self.ends():
                control.should_evaluate = False

    def evaluates(self, *_: Any) -> None:
        """Save amid an evaluation, which may take longer than the hook waits, in a run of one process."""
        trainer = self.trainer
        amid = self.stepped and trainer.is_in_train and trainer.state.global_step < trainer.state.max_steps
        if amid and self.able and self.ranks.store is None and requested():
            self.saving, self.own = {"ends": True}, False
            trainer._save_checkpoint(trainer.model, None)
            if self.saving:
                trainer.callback_handler.on_save(trainer.args, trainer.state, trainer.control)

    def after_save(self, *_: Any) -> None:
        """End after a save for the hook, as the last of the callbacks."""
        if self.ends():
            self.finish()

    def train_end(self, *_: Any) -> None:
        self.close()

    # -- around the trainer's own _save_checkpoint

    def before_checkpoint(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        trial = args[1] if len(args) > 1 else kwargs.get("trial")
        path = os.path.join(self.trainer._get_output_dir(trial=trial), "checkpoint-%d" % self.trainer.state.global_step)
        best = self.trainer.state.global_step == getattr(self.trainer.state, "best_global_step", None)
        self.own = self.own or (best and self.strategy() == "best" and not self.ends())
        if self.saving is None or self.own:
            remove(os.path.join(path, MARK))
            return path
        return guarded(self, self.on_demand, path, args, kwargs)

    def strategy(self) -> str:
        strategy = self.trainer.args.save_strategy
        return str(getattr(strategy, "value", strategy))

    def after_checkpoint(self, path: Any, raised: BaseException | None) -> None:
        if raised is None and path is not None:
            guarded(self, self.by_itself, path)

    def by_itself(self, path: str) -> None:
        """Mark what the trainer saved because the program wants it, whole once every rank is here."""
        step, self.own = self.trainer.state.global_step, False
        whole = not self.trainer.args.save_only_model and self.ranks.meet("own/%d" % step, SAVE_SECONDS)
        if whole and self.trainer.args.should_save:
            write_mark(os.path.join(path, MARK), path, self.call, step)
        if self.saving is not None:
            self.concluded(step, "" if whole else "not every rank has saved")
        elif whole:
            self.saved(step)

    def on_demand(self, path: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Write to another folder and rename it, so that a killed pod leaves nothing that a run could resume from."""
        step, writes = self.trainer.state.global_step, self.trainer.args.should_save
        unfinished = os.path.join(os.path.dirname(path), UNFINISHED)
        new = os.path.join(unfinished, os.path.basename(path))
        wished = not self.ends()

        def write() -> None:
            if writes:
                discard(unfinished)
            if not self.ranks.meet("clean/%d" % step, MEET_SECONDS):
                raise TimeoutError("not every rank is ready")
            self.save_all(unfinished, new, args, kwargs)

        def commit() -> None:
            if writes:
                flush(new)
                write_mark(os.path.join(new, MARK), new, self.call, step, wished=wished)
                if os.path.isdir(path):
                    os.rename(path, os.path.join(unfinished, "old"))
                os.rename(new, path)
                discard(unfinished)

        self.save(step, write, commit, unfinished)
        if wished and writes and self.progress.known["last_saved_step"] == step:
            quietly(self.rotate, path)
        return HANDLED

    def save_all(self, folder: str, new: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Save into `folder` as the trainer does, with optimizer and random numbers, and not to a hub.

        The best step is hidden: the trainer would wait there for ranks that may have failed, and choose a best
        checkpoint that the program's settings would not have made. Before 4.46 it chooses by metrics: none are passed.
        """
        trainer, options, state = self.trainer, self.trainer.args, self.trainer.state
        before, best = (options.save_only_model, options.push_to_hub), getattr(state, "best_global_step", None)
        try:
            options.save_only_model = options.push_to_hub = False
            if best is not None:
                state.best_global_step = None
            trainer._get_output_dir = lambda trial=None: folder
            trial = args[1] if len(args) > 1 else kwargs.get("trial")
            trainer._save_checkpoint.__wrapped__(args[0] if args else kwargs.get("model"), trial)
        finally:
            options.save_only_model, options.push_to_hub = before
            if best is not None:
                state.best_global_step = best
            del trainer._get_output_dir
        if best is not None and options.should_save:
            state.save_to_json(os.path.join(new, "trainer_state.json"))

    def rotate(self, path: str) -> None:
        """Rotate as the trainer does. Without a limit, of saves on a wish the newest and the best stay."""
        options, best = self.trainer.args, self.trainer.state.best_model_checkpoint
        if not options.save_total_limit or options.save_total_limit < 0:
            stays = [os.path.realpath(each) for each in (path, best) if each]
            for mark in marks_of(self.notes(), self.call):
                if mark.wished and os.path.realpath(mark.path) not in stays:
                    discard(mark.path)
        elif hasattr(self.trainer, "_rotate_checkpoints"):
            self.trainer._rotate_checkpoints(use_mtime=True, output_dir=os.path.dirname(path))
        else:
            self.module.rotate_checkpoints(
                output_dir=os.path.dirname(path),
                save_total_limit=options.save_total_limit,
                best_model_checkpoint=best,
                use_mtime=True,
            )
