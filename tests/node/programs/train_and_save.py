"""Trains and saves each second, until the hook asks: that is when a step begins that takes too long to save in time.

Its arguments: the receiver of its reports (its listener, or the file `progress`; else nobody), and how often that is
reported. /data/record has all that it did.
"""

import os
import pathlib
import signal
import sys
import time

RECORD = pathlib.Path("/data/record")
REQUEST = pathlib.Path("/run/gpu-tiers/request")


def note(what):
    with RECORD.open("a") as record:
        record.write(f"{what} {time.time()}\n")


def killed(*_):
    note("ended")
    os._exit(143)


_, receiver, every = sys.argv
if receiver == "listen":
    import gpu_tiers_listen

    gpu_tiers_listen.REPORT_SECONDS = float(every)
    listener = gpu_tiers_listen.Listener(gpu_tiers_listen.next_call())
    assert listener.begins("/data")
elif receiver == "file":
    import gpu_tiers_report
    from gpu_tiers_checkpoint import listen, step_saved

    gpu_tiers_report.REPORT_SECONDS = float(every)
    listen()
signal.signal(signal.SIGTERM, killed)
step = 0
while True:
    time.sleep(1)
    if not REQUEST.exists():
        step += 1
        note("saved")
        if receiver == "listen":  # as the listener's part for a framework does
            listener.after_step(step, 0)
            listener.saved(step)
        elif receiver == "file":
            step_saved(step)
