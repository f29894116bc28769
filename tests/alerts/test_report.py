"""`gpu-tiers report` by a real Prometheus that knows a day of preemptions, and of two replicas that told of them."""

import csv
import io
import json
import time
from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

from localcluster.ports import free_ports
from localcluster.prometheus import Backfilled, Sample
from webhook.cli.main import app

from .promtool import promtool
from .test_last_day import of

HOUR = 3600
RESTARTED = 900
A, B = {"instance": "a"}, {"instance": "b"}


def preempted(
    pods: int, at: int, tenant: str, outcome: str, lost: float, *, exact: bool, **replica: str
) -> dict[str, Sample]:
    """The series of one pair of tiers, which begin when the first pod is evicted: none stands at 0 before."""
    labels = {"victim_tier": "gpu-batch", "preemptor_tier": "gpu-training", "tenant": tenant, "outcome": outcome}
    is_exact = str(exact).lower()
    found = {of("preemptions", **labels, **replica): born(pods, at)}
    return found | ({of("lost_gpu_seconds", **labels, exact=is_exact, **replica): born(lost, at)} if lost else {})


def born(value: float, at: int) -> Sample:
    return lambda minute: None if minute < at else value


def restarted(minute: int) -> float:
    """Three evictions, then a process that starts again under the same name, and one more."""
    return 3.0 if minute < RESTARTED else float(minute >= RESTARTED + 60)


SERIES: dict[str, Sample] = {
    **preempted(3, 900, "alpha", "saved", 36.0, exact=True, **A),
    **preempted(1, 1100, "alpha", "saved", 12.0, exact=True, **B),
    **preempted(2, 1000, "alpha", "no-hook", 8 * HOUR, exact=False, **A),
    **preempted(1, 1000, "beta", "nothing-listens", 2 * HOUR, exact=False, **B),
    **preempted(1, 60, "beta", "not-saved", 40 * HOUR, exact=False, **A),
    **preempted(2, 1200, "", "unknown", 0, exact=False, **A),
    of(
        "preemptions", victim_tier="gpu-interactive", preemptor_tier="", tenant="beta", outcome="unknown", **A
    ): restarted,
}


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    promtool()  # without it the tests are skipped
    folder = tmp_path_factory.mktemp("prometheus")
    with Backfilled(folder, *free_ports(1), SERIES, float(int(time.time()))) as running:
        yield f"http://127.0.0.1:{running.port}"


def report(*arguments: str) -> str:
    answer = CliRunner().invoke(app, ["report", *arguments])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def test_what_preemptions_have_cost_by_tenant_tier_and_evictor(prometheus: str) -> None:
    is_exact = report("--since=12h", f"--prometheus={prometheus}").splitlines()
    columns, *rows = (line.split("   ") for line in is_exact[:5])
    assert [[each.strip() for each in row if each.strip()] for row in (columns, *rows)] == [
        ["TENANT", "TIER", "EVICTED FOR", "PODS", "SAVED", "NOT SAVED", "NOT KNOWN", "GPU-HOURS LOST", "EXACT"],
        ["alpha", "gpu-batch", "gpu-training", "6", "4", "0", "2", "8.01", "at most"],
        ["beta", "gpu-batch", "gpu-training", "1", "0", "1", "0", "2.00", "at most"],
        ["-", "gpu-batch", "gpu-training", "2", "0", "0", "2", "0.00", "-"],
        ["beta", "gpu-interactive", "-", "1", "0", "0", "1", "0.00", "-"],
    ]
    share = "4 of 5 saved (80%), 5 unknown"
    assert is_exact[6] == f"In 12h 10 pods were preempted: {share}, and lost at most 10.0 GPU-hours."
    assert is_exact[8] == (
        "Pods without a hook, or with a program that ignores it, lost at most 10.0 GPU-hours. "
        "Compared with pods that saved, a hook would have saved at most 10.0 GPU-hours of it."
    )


def test_what_came_before_counts_in_a_longer_time_alone(prometheus: str) -> None:
    found = json.loads(report("--since=24h", f"--prometheus={prometheus}", "-o", "json"))
    (beta,) = (each for each in found["rows"] if (each["tenant"], each["tier"]) == ("beta", "gpu-batch"))
    assert (beta["pods"], beta["lost"]) == (2, {"gpuSeconds": 42 * HOUR, "exact": False})


def test_for_a_wiki_and_for_a_spreadsheet(prometheus: str) -> None:
    markdown = report("--since=12h", f"--prometheus={prometheus}", "--format=markdown")
    assert "| alpha | gpu-batch | gpu-training | 6 | 4 | 0 | 2 | 8.01 | at most |" in markdown
    first, *rows = csv.DictReader(io.StringIO(report("--since=12h", f"--prometheus={prometheus}", "--format=csv")))
    assert (first["Tenant"], first["Pods"], first["GPU-hours lost"]) == ("alpha", "6", "8.01")
    assert len(rows) == 3


def test_one_that_knows_of_no_preemption_says_so(prometheus: str) -> None:
    is_exact = report("--since=1m", f"--prometheus={prometheus}")
    assert is_exact == "Prometheus knows of no preemption in 1m. Does it scrape gpu-tiers, and keep 1m?\n"
