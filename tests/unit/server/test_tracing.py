"""Traces of reviews, as a collector of OpenTelemetry gets them: it listens here, and reads OTLP over HTTP."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from msgspec.structs import replace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.builders import a_job, a_pod, a_tenant
from tests.builders.world import World
from tests.unit.server.serving import a_server
from webhook.admission.review import Request
from webhook.config.errors import ConfigError
from webhook.server.tracing import Tracing, tracing_of

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
FROM_THE_API_SERVER = {"traceparent": f"00-{TRACE}-{PARENT}-01"}


class Collector:
    """Takes spans, and knows the attributes of the process that sent them."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.resource: Mapping[str, str] = {}
        collector = self

        class Taking(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                assert self.path == "/v1/traces"
                body = self.rfile.read(int(self.headers["content-length"]))
                for found in ExportTraceServiceRequest.FromString(body).resource_spans:
                    collector.resource = {each.key: each.value.string_value for each in found.resource.attributes}
                    collector.spans += [span for scope in found.scope_spans for span in scope.spans]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Taking)
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def environment(self) -> dict[str, str]:
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{self.server.server_port}"}

    def one(self, name: str) -> Span:
        (span,) = (each for each in self.spans if each.name == name)
        return span


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    before = set(threading.enumerate())
    listening = Collector()
    for name, value in (listening.environment | {"OTEL_EXPORTER_OTLP_TIMEOUT": "1"}).items():
        monkeypatch.setenv(name, value)
    yield listening
    listening.server.shutdown()
    listening.server.server_close()
    for thread in set(threading.enumerate()) - before:  # a later test is not to be blamed for what one of them does
        thread.join(60)
        assert not thread.is_alive()


def values(span: Span) -> dict[str, str]:
    return {each.key.partition(".")[2]: each.value.string_value for each in span.attributes}


async def review(world: World, path: str, body: bytes, tracing: Tracing, **headers: str) -> None:
    """A review of the world's webhooks over TLS, in a process with this tracing."""
    parts = {"cluster": tracing.cluster(world.cluster), "ledger": tracing.ledger(world.ledger)}
    webhooks = replace(world.webhooks, **parts, record=tracing.record(world.webhooks.record))
    async with tracing, a_server(webhooks.mutate, webhooks.validate, tracing=tracing) as server:
        assert (await server.post(path, body, **headers)).status_code == 200


async def test_a_review_is_a_child_of_the_api_servers_call(collector: Collector) -> None:
    job = a_job(name="train-ranker")
    world = World(job, a_tenant().allowing(2))
    pod = (await world.mutate(a_pod().asking().of_tier("gpu-batch").owned_by(job))).patched
    body = world.body(world.stored(pod))
    await review(world, "/validate", body, tracing_of(collector.environment), **FROM_THE_API_SERVER)
    whole = collector.one("POST /validate")
    assert (whole.trace_id.hex(), whole.parent_span_id.hex()) == (TRACE, PARENT)
    told = values(whole)
    assert told["uid"] == "705ab4f5-6393-11e8-b7cc-42010a800002"
    assert (told["kind"], told["name"], told["namespace.name"]) == ("Pod", "train-ranker-x7k2p", "team-alpha")
    assert (told["tier"], told["verdict"], told["mode"]) == ("gpu-batch", "allowed", "Enforce")
    for part in ("read owners", "book"):
        assert collector.one(part).parent_span_id == whole.span_id
    assert collector.resource["service.name"] == "gpu-tiers"


async def test_a_refusal_is_told_in_one_word_and_nothing_of_the_object(collector: Collector) -> None:
    world = World(a_tenant(maxTier="gpu-batch"))
    pod = a_pod("secret").asking().of_tier("gpu-training").annotated({"example.com/token": "hunter2"})
    await review(world, "/validate", world.body(world.stored(pod)), tracing_of(collector.environment))
    whole = collector.one("POST /validate")
    assert (values(whole)["verdict"], values(whole)["refusal"]) == ("denied", "ceiling")
    assert b"hunter2" not in whole.SerializeToString()
    assert not whole.parent_span_id, "nobody traces before it"


async def test_what_the_api_server_does_not_sample_is_not_sent(collector: Collector) -> None:
    world = World()
    unsampled = {"traceparent": f"00-{TRACE}-{PARENT}-00"}
    body = world.body(a_pod().asking().of_tier("gpu-batch"))
    await review(world, "/mutate", body, tracing_of(collector.environment), **unsampled)
    assert collector.spans == []


async def test_a_fault_of_ours_is_an_error(collector: Collector) -> None:
    async def broken(_: Request, _patience: float) -> bytes:
        raise RuntimeError("boom")

    body, tracing = World().body(a_pod().asking()), tracing_of(collector.environment)
    async with tracing, a_server(broken, tracing=tracing) as server:
        assert (await server.post("/mutate", body)).status_code == 500
    assert collector.one("POST /mutate").status.code == 2


async def test_a_collector_that_is_away_holds_up_nothing(collector: Collector) -> None:
    collector.server.shutdown()
    collector.server.server_close()
    world = World()
    body = world.body(a_pod().asking().of_tier("gpu-batch"))
    async with asyncio.timeout(60):
        await review(world, "/mutate", body, tracing_of(collector.environment))


COLLECTOR = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"}


@pytest.mark.parametrize(
    "environment",
    [{}, COLLECTOR | {"OTEL_SDK_DISABLED": "true"}, COLLECTOR | {"OTEL_TRACES_EXPORTER": "none"}],
    ids=["no collector", "disabled", "no exporter"],
)
def test_without_a_collector_every_part_stays_as_it_is(environment: Mapping[str, str]) -> None:
    world, tracing = World(), tracing_of(environment)
    assert tracing.cluster(world.cluster) is world.cluster
    assert tracing.ledger(world.ledger) is world.ledger
    assert tracing.record(world.webhooks.record) is world.webhooks.record


def test_a_protocol_that_is_not_spoken_is_named() -> None:
    with pytest.raises(ConfigError) as told:
        tracing_of(COLLECTOR | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    assert str(told.value) == (
        'OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not spoken here: take http/protobuf, at the collector\'s port 4318'
    )


def test_traces_without_the_library_are_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.server.tracing.NEEDED", ("opentelemetry.no_such_part",))
    with pytest.raises(ConfigError) as told:
        tracing_of(COLLECTOR)
    assert "OpenTelemetry is not installed: pip install 'gpu-tiers[otel]'" in str(told.value)
