"""A training run small enough to read: it fits y = 2x + 1, saves when the checkpoint hook asks, and resumes.

CHECKPOINT names the file of its state, STEPS the last step, STEP_SECONDS a step's length; SAVE_EVERY is the interval
in steps of the checkpoints that it makes anyway, 0 for none.
"""

import json
import os
import pathlib
import random
import time

from gpu_tiers_checkpoint import checkpoint_requested, checkpoint_saved, listen, step_saved

CHECKPOINT = pathlib.Path(os.environ.get("CHECKPOINT", "checkpoint.json"))
STEPS = int(os.environ.get("STEPS", "100"))
STEP_SECONDS = float(os.environ.get("STEP_SECONDS", "0.1"))
SAVE_EVERY = int(os.environ.get("SAVE_EVERY", "0"))
RATE = 0.01

State = dict[str, float]


def resumed() -> State:
    """The state of the run before, else a fresh one."""
    if CHECKPOINT.exists():
        state: State = json.loads(CHECKPOINT.read_text())
        return state
    return {"step": 0, "slope": 0.0, "offset": 0.0, "loss": 0.0}


def save(state: State) -> None:
    """Write to a temporary file first: a run that is killed in the middle keeps the earlier state."""
    unfinished = CHECKPOINT.with_suffix(".tmp")
    unfinished.write_text(json.dumps(state))
    unfinished.replace(CHECKPOINT)
    step_saved(int(state["step"]))


def after_a_step(state: State) -> State:
    """One sample of gradient descent. The sample depends on the step alone, so a resumed run is the same run."""
    step = int(state["step"]) + 1
    x = random.Random(step).uniform(-1, 1)  # noqa: S311 - training data, no secret
    error = state["slope"] * x + state["offset"] - (2 * x + 1)
    slope, offset = state["slope"] - RATE * error * x, state["offset"] - RATE * error
    return {"step": step, "slope": slope, "offset": offset, "loss": error * error}


def main() -> None:
    """Train from where the run before stopped."""
    state = resumed()
    print(json.dumps({"resumed": state["step"]}), flush=True)
    listen()
    while state["step"] < STEPS:
        time.sleep(STEP_SECONDS)
        state = after_a_step(state)
        print(json.dumps(state), flush=True)
        if checkpoint_requested():
            save(state)
            checkpoint_saved()
        if SAVE_EVERY and state["step"] % SAVE_EVERY == 0:
            save(state)
    save(state)


if __name__ == "__main__":
    main()
