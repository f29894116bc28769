"""A rolling stop loses no request: not ready, then every client is sent away, then the end."""

import asyncio
import contextlib
import signal

import httpx
import pytest

from tests.unit.server.serving import HOST, NO_TLS, Serving, a_post, a_process, a_review, a_server, allowing
from webhook.admission.review import Request
from webhook.server.endpoint import Limits
from webhook.server.listener import listen

CLIENTS = 20


async def until_sent_away(server: Serving, answers: list[int], under_way: asyncio.Event) -> None:
    """An API server's connection: one review after the other on it, until an answer says that it closes."""
    async with server.client() as client:
        while True:
            answer = await client.post("/validate", content=a_review())
            answers.append(answer.status_code)
            if len(answers) > 3 * CLIENTS:
                under_way.set()
            if answer.headers.get("connection") == "close":
                return


async def until_closed(port: int) -> None:
    """Wait until nobody listens on a port."""
    with contextlib.suppress(ConnectionRefusedError):
        while True:
            _, writer = await asyncio.open_connection(HOST, port)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            await asyncio.sleep(0.01)


async def test_no_request_fails_while_the_server_drains_under_load() -> None:
    answers: list[int] = []
    under_way = asyncio.Event()
    async with a_server() as server:
        load = [asyncio.create_task(until_sent_away(server, answers, under_way)) for _ in range(CLIENTS)]
        await under_way.wait()

        server.drain.begin()
        await asyncio.gather(*load)
        server.drain.begin()
        await server.task

    assert set(answers) == {200}


async def test_a_new_connection_is_still_served_in_the_last_stretch() -> None:
    async with a_server() as server:
        server.drain.begin()
        answer = await server.post("/mutate", a_review())

    assert answer.status_code == 200
    assert answer.headers["connection"] == "close"


async def test_a_draining_process_is_alive_but_not_ready() -> None:
    async with a_server(caches=None) as server:
        assert (await server.probe("/readyz")).status_code == 200
        server.drain.begin()
        ready, alive = await server.probe("/readyz"), await server.probe("/healthz")

    assert (ready.status_code, ready.text) == (503, "[+]caches ok\n[-]draining: this process is shutting down\n")
    assert alive.status_code == 200


async def test_a_review_under_way_at_the_very_end_is_answered() -> None:
    begun, may_go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: Request, _patience: float) -> bytes:
        begun.set()
        await may_go_on.wait()
        return await allowing(request)

    async with a_server(validate=slow) as server:
        post = asyncio.create_task(server.post("/validate", a_review()))
        await begun.wait()
        server.drain.begin()
        server.drain.begin()
        await until_closed(server.port)
        may_go_on.set()
        answer = await post

    assert answer.status_code == 200
    assert answer.headers["connection"] == "close"


async def test_a_request_whose_headers_are_arriving_at_the_very_end_is_answered() -> None:
    async with a_server() as server, server.wire() as wire:
        await wire.send(b"POST /mutate HTTP/1.1\r\nhost: x\r\n")
        await server.probe("/healthz")
        server.drain.begin()
        server.drain.begin()
        await until_closed(server.port)
        body = a_review()
        await wire.send(f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode(), body)
        status, headers, _ = await wire.answer()

    assert status == 200
    assert headers["connection"] == "close"


async def test_idle_connections_do_not_hold_up_the_end() -> None:
    async with a_server() as server, server.wire() as wire:
        await server.stop()
        assert await wire.until_closed() == b""


async def test_a_connection_that_does_not_end_is_cut_off_in_the_end(lines: list[dict[str, object]]) -> None:
    async with a_server(limits=Limits(stop_seconds=0.05)) as server, server.wire() as wire:
        await wire.send(a_post(body=b"{", length=2000))
        await server.probe("/healthz")
        await server.stop()
        await wire.until_closed()

    assert any(line["event"] == "stopped with connections open" for line in lines)


async def test_probes_answer_until_the_last_review_is_answered() -> None:
    begun, may_go_on = asyncio.Event(), asyncio.Event()

    async def slow(request: Request, _patience: float) -> bytes:
        begun.set()
        await may_go_on.wait()
        return await allowing(request)

    async with a_server(validate=slow) as server:
        post = asyncio.create_task(server.post("/validate", a_review()))
        await begun.wait()
        server.drain.begin()
        server.drain.begin()
        await until_closed(server.port)
        assert (await server.probe("/healthz")).status_code == 200
        may_go_on.set()
        await post
        await until_closed(server.metrics_port)


async def test_sigterm_drains_the_process_which_then_exits_0() -> None:
    """The whole process: its signals are not uvicorn's."""
    async with a_process() as (child, metrics_port, _):
        async with httpx.AsyncClient(
            base_url=f"http://{HOST}:{metrics_port}", trust_env=False, verify=NO_TLS
        ) as client:
            assert (await client.get("/readyz")).status_code == 200
            child.send_signal(signal.SIGTERM)
            await draining(client)
            child.send_signal(signal.SIGTERM)
        assert await child.wait() == 0


async def draining(client: httpx.AsyncClient) -> None:
    while (await client.get("/readyz")).status_code != 503:  # noqa: ASYNC110 - another process's state
        await asyncio.sleep(0.01)


async def test_a_port_that_is_taken_is_named() -> None:
    async with a_server() as server:
        with pytest.raises(OSError, match=f"cannot listen on {HOST} port {server.port}: Address already in use"):
            listen(HOST, server.port)
