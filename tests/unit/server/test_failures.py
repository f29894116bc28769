"""Our own faults are HTTP 5xx, so that failurePolicy decides, and the log finds the review again by its uid."""

import asyncio
import json

import pytest

from tests.builders import a_job, a_pod, a_policy
from tests.builders.world import FakeApi
from tests.unit.server.serving import a_review, a_server, allowing, until
from webhook.admission.review import BadReview, Request
from webhook.policy.values.tier_policy import Mode
from webhook.server.endpoint import Limits, seconds_left

NAMED = {"uid": "5b5c8a3e", "namespace": "alpha", "name": "train-0", "operation": "CREATE"}


async def crashing(_: Request, _patience: float) -> bytes:
    raise KeyError("nobody thought of this")


async def test_a_crash_is_a_500_and_the_log_has_the_reviews_uid(lines: list[dict[str, object]]) -> None:
    async with a_server(mutate=crashing) as server:
        answer = await server.post("/mutate", a_review())

    assert (answer.status_code, answer.text) == (500, "gpu-tiers failed on review 5b5c8a3e; its log says why\n")
    assert server.counted("gpu_tiers_reviews_total", "/mutate", "CREATE", "error") == 1
    assert server.counted("gpu_tiers_http_answers_total", "/mutate", "500") == 1
    (line,) = (line for line in lines if line["event"] == "review failed")
    assert line.items() >= {**NAMED, "log_level": "error"}.items()
    assert repr(line["exc_info"]) == "KeyError('nobody thought of this')"


async def test_a_crash_ends_neither_its_connection_nor_the_other_webhook() -> None:
    async with a_server(mutate=crashing) as server, server.client() as client:
        assert (await client.post("/mutate", content=a_review())).status_code == 500
        assert (await client.post("/validate", content=a_review())).status_code == 200


async def test_a_time_out_within_the_handler_is_a_crash_and_not_out_of_time() -> None:
    async def impatient(_: Request, _patience: float) -> bytes:
        raise TimeoutError

    async with a_server(validate=impatient) as server:
        assert (await server.post("/validate", a_review())).status_code == 500


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("path", ["/mutate", "/validate"])
async def test_a_review_out_of_time_is_refused_for_now_before_the_api_server_gives_up(path: str, mode: Mode) -> None:
    """Under failurePolicy Ignore no answer, or a 504, would let the object in."""
    world, cancelled = FakeApi(policy=a_policy(mode=mode.name)), asyncio.Event()

    async def slow(*_: object) -> bool:
        try:
            return await asyncio.Event().wait()
        finally:
            cancelled.set()

    world.cluster.lookups.owners = slow  # type: ignore[method-assign,assignment]
    body = world.body(world.sent(a_pod().asking().owned_by(a_job())))
    webhooks = world.webhooks
    async with a_server(webhooks.mutate, webhooks.validate, limits=Limits(margin_seconds=0.95)) as server:
        answer = (await server.post(f"{path}?timeout=1s", body)).json()["response"]

    sentence = "gpu-tiers can't decide now, try again: it took more than 0.0"
    assert cancelled.is_set()
    assert answer["allowed"] is (mode is not Mode.Enforce)
    if mode is Mode.Enforce:
        assert (answer["status"]["code"], answer["status"]["reason"]) == (429, "TooManyRequests")
        assert answer["status"]["message"].startswith(sentence)
    assert [each.startswith(f"would be refused: {sentence}") for each in answer.get("warnings", [])] == (
        [True] if mode is Mode.Warn else []
    )
    assert world.records[-1][2].undecided


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        (b"timeout=3s", 2.75),
        (b"a=b&timeout=1s", 0.75),
        (b"timeout=30s", 4.75),
        (b"timeout=0s", 0.0),
        (b"", 4.75),
        (b"timeout=soon", 4.75),
        (b"timeout=-3s", 4.75),
        (b"timeout=1m30s", 4.75),
        (b"nottimeout=1s", 4.75),
        (b"timeout=" + b"9" * 5000 + b"s", 4.75),
    ],
)
def test_the_api_servers_timeout_shortens_ours_and_never_lengthens_it(query: bytes, seconds: float) -> None:
    assert seconds_left(query, Limits()) == seconds


async def test_a_review_that_only_the_handler_finds_bad_is_a_400(lines: list[dict[str, object]]) -> None:
    async def choosy(_: Request, _patience: float) -> bytes:
        raise BadReview("kind Node: nobody asked gpu-tiers to review it")

    async with a_server(mutate=choosy) as server:
        answer = await server.post("/mutate", a_review())

    assert (answer.status_code, answer.text) == (400, "kind Node: nobody asked gpu-tiers to review it\n")
    assert server.counted("gpu_tiers_reviews_total", "/mutate", "CREATE", "bad") == 1
    assert any(line["event"] == "not a review" and line["uid"] == "5b5c8a3e" for line in lines)


async def test_a_failed_reviews_names_are_cut_to_what_kubernetes_allows(lines: list[dict[str, object]]) -> None:
    async with a_server(mutate=crashing) as server:
        await server.post("/mutate", a_review(name="x" * 100_000, operation="y" * 100_000))

    (line,) = (line for line in lines if line["event"] == "review failed")
    assert len(str(line["name"])) == len(str(line["operation"])) == 253
    assert server.counted("gpu_tiers_reviews_total", "/mutate", "", "error") == 1


async def test_a_client_that_gives_up_while_its_review_runs_troubles_nobody(lines: list[dict[str, object]]) -> None:
    begun, may_go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: Request, _patience: float) -> bytes:
        begun.set()
        await may_go_on.wait()
        return await allowing(request)

    async with a_server(mutate=slow) as server:
        post = asyncio.create_task(server.post("/mutate", a_review()))
        await begun.wait()
        post.cancel()
        await asyncio.wait([post])
        may_go_on.set()
        await until(lambda: server.counted("gpu_tiers_http_answers_total", "/mutate", "200") == 1)

    assert [line for line in lines if line["log_level"] in ("warning", "error")] == []


async def test_an_answer_goes_out_as_the_handler_made_it() -> None:
    async with a_server() as server:
        answer = await server.post("/validate?timeout=5s", a_review(uid="42"))

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.text)["response"] == {"uid": "42", "allowed": True}
