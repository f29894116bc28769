"""Reports how far the training is, if GPU_TIERS_REPORT is set, and hears which save the answers wish for.

A thread of its own reports, so that a server that hangs costs the training nothing. It reports to every address of the
Service, because behind each is a replica that may lead next.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

REPORT = os.environ.get("GPU_TIERS_REPORT", "")
REPORT_CA = os.environ.get("GPU_TIERS_REPORT_CA", "")
TOKEN = os.environ.get("GPU_TIERS_REPORT_TOKEN") or "/var/run/secrets/gpu-tiers.dev/token"
REPORT_SECONDS = 30.0
SOONEST_SECONDS, LATEST_SECONDS = 5.0, 60.0
"""Bounds of an answer's `report_in`. The server refuses what comes sooner."""
ANSWER_IN_SECONDS = 2.0
ANSWER_BYTES = 4096
"""A longer answer counts as none."""


def send(body: bytes, hear: Callable[[bytes], object] = len) -> None:
    """Post to every address, and pass on each answer. Raises the error of the last address that failed."""
    import socket
    from urllib.parse import urlsplit

    to = urlsplit(REPORT)
    host, port = to.hostname or "", to.port or 443
    failed: Exception | None = None
    for address in sorted({str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}):
        try:
            with socket.create_connection((address, port), ANSWER_IN_SECONDS) as plain:
                hear(post(plain, host, port, to.path, body))
        except Exception as error:
            failed = error
    if failed is not None:
        raise failed


def post(plain: Any, host: str, port: int, path: str, body: bytes) -> bytes:
    """Post over TLS to that Service alone; return the answer. OSError if it is refused."""
    import http.client
    import ssl

    with open(TOKEN) as file:
        headers = {"Authorization": "Bearer %s" % file.read().strip(), "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(host, port)
    with ssl.create_default_context(cadata=REPORT_CA).wrap_socket(plain, server_hostname=host) as connection.sock:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        text = answer.read(ANSWER_BYTES + 1)
        if answer.status >= 400:
            raise OSError("%d %s" % (answer.status, text[:300].decode(errors="replace").strip()))
        return text if len(text) <= ANSWER_BYTES else b""


class Wish(NamedTuple):
    """A save of at least `step`, after a step that ends at `at` of the monotonic clock or later."""

    id: str
    step: int
    at: float


class Wishes:
    """The wish that waits, and the outcome of the last one that this process finished with.

    The reporter's thread hears, the training reads `waiting` after each step and finishes.
    """

    def __init__(self) -> None:
        self.waiting: Wish | None = None
        self.outcome: dict[str, Any] | None = None
        self.why_not = ""
        """Why nothing can be saved."""
        self.begun, self.begun_at = "", 0.0
        self.finished: deque[str] = deque(maxlen=64)
        self.lock, self.news = threading.RLock(), threading.Event()

    def hear(self, wish: Wish, saved: int | None) -> None:
        """Take a wish, or finish it at once. A known one changes nothing; another replaces the one that waits."""
        with self.lock:
            waiting = self.waiting
            if wish.id in self.finished or wish.id == self.begun or (waiting is not None and wish.id == waiting.id):
                return
            self.waiting = wish
            if self.why_not:
                self.finish(wish.id, "unable", why=self.why_not)
            elif saved is not None:
                self.saved(saved)

    def due(self, step: float = float("inf")) -> Wish | None:
        """Return the wish to save for after that step; None if it is too early."""
        wish = self.waiting
        return wish if wish is not None and step >= wish.step and time.monotonic() >= wish.at else None

    def begin(self, name: str) -> None:
        with self.lock:
            self.begun, self.begun_at = name, time.monotonic()

    def saved(self, step: int) -> None:
        """Finish the wish that waits if a whole checkpoint of this step meets it."""
        with self.lock:
            if self.waiting is not None and step >= self.waiting.step:
                self.finish(self.waiting.id, "saved", step=step)

    def finish(self, name: str, outcome: str, **more: Any) -> None:
        """Record how a wish ended, and have that reported soon. A second time changes nothing."""
        with self.lock:
            if name in self.finished:
                return
            took = time.monotonic() - self.begun_at if name == self.begun else 0.0
            self.finished.append(name)
            self.outcome = {"id": name, "outcome": outcome, "seconds": round(took, 3), **more}
            if "why" in more:
                self.outcome["why"] = more["why"][:200]
            if name == self.begun:
                self.begun = ""
            if self.waiting is not None and self.waiting.id == name:
                self.waiting = None
            self.news.set()

    def give_up(self, why: str) -> None:
        """Finish the wishes, and those yet to come, as unable."""
        with self.lock:
            self.why_not = why
            for name in (self.begun, "" if self.waiting is None else self.waiting.id):
                if name:
                    self.finish(name, "unable", why=why)


class Reporter:
    """Sends a line each REPORT_SECONDS, or when an answer says so. The first comes earlier, by chance.

    `say` gets the first failure.
    """

    def __init__(self, line: Callable[[], dict[str, Any]], say: Callable[[str], object], wishes: Wishes) -> None:
        self.line, self.say, self.wishes = line, say, wishes
        self.stopped = self.failed = False
        self.asked: list[float] = []

    def start(self) -> None:
        if REPORT:
            threading.Thread(target=self.run, name="gpu-tiers-report", daemon=True).start()

    def run(self) -> None:
        """Report until stopped. An outcome is reported as soon as the server takes it, also after the end."""
        wishes, reported, sent = self.wishes, None, 0.0
        due = time.monotonic() + random.uniform(0, REPORT_SECONDS)  # noqa: S311 - so that not all report at once
        while not self.stopped or reported is not wishes.outcome:
            if wishes.news.wait(max(0.0, due - time.monotonic())):
                wishes.news.clear()
                due = min(due, sent + SOONEST_SECONDS)
                continue
            reported = wishes.outcome
            self.report(dict(self.line(), save=reported) if reported else self.line())
            sent = time.monotonic()
            due = sent + min(self.asked, default=REPORT_SECONDS)

    def report(self, line: dict[str, Any]) -> None:
        self.asked = []
        try:
            send(json.dumps(line).encode(), self.hear)
        except Exception as error:
            if not self.failed:
                self.say("not reported: %r; it tries again each %d s" % (error, REPORT_SECONDS))
            self.failed = True

    def hear(self, answer: bytes) -> None:
        """Read what one replica answers. What can't be read counts as nothing."""
        try:
            tree = json.loads(answer) if answer else {}
            if "report_in" in tree:
                self.asked.append(max(SOONEST_SECONDS, min(float(tree["report_in"]), LATEST_SECONDS)))
            if "save" in tree:
                save = tree["save"]
                wish = Wish(str(save["id"]), int(save["step"]), time.monotonic() + float(save.get("in", 0)))
                self.wishes.hear(wish, self.line().get("last_saved_step"))
        except Exception:
            return

    def stop(self) -> None:
        self.stopped = True
        self.wishes.news.set()
