"""Speaks for a training pod: since when it runs, and when it saved last.

A kubelet asks the API server for the token of a report; here kubectl does, with the same request.
"""

import json
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from listener import report
from webhook.policy.checkpoint.listen import AUDIENCE

from .installed import Installed, Tree

Send = Callable[[str, Any], dict[str, Any]]
"""Sends a token and a report; returns the answer."""


def began(installed: Installed, pod: Tree, minutes: float) -> None:
    """Let its kubelet say that its container has run for so long."""
    metadata, started = pod["metadata"], datetime.now(UTC) - timedelta(minutes=minutes)
    running = {"name": "main", "state": {"running": {"startedAt": started.strftime("%Y-%m-%dT%H:%M:%SZ")}}}
    identity = {"name": metadata["name"], "namespace": metadata["namespace"]}
    status = {"containerStatuses": [running]}
    installed.api.apply({"apiVersion": "v1", "kind": "Pod", "metadata": identity, "status": status}, part="status")


def token_for(installed: Installed, pod: Tree, *, audience: str = AUDIENCE, bound: bool = True) -> str:
    """The token that its pod has for reports, or one for something else."""
    metadata = pod["metadata"]
    to_pod = ["--bound-object-kind=Pod", f"--bound-object-name={metadata['name']}"] if bound else []
    return installed.cluster.kubectl(
        "create", "token", "default", f"--namespace={metadata['namespace']}", f"--audience={audience}", *to_pod
    ).stdout.strip()


def sender(pod: Tree, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Send:
    """Send a report with a token, as the listener in that pod does; OSError says what the webhook answers.

    This machine has no DNS of the cluster. The certificate is checked by the Service's name all the same.
    """
    variables = {each["name"]: each["value"] for each in pod["spec"]["containers"][0]["env"] if "value" in each}
    there = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda _, *more, **named: there("127.0.0.1", *more, **named))
    monkeypatch.setattr(report, "REPORT", variables["GPU_TIERS_REPORT"])
    monkeypatch.setattr(report, "REPORT_CA", variables["GPU_TIERS_REPORT_CA"])
    monkeypatch.setattr(report, "TOKEN", str(folder / "token"))

    def send(token: str, said: Any) -> dict[str, Any]:
        heard: list[bytes] = []
        (folder / "token").write_text(token)
        report.send(said if isinstance(said, bytes) else json.dumps(said).encode(), heard.append)
        return dict(json.loads(heard[0] or b"{}"))

    return send
