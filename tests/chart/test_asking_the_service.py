"""The checks of `helm test` on the Service: they wait for what a new installation takes a moment to have."""

import http.client
import io
import runpy
import socket
import ssl
import time
from collections.abc import Iterator

import pytest

from .helm import CHART

PASSING = [
    ConnectionRefusedError("no pod is ready"),
    TimeoutError("the read operation timed out"),
    socket.gaierror("Temporary failure in name resolution"),
    ssl.SSLCertVerificationError("unable to get local issuer certificate"),
    http.client.RemoteDisconnected("a pod that stops"),
]


class Connection:
    """Fails as it is told, once each. After that it is ready, and answers a review with this status."""

    def __init__(self, failures: Iterator[Exception], status: int) -> None:
        self._failures = failures
        self._status = status

    def request(self, _: str, path: str) -> None:
        self._path = path
        for failure in self._failures:
            raise failure

    def getresponse(self) -> io.BytesIO:
        answer = io.BytesIO()
        answer.status = 200 if self._path == "/readyz" else self._status  # type: ignore[attr-defined]
        return answer


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the chart's pod."""
    for name, value in {"SERVICE": "gpu-tiers", "CA": "ca", "WEBHOOK_PORT": "443", "METRICS_PORT": "8080"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(ssl, "create_default_context", lambda **_: None)


def answering(monkeypatch: pytest.MonkeyPatch, failures: Iterator[Exception], status: int = 404) -> None:
    for kind in ("HTTPConnection", "HTTPSConnection"):
        monkeypatch.setattr(http.client, kind, lambda *_, **__: Connection(failures, status))


@pytest.mark.usefixtures("service")
def test_what_passes_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    left = iter(PASSING)
    answering(monkeypatch, left)
    runpy.run_path(str(CHART / "files" / "ask.py"))
    assert not list(left)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))


@pytest.mark.usefixtures("service", "impatient")
def test_what_stays_is_named_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, (TimeoutError("timed out") for _ in range(1000)))
    with pytest.raises(SystemExit, match="/readyz: timed out"):
        runpy.run_path(str(CHART / "files" / "ask.py"))


@pytest.mark.usefixtures("service", "impatient")
def test_a_webhook_that_answers_at_a_path_which_everybody_knows_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, iter(()), status=200)
    with pytest.raises(SystemExit, match="/validate: answered 200, not 404"):
        runpy.run_path(str(CHART / "files" / "ask.py"))
