"""The checks of `helm test` on the Service: they wait for what a new installation takes a moment to have."""

import http.client
import io
import json
import runpy
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .helm import CHART, SECRET

PASSING = [
    ConnectionRefusedError("no pod is ready"),
    TimeoutError("the read operation timed out"),
    socket.gaierror("Temporary failure in name resolution"),
    ssl.SSLCertVerificationError("unable to get local issuer certificate"),
    http.client.RemoteDisconnected("a pod that stops"),
]


class Connection:
    """Fails as it is told, once each, and answers after that."""

    def __init__(self, failures: Iterator[Exception]) -> None:
        self._failures = failures

    def request(self, *_: object) -> None:
        for failure in self._failures:
            raise failure

    def getresponse(self) -> io.BytesIO:
        answer = io.BytesIO(json.dumps({"response": {"allowed": True}}).encode())
        answer.status = 200  # type: ignore[attr-defined]
        return answer


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The environment of the chart's pod."""
    for name, value in {"SERVICE": "gpu-tiers", "CA": "ca", "WEBHOOK_PORT": "443", "METRICS_PORT": "8080"}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "path").write_text(SECRET)
    monkeypatch.setenv("PATH_SECRET", str(tmp_path / "path"))
    monkeypatch.setattr(ssl, "create_default_context", lambda **_: None)


def answering(monkeypatch: pytest.MonkeyPatch, failures: Iterator[Exception]) -> None:
    for kind in ("HTTPConnection", "HTTPSConnection"):
        monkeypatch.setattr(http.client, kind, lambda *_, **__: Connection(failures))


@pytest.mark.usefixtures("service")
def test_what_passes_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    left = iter(PASSING)
    answering(monkeypatch, left)
    runpy.run_path(str(CHART / "files" / "ask.py"))
    assert not list(left)


@pytest.mark.usefixtures("service")
def test_what_stays_is_named_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    answering(monkeypatch, (TimeoutError("timed out") for _ in range(1000)))
    with pytest.raises(SystemExit, match="/readyz: timed out"):
        runpy.run_path(str(CHART / "files" / "ask.py"))
