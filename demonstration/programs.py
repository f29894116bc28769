"""The programs that run in the demonstration's pods, beside those of examples/training."""

STEP_SECONDS = 0.1
SAVE_EVERY = 100
"""Steps between the checkpoints that each program makes anyway."""

ENDS = f"export STEPS=1000000 STEP_SECONDS={STEP_SECONDS} SAVE_EVERY={SAVE_EVERY}; exec python3 /code/train.py"
"""The example's run as it is: it saves when asked, and ends."""

INTERVAL_ONLY = f"""\
import json, time, train
state = train.resumed()
print(json.dumps({{"resumed": state["step"]}}), flush=True)
while True:
    time.sleep({STEP_SECONDS})
    state = train.after_a_step(state)
    print(json.dumps(state), flush=True)
    if state["step"] % {SAVE_EVERY} == 0:
        train.save(state)
"""
"""A run that knows nothing of a hook and nothing of SIGTERM."""

TRAINS_ON = f"""\
import json, time, train
from gpu_tiers_checkpoint import FOLDER
state = train.resumed()
print(json.dumps({{"resumed": state["step"]}}), flush=True)
(FOLDER / "listening").touch()
while True:
    time.sleep({STEP_SECONDS})
    state = train.after_a_step(state)
    print(json.dumps(state), flush=True)
    asked = (FOLDER / "request").exists() and not (FOLDER / "done").exists()
    if asked or state["step"] % {SAVE_EVERY} == 0:
        train.save(state)
    if asked:
        (FOLDER / "done").touch()
"""
"""A run that saves when asked, and neither ends nor hears SIGTERM."""

CRITICAL = """\
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
pathlib.Path("/data/critical").write_text(str(time.time()))
time.sleep(3600)
"""
"""The pod that takes the GPUs: it says when it began, and ends at once when it is told to."""
