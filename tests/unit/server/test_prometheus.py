"""A Prometheus that is not there, hangs, or is something else: the page says so, and nobody waits long."""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.unit.server.serving import HOST, a_bundle
from webhook.server.page_ports import AskedPrometheus
from webhook.server.settings import PrometheusServer

NOW = 1_795_363_200.0
LOGIN = b"<!doctype html><html><body>Sign in</body></html>"


def matrix(tier: str, value: str) -> bytes:
    result = [{"metric": {"tier": tier}, "values": [[NOW - 600, value], [NOW, value]]}]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()


@dataclass
class Answering:
    """A server that has this body for every request, and keeps what it was asked."""

    body: bytes
    status: str = "200 OK"
    port: int = 0
    heads: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.heads.append(head.decode())
                writer.write(f"HTTP/1.1 {self.status}\r\ncontent-length: {len(self.body)}\r\n\r\n".encode() + self.body)
        except asyncio.IncompleteReadError:
            writer.close()


@asynccontextmanager
async def answering(body: bytes, status: str = "200 OK", tls: ssl.SSLContext | None = None) -> AsyncIterator[Answering]:
    fake = Answering(body, status)
    async with await asyncio.start_server(fake.serve, HOST, 0, ssl=tls) as server:
        fake.port = server.sockets[0].getsockname()[1]
        yield fake


def asked(
    port: int,
    *,
    scheme: str = "http",
    labels: Mapping[str, str] = {},
    token: Path | None = None,
    ca: Path | None = None,
) -> AskedPrometheus:
    return AskedPrometheus(PrometheusServer(f"{scheme}://{HOST}:{port}/", labels, token, ca), lambda: NOW)


async def test_what_it_tells_is_asked_for_once_a_minute_however_many_look() -> None:
    async with answering(matrix("gpu-batch", "2.5")) as server:
        prometheus = asked(server.port, labels={"cluster": "eu-1"})
        day, again = await asyncio.gather(prometheus.day(), prometheus.day())
        assert again is day is await prometheus.day()
    assert [each.gpus for each in day.seen] == [{"gpu-batch": 2.5}] * 2
    assert len(server.heads) == 2, "one question for use, one for preemptions"
    assert all("cluster%3D%22eu-1%22" in each and "Authorization" not in each for each in server.heads)


WRONG: dict[str, tuple[Callable[[], AbstractAsyncContextManager[Answering]], str]] = {
    "a login page": (lambda: answering(LOGIN), "what answers /api/v1/query_range is no Prometheus"),
    "other JSON": (lambda: answering(b'{"kind": "Status"}'), "what answers /api/v1/query_range is no Prometheus"),
    "no numbers": (lambda: answering(matrix("x", "many")), "could not convert string to float: 'many'"),
    "not for us": (lambda: answering(b"", "401 Unauthorized"), "GET /api/v1/query_range: HTTP 401"),
    "nothing of ours": (
        lambda: answering(b'{"status": "success", "data": {"resultType": "matrix", "result": []}}'),
        "no metric of gpu-tiers",
    ),
}


@pytest.mark.parametrize("what", WRONG)
async def test_what_answers_wrongly_is_reported_in_one_line_and_not_asked_again_at_once(what: str) -> None:
    wrong, problem = WRONG[what]
    async with wrong() as server:
        prometheus = asked(server.port)
        assert (await prometheus.day()).problem == problem
        heads = len(server.heads)
        assert (await prometheus.day()).problem == problem
    assert len(server.heads) == heads


async def test_who_hangs_is_waited_for_two_seconds() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(hang, HOST, 0) as server:
        began = time.monotonic()
        assert (await asked(server.sockets[0].getsockname()[1]).day()).problem == "no answer within 2 s"
    assert time.monotonic() - began < 4


async def test_who_is_not_there_is_named() -> None:
    async with answering(b"") as server:
        pass
    problem = f"GET /api/v1/query_range: Cannot connect to {HOST}:{server.port}: Connection refused"
    assert (await asked(server.port).day()).problem == problem


async def test_it_is_known_by_its_ca_and_gets_the_token_that_the_file_has_now(tmp_path: Path) -> None:
    bundle, token, ca = a_bundle(), tmp_path / "token", tmp_path / "ca.crt"
    (tmp_path / "tls.pem").write_bytes(bundle.key + bundle.certificate)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "tls.pem")
    ca.write_bytes(bundle.ca)
    async with answering(matrix("gpu-batch", "1"), tls=tls) as server:
        for each in ("first", "second"):
            token.write_text(f"{each}\n")
            assert not (await asked(server.port, scheme="https", token=token, ca=ca).day()).problem
        problem = (await asked(server.port, scheme="https", token=token).day()).problem
        assert "certificate verify failed" in problem
        token.unlink()
        problem = (await asked(server.port, scheme="https", token=token, ca=ca).day()).problem
        assert problem == f"[Errno 2] No such file or directory: '{token}'"
    sent = [line for head in server.heads for line in head.splitlines() if line.startswith("Authorization")]
    assert sent == ["Authorization: Bearer first"] * 2 + ["Authorization: Bearer second"] * 2


def test_a_password_in_its_address_is_not_shown() -> None:
    server = PrometheusServer("https://reader:secret@prometheus.example.com:9443/x", {}, None, None)
    assert server.name == "prometheus.example.com:9443"
