"""A program next to a training: an uploader in a sidecar, or a helper. Its argument is its name.

Once it hears SIGTERM it writes to the file of its name.
"""

import pathlib
import signal
import sys
import time
from multiprocessing.connection import Listener

import story

name = sys.argv[1]


def running():
    pathlib.Path("/data", name).write_text("running\n")


def end(*_):
    story.tell(f"{name} told to end")
    sys.exit(0)


signal.signal(signal.SIGTERM, end)
if name == "uploader":
    with Listener(("127.0.0.1", 6000)) as uploads:
        running()
        while True:
            with uploads.accept() as program:
                program.recv()
                program.send("uploaded")
running()
while True:
    time.sleep(1)  # pause() would miss a signal that comes just before it
