"""The callers that are accepted: with the secret in the path and, where a CA is named, a certificate from it."""

import asyncio
import contextlib
import ssl
from datetime import timedelta
from pathlib import Path

import pytest

from certs.make import Lifetimes, Pair, make_ca, pem, utc_now
from tests.unit.server.serving import (
    HOST,
    PATIENCE_SECONDS,
    Serving,
    a_bundle,
    a_client,
    a_post,
    a_review,
    a_server,
    trust,
    until,
)
from webhook.config.errors import ConfigError
from webhook.server.endpoint import Callers, Limits

SECRET = "s3cret-that-no-tenant-reads"  # noqa: S105
KNOWN = Callers(lambda: (f"/{SECRET}/mutate", f"/{SECRET}/validate"))
DAY = Lifetimes(leaf=timedelta(days=1))
CLIENTS = make_ca(utc_now(), DAY)
OTHERS = make_ca(utc_now(), DAY)
CA = pem(CLIENTS.certificate).decode()


@pytest.mark.parametrize(
    "path", ["/mutate", "/validate", f"/{SECRET}", f"/{SECRET}/", f"/{SECRET}x/mutate", "/x/mutate"]
)
async def test_without_the_secret_nothing_is_there(path: str, lines: list[dict[str, object]]) -> None:
    async with a_server(callers=KNOWN) as server:
        answer = await server.post(path, a_review())
        assert (answer.status_code, answer.text) == (404, "not found\n")
        assert server.counted("gpu_tiers_http_answers_total", "other", "404") == 1

    assert SECRET not in str(lines)


async def test_with_it_a_review_is_answered_and_counted_under_the_plain_path(lines: list[dict[str, object]]) -> None:
    async with a_server(callers=KNOWN) as server:
        assert (await server.post(f"/{SECRET}/validate?timeout=5s", a_review())).status_code == 200
        assert (await server.post(f"/{SECRET}/mutate", b"{}")).status_code == 400
        assert server.counted("gpu_tiers_http_answers_total", "/validate", "200") == 1
        assert SECRET not in (await server.probe("/metrics")).text

    assert SECRET not in str(lines)


async def test_when_the_configurations_name_another_path_the_one_from_before_opens_nothing() -> None:
    paths = ["/first/validate"]
    async with a_server(callers=Callers(lambda: tuple(paths))) as server:
        assert (await server.post("/first/validate", a_review())).status_code == 200
        paths[:] = ["/second/validate"]
        assert (await server.post("/first/validate", a_review())).status_code == 404
        assert (await server.post("/second/validate", a_review())).status_code == 200


async def test_connections_that_ask_for_nothing_keep_no_review_out() -> None:
    limits = Limits(connections=12, strangers=4)
    async with a_server(callers=KNOWN, limits=limits) as server, contextlib.AsyncExitStack() as stack:
        api_server = await stack.enter_async_context(server.wire())
        await api_server.send(a_post(f"/{SECRET}/validate"))
        assert (await api_server.answer())[0] == 200
        idle = [await stack.enter_async_context(server.wire()) for _ in range(20)]
        assert (await server.post(f"/{SECRET}/mutate", a_review())).status_code == 200
        await until(
            lambda: server.counted("gpu_tiers_cut_connections_total", "crowd") == 17
        )  # the oldest but four, one for that review
        assert await idle[0].until_closed() == b""

        await api_server.send(a_post(f"/{SECRET}/validate"))
        assert (await api_server.answer())[0] == 200, "who has asked for a review stays"


def test_what_cannot_be_used_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    with pytest.raises(ConfigError, match=f"{file}: can't be read"):
        Callers.read_from(file, ())
    file.write_text("no certificate")
    with pytest.raises(ConfigError, match=f"{file}: must hold certificates in PEM"):
        Callers.read_from(file, ())
    with pytest.raises(ConfigError, match="--client-name: needs --client-ca"):
        Callers.read_from(None, ("kube-apiserver",))


def shown(server: Serving, folder: Path, *, ca: Pair = CLIENTS, name: str | None) -> ssl.SSLContext:
    """A client that verifies the server, and shows a certificate of this CA for this name."""
    context = trust(server.certificate.bundle.ca)
    if name is not None:
        context.load_cert_chain(a_client(ca, name, folder / "client.pem"))
    return context


async def asked(server: Serving, context: ssl.SSLContext) -> bytes:
    """Return the server's answer to a review, and nothing where it ends the connection."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            reader, writer = await asyncio.open_connection(HOST, server.port, ssl=context)
            with contextlib.closing(writer):
                writer.write(a_post())
                return await reader.readline()
    except (ConnectionError, ssl.SSLError):
        return b""


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_only_certificates_of_the_ca_get_through_before_and_after_the_server_has_a_new_one(
    newest: ssl.TLSVersion, tmp_path: Path
) -> None:
    async with a_server(callers=Callers(ca=CA)) as server:
        for bundle in (server.certificate.bundle, a_bundle()):
            server.certificate.replace(bundle)
            for ca, name, answer in (
                (CLIENTS, "kube-apiserver", b"HTTP/1.1 200 OK\r\n"),
                (OTHERS, "kube-apiserver", b""),
                (CLIENTS, None, b""),
            ):
                context = shown(server, tmp_path, ca=ca, name=name)
                context.maximum_version = newest
                assert await asked(server, context) == answer
        assert (await server.probe("/readyz")).status_code == 200, "probes need none"


async def test_a_certificate_of_the_ca_with_another_name_is_cut_off(tmp_path: Path) -> None:
    async with a_server(callers=Callers(ca=CA, names=frozenset({"kube-apiserver"}))) as server:
        assert (await asked(server, shown(server, tmp_path, name="kube-apiserver"))).startswith(b"HTTP/1.1 200")
        assert await asked(server, shown(server, tmp_path, name="kubelet")) == b""
        assert server.counted("gpu_tiers_cut_connections_total", "name") == 1
