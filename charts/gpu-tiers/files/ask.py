"""Asks the installed webhook whether it is ready, and whether it answers nothing to who does not know its path."""  # noqa: INP001

import http.client
import os
import ssl
import time
from collections.abc import Callable

SERVICE, CA = os.environ["SERVICE"], os.environ["CA"]
PATIENCE_SECONDS = 30
WEBHOOK_PORT, METRICS_PORT = int(os.environ["WEBHOOK_PORT"]), int(os.environ["METRICS_PORT"])


class NotAnsweredError(Exception):
    """Another status than the expected one."""


def ask(make: Callable[[], http.client.HTTPConnection], path: str, status: http.HTTPStatus) -> None:
    """Ask until this status comes, for a while.

    The Service may lead to a pod that stops, its name may not be known yet, and the certificate may be changing: all
    that is an OSError, as a timeout is.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return asked(make(), path, status)
        except (OSError, http.client.HTTPException, NotAnsweredError) as error:
            if time.monotonic() > deadline:
                raise SystemExit(f"{path}: {error}") from None
            time.sleep(0.5)


def asked(connection: http.client.HTTPConnection, path: str, status: http.HTTPStatus) -> None:
    connection.request("GET", path)
    answer = connection.getresponse()
    print(path, answer.status, answer.read().decode().strip())
    if answer.status != status:
        raise NotAnsweredError(f"answered {answer.status}, not {status.value}")


def webhook() -> http.client.HTTPConnection:
    """A connection as the API server makes it."""
    trust = ssl.create_default_context(cafile=CA)
    return http.client.HTTPSConnection(SERVICE, WEBHOOK_PORT, timeout=10, context=trust)


ask(lambda: http.client.HTTPConnection(SERVICE, METRICS_PORT, timeout=10), "/readyz", http.HTTPStatus.OK)
if "ONLY_THE_API_SERVER" not in os.environ:  # there a client without a certificate gets no answer at all
    ask(webhook, "/validate", http.HTTPStatus.NOT_FOUND)
