"""Traces of reviews for OpenTelemetry, where the environment names a collector. Else nothing of it is even imported."""

import importlib.util
from collections.abc import Mapping
from typing import Self

from starlette.types import ASGIApp

from webhook.admission.webhook import Record
from webhook.cluster.cluster import Cluster
from webhook.config.errors import ConfigError
from webhook.ledger.protocol import Ledger

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
NEEDED = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")


class Tracing:
    """No traces: each part stays as it is, and costs what it costs."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...

    def app(self, path: str, app: ASGIApp) -> ASGIApp:  # noqa: ARG002 - the spans are named after it
        """An admission path, with a span a review."""
        return app

    def cluster(self, cluster: Cluster) -> Cluster:
        """A cluster, with a span for the owners that are read."""
        return cluster

    def ledger(self, ledger: Ledger) -> Ledger:
        """A ledger, with a span a booking."""
        return ledger

    def record(self, record: Record) -> Record:
        """What is told of verdicts, and writes them on the spans too."""
        return record


def tracing_of(environment: Mapping[str, str]) -> Tracing:
    """The tracing that OpenTelemetry's own variables ask for. Raises ConfigError where they can't be obeyed."""
    endpoint = next((name for name in ENDPOINTS if environment.get(name)), None)
    if endpoint is None or _is_off(environment):
        return Tracing()
    protocol = next((name for name in PROTOCOLS if environment.get(name)), None)
    if protocol and environment[protocol] != "http/protobuf":
        problem = f'"{environment[protocol]}" is not spoken here: take http/protobuf, at the collector\'s port 4318'
        raise ConfigError(protocol, [problem])
    if not all(map(_is_installed, NEEDED)):
        raise ConfigError(endpoint, ["OpenTelemetry is not installed: pip install 'gpu-tiers[otel]', or unset it"])
    from webhook.server.spans import Spans, exporting  # noqa: PLC0415 - whoever wants no traces need not have it

    return Spans(exporting())


def _is_off(environment: Mapping[str, str]) -> bool:
    disabled = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    return disabled or environment.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp"


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
