"""`gpu-tiers usage --since`: GPU-hours for chargeback, from what a Prometheus answers."""

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from typer.testing import CliRunner, Result

from tests.unit.cli.conftest import Answering
from webhook.cli.main import app


def prometheus(
    answering: Answering, body: str, status: int = 200, asked: list[str] | None = None, prices: str = ""
) -> str:
    """The option with the address of a stand-in for Prometheus that answers with these bytes, and these prices."""

    questions = [] if asked is None else asked

    def answer(_: str) -> tuple[int, str]:
        return (status, body) if "gpu_hour_price" not in questions[-1] else (200, prices or vector())

    return f"--prometheus={answering(answer, questions)}/"


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
    result = usage("--since=30d", prometheus(answering, MONTH, asked=asked))
    assert parse_qs(urlsplit(asked[0]).query)["query"] == [
        "sum by (tenant, tier, flavor) (increase(gpu_tiers_gpu_seconds_total[30d])) / 3600"
    ]
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "TENANT   TIER           FLAVOR   GPU-HOURS",
        "alpha    gpu-training   h100     5760.0",
        "alpha    gpu-batch      h100     80.0",
        "beta     gpu-batch      -        12.2",
        "",
        "5852.3 GPU-hours in 30d.",
    ]


def test_with_the_price_of_a_gpu_hour_of_each_flavor_that_has_one(answering: Answering) -> None:
    result = usage("--since=30d", prometheus(answering, MONTH, prices=vector(("", "", "h100", "2.5"))))
    assert result.stdout.splitlines() == [
        "TENANT   TIER           FLAVOR   GPU-HOURS   PRICE",
        "alpha    gpu-training   h100     5760.0      14,400.10",
        "alpha    gpu-batch      h100     80.0        200.00",
        "beta     gpu-batch      -        12.2        -",
        "",
        "5852.3 GPU-hours in 30d, for 14,600.10 where a flavor has a price.",
    ]


def test_of_one_tenant_as_json(answering: Answering) -> None:
    result = usage("beta", "--since=4w", prometheus(answering, MONTH), "-o", "json")
    said = {"tenant": "beta", "tier": "gpu-batch", "flavor": "", "gpuHours": 12.25, "price": None}
    assert json.loads(result.stdout)["items"] == [said]


def test_nothing_was_scraped(answering: Answering) -> None:
    result = usage("--since=30d", prometheus(answering, vector()))
    assert result.exit_code == 0
    assert result.stdout.startswith("Prometheus has no GPU-hours in 30d. Is gpu-tiers scraped")


BAD = '{"status": "error", "error": "query timed out"}'
PROBLEMS: list[tuple[list[Any], str]] = [
    (["--since=30d"], "--since reads from Prometheus: name its address with --prometheus"),
    (
        ["--since=a month", "--prometheus=http://localhost:1"],
        '--since: "a month" is not a time; write a time such as 12h',
    ),
    (["--since=30d", "--prometheus=localhost:9090"], '--prometheus: "localhost:9090" is not an address'),
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
    result = usage("--since=30d", prometheus(answering, body, status))
    assert result.exit_code == 2
    assert said in result.stderr
