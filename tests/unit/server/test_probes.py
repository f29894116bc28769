"""The metrics port, as Kubernetes and Prometheus read it."""

import asyncio
import threading

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.unit.server.serving import PATIENCE_SECONDS, a_review, a_server
from webhook.admission.review import Request, allow
from webhook.server import run
from webhook.server.listener import Drain
from webhook.server.run import Check, troubles_of


async def test_a_process_whose_caches_are_not_there_is_alive_and_not_ready() -> None:
    async with a_server(certificates=None, policy=None, caches="namespaces: not read yet") as server:
        alive, ready = await server.probe("/healthz"), await server.probe("/readyz")

    assert (alive.status_code, alive.text) == (200, "ok\n")
    assert ready.status_code == 503
    assert ready.text == "[+]certificates ok\n[+]policy ok\n[-]caches: namespaces: not read yet\n"


async def test_a_process_whose_loop_is_busy_says_that_it_is_alive() -> None:
    """The review holds up the loop until /healthz has answered."""
    begun, answered = threading.Event(), threading.Event()

    async def busy(request: Request, _: float) -> bytes:
        begun.set()
        assert answered.wait(PATIENCE_SECONDS), "nothing else runs in this loop meanwhile"
        return allow(request)

    async with a_server(validate=busy) as server:

        def ask() -> int:
            assert begun.wait(PATIENCE_SECONDS)
            status = httpx.get(f"{server.probes}/healthz", timeout=PATIENCE_SECONDS, trust_env=False).status_code
            answered.set()
            return status

        review, asked = server.post("/validate", a_review()), asyncio.to_thread(ask)
        answer, status = await asyncio.gather(review, asked)

    assert (answer.status_code, status) == (200, 200)


async def test_a_process_whose_loop_hangs_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "SILENT_SECONDS", -1)
    async with a_server() as server:
        hung = await server.probe("/healthz")

    assert (hung.status_code, hung.text) == (503, "no review has been worked on for 0 s\n")


async def test_a_process_with_all_it_needs_is_ready() -> None:
    async with a_server(certificates=None, policy=None, caches=None) as server:
        ready = await server.probe("/readyz")

    assert (ready.status_code, ready.text) == (200, "[+]certificates ok\n[+]policy ok\n[+]caches ok\n")


def test_a_check_that_breaks_has_failed(lines: list[dict[str, object]]) -> None:
    def broken() -> str | None:
        raise RuntimeError

    checks: dict[str, Check] = {"policy": broken}

    assert troubles_of(checks, Drain()) == {"policy": "the check itself failed; the log says why"}
    assert lines[0]["check"] == "policy"


@pytest.mark.parametrize("path", ["/mutate", "/validate", "/"])
async def test_no_review_is_answered_without_tls(path: str) -> None:
    async with a_server() as server:
        assert (await server.probe(path)).status_code == 404


async def test_reviews_are_counted_and_timed() -> None:
    async with a_server() as server:
        await server.post("/mutate", a_review())
        page = await server.probe("/metrics")

    assert page.headers["content-type"].startswith("text/plain; version=")
    samples = {
        (sample.name, sample.labels.get("path"), sample.labels.get("le")): sample.value
        for family in text_string_to_metric_families(page.text)
        for sample in family.samples
    }
    assert samples["gpu_tiers_http_answers_total", "/mutate", None] == 1
    assert samples["gpu_tiers_review_seconds_count", "/mutate", None] == 1
    assert samples["gpu_tiers_review_seconds_bucket", "/mutate", "0.00025"] in (0, 1)
    assert samples["process_resident_memory_bytes", None, None] > 0
    assert not any(name.endswith("_created") for name, _, _ in samples)
