"""`gpu-tiers usage --since`: GPU-hours for chargeback, from what a Prometheus answers."""

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner, Result

from webhook.cli.main import app

Answering = Callable[..., str]


@pytest.fixture
def answering() -> Iterator[Answering]:
    """The address of a stand-in for Prometheus that answers with these bytes, and keeps what it was asked."""
    servers: list[HTTPServer] = []

    def start(body: str, status: int = 200, asked: list[str] | None = None) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if asked is not None:
                    asked.append(parse_qs(urlsplit(self.path).query)["query"][0])
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


def vector(*rows: tuple[str, str, str, str]) -> str:
    result = [
        {"metric": {"tenant": tenant, "tier": tier, "flavor": flavor} if flavor else {"tenant": tenant, "tier": tier},
         "value": [1700000000.0, hours]}
        for tenant, tier, flavor, hours in rows
    ]  # fmt: skip
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})


MONTH = vector(
    ("beta", "gpu-batch", "", "12.25"),
    ("alpha", "gpu-batch", "h100", "80"),
    ("alpha", "gpu-training", "h100", "5760.04"),
    ("alpha", "gpu-serving", "", "0"),
)


def usage(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["usage", *arguments])


def test_a_months_gpu_hours(answering: Answering) -> None:
    asked: list[str] = []
    result = usage("--since=30d", f"--prometheus={answering(MONTH, asked=asked)}/")
    assert asked == ["sum by (tenant, tier, flavor) (increase(gpu_tiers_gpu_seconds_total[30d])) / 3600"]
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "TENANT   TIER           FLAVOR   GPU-HOURS",
        "alpha    gpu-training   h100     5760.0",
        "alpha    gpu-batch      h100     80.0",
        "beta     gpu-batch      -        12.2",
        "",
        "5852.3 GPU-hours in 30d.",
    ]


def test_of_one_tenant_as_json(answering: Answering) -> None:
    result = usage("beta", "--since=4w", f"--prometheus={answering(MONTH)}", "-o", "json")
    said = {"tenant": "beta", "tier": "gpu-batch", "flavor": "", "gpuHours": 12.25}
    assert json.loads(result.stdout)["items"] == [said]


def test_nothing_was_scraped(answering: Answering) -> None:
    result = usage("--since=30d", f"--prometheus={answering(vector())}")
    assert result.exit_code == 0
    assert result.stdout.startswith("Prometheus has no GPU-hours in 30d. Is gpu-tiers scraped")


BAD = '{"status": "error", "error": "query timed out"}'
PROBLEMS: list[tuple[list[Any], str]] = [
    (["--since=30d"], "--since reads from Prometheus: name its address with --prometheus"),
    (["--since=a month", "--prometheus=http://localhost:1"], '--since: "a month" is not a time; write such as 12h'),
    (["--since=30d", "--prometheus=localhost:9090"], '--prometheus: "localhost:9090" is no address'),
    (["--since=30d", "--prometheus=http://127.0.0.1:1"], "Connection refused; check --prometheus"),
]


@pytest.mark.parametrize(("arguments", "said"), PROBLEMS, ids=[said for _, said in PROBLEMS])
def test_what_is_missing_is_said(arguments: list[str], said: str) -> None:
    result = usage(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (BAD, 503, "answers 503: query timed out"),
        ("<html>no access", 403, "answers 403: Forbidden"),
        ("<html>Grafana", 200, "is no Prometheus; check --prometheus"),
        ('{"data": {"result": [{"metric": {}}]}}', 200, "is no Prometheus"),
        ("[1]", 200, "is no Prometheus"),
    ],
)
def test_what_else_may_answer(answering: Answering, body: str, status: int, said: str) -> None:
    result = usage("--since=30d", f"--prometheus={answering(body, status)}")
    assert result.exit_code == 2
    assert said in result.stderr
