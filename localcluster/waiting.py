"""Waits for something to become true, up to a time. Knows nothing of what it waits for."""

import time
from collections.abc import Callable


def wait_until(happened: Callable[[], bool], seconds: float, what: str, pause: float = 0.1) -> None:
    """TierRequest until it answers True; TimeoutError names what never happened."""
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(pause)
