"""Reports how far the training is, where its pod has a token for that.

Why a thread of its own: a server that hangs costs the training nothing. Why every address of the Service: behind each
is a replica that may lead next.
"""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Callable
from typing import Any

REPORT = os.environ.get("GPU_TIERS_REPORT", "")
REPORT_CA = os.environ.get("GPU_TIERS_REPORT_CA", "")
TOKEN = os.environ.get("GPU_TIERS_REPORT_TOKEN") or "/var/run/secrets/gpu-tiers.dev/token"
REPORT_SECONDS = 30.0
ANSWER_IN_SECONDS = 2.0


def send(body: bytes) -> None:
    """Post to every address. Raises what went wrong at the last that did not hear it."""
    import socket
    from urllib.parse import urlsplit

    to = urlsplit(REPORT)
    host, port = to.hostname or "", to.port or 443
    failed: Exception | None = None
    for address in sorted({str(each[4][0]) for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}):
        try:
            with socket.create_connection((address, port), ANSWER_IN_SECONDS) as plain:
                post(plain, host, port, to.path, body)
        except Exception as error:
            failed = error
    if failed is not None:
        raise failed


def post(plain: Any, host: str, port: int, path: str, body: bytes) -> None:
    """Over TLS: whoever answers has to be that Service."""
    import http.client
    import ssl

    with open(TOKEN) as file:
        headers = {"Authorization": "Bearer %s" % file.read().strip(), "Content-Type": "application/json"}
    connection = http.client.HTTPConnection(host, port)
    with ssl.create_default_context(cadata=REPORT_CA).wrap_socket(plain, server_hostname=host) as connection.sock:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        if answer.status >= 400:
            raise OSError("%d %s" % (answer.status, answer.read(300).decode(errors="replace").strip()))


class Reporter:
    """Sends a line at a time until it is stopped. The first comes after a part of the time, by chance.

    `say` is told once that it can't.
    """

    def __init__(self, line: Callable[[], dict[str, Any]], say: Callable[[str], object]) -> None:
        self.line, self.say, self.stopped, self.failed = line, say, threading.Event(), False

    def start(self) -> None:
        if REPORT:
            threading.Thread(target=self.run, name="gpu-tiers-report", daemon=True).start()

    def run(self) -> None:
        seconds = random.uniform(0, REPORT_SECONDS)  # noqa: S311 - so that not all report at once
        while not self.stopped.wait(seconds):
            seconds = REPORT_SECONDS
            try:
                send(json.dumps(self.line()).encode())
            except Exception as error:
                if not self.failed:
                    self.say("not reported: %r; it tries again each %d s" % (error, REPORT_SECONDS))
                self.failed = True

    def stop(self) -> None:
        self.stopped.set()
