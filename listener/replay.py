"""Restores the random numbers and the position in the data, which Lightning's checkpoints lack.

The data is replayed because a plain DataLoader can't begin in the middle. Its order is drawn from random numbers when
the epoch begins. So the order is drawn again from the same numbers, and the batches that were seen are skipped.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable
from typing import Any

from listener.protocol import around


def random_numbers() -> dict[str, Any]:
    """Return the random states of this process, in types that torch.load takes with weights_only."""
    torch: Any = sys.modules["torch"]
    state = {"python": random.getstate(), "torch": torch.get_rng_state()}
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        name, keys, *rest = numpy.random.get_state()
        state["numpy"] = (name, torch.tensor(keys.astype("int64")), *rest)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def set_random_numbers(state: dict[str, Any]) -> None:
    torch: Any = sys.modules["torch"]
    numpy: Any = sys.modules.get("numpy")
    version, keys, gauss = state["python"]
    random.setstate((version, tuple(keys), gauss))
    torch.set_rng_state(state["torch"].cpu())
    if "numpy" in state and numpy is not None:
        name, numbers, *rest = state["numpy"]
        numpy.random.set_state((name, numbers.numpy().astype("uint32"), *rest))
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"].cpu())


class Replay:
    """Wraps the two functions of Lightning's fit loop that make the iterators of the training data."""

    def __init__(self, trainer: Any) -> None:
        self.loop = trainer.fit_loop
        self.trainer = trainer
        self.epoch: dict[str, Any] | None = None
        """The numbers from which this epoch's order was drawn."""
        self.recalled: dict[str, Any] | None = None
        """What the resumed checkpoint says, until its epoch begins."""

    def wrap(self, guard: Callable[..., Any]) -> None:
        """`guard` stops the listener where one of these fails: what it would save could not be resumed exactly."""
        epoch, own = self.loop.epoch_loop, functools.partial
        for where, name, before, after in (
            (self.loop, "setup_data", self.before_setup, self.after_setup),
            (epoch, "on_run_start", self.before_epoch, self.after_epoch),
        ):
            setattr(where, name, around(getattr(where, name), own(guard, before), own(guard, after)))

    def unwrap(self) -> None:
        self.loop.__dict__.pop("setup_data", None)
        self.loop.epoch_loop.__dict__.pop("on_run_start", None)

    def remember(self) -> dict[str, Any]:
        return {"random": random_numbers(), "epoch": self.epoch}

    def before_setup(self, _args: Any, _kwargs: Any) -> tuple[Any, dict[str, Any]]:
        if self.recalled and self.recalled.get("epoch"):
            set_random_numbers(self.recalled["epoch"])
        return self.loop._combined_loader, random_numbers()

    def after_setup(self, before: Any, _raised: Any) -> None:
        if before and self.loop._combined_loader is not before[0]:  # a new one, which has drawn its order
            self.epoch = before[1]

    def before_epoch(self, args: list[Any], _kwargs: Any) -> Any:
        if self.recalled is None and self.trainer.current_epoch > 0 and not self.loop.epoch_loop.restarting:
            self.epoch = random_numbers()
        return args[0]

    def after_epoch(self, fetcher: Any, _raised: Any) -> None:
        recalled, self.recalled = self.recalled, None
        if recalled is not None:
            self.skip(fetcher, recalled)

    def skip(self, fetcher: Any, recalled: dict[str, Any]) -> None:
        """Draw the order again and leave out what was seen. Loaders with a state_dict need no help."""
        loaders = fetcher.combined_loader.flattened
        if all(hasattr(each, "state_dict") and hasattr(each, "load_state_dict") for each in loaders):
            return
        seen = self.loop.epoch_loop.batch_progress.current.ready
        if seen and recalled.get("epoch"):
            fetched = fetcher.fetched
            set_random_numbers(recalled["epoch"])
            iter(fetcher)
            for _ in range(seen):
                next(fetcher)
            fetcher.fetched = max(fetcher.fetched, fetched)
        set_random_numbers(recalled["random"])
