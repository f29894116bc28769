"""The composition root: which part is wired to which."""

import asyncio
import gc
import os
import time
from collections.abc import Awaitable, Mapping
from contextlib import AbstractAsyncContextManager

from certs.ca_bundle import WebhookConfigurations
from certs.files import CertificateFiles
from certs.make import service_names
from certs.objects import Objects
from certs.secret import CertificateSecret
from certs.self_managed import SelfManaged
from certs.source import CertificateSource
from webhook.admission.webhook import Webhooks
from webhook.cluster.live import LiveCluster
from webhook.config.in_force import PolicyInForce
from webhook.controller.event_writer import EventWriter
from webhook.kube.client import Client
from webhook.page.readers import Readers
from webhook.policy.values.tiers import disagreements
from webhook.server import gauges
from webhook.server.app import Check
from webhook.server.beside import Beside
from webhook.server.certificate_objects import CertificateObjects
from webhook.server.drain import Drain
from webhook.server.ledgers import RunningLedger, in_memory, on_the_api_server
from webhook.server.listener import listen
from webhook.server.metrics import Metrics
from webhook.server.observed_pods import nodes_followed
from webhook.server.page_ports import PagePorts
from webhook.server.page_sources import health_of, page_sources
from webhook.server.patience import patiently
from webhook.server.record import reload_recorder
from webhook.server.run import serve
from webhook.server.settings import Certificates, LedgerKind, Settings
from webhook.server.tls import LiveCertificate
from webhook.server.tracing import tracing_of


async def run(settings: Settings) -> None:
    """Serve until told to stop. Raises ConfigError, ApiError, CertificateError or OSError where it can't start."""
    admission, observability = listen(settings.host, settings.port), listen(settings.host, settings.metrics_port)
    page_ports = PagePorts.opened(settings)
    metrics = Metrics()
    async with (
        tracing_of(os.environ) as tracing,
        await Client.connect(settings.kubeconfig) as client,
        LiveCluster(client) as cluster,
    ):
        await patiently("tiers, namespaces and tenants", cluster.wait_synced(), cluster.problems)
        in_force = PolicyInForce(
            settings.policy, lambda policy: disagreements(policy.tiers, cluster.classes()), reload_recorder(metrics)
        )
        in_force.start()
        await nodes_followed(cluster, in_force)
        event_writer = EventWriter(client)
        async with _ledger(settings, client, cluster, in_force, event_writer, metrics) as charged:
            source, configurations = _certificates(settings, CertificateObjects(client))
            certificate = LiveCertificate(await source.load())
            beside = Beside(client, cluster, in_force, event_writer, charged, metrics)
            _gauges(metrics, in_force, cluster, charged, configurations)
            drain = Drain()
            drain.on_signals()
            webhooks = Webhooks(
                tracing.cluster(cluster),
                tracing.ledger(charged.ledger),
                in_force.current,
                tracing.record(beside.recorder),
            )
            checks = _checks(cluster, certificate)
            page = page_sources(
                settings,
                cluster,
                in_force,
                charged,
                lambda: health_of(checks, cluster, configurations),
                beside.verdicts,
                beside.preemptions,
            )
            gc.freeze()  # what lives as long as the process need not be looked at in every collection
            serving = serve(
                mutate=webhooks.mutate,
                validate=webhooks.validate,
                checks=checks,
                certificate=certificate,
                metrics=metrics,
                drain=drain,
                admission=admission,
                observability=observability,
                pages=tuple(page_ports.serving(page, Readers(client, settings.page_audiences), certificate)),
                tracing=tracing,
            )
            following = in_force.run(), certificate.follow(source), configurations.run()
            await _serve_with(serving, *following, charged.run(), beside.run())


def _ledger(
    settings: Settings,
    client: Client,
    cluster: LiveCluster,
    in_force: PolicyInForce,
    events: EventWriter,
    metrics: Metrics,
) -> AbstractAsyncContextManager[RunningLedger]:
    if settings.ledger is LedgerKind.MEMORY:
        return in_memory(client, cluster, in_force, events)
    return on_the_api_server(client, cluster, in_force, events, settings.election, metrics)


def _certificates(settings: Settings, objects: Objects) -> tuple[CertificateSource, WebhookConfigurations]:
    if settings.certificates is Certificates.FILES:
        return CertificateFiles(settings.cert_dir), WebhookConfigurations(objects, settings.configuration)
    secret = CertificateSecret(objects, settings.namespace, settings.secret)
    configurations = WebhookConfigurations(objects, settings.configuration, wanted=secret.ca_bundle)
    names = service_names(settings.service, settings.namespace, settings.dns_names)
    return SelfManaged(secret, configurations, names=names), configurations


def _gauges(
    metrics: Metrics,
    in_force: PolicyInForce,
    cluster: LiveCluster,
    charged: RunningLedger,
    configurations: WebhookConfigurations,
) -> None:
    gauges.of_policy(metrics, in_force)
    gauges.of_ledger(metrics, charged)
    gauges.of_tenants(metrics, cluster, charged.ledger)
    gauges.of_build(metrics)
    gauges.of_configurations(metrics, configurations)
    following = {"cluster": lambda: cluster.synced and not cluster.problems()}
    gauges.of_caches(metrics, {**following, **charged.following})


def _checks(cluster: LiveCluster, certificate: LiveCertificate) -> Mapping[str, Check]:
    """What /readyz asks. A policy is always in force once the process serves."""

    def caches() -> str | None:
        return None if cluster.synced else "not everything has been read from the API server yet"

    def certificates() -> str | None:
        expired = certificate.bundle.not_after.timestamp() <= time.time()
        return "the serving certificate has expired" if expired else None

    return {"policy": lambda: None, "caches": caches, "certificates": certificates}


async def _serve_with(serving: Awaitable[None], *background: Awaitable[None]) -> None:
    """Serve to the end; a background task that dies ends the process with its error, for nothing else restarts it."""
    async with asyncio.TaskGroup() as tasks:
        beside = [tasks.create_task(_awaited(task)) for task in background]
        await serving
        for task in beside:
            task.cancel()


async def _awaited(task: Awaitable[None]) -> None:
    await task
