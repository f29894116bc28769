"""Saves at SIGTERM, and takes longer than the grace that its manifest writes."""

import signal
import sys

import story


def end(*_):
    story.tell("told to end")
    for _ in range(3):
        story.save()
    sys.exit(143)


signal.signal(signal.SIGTERM, end)
story.tell("started")
while True:
    signal.pause()
