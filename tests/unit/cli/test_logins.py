"""A login that does not hold, and rights that are missing: each is told as what it is, with what helps."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from webhook.cli.main import app

Answers = Callable[[str], tuple[int, str]]
Answering = Callable[[Answers], str]


@pytest.fixture
def answering() -> Iterator[Answering]:
    """The address of a server that answers each path as it is told."""
    servers: list[HTTPServer] = []

    def start(answer: Answers) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = answer(self.path.partition("?")[0])
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: object) -> None:
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def refusing(code: int, message: str) -> Answers:
    return lambda _: (code, json.dumps({"kind": "Status", "message": message}))


def asked(folder: Path, server: str, user: dict[str, Any], *command: str) -> tuple[int, str]:
    """What a command ends with, and says on stderr."""
    config = folder / "config"
    context = {"cluster": "one", "user": "ada", "namespace": "alpha"}
    config.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "one", "cluster": {"server": server}}],
                "users": [{"name": "ada", "user": user}],
                "contexts": [{"name": "one", "context": context}],
                "current-context": "one",
            }
        )
    )
    result = CliRunner().invoke(app, [*command, f"--kubeconfig={config}"])
    return result.exit_code, result.stderr


COMMANDS = [
    ("usage",),
    ("check",),
    ("lint",),
    ("audit",),
    ("posture",),
    ("explain", "job/train"),
    ("policy", "diff", "three-tier"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_login_that_is_not_accepted_is_no_missing_right(
    answering: Answering, tmp_path: Path, command: tuple[str, ...]
) -> None:
    server = answering(refusing(401, "Unauthorized"))
    code, told = asked(tmp_path, server, {"token": "of-yesterday"}, *command)
    assert code == 2
    assert "HTTP 401, Unauthorized. The API server does not accept this login: log in again" in told
    assert "ClusterRole" not in told


def test_who_gives_no_login_is_not_sent_for_a_role(answering: Answering, tmp_path: Path) -> None:
    message = 'tenantquotas is forbidden: User "system:anonymous" cannot list resource "tenantquotas"'
    code, told = asked(tmp_path, answering(refusing(403, message)), {}, "usage")
    assert code == 2
    assert "The API server does not accept this login: log in again" in told
    assert "ClusterRole" not in told
