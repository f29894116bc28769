"""The composition root: which part is wired to which."""

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Mapping

from certs.ca_bundle import WebhookConfigurations
from certs.files import CertificateFiles
from certs.make import service_names
from certs.objects import Objects
from certs.secret import CertificateSecret
from certs.self_managed import SelfManaged
from certs.source import CertificateSource
from webhook.admission.webhook import Webhooks
from webhook.cluster.live import LiveCluster
from webhook.cluster.pod_informer import PodInformer
from webhook.config.in_force import PolicyInForce
from webhook.controller.event_writer import EventWriter
from webhook.controller.refusal_events import RefusalEvents
from webhook.controller.tenant_status import TenantStatusWriter
from webhook.kube.client import Client
from webhook.ledger.memory import MemoryLedger
from webhook.ledger.pods_on_nodes import Placed
from webhook.ledger.protocol import Ledger
from webhook.objects.pods import OwnerReference
from webhook.policy.quota.usage_status import Count
from webhook.policy.values.tenants import Tenant
from webhook.policy.values.tiers import disagreements
from webhook.server import gauges
from webhook.server.app import Check
from webhook.server.certificate_objects import CertificateObjects
from webhook.server.drain import Drain
from webhook.server.listener import listen
from webhook.server.metrics import Metrics
from webhook.server.observed_pods import nodes_followed, pods_observed
from webhook.server.patience import patiently
from webhook.server.record import Recorder, reload_recorder
from webhook.server.run import serve
from webhook.server.settings import Certificates, Settings
from webhook.server.tls import LiveCertificate


async def run(settings: Settings) -> None:
    """Serve until told to stop. Raises ConfigError, ApiError, CertificateError or OSError where it can't start."""
    admission, observability = listen(settings.host, settings.port), listen(settings.host, settings.metrics_port)
    metrics = Metrics()
    async with await Client.connect(settings.kubeconfig) as client, LiveCluster(client) as cluster:
        await patiently("tiers, namespaces and tenants", cluster.wait_synced(), cluster.problems)
        in_force = PolicyInForce(
            settings.policy, lambda policy: disagreements(policy.tiers, cluster.classes()), reload_recorder(metrics)
        )
        in_force.start()
        await nodes_followed(cluster, in_force)
        ledger = MemoryLedger(time.time, cluster.tenant_name)
        async with pods_observed(ledger, client, cluster, in_force) as pods:
            source, configurations = _certificates(settings, CertificateObjects(client))
            certificate = LiveCertificate(await source.load())
            writer = TenantStatusWriter(client, cluster, in_force.current, _counting(ledger, pods, cluster))
            events = _refusal_events(client, cluster, in_force)
            _subscribe(in_force, ledger, pods, writer)
            _gauges(metrics, in_force, cluster, pods, ledger, configurations)
            drain = Drain()
            drain.on_signals()
            webhooks = Webhooks(cluster, ledger, in_force.current, Recorder(metrics, events.tell))
            gc.freeze()  # what lives as long as the process need not be looked at in every collection
            serving = serve(
                mutate=webhooks.mutate,
                validate=webhooks.validate,
                checks=_checks(cluster, pods, certificate),
                certificate=certificate,
                metrics=metrics,
                drain=drain,
                admission=admission,
                observability=observability,
            )
            following = in_force.run(), certificate.follow(source), configurations.run()
            await _beside(serving, *following, writer.run(), events.run())


def _counting(ledger: Ledger, pods: PodInformer[Placed], cluster: LiveCluster) -> Callable[[Tenant], Count]:
    def count(tenant: Tenant) -> Count:
        booked, used = ledger.usage(tenant), ledger.used(tenant)
        reserved = {row: booked[row] - used[row] for row in booked}
        return Count(used, reserved, stale="; ".join([*pods.problems(), *cluster.nodes.problems()]))

    return count


def _refusal_events(client: Client, cluster: LiveCluster, in_force: PolicyInForce) -> RefusalEvents:
    async def outermost(namespace: str, first: OwnerReference) -> OwnerReference | None:
        return await cluster.outermost(namespace, first, in_force.current().kinds)

    return RefusalEvents(EventWriter(client), outermost, cluster.tenant_uid)


def _certificates(settings: Settings, objects: Objects) -> tuple[CertificateSource, WebhookConfigurations]:
    if settings.certificates is Certificates.FILES:
        return CertificateFiles(settings.cert_dir), WebhookConfigurations(objects, settings.configuration)
    secret = CertificateSecret(objects, settings.namespace, settings.secret)
    configurations = WebhookConfigurations(objects, settings.configuration, wanted=secret.ca_bundle)
    names = service_names(settings.service, settings.namespace, settings.dns_names)
    return SelfManaged(secret, configurations, names=names), configurations


def _subscribe(in_force: PolicyInForce, ledger: Ledger, pods: PodInformer[Placed], writer: TenantStatusWriter) -> None:
    in_force.subscribe(pods.relist)  # other resources may count now, and weigh differently
    in_force.subscribe(writer.wake)
    ledger.subscribe(writer.wake)


def _gauges(
    metrics: Metrics,
    in_force: PolicyInForce,
    cluster: LiveCluster,
    pods: PodInformer[Placed],
    ledger: Ledger,
    configurations: WebhookConfigurations,
) -> None:
    gauges.of_policy(metrics, in_force)
    gauges.of_ledger(metrics, cluster, ledger)
    gauges.of_configurations(metrics, configurations)
    following = {
        "cluster": lambda: cluster.synced and not cluster.problems(),
        "pods": lambda: pods.synced and not pods.problems(),
    }
    gauges.of_caches(metrics, following)


def _checks(cluster: LiveCluster, pods: PodInformer[Placed], certificate: LiveCertificate) -> Mapping[str, Check]:
    """What /readyz asks. A policy is always in force once the process serves."""

    def caches() -> str | None:
        return None if cluster.synced and pods.synced else "not everything has been read from the API server yet"

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
