"""The server as a client meets it: real sockets, real TLS, free ports."""

import asyncio
import contextlib
import json
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path

import httpx
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.make import Lifetimes, Pair, key_pem, make_ca, make_leaf, pem, utc_now
from certs.source import Bundle, bundle_of
from webhook.admission.review import Request, allow
from webhook.server.endpoint import Callers, Handler, Limits
from webhook.server.listener import Drain, listen, port_of
from webhook.server.metric_table import TABLE
from webhook.server.metrics import Metrics
from webhook.server.run import AdmissionPort, serve
from webhook.server.tls import LiveCertificate

HOST = "127.0.0.1"
ROOT = Path(__file__).parents[3]
PATIENCE_SECONDS = 60
"""A test that waits longer for its server has failed; pytest-timeout's signal does not get through uvloop."""
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For what is asked over plain HTTP: a client that is given none reads all the CAs of the machine."""
JSON = {"content-type": "application/json"}


def a_review(uid: str = "5b5c8a3e", **fields: object) -> bytes:
    request = {"uid": uid, "operation": "CREATE", "namespace": "alpha", "name": "train-0", **fields}
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


def a_bundle() -> Bundle:
    """A certificate for the loopback address by a CA of its own."""
    lifetimes = Lifetimes(leaf=timedelta(days=1))
    ca = make_ca(utc_now(), lifetimes)
    leaf = make_leaf(ca, [HOST], utc_now(), lifetimes)
    return bundle_of(pem(leaf.certificate), key_pem(leaf.key), pem(ca.certificate))


_usual_bundle = cache(a_bundle)


def a_client(ca: Pair, name: str, file: Path) -> Path:
    """A file with the certificate of a client of this name, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder(ca.certificate.subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(utc_now() - timedelta(minutes=5))
        .not_valid_after(utc_now() + timedelta(days=1))
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(ca.key, hashes.SHA256())
    )
    file.write_bytes(key_pem(key) + b"\n" + pem(certificate))
    return file


async def allowing(request: Request, _patience: float = 0) -> bytes:
    return allow(request)


def trust(ca: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca.decode())
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    return context


async def until(holds: Callable[[], bool]) -> None:
    """Wait for something that tells nobody when it happens."""
    while not holds():  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0.01)


@dataclass(frozen=True)
class Wire:
    """One TLS connection, byte for byte."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *parts: bytes) -> None:
        self.writer.write(b"".join(parts))
        await self.writer.drain()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer: status, headers, body."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        body = await self.reader.readexactly(int(headers["content-length"]))
        return int(head[0].split()[1]), headers, body

    async def until_closed(self) -> bytes:
        """Return what the server sends before it ends the connection, politely or not."""
        received = b""
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while chunk := await self.reader.read(65536):
                received += chunk
        return received


def a_post(path: str = "/mutate", *, body: bytes | None = None, length: int | None = None) -> bytes:
    """An HTTP/1.1 request; `length` is what it claims to carry, where that is not the truth."""
    body = a_review() if body is None else body
    claimed = len(body) if length is None else length
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {claimed}\r\n\r\n"
    return head.encode() + body


@dataclass
class Serving:
    """A server that runs in this test's loop."""

    port: int
    metrics_port: int
    certificate: LiveCertificate
    metrics: Metrics
    drain: Drain
    task: asyncio.Task[None]

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"

    @property
    def probes(self) -> str:
        return f"http://{HOST}:{self.metrics_port}"

    def client(self) -> httpx.AsyncClient:
        trusted = trust(self.certificate.bundle.ca)
        return httpx.AsyncClient(verify=trusted, base_url=self.url, headers=JSON, timeout=60, trust_env=False)

    async def post(self, path: str, content: object, **headers: str) -> httpx.Response:
        async with self.client() as client:
            return await client.post(path, content=content, headers=headers)  # type: ignore[arg-type]

    async def probe(self, path: str) -> httpx.Response:
        async with httpx.AsyncClient(base_url=self.probes, timeout=60, trust_env=False, verify=NO_TLS) as client:
            return await client.get(path)

    @contextlib.asynccontextmanager
    async def wire(self, *, trusting: bytes | None = None) -> AsyncIterator[Wire]:
        context = trust(trusting or self.certificate.bundle.ca)
        reader, writer = await asyncio.open_connection(HOST, self.port, ssl=context)
        try:
            yield Wire(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, ssl.SSLError):
                await writer.wait_closed()

    def counted(self, metric: str, *values: str) -> float:
        labels = dict(zip(TABLE[metric].labels, values, strict=True))
        return self.metrics.registry.get_sample_value(metric, labels) or 0.0

    async def stop(self) -> None:
        """End at once, without the last stretch."""
        self.drain.begin()
        self.drain.begin()
        await self.task


@contextlib.asynccontextmanager
async def a_server(
    mutate: Handler = allowing,
    validate: Handler = allowing,
    *,
    limits: Limits | None = None,
    bundle: Bundle | None = None,
    drain: Drain | None = None,
    callers: Callers | None = None,
    **checks: str | None,
) -> AsyncIterator[Serving]:
    """A server on free ports; `checks` are readiness checks with what each finds wrong."""
    metrics, drain = Metrics(), drain or Drain(seconds=60)
    certificate = LiveCertificate(bundle or _usual_bundle(), callers.ca if callers else None)
    admission, observability = listen(HOST, 0), listen(HOST, 0)
    port, metrics_port = port_of(admission), port_of(observability)
    task = asyncio.create_task(
        serve(
            AdmissionPort(mutate, validate, certificate, admission, limits or Limits(), callers or Callers()),
            observability,
            {name: (lambda trouble=trouble: trouble) for name, trouble in checks.items()},  # type: ignore[misc]
            metrics,
            drain,
        )
    )
    serving = Serving(port, metrics_port, certificate, metrics, drain, task)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            yield serving
    finally:
        await serving.stop()


@contextlib.asynccontextmanager
async def a_process() -> AsyncIterator[tuple[asyncio.subprocess.Process, int, int]]:
    """A server in a process of its own, with its metrics port and its port."""
    command = (sys.executable, "-m", "tests.unit.server.child")
    child = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    assert child.stdout is not None
    try:
        metrics_port, port = map(int, (await child.stdout.readline()).split())
        yield child, metrics_port, port
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.communicate()
