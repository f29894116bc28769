"""Copy this file beside your training program. It answers the checkpoint hook of gpu-tiers, and needs nothing else.

    listen()                                  # once, when you are able to save
    for step in range(resumed, steps):
        train(step)
        if checkpoint_requested():            # after each step
            save(step)
            checkpoint_saved()                # ends the program with 143, if its pod ends

Where `save` fails call `checkpoint_failed(why)` instead; unless its pod ends, the program trains on.

`step_saved(step)` after each whole checkpoint, those at intervals too, says what an eviction would lose: it writes the
file `progress`. If gpu_tiers_report.py is copied too and the pod may report, it is reported. The answer may ask for a
save: after that one the program trains on.

With several ranks, in one pod or in many, pass an `any_rank` and a `barrier`. `any_rank` takes this rank's answer and
returns True on all ranks if one said True (an all-reduce with max). `barrier` waits until all ranks have saved. Then
all ranks save the same step before the first one ends, whichever of their pods is preempted.
"""

import atexit
import contextlib
import functools
import json
import os
import pathlib
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

FOLDER = pathlib.Path(os.environ.get("GPU_TIERS_FOLDER", "/run/gpu-tiers"))
TERMINATED = 128 + signal.SIGTERM
"""With exit code 0 a Job would count the pod as succeeded, and the training would end."""
HOOK_SECONDS = 5.0
"""How long the hook may take to see the answer; it looks once a second and removes its request then."""
END_SECONDS = 1.0
"""How long it may take to end after that. Then SIGTERM comes, but only to the first process of the container."""

_signalled = False
_goes_on = False
"""All ranks know that the save is for a wish, and no pod ends."""
_progress: dict[str, float] = {"step": 0}


def listen(*signals: signal.Signals) -> None:
    """Announce that this program saves when asked: by the hook's file, by SIGTERM, and by further signals given."""
    for number in (signal.SIGTERM, *signals):
        signal.signal(number, _remember)
    FOLDER.mkdir(parents=True, exist_ok=True)
    if not (FOLDER / "listening").exists():  # else another rank listens, and the request may be for all
        (FOLDER / "request").unlink(missing_ok=True)  # left by a container that ran here before and did not answer
    (FOLDER / "listening").touch()
    atexit.register(stop_listening)
    _wishes()


def stop_listening() -> None:
    """Stop announcing, for example after the last step: from now on the hook returns at once."""
    (FOLDER / "listening").unlink(missing_ok=True)


def checkpoint_requested(any_rank: Callable[[bool], bool] = bool) -> bool:
    """Whether to save now. With several ranks all get the same answer, so that no rank saves alone."""
    global _goes_on  # noqa: PLW0603 - checkpoint_saved reads it
    wishes = _wishes()
    wish, ends = wishes and wishes.due(), _signalled or (FOLDER / "request").exists()
    if not any_rank(bool(wish) or ends):
        return False
    _goes_on = not any_rank(ends)
    if wish and _goes_on:
        wishes.begin(wish.id)
    return True


def checkpoint_saved(barrier: Callable[[], object] | None = None) -> None:
    """Tell that all ranks have saved. If a pod ends, end with 143, so that nobody waits for the rest of the grace."""
    if barrier:
        barrier()
    wishes = _wishes()
    if _goes_on:
        if wishes and wishes.begun:
            wishes.finish(wishes.begun, "saved", step=_progress["step"])
        return
    _end("done")


def checkpoint_failed(why: str) -> None:
    """Tell that the save failed, in the place of `checkpoint_saved`: on each rank, if it failed on one.

    A save for a wish is asked for again after a while. If a pod ends, its hook ends at once with an error.
    """
    wishes = _wishes()
    if not _goes_on:
        _end("failed")
    elif wishes and wishes.begun:
        wishes.finish(wishes.begun, "failed", why=why)


def _end(answer: str) -> NoReturn:
    (FOLDER / answer).touch()
    deadline = time.monotonic() + HOOK_SECONDS
    while (FOLDER / "request").exists() and time.monotonic() < deadline:
        time.sleep(0.1)  # if we end before the hook does, the kubelet reports FailedPreStopHook
    (FOLDER / "request").unlink(missing_ok=True)
    deadline = time.monotonic() + END_SECONDS
    while not _signalled and time.monotonic() < deadline:
        time.sleep(0.05)
    raise SystemExit(TERMINATED)


def step_saved(step: int) -> None:
    """Note that this step lies in a whole checkpoint. With several ranks call it on all, once all have saved."""
    if os.environ.get("LOCAL_RANK", "0") != "0":
        return  # one rank speaks for its pod
    _progress.update(step=step, last_saved_step=step, last_saved_at=round(time.time(), 1))
    unfinished = FOLDER / f"progress.{os.getpid()}"
    with contextlib.suppress(OSError):  # it is no reason to end a training
        unfinished.write_text(json.dumps(_progress))
        unfinished.replace(FOLDER / "progress")
    if wishes := _wishes():
        wishes.saved(step)


@functools.cache
def _wishes() -> Any:
    """Start the thread that reports, once; return the wishes that it hears. None if nobody reports for this rank."""
    if os.environ.get("LOCAL_RANK", "0") != "0":
        return None
    try:
        from gpu_tiers_report import Reporter, Wishes  # noqa: PLC0415 - only who reports copies it
    except ModuleNotFoundError:
        return None
    wishes = Wishes()
    Reporter(lambda: _progress, functools.partial(print, file=sys.stderr), wishes).start()
    return wishes


def _remember(*_: object) -> None:
    global _signalled  # noqa: PLW0603 - a signal handler has no other place to note it
    _signalled = True
