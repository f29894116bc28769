"""A connection can't be blocked by saying little; one that is merely idle, as API servers' are, is left open."""

import asyncio
import json

import pytest

from tests.unit.server.serving import HOST, Wire, a_post, a_review, a_server, until
from webhook.admission.review import Request
from webhook.server.endpoint import MIB, Limits

SOON = 0.05
LATER = 2 * SOON
"""Waiting this long proves that a clock of SOON does not run; a slow machine only makes it stricter."""


@pytest.mark.parametrize("half", [b"P", b"POST /mutate HTTP/1.1\r\n", b"POST /mutate HTTP/1.1\r\nhost: x\r\nconten"])
async def test_half_sent_headers_are_cut_off(half: bytes) -> None:
    async with a_server(limits=Limits(headers_seconds=SOON)) as server, server.wire() as wire:
        await wire.send(half)
        assert await wire.until_closed() == b""

    assert server.counted("gpu_tiers_cut_connections_total", "headers") == 1


async def test_headers_that_trickle_in_are_cut_off_all_the_same() -> None:
    async with a_server(limits=Limits(headers_seconds=SOON)) as server, server.wire() as wire:
        closed = asyncio.create_task(wire.until_closed())
        await wire.send(b"POST /mutate HTTP/1.1\r\n")
        while not closed.done():
            wire.writer.write(b"x-more: 1\r\n")
            await asyncio.sleep(SOON / 10)
        assert await closed == b""


async def test_a_second_request_with_half_sent_headers_is_cut_off_too() -> None:
    async with a_server(limits=Limits(headers_seconds=SOON)) as server, server.wire() as wire:
        await wire.send(a_post(), b"POST /mut")
        assert (await wire.answer())[0] == 200
        assert await wire.until_closed() == b""

    assert server.counted("gpu_tiers_cut_connections_total", "headers") == 1


async def test_a_half_sent_body_is_a_408_and_the_connection_ends() -> None:
    async with a_server(limits=Limits(body_seconds=SOON, linger_seconds=10 * SOON)) as server, server.wire() as wire:
        await wire.send(a_post(body=b'{"apiVersion"', length=2000))
        status, headers, text = await wire.answer()
        assert await wire.until_closed() == b""

    assert (status, text) == (408, b"the review could not be read within 0.05 s\n")
    assert headers["connection"] == "close"
    assert server.counted("gpu_tiers_http_answers_total", "/mutate", "408") == 1


async def test_a_half_sent_body_of_another_path_is_not_waited_for() -> None:
    async with a_server() as server, server.wire() as wire:
        await wire.send(a_post("/elsewhere", body=b"", length=2000))
        assert (await wire.answer())[0] == 404
        assert await wire.until_closed() == b""


async def test_a_half_sent_body_that_nobody_reads_is_cut_off() -> None:
    limits = Limits(body_seconds=SOON, linger_seconds=SOON)
    async with a_server(limits=limits) as server:
        probe = Wire(*await asyncio.open_connection(HOST, server.metrics_port))
        await probe.send(a_post("/elsewhere", body=b"", length=2000))
        assert (await probe.answer())[0] == 404
        assert await probe.until_closed() == b""
        probe.writer.close()

    assert server.counted("gpu_tiers_cut_connections_total", "body") == 1


async def test_a_client_that_leaves_before_its_body_is_read_troubles_nobody(lines: list[dict[str, object]]) -> None:
    async with a_server() as server:
        async with server.wire() as wire:
            await wire.send(a_post(body=b"{", length=2000))
        await until(lambda: server.counted("gpu_tiers_http_answers_total", "/mutate", "499") == 1)

    assert [line for line in lines if line["log_level"] in ("warning", "error")] == []


async def test_a_tls_handshake_that_is_never_begun_is_cut_off() -> None:
    async with a_server(limits=Limits(handshake_seconds=SOON)) as server:
        reader, writer = await asyncio.open_connection(HOST, server.port)
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_an_answer_that_nobody_reads_ends_the_connection() -> None:
    async def long_winded(_: Request, _patience: float) -> bytes:
        return b" " * 8 * MIB

    limits = Limits(unread_seconds=SOON)
    async with a_server(long_winded, limits=limits) as server, server.wire() as wire:
        wire.writer.transport.pause_reading()
        await wire.send(a_post() * 4)
        await until(lambda: server.counted("gpu_tiers_cut_connections_total", "answer") == 1)


async def test_requests_that_queue_up_unanswered_end_the_connection() -> None:
    async with a_server(limits=Limits(pipelined=2)) as server, server.wire() as wire:
        await wire.send(a_post() * 10)
        await wire.until_closed()

    assert server.counted("gpu_tiers_cut_connections_total", "pipelined") == 1


async def test_a_few_requests_at_once_are_answered_in_turn() -> None:
    async with a_server(limits=Limits(pipelined=2)) as server, server.wire() as wire:
        await wire.send(*(a_post(body=a_review(uid)) for uid in ("1", "2", "3")))
        answers = [await wire.answer() for _ in range(3)]

    assert [json.loads(body)["response"]["uid"] for _, _, body in answers] == ["1", "2", "3"]


async def test_no_clock_runs_between_requests() -> None:
    limits = Limits(headers_seconds=SOON, body_seconds=SOON, linger_seconds=SOON, unread_seconds=SOON)
    async with a_server(limits=limits) as server, server.wire() as wire:
        for _ in range(3):
            await asyncio.sleep(LATER)
            await wire.send(a_post())
            assert (await wire.answer())[0] == 200


@pytest.mark.parametrize(
    "said", [b"", b"\r\n", a_post("/elsewhere", body=b"")], ids=["nothing", "a blank", "a request"]
)
async def test_a_connection_without_a_request_has_the_keep_alives_time_and_no_more(said: bytes) -> None:
    async with a_server(limits=Limits(keep_alive_seconds=SOON)) as server, server.wire() as wire:
        await wire.send(said)
        await wire.until_closed()


async def test_a_connection_whose_body_came_after_its_answer_is_not_forgotten() -> None:
    async with a_server(limits=Limits(keep_alive_seconds=SOON)) as server, server.wire() as wire:
        await wire.send(a_post("/elsewhere", body=b"", length=2))
        assert (await wire.answer())[0] == 404
        await wire.send(b"{}")
        assert await wire.until_closed() == b""


def test_an_idle_connection_outlives_the_api_servers_patience() -> None:
    assert Limits().keep_alive_seconds > 90
