"""The answer to something else than a review: its own status, a text, and nothing else breaks."""

import json

import pytest

from tests.builders import a_pod
from tests.builders.world import FakeApi
from tests.unit.server.serving import JSON, a_post, a_review, a_server

LISTS = 300_000

BAD_BODIES = {
    "nothing": (b"", "not an AdmissionReview: Input data was truncated"),
    "no JSON": (b"kind: Pod", "not an AdmissionReview: JSON is malformed"),
    "not UTF-8": (b'{"apiVersion": "\xff"}', "not an AdmissionReview"),
    "a list": (b"[]", "not an AdmissionReview: Expected `object`, got `array`"),
    "cut off": (a_review()[:-9], "not an AdmissionReview: Input data was truncated"),
    "another version": (
        a_review().replace(b"k8s.io/v1", b"k8s.io/v1beta1"),
        "admission.k8s.io/v1beta1 AdmissionReview is not understood; send admission.k8s.io/v1 AdmissionReview",
    ),
    "another kind": (a_review().replace(b"AdmissionReview", b"Pod"), "admission.k8s.io/v1 Pod is not understood"),
    "no request": (
        b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
        "missing required field `request`",
    ),
    "no uid": (a_review(uid=""), "request.uid: empty"),
    "uid a number": (a_review(uid=7), "Expected `str`, got `int` - at `$.request.uid`"),  # type: ignore[arg-type]
    "deep lists": (b"[" * LISTS, "not an AdmissionReview"),
    "a deep object": (
        b'{"request":{"object":' + b'{"a":' * LISTS + b"1" + b"}" * LISTS + b"}}",
        "the review is nested too deep",
    ),
}


@pytest.mark.parametrize(("body", "text"), BAD_BODIES.values(), ids=BAD_BODIES)
@pytest.mark.parametrize("path", ["/mutate", "/validate"])
async def test_a_body_that_is_no_review_is_a_400_that_says_what_is_wrong(path: str, body: bytes, text: str) -> None:
    async with a_server() as server:
        answer = await server.post(path, body)

    assert answer.status_code == 400
    assert text in answer.text
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert server.counted("gpu_tiers_reviews_total", path, "", "bad") == 1
    assert server.counted("gpu_tiers_http_answers_total", path, "400") == 1


DEEP = b'{"a":' * LISTS + b"1" + b"}" * LISTS
UNREADABLE = {
    "nested too deep": (DEEP, "object: can't be read: the review is nested too deep"),
    "cut off": (b'{"metadata":', "object: can't be read: not an AdmissionReview: "),
    "not UTF-8": (b'{"metadata":{"name":"\xff"}}', "object: can't be read: "),
}


@pytest.mark.parametrize(("object_", "sentence"), UNREADABLE.values(), ids=UNREADABLE)
async def test_an_object_that_cant_be_read_is_refused_in_the_reviews_name(object_: bytes, sentence: str) -> None:
    """A tenant may shape it, and a 400 would let it in where failurePolicy is Ignore."""
    world = FakeApi()
    body = world.body(a_pod().asking(), object="HERE").replace(b'"HERE"', object_)
    async with a_server(world.webhooks.mutate, world.webhooks.validate) as server:
        mutated, validated = await server.post("/mutate", body), await server.post("/validate", body)

    assert mutated.json()["response"]["allowed"]
    assert validated.json()["response"]["status"]["message"].startswith(sentence)


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/yaml", "application/jsonx", "json"])
async def test_another_content_type_is_a_415(content_type: str) -> None:
    async with a_server() as server:
        answer = await server.post("/mutate", a_review(), **{"content-type": content_type})

    assert (answer.status_code, answer.text) == (415, "content-type must be application/json\n")
    assert answer.headers["connection"] == "close"


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON"])
async def test_a_content_type_with_parameters_is_understood(content_type: str) -> None:
    async with a_server() as server:
        answer = await server.post("/mutate", a_review(), **{"content-type": content_type})

    assert answer.status_code == 200


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
async def test_another_method_is_a_405(method: str) -> None:
    async with a_server() as server, server.client() as client:
        answer = await client.request(method, "/validate", content=a_review())

    assert (answer.status_code, answer.text) == (405, "only POST is accepted here\n")


@pytest.mark.parametrize("path", ["/", "/mutate/", "/Mutate", "/healthz", "/%2e%2e/mutate", "/readyz"])
async def test_another_path_is_a_404_and_the_admission_port_has_no_probes(path: str) -> None:
    async with a_server() as server, server.client() as client:
        assert (await client.post(path, content=a_review())).status_code == 404
        assert (await client.get(path)).status_code == 404


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01 not http\r\n\r\n",
        b"POST /mutate HTTP/1.1\r\ncontent-length: many\r\n\r\n",
        b"POST /mutate HTTP/1.1\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}",
        b"POST /mutate HTTP/1.1\r\ncontent-length: 99999999999999999999999\r\n\r\n",
        b"CONNECT example.test:443 HTTP/1.1\r\nhost: example.test\r\n\r\n",
        b"GET http://[/ HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
async def test_what_is_no_http_ends_its_own_connection_only(request_bytes: bytes) -> None:
    async with a_server() as server, server.wire() as good, server.wire() as bad:
        await bad.send(request_bytes)
        assert (await bad.until_closed()).startswith(b"HTTP/1.1 400 ")

        await good.send(a_post())
        status, _, body = await good.answer()

    assert status == 200
    assert json.loads(body)["response"]["allowed"] is True


async def test_a_refused_review_is_reported_in_the_log_without_its_content(lines: list[dict[str, object]]) -> None:
    async with a_server() as server:
        await server.post("/mutate", b'{"password": "hunter2"}')

    (line,) = (line for line in lines if line["event"] == "not a review")
    assert line["reason"] == "not an AdmissionReview: Object missing required field `apiVersion`"
    assert "hunter2" not in str(lines)


async def test_the_connection_of_a_400_can_be_used_again() -> None:
    async with a_server() as server, server.wire() as wire:
        await wire.send(a_post(body=b"{}"))
        assert (await wire.answer())[0] == 400
        await wire.send(a_post())
        assert (await wire.answer())[0] == 200


async def test_the_server_names_no_software() -> None:
    async with a_server() as server:
        answer = await server.post("/mutate", a_review(), **JSON)

    assert "server" not in answer.headers
