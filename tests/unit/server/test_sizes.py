"""More than 8 MiB is refused before it is read whole, however it is sent, and the client gets to read why."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from starlette.types import Message

from tests.unit.server.serving import a_post, a_review, a_server, allowing
from webhook.server.endpoint import Endpoint
from webhook.server.metric_table import CUT_CONNECTIONS
from webhook.server.metrics import Metrics
from webhook.server.request_limits import MIB, Limits

TOO_LARGE = "the body is larger than 8 MiB\n"


def padded(size: int) -> bytes:
    """A review of exactly so many bytes."""
    return a_review() + b" " * (size - len(a_review()))


def in_chunks(body: bytes, size: int = 64 * 1024) -> Callable[[], AsyncIterator[bytes]]:
    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), size):
            yield body[start : start + size]

    return chunks


async def test_eight_mebibytes_are_read() -> None:
    async with a_server() as server:
        assert (await server.post("/mutate", padded(8 * MIB))).status_code == 200
        assert (await server.post("/mutate", in_chunks(padded(8 * MIB))())).status_code == 200


@pytest.mark.parametrize("size", [8 * MIB + 1, 9 * MIB])
async def test_more_is_a_413_whether_its_length_was_announced_or_not(size: int) -> None:
    async with a_server() as server:
        announced = await server.post("/mutate", padded(size))
        chunked = await server.post("/mutate", in_chunks(padded(size))())

    assert (announced.status_code, announced.text) == (413, TOO_LARGE)
    assert (chunked.status_code, chunked.text) == (413, TOO_LARGE)
    assert announced.headers["connection"] == chunked.headers["connection"] == "close"


async def test_an_announced_length_is_refused_before_a_byte_of_the_body_is_sent() -> None:
    async with a_server() as server, server.wire() as wire:
        await wire.send(a_post(body=b"", length=9 * MIB))
        status, _, text = await wire.answer()

    assert (status, text.decode()) == (413, TOO_LARGE)


async def test_an_endless_body_is_refused_after_eight_mebibytes() -> None:
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

    endpoint = Endpoint("/mutate", allowing, Metrics(), Limits())
    head = {"type": "http", "method": "POST", "query_string": b"", "headers": [(b"content-type", b"application/json")]}
    await endpoint(head, receive, send)

    assert at_refusal == [8 * MIB + 64 * 1024]


async def test_a_client_that_goes_on_sending_after_its_refusal_is_cut_off() -> None:
    limits = Limits(body_bytes=1024, message_bytes=64 * 1024, linger_seconds=60)
    async with a_server(limits=limits) as server, server.wire() as wire:
        await wire.send(a_post(body=b" " * 2048, length=99 * MIB))
        assert (await wire.answer())[0] == 413
        await wire.send(b" " * 128 * 1024)
        assert await wire.until_closed() == b""

    assert server.counted(CUT_CONNECTIONS, "size") == 1


async def test_headers_without_end_are_cut_off() -> None:
    async with a_server(limits=Limits(headers_bytes=4096)) as server, server.wire() as wire:
        closed = asyncio.create_task(wire.until_closed())
        await wire.send(b"POST /mutate HTTP/1.1\r\n")
        while not closed.done():
            wire.writer.write(b"x-more: 1\r\n" * 100)
            await asyncio.sleep(0)
        assert await closed == b""

    assert server.counted(CUT_CONNECTIONS, "size") == 1
