"""A pod's journal: what its programs did, in its order. A program that imports this ends with 143 when told to."""

import pathlib
import signal
import sys
import time

JOURNAL = pathlib.Path("/data/journal")
SAVE_SECONDS = 2


def tell(words):
    with JOURNAL.open("a") as journal:
        journal.write(f"{words}\n")


def so_far():
    return JOURNAL.read_text().splitlines()


def save():
    time.sleep(SAVE_SECONDS)
    tell("saved")


def end(*_):
    tell("told to end")
    sys.exit(143)


signal.signal(signal.SIGTERM, end)
