"""The composition root, which wires all parts of the process."""

import asyncio
import gc
import time
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Literal

from certs.configurations import WebhookConfigurations
from certs.make import service_names
from certs.self_managed import CertificateSecret, SelfManaged
from certs.source import CertificateFiles, CertificateSource, Objects
from webhook.admission.webhook import Webhooks
from webhook.cluster.live import LiveCluster, live_cluster
from webhook.cluster.watched import Watched
from webhook.config.active_policy import ActivePolicy
from webhook.config.errors import ConfigError
from webhook.controllers.event_writer import EventWriter
from webhook.controllers.rounds import PolicyMap, last_published, tell_of_no_policy
from webhook.kube.client import Client
from webhook.kube.reflector import patiently
from webhook.page.readers import Readers
from webhook.page.routes import page_app
from webhook.policy.values.gpu_supply import resources_of_classes
from webhook.policy.values.tiers import disagreements, obstacles
from webhook.report.latest import MOST_NAME, ReplicaMark
from webhook.server import gauges
from webhook.server.background import background_work
from webhook.server.bookings_port import BookingsPort
from webhook.server.endpoint import Callers
from webhook.server.listener import Drain, listen
from webhook.server.metrics import Metrics
from webhook.server.page_ports import health_of, page_content, page_sockets
from webhook.server.record import marked, note_reload
from webhook.server.reports import ReportsPort
from webhook.server.run import AdmissionPort, AppPort, Check, serve
from webhook.server.running_ledger import RunningLedger
from webhook.server.settings import Certificates, Settings
from webhook.server.tls import CertificateObjects, LiveCertificate


async def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises ConfigError, ApiError, CertificateError or OSError if it can't start."""
    callers = Callers.read_from(settings.client_ca, tuple(settings.client_names or ()))
    admission, observability = listen(settings.host, settings.port), listen(settings.host, settings.metrics_port)
    listening_for_pages = page_sockets(settings)
    metrics = Metrics()
    async with (
        await Client.connect(settings.kubeconfig) as client,
        live_cluster(client) as cluster,
    ):
        await patiently("tiers, namespaces and tenants", cluster.known.wait_synced(), cluster.known.problems)
        active = await _read_active_policy(settings, cluster, metrics)
        event_writer = EventWriter(client)
        source, configurations = _certificates(settings, CertificateObjects(client))
        certificate = LiveCertificate(await source.load(), callers.ca)
        reached_at = settings.pod_ip or settings.host
        hand_over = BookingsPort(settings.host, settings.hand_over_port, reached_at, certificate, metrics)
        async with aclosing(RunningLedger(cluster, active, event_writer, settings, hand_over, metrics)) as ledger:
            reports = ReportsPort(settings, client, active, metrics)
            reports.certified(certificate.bundle)
            background = background_work(settings, cluster, active, event_writer, ledger, metrics, reports.saves)
            gauges.of_policy(metrics, active)
            gauges.of_leader(metrics, active, ledger)
            gauges.of_queues(metrics, cluster.known, ledger)
            gauges.of_tenants(metrics, cluster.known, ledger.ledger)
            gauges.of_process(metrics, cluster.known, configurations)
            drain = Drain()
            drain.on_signals()
            webhooks = Webhooks(cluster, ledger.ledger, active.current, background.recorder)
            checks = _checks(cluster.known, certificate, configurations)
            readers = Readers(client, tuple(settings.page_audiences or ()))
            health = partial(health_of, checks, cluster.known, configurations, active, ledger.leader)
            content = page_content(settings, cluster, active, ledger, background, health)
            pages = [
                AppPort(
                    page_app(content, readers if guarded else None), listening, certificate.pages if guarded else None
                )
                for listening, guarded in listening_for_pages
            ]
            gc.freeze()  # objects that live as long as the process are left out of every collection
            gc.set_threshold(700)  # Python's default: with the threshold of commands, a collection would delay reviews
            name = settings.replica[:MOST_NAME]

            def mark(webhook: Literal["mutate", "validate"]) -> ReplicaMark:
                """Describe this replica for `gpu-tiers check`."""
                expires, silent = int(certificate.bundle.not_after.timestamp()), int(cluster.known.silent_seconds)
                return ReplicaMark(webhook, name, active.digest, active.taken, silent, expires)

            mutate, validate = marked("mutate", webhooks.mutate, mark), marked("validate", webhooks.validate, mark)
            known_paths = replace(callers, paths=lambda: configurations.paths)
            port = AdmissionPort(mutate, validate, certificate, admission, callers=known_paths)
            others = (*pages, *reports.serving(certificate), *ledger.ports)
            # A background task that dies ends the process with its error, because nothing else restarts it.
            async with asyncio.TaskGroup() as tasks:
                following = active.run(), certificate.follow(source, reports.certified), configurations.run()
                running = [tasks.create_task(each) for each in (*following, ledger.run(), background.run())]
                await serve(port, observability, checks, metrics, drain, others)
                for task in running:
                    task.cancel()


