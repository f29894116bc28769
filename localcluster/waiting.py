"""Waits for something to become true, up to a time."""

import http.client
import time
from collections.abc import Callable


def wait_until(happened: Callable[[], bool], seconds: float, what: str, pause: float = 0.1) -> None:
    """Ask until the answer is True; TimeoutError names what didn't happen.

    The first pauses are shorter, because most of what is waited for happens at once.
    """
    deadline = time.monotonic() + seconds
    shorter = pause / 4
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(shorter)
        shorter = min(pause, shorter * 1.5)


def answers_ready(port: int, path: str = "/readyz") -> bool:
    """Return True if a path on a loopback port answers 200; False for another answer, or none within 5 s."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except OSError:
        return False
    finally:
        connection.close()
