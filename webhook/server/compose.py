"""The composition root: which part is wired to which."""

import asyncio
import gc
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
from webhook.admission.webhook import MODE_LABEL, Webhooks, mode_in
from webhook.cluster.live import LiveCluster
from webhook.config.in_force import PolicyInForce
from webhook.controller.backstop_writer import BackstopWriter
from webhook.controller.event_writer import EventWriter
from webhook.controller.kueue_evictions import KueueEvictions
from webhook.controller.kueue_workloads import KueueWorkloads
from webhook.controller.preemption_watch import PreemptionWatch
from webhook.controller.refusal_events import Outermost, RefusalEvents
from webhook.kube.client import Client
from webhook.objects.pods import OwnerReference
from webhook.page.routes import page_app
from webhook.policy.values.facts import Namespace
from webhook.policy.values.tier_policy import Mode
from webhook.policy.values.tiers import disagreements
from webhook.readmodel.preemptions import Preemptions
from webhook.readmodel.verdicts import RecentVerdicts
from webhook.server import gauges
from webhook.server.app import Check
from webhook.server.certificate_objects import CertificateObjects
from webhook.server.drain import Drain
from webhook.server.gpu_seconds import GpuSeconds
from webhook.server.kueue_releases import KueueReleases
from webhook.server.ledgers import RunningLedger, in_memory, on_the_api_server
from webhook.server.listener import listen
from webhook.server.metrics import Metrics
from webhook.server.observed_pods import nodes_followed
from webhook.server.page_sources import health_of, page_sources
from webhook.server.patience import patiently
from webhook.server.preemption_recorder import PreemptionRecorder
from webhook.server.record import Recorder, reload_recorder
from webhook.server.run import serve
from webhook.server.settings import Certificates, LedgerKind, Settings
from webhook.server.tls import LiveCertificate


async def run(settings: Settings) -> None:
    """Serve until told to stop. Raises ConfigError, ApiError, CertificateError or OSError where it can't start."""
    admission, observability = listen(settings.host, settings.port), listen(settings.host, settings.metrics_port)
    page_socket = listen(settings.page_host, settings.page_port) if settings.page_port is not None else None
    metrics = Metrics()
    async with await Client.connect(settings.kubeconfig) as client, LiveCluster(client) as cluster:
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
            outermost = _outermost(cluster, in_force)
            events = RefusalEvents(event_writer, outermost, cluster.tenant_uid)
            verdicts, kept = RecentVerdicts(), Preemptions()
            preempted = PreemptionRecorder(kept, metrics, event_writer, outermost, charged.leading)
            preemptions = PreemptionWatch(client, cluster.tenant_name, in_force.current, charged.last_held, preempted)
            backstop = _backstop(client, cluster, in_force, event_writer, charged)
            _gauges(metrics, in_force, cluster, charged, configurations)
            drain = Drain()
            drain.on_signals()
            queued = KueueWorkloads(client)
            evictions = KueueEvictions(queued, lambda: charged.leading() and in_force.current().kueue is not None)
            releases = KueueReleases(client, cluster, charged.ledger, in_force.current, evictions.tell)
            recorder = Recorder(metrics, events.tell, verdicts.add, releases.refused)
            webhooks = Webhooks(cluster, charged.ledger, in_force.current, recorder)
            checks = _checks(cluster, certificate)
            page = page_sources(
                settings.election.identity,
                cluster,
                in_force,
                charged,
                lambda: health_of(checks, cluster, configurations),
                verdicts,
                kept,
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
                page=(page_app(page), page_socket) if page_socket else None,
            )
            gpu_seconds = GpuSeconds(metrics, charged.running, cluster)
            following = in_force.run(), certificate.follow(source), configurations.run()
            beside = events.run(), backstop.run(), preemptions.run(), evictions.run(), gpu_seconds.run()
            await _beside(serving, *following, charged.run(), *beside)


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


def _backstop(
    client: Client, cluster: LiveCluster, in_force: PolicyInForce, events: EventWriter, charged: RunningLedger
) -> BackstopWriter:
    def enforced(namespace: Namespace) -> bool:
        return mode_in(in_force.current(), namespace.labels.get(MODE_LABEL, "")) is Mode.Enforce

    writer = BackstopWriter(client, cluster, in_force.current, enforced, charged.leading, events)
    in_force.subscribe(writer.wake)
    return writer


def _outermost(cluster: LiveCluster, in_force: PolicyInForce) -> Outermost:
    async def outermost(namespace: str, first: OwnerReference) -> OwnerReference | None:
        return await cluster.outermost(namespace, first, in_force.current().kinds)

    return outermost


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


async def _beside(serving: Awaitable[None], *background: Awaitable[None]) -> None:
    """Serve to the end; a background task that dies ends the process with its error, for nothing else restarts it."""
    async with asyncio.TaskGroup() as tasks:
        beside = [tasks.create_task(_awaited(task)) for task in background]
        await serving
        for task in beside:
            task.cancel()


async def _awaited(task: Awaitable[None]) -> None:
    await task
