"""A span a review, with children for what it waits for: the owners that are read, and the booking.

The API server sends a W3C traceparent with each call of a webhook if it traces (APIServerTracing): then the span is a
child of the API server's, and as often sampled.
https://kubernetes.io/docs/concepts/cluster-administration/system-traces/
"""

import asyncio
import threading
from collections.abc import Collection, Mapping
from importlib import metadata

import msgspec
from msgspec import structs
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from webhook.admission.review import Request
from webhook.admission.reviewer import Verdict
from webhook.admission.webhook import Record, under
from webhook.cluster.cluster import Cluster, Owners
from webhook.ledger.protocol import Booked, Booking, GangBooking, Ledger
from webhook.objects.pods import OwnerReference
from webhook.policy.quota.charges import Shortfall
from webhook.policy.values.tenants import Tenant, Usage
from webhook.policy.values.tier_policy import Mode
from webhook.policy.workloads.kinds import KindTable
from webhook.policy.workloads.workload import Workload
from webhook.server.tracing import Tracing

NAME = "gpu-tiers"
CLOSING_SECONDS = 2.0
"""For the last spans at the end of the process; a collector that does not answer holds it up no longer."""
SERVER_ERROR = 500

_PROPAGATOR = TraceContextTextMapPropagator()


def exporting() -> TracerProvider:
    """Sends to the collector of the environment. What else its variables say counts: sampler, attributes, headers."""
    ours = Resource.create({"service.name": NAME, "service.version": metadata.version(NAME)})
    provider = TracerProvider(resource=ours.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


class Spans(Tracing):
    """Tracing by a provider."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer(NAME, metadata.version(NAME))

    async def __aexit__(self, *_: object) -> None:
        """Send the last spans, if the collector takes them soon."""
        sending = threading.Thread(target=self._provider.shutdown, daemon=True)
        sending.start()
        await asyncio.to_thread(sending.join, CLOSING_SECONDS)

    def app(self, path: str, app: ASGIApp) -> ASGIApp:
        async def traced(scope: Scope, receive: Receive, send: Send) -> None:
            with self._tracer.start_as_current_span(
                f"POST {path}", _PROPAGATOR.extract(_headers(scope)), SpanKind.SERVER
            ) as span:
                await app(scope, receive, _noting_faults(span, send))

        return traced

    def cluster(self, cluster: Cluster) -> Cluster:
        owners = _TracedOwners(cluster.lookups.owners, self._tracer)
        return Cluster(cluster.known, structs.replace(cluster.lookups, owners=owners))

    def ledger(self, ledger: Ledger) -> Ledger:
        return _TracedLedger(ledger, self._tracer)

    def record(self, record: Record) -> Record:
        def recorded(webhook: str, request: Request, verdict: Verdict, mode: Mode) -> None:
            record(webhook, request, verdict, mode)
            get_current_span().set_attributes(_attributes(request, verdict, mode))

        return recorded


class _TracedOwners(msgspec.Struct, frozen=True):
    """Owners that are read in spans."""

    owners: Owners
    tracer: Tracer

    async def chain(self, namespace: str, first: OwnerReference, kinds: KindTable) -> tuple[Workload, ...]:
        with self.tracer.start_as_current_span("read owners") as span:
            found = await self.owners.chain(namespace, first, kinds)
            span.set_attribute("gpu_tiers.owners", [str(each) for each in found])
            return found


class _TracedLedger(msgspec.Struct, frozen=True):
    """A ledger that books in spans; the rest of it is the ledger's own."""

    ledger: Ledger
    tracer: Tracer

    def usage(self, tenant: Tenant, without: Collection[str] = ()) -> Usage:
        return self.ledger.usage(tenant, without)

    def used(self, tenant: Tenant) -> Usage:
        return self.ledger.used(tenant)

    def reserved_for_queue(self, tenant: Tenant, rank: int = 0) -> Usage:
        return self.ledger.reserved_for_queue(tenant, rank)

    def unseen(self, tenant: Tenant, namespace: str, maker: str) -> Mapping[str, str]:
        return self.ledger.unseen(tenant, namespace, maker)

    async def gang_tier(self, tenant: Tenant, namespace: str, uid: str) -> str | None:
        return await self.ledger.gang_tier(tenant, namespace, uid)

    async def has_room(self, booking: Booking) -> bool:
        with self.tracer.start_as_current_span("ask for room") as span:
            found = await self.ledger.has_room(booking)
            span.set_attribute("gpu_tiers.has_room", found)
            return found

    async def book(self, booking: Booking | GangBooking, *, dry_run: bool = False) -> Booked | Shortfall:
        with self.tracer.start_as_current_span("book") as span:
            answer = await self.ledger.book(booking, dry_run=dry_run)
            span.set_attribute("gpu_tiers.booked", isinstance(answer, Booked))
            return answer


def _headers(scope: Scope) -> dict[str, str]:
    wanted = (b"traceparent", b"tracestate")
    return {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in wanted}


def _noting_faults(span: Span, send: Send) -> Send:
    async def noting(message: Message) -> None:
        if message["type"] == "http.response.start":
            span.set_attribute("http.response.status_code", message["status"])
            if message["status"] >= SERVER_ERROR:
                span.set_status(StatusCode.ERROR)
        await send(message)

    return noting


def _attributes(request: Request, verdict: Verdict, mode: Mode) -> dict[str, str | bool]:
    """What finds a review in a trace, and what came of it; nothing of the object's content."""
    assigned = verdict.assignment
    found: dict[str, str | bool] = {
        "gpu_tiers.uid": request.uid,
        "gpu_tiers.kind": request.kind.kind,
        "gpu_tiers.operation": request.operation,
        "k8s.namespace.name": request.namespace,
        "gpu_tiers.name": request.name,
        "gpu_tiers.dry_run": request.dry_run,
        "gpu_tiers.tenant": verdict.tenant or "",
        "gpu_tiers.tier": assigned.tier.name if assigned and assigned.tier else "",
        "gpu_tiers.verdict": under(mode, verdict).outcome,
        "gpu_tiers.mode": mode.name,
    }
    refusal = verdict.refusal
    return found | ({"gpu_tiers.refusal": str(refusal.reason)} if refusal is not None else {})
