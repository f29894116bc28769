"""The oversized request is refused in its own name before it is read, and so is one without room in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack

import pytest
from starlette.types import Message

from tests.builders import a_namespace, a_pod, a_policy
from tests.builders.world import FakeApi
from tests.unit.server.serving import a_post, a_review, a_server, allowing
from webhook.policy.values.tier_policy import Mode
from webhook.server.endpoint import MIB, BytesInFlight, Endpoint, Limits
from webhook.server.metrics import Metrics

TOO_LARGE = "the object is too large: gpu-tiers reads 20 MiB of a review at most"
TIMED_OUT = "gpu-tiers can't decide now, try again: the review could not be read within 0.50 s"
WORLD = FakeApi()
POD = WORLD.body(a_pod().asking())


def padded(size: int, body: bytes = POD) -> bytes:
    """A review of exactly so many bytes."""
    return body + b" " * (size - len(body))


def in_chunks(body: bytes, size: int = 64 * 1024) -> Callable[[], AsyncIterator[bytes]]:
    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    return chunks


async def test_six_times_the_api_servers_own_limit_is_read() -> None:
    async with a_server() as server:
        assert (await server.post("/mutate", padded(20 * MIB))).json()["response"] == allowed()
        assert (await server.post("/mutate", in_chunks(padded(20 * MIB))())).json()["response"] == allowed()


def allowed() -> dict[str, object]:
    return {"uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "allowed": True}


@pytest.mark.parametrize("mode", Mode)
async def test_more_is_denied_in_the_name_of_the_review(mode: Mode) -> None:
    """A 413 would let it in where failurePolicy is Ignore. The mutating webhook leaves it to the validating one."""
    world = FakeApi(policy=a_policy(mode=mode.name))
    async with a_server(world.webhooks.mutate, world.webhooks.validate) as server:
        announced = await server.post("/validate", padded(20 * MIB + 1))
        chunked = await server.post("/validate", in_chunks(padded(20 * MIB + 1))())
        mutated = await server.post("/mutate", padded(20 * MIB + 1))

    assert mutated.json()["response"].items() >= allowed().items()
    assert "patch" not in mutated.json()["response"]
    assert announced.json() == chunked.json()
    assert announced.headers["connection"] == chunked.headers["connection"] == "close"
    answer = announced.json()["response"]
    assert answer["uid"] == allowed()["uid"]
    if mode is Mode.Enforce:
        assert answer["status"] == {"code": 403, "reason": "Forbidden", "message": f"{TOO_LARGE} [unread]"}
    else:
        assert answer["allowed"]
        assert answer.get("warnings", []) == ([f"would be refused: {TOO_LARGE} [unread]"] if mode is Mode.Warn else [])


async def test_a_stricter_namespace_refuses_by_its_name_in_the_reviews_beginning() -> None:
    world = FakeApi(a_namespace().labelled({"gpu-tiers.dev/mode": "Enforce"}), policy=a_policy(mode="Audit"))
    async with a_server(validate=world.webhooks.validate) as server:
        answer = await server.post("/validate", padded(20 * MIB + 1))

    assert not answer.json()["response"]["allowed"]


@pytest.mark.parametrize("size", [20 * MIB + 1, 99 * MIB])
async def test_a_large_body_of_which_nobody_can_tell_what_it_is_is_a_413(size: int) -> None:
    async with a_server() as server, server.wire() as wire:
        await wire.send(a_post(body=padded(64 * 1024, a_review()), length=size))
        status, headers, text = await wire.answer()

    assert (status, text.decode(), headers["connection"]) == (413, f"{TOO_LARGE}\n", "close")


async def test_an_announced_length_is_denied_once_the_beginning_is_there() -> None:
    async with a_server(validate=WORLD.webhooks.validate) as server, server.wire() as wire:
        await wire.send(a_post("/validate", body=padded(64 * 1024), length=99 * MIB))
        status, _, text = await wire.answer()

    assert status == 200
    assert TOO_LARGE in text.decode()


async def test_an_endless_body_is_refused_after_twenty_mebibytes() -> None:
    """The client sends 64 KiB at a time until it is refused; what it had sent by then is all that was read."""
    read = 0
    at_refusal: list[int] = []

    async def receive() -> Message:
        nonlocal read
        if at_refusal:
            return {"type": "http.disconnect"}
        read += 64 * 1024
        return {"type": "http.request", "body": b" " * 64 * 1024, "more_body": True}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            assert message["status"] == 413
            at_refusal.append(read)

    endpoint = Endpoint("/mutate", allowing, Metrics(), Limits(), BytesInFlight(Limits()))
    head = {"type": "http", "method": "POST", "query_string": b"", "headers": [(b"content-type", b"application/json")]}
    await endpoint(head, receive, send)

    assert at_refusal == [20 * MIB + 64 * 1024]


@pytest.mark.parametrize("waiting", [0, 9], ids=["nobody else may wait", "others may wait"])
async def test_large_bodies_wait_for_room_and_have_to_try_again(waiting: int) -> None:
    """Two unfinished bodies hold all the room; a small review passes them, a large one is denied for now."""
    limits = Limits(bodies_bytes=2 * MIB, bodies_waiting=waiting or 1, body_seconds=0.5, linger_seconds=0.5)
    webhooks = FakeApi().webhooks
    async with a_server(webhooks.mutate, webhooks.validate, limits=limits) as server, AsyncExitStack() as open_:
        wires = [await open_.enter_async_context(server.wire()) for _ in range(4 if not waiting else 3)]
        for wire in wires:
            await wire.send(a_post("/validate", body=padded(64 * 1024), length=MIB))
        small = (await server.post("/validate", POD)).json()["response"]
        answers = [(await wire.answer())[2].decode() for wire in wires]
        later = (await server.post("/validate", padded(MIB))).json()["response"]

    assert [answer for answer in answers if TIMED_OUT not in answer or '"allowed":false' not in answer] == []
    assert small == later


async def test_a_client_that_goes_on_sending_after_its_refusal_is_cut_off() -> None:
    limits = Limits(body_bytes=1024, message_bytes=96 * 1024, linger_seconds=60)
    async with a_server(limits=limits) as server, server.wire() as wire:
        await wire.send(a_post(body=b" " * 32 * 1024, length=99 * MIB))
        assert (await wire.answer())[0] == 413
        await wire.send(b" " * 128 * 1024)
        assert await wire.until_closed() == b""

    assert server.counted("gpu_tiers_cut_connections_total", "size") == 1


async def test_headers_without_end_are_cut_off() -> None:
    async with a_server(limits=Limits(headers_bytes=4096)) as server, server.wire() as wire:
        closed = asyncio.create_task(wire.until_closed())
        await wire.send(b"POST /mutate HTTP/1.1\r\n")
        while not closed.done():
            wire.writer.write(b"x-more: 1\r\n" * 100)
            await asyncio.sleep(0)
        assert await closed == b""

    assert server.counted("gpu_tiers_cut_connections_total", "size") == 1