async def _read_active_policy(settings: Settings, cluster: LiveCluster, metrics: Metrics) -> ActivePolicy:
    """Return the active policy, and follow the objects of the cluster that it needs. Raises ConfigError, ApiError."""
    known, policy_map = cluster.known, PolicyMap(settings.namespace, settings.config_map)
    active = ActivePolicy(
        settings.policy,
        lambda policy: [*map(str, disagreements(policy.tiers, known.classes()))],
        lambda policy: [*map(str, obstacles(policy.tiers, known.classes(), adoption=policy.adoption))],
        partial(note_reload, metrics),
    )
    try:
        active.start(await last_published(cluster.client, policy_map))
    except ConfigError as problem:
        await tell_of_no_policy(cluster.client, policy_map, problem)
        raise
    classes = known.device_classes
    await classes.follow(active.tell_classes)
    await patiently("device classes", classes.wait_synced(), classes.problems)

    # A policy needs the nodes' labels for flavors, and their resources for device classes. If it needs neither, no node
    # is read. Only the labels are waited for, because they decide how a pod counts.
    def follow_nodes() -> None:
        policy = active.current()
        known.nodes.follow({key for flavor in policy.flavors for key in flavor.node_labels})
        known.plugins.follow(resources_of_classes(policy.classes.values()))

    follow_nodes()
    active.subscribe(follow_nodes)
    if active.current().flavors:
        await patiently("the labels of nodes", known.nodes.wait_synced(), known.nodes.problems)
    return active


def _certificates(settings: Settings, objects: Objects) -> tuple[CertificateSource, WebhookConfigurations]:
    if settings.certificates is Certificates.FILES:
        return CertificateFiles(settings.cert_dir), WebhookConfigurations(objects, settings.configuration)
    secret = CertificateSecret(objects, settings.namespace, settings.secret)
    configurations = WebhookConfigurations(objects, settings.configuration, wanted=secret.ca_bundle)
    reports = service_names(settings.reports_service, settings.namespace) if settings.reports_port is not None else ()
    names = service_names(settings.service, settings.namespace, (*reports, *(settings.dns_names or ())))
    return SelfManaged(secret, configurations, names=names), configurations


def _checks(known: Watched, certificate: LiveCertificate, configurations: WebhookConfigurations) -> Mapping[str, Check]:
    """Return the checks of /readyz by name. "policy" never fails, because the process serves only with a policy."""

    no_path = "the webhook configurations, which name the path of reviews, have not been read yet"
    unread, expired = "not everything has been read from the API server yet", "the serving certificate has expired"
    return {
        "policy": lambda: None,
        "caches": lambda: None if known.synced else unread,
        "path": lambda: None if configurations.read else no_path,
        "certificates": lambda: expired if certificate.bundle.not_after.timestamp() <= time.time() else None,
    }
