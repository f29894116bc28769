"""Saves at a signal and trains on. Its arguments: the signal, and the file that says it is saved."""

import pathlib
import signal
import sys
import time

import story

name, done = sys.argv[1:]


def asked(*_):
    story.save()
    pathlib.Path(done).touch()


signal.signal(getattr(signal, name), asked)
story.tell("started")
while True:
    time.sleep(1)  # pause() would miss a signal that comes just before it
