"""Saves at SIGTERM, and takes longer than the grace that its manifest writes."""

import signal
import sys
import time

import story


def end(*_):
    story.tell("told to end")
    for _ in range(3):
        story.save()
    sys.exit(143)


signal.signal(signal.SIGTERM, end)
story.tell("started")
while True:
    time.sleep(1)  # pause() would miss a signal that comes just before it
