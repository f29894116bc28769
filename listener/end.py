"""Ends a program whose save is done, so that its Job tries again.

It raises SystemExit, so that `finally` blocks and exit handlers run, as at any end. After 15 s a watchdog ends a
program that caught it, because that would train on in a pod that is gone in a moment, and report success.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any, NoReturn

from listener.protocol import TERMINATED, around, requested, shared

ANSWER_SECONDS = 5.0
"""How long the hook has to see `done`; it looks each second."""
WATCHDOG_SECONDS = 15.0


def wait_for_hook() -> None:
    until = time.monotonic() + ANSWER_SECONDS
    while requested() and time.monotonic() < until:
        time.sleep(0.05)


def end_now() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass
    os._exit(TERMINATED)


def end() -> NoReturn:
    watchdog = threading.Timer(WATCHDOG_SECONDS, end_now)
    watchdog.daemon = True
    watchdog.start()
    raise SystemExit(TERMINATED)


def attach_launcher(_module: Any) -> None:
    """End with 143 after ranks that did or got SIGTERM, because torchrun and accelerate would end with 1."""

    def before(args: list[Any], _kwargs: dict[str, Any]) -> Any:
        return args[1]

    def after(error: Any, _raised: Any) -> None:
        ranks = getattr(error, "failures", None) or {}
        codes = {each.exitcode for each in ranks.values()} or {getattr(error, "returncode", None)}
        # SIGTERM may reach the launcher while its ranks, which have saved, are still ending
        late = getattr(error, "sigval", None) == signal.SIGTERM and os.path.exists(shared("done"))
        if late or (TERMINATED in codes and codes <= {TERMINATED, -15}):
            end_now()

    sys.excepthook = around(sys.excepthook, before, after)
